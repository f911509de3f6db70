/* Collects the values of fields as callers give them and turns them into a request. Only the syntax is checked here,
 * such as whether a text is a number. */
#ifndef REQUEST_INPUT_H
#define REQUEST_INPUT_H

#include "host.h"
#include "request/fields.h"

#define REQUEST_FIELDS 52 /* room for all fields of the table */

typedef struct {
  dtl_load_options load; /* options of the pair */
  dtl_request request;   /* its stop strings, biases and grammar point into the members below */
  const char *costs;     /* "table", "learn"; NULL: not given */
  const char **stop;     /* [request.seq.n_stop] texts of the caller */
  const char **biases;   /* [n_biases] texts of the caller, which request_biases reads */
  dt_bias *bias;
  char *grammar;
  char *schema; /* from which the grammar was made; NULL: from none */
  dt_schema_options how;
  char note[256]; /* a sentence about the schema; "": none */
  int n_biases;
  char name[REQUEST_FIELDS][32]; /* for each field the name that the caller used; "": not given */
} request_input;

/* Returns whether the field was given. */
bool request_given(const request_input *in, const request_field *field);

/* Returns whether a maximum number of tokens of reasoning was given. It has an effect if the marks around the reasoning
 * are known. */
bool request_limits_reasoning(const request_input *in);

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

/* Sets the grammar from a text in the form of the field "grammar", "json_schema" or "regex". It replaces an earlier
 * grammar. */
dt_status request_grammar(request_input *in, const char *form, const char *text, dt_error *err);

/* Reads the texts of biases; the pair's tokenizer turns their tokens into ids. */
dt_status request_biases(request_input *in, const dt_pair *pair, dt_error *err);
/* Adds a bias to those that have been read. */
dt_status request_add_bias(request_input *in, dt_bias bias, dt_error *err);

/* Lets the engine check all values that can be checked without a pair. A number of tokens that was not given is not
 * checked. In the message the field has the name that the caller used. */
dt_status request_check(const request_input *in, dt_error *err);

/* Replaces the field's name at the beginning of a message of the engine by the name that the caller used. Returns the
 * failure's status. */
dt_status request_rename(const request_input *in, dt_error *err);

void request_free(request_input *in);

#endif
