/* The options of the command line: the fields of requests and pairs (request/fields.h), and those of the program
 * itself. They give the parser, --help, the manual page and what shells complete. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "cli/cli.h"

typedef enum { REQUEST, FLAG, STRING, NUMBER, SECONDS, SETTING, PROMPT, TEXT, CORPUS, ORIGIN, SERVED } option_kind;

typedef struct {
  const char *names;    /* one or two, with a blank between */
  const char *other;    /* of other programs, with blanks between; or NULL */
  const char *argument; /* the name of its value; NULL for a FLAG */
  option_kind kind;
  size_t field;  /* FLAG, STRING, NUMBER, SECONDS: of cli_options */
  int low, most; /* NUMBER */
  const char *help;
  const request_field *request; /* REQUEST */
} option;

const option *option_at(int i); /* i = 0, 1, ..; NULL: there are no more */

/* The first name, or the second (i = 1), in out[size]; false: there is none. */
bool option_name(const option *o, int i, char *out, size_t size);

/* The option with the name in the n characters of arg, or NULL; option_fail then names the nearest one. */
const option *option_find(const char *arg, size_t n);
dt_status option_fail(const char *arg, size_t n, dt_error *err);

#endif
