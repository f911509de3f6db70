/* The options of the command line: the fields of requests and pairs (request/fields.h) and the options of the program
 * itself. The parser, --help, the manual page and the completion of shells use them. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "cli/cli.h"

typedef enum {
  REQUEST,
  FLAG,
  STRING,
  NUMBER,
  SECONDS,
  SETTING,
  VARIABLE,
  PROMPT,
  TEXT,
  CORPUS,
  ORIGIN,
  SERVED
} option_kind;

typedef struct {
  const char *names;    /* one or two names, separated by a blank */
  const char *other;    /* its names in other programs, separated by blanks; or NULL */
  const char *argument; /* the name of its value; NULL for a FLAG */
  option_kind kind;
  size_t field;  /* FLAG, STRING, NUMBER, SECONDS: offset in cli_options */
  int low, most; /* NUMBER: its bounds */
  const char *help;
  const request_field *request; /* REQUEST */
} option;

const option *option_at(int i); /* option i, from 0; NULL: there are no more */

/* Copies the first name, or the second one (i = 1), into out[size]; false: there is no such name. */
bool option_name(const option *o, int i, char *out, size_t size);

/* Returns the option whose name is arg[n], or NULL; option_fail then names the option that resembles it most. */
const option *option_find(const char *arg, size_t n);
dt_status option_fail(const char *arg, size_t n, dt_error *err);

#endif
