/* The options: one table gives the parser, its messages, --help, the manual page and what shells complete. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "cli/cli.h"

typedef enum {
  FLAG,
  STRING,
  NUMBER,
  COUNT,
  REAL,
  PENALTY,
  SEED,
  BIAS,
  SETTING,
  STOP,
  PROMPT,
  TEXT,
  CORPUS,
  ORIGIN,
  SERVED
} option_kind;

#define MOST_NAMES 4

typedef struct {
  const char *names[MOST_NAMES]; /* --help shows two; the others are other programs' names */
  const char *argument;          /* the name of its value; NULL for a FLAG */
  option_kind kind;
  size_t field; /* FLAG, STRING, NUMBER, COUNT, REAL, PENALTY, SEED: of cli_options */
  bool also;    /* NUMBER: -1 is allowed beside 1..most; REAL: 0 is allowed beside positive numbers up to most */
  /* COUNT: 0..most, stored as one more; PENALTY: -most..most */
  int most;
  const char *help;
} option;

const option *option_at(int i); /* i = 0, 1, ..; NULL: there are no more */

/* The option with the name in the n characters of arg, or NULL; option_fail then names the nearest one. */
const option *option_find(const char *arg, size_t n);
dt_status option_fail(const char *arg, size_t n, dt_error *err);

#endif
