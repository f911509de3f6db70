/* The ends of a text by its lines, as in llama.cpp's server: editors ask for them. */
#ifndef SERVE_LINES_H
#define SERVE_LINES_H

#include "serve/refusal.h"

#include <cJSON.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
  int indent; /* n_indent: the text ends at the first line after its first one that has fewer spaces and tabs; 0: none
               */
  double ms;  /* t_max_predict_ms: if the text has a complete line after this time, it ends; 0 or less: none */
} line_limits;

/* Reads a body's member n_indent or t_max_predict_ms. False: *why says what is wrong. */
bool lines_read(line_limits *limits, const cJSON *member, refusal *why);

/* How far a text has come. All members are 0 at first. */
typedef struct {
  double begun;  /* when its first bytes came, in ms */
  size_t len;    /* bytes of the text */
  int spaces;    /* at the beginning of a line: the spaces and tabs so far */
  bool counts;   /* such spaces may follow */
  bool has_line; /* the text has a complete line */
  bool ended;
} line_state;

/* Returns how many of the next bytes belong to the text. `now` is in ms. */
size_t lines_take(line_state *s, const line_limits *limits, const char *bytes, size_t len, double now);

#endif
