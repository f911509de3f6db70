/* The values of fields as callers give them, up to the request that they make. Checks here are of syntax only: whether
 * a text is a number. */
#ifndef REQUEST_INPUT_H
#define REQUEST_INPUT_H

#include "host.h"
#include "request/fields.h"

#define REQUEST_FIELDS 48 /* at least as many as the table has */

typedef struct {
  dtl_load_options load; /* the pair */
  dtl_request request;   /* its stop strings, biases and grammar are those below */
  const char *costs;     /* "table", "learn"; NULL: not given */
  const char **stop;     /* [request.seq.n_stop] the caller's texts */
  const char **biases;   /* [n_biases] the caller's texts: request_biases reads them */
  dt_bias *bias;
  char *grammar;
  int n_biases;
  char name[REQUEST_FIELDS][32]; /* each field's, as the caller wrote it; "": not given */
} request_input;

/* Whether the field was given. */
bool request_given(const request_input *in, const request_field *field);

/* Sets a field that the caller calls `name`, whose text is kept until the end. DT_EINPUT: a message that begins with
 * that name.
 * - request_text: from its text, as of the command line
 * - request_number: WHOLE, REAL, LOGPROBS
 * - request_flag: FLAG */
dt_status request_text(request_input *in, const request_field *field, const char *name, const char *text,
                       dt_error *err);
dt_status request_number(request_input *in, const request_field *field, const char *name, double value, dt_error *err);
dt_status request_flag(request_input *in, const request_field *field, const char *name, bool value, dt_error *err);
dt_status request_seed(request_input *in, const request_field *field, const char *name, uint64_t value);

/* Sets the grammar from a text in the form of the field "grammar", "json_schema" or "regex"; one that is there goes. */
dt_status request_grammar(request_input *in, const char *form, const char *text, dt_error *err);

/* Reads the texts of biases, which name tokens of the pair. */
dt_status request_biases(request_input *in, const dt_pair *pair, dt_error *err);
/* Adds a bias to those that are read. */
dt_status request_add_bias(request_input *in, dt_bias bias, dt_error *err);

/* Checks all values that need no pair, by the engine; a number of tokens that was not given is none. The message has
 * the caller's name of the field. */
dt_status request_check(const request_input *in, dt_error *err);

/* A message of the engine that begins with a field's name: replaces it by the caller's. Returns the failure. */
dt_status request_rename(const request_input *in, dt_error *err);

void request_free(request_input *in);

#endif
