/* One rule of a scripted model: shared by the public API (dtrun.h) and the backend that plays it (fake/). */
#ifndef DT_FAKE_RULE_H
#define DT_FAKE_RULE_H

#include <stdint.h>

/* A model as a table: the longest `context` that ends the text so far gives the next token's distribution. */
typedef struct {
  const int32_t *context; /* [context_len] */
  int context_len;        /* 0: the default */
  const int32_t *token;   /* [count] distinct */
  const float *p; /* [count] probabilities, sum <= 1; the rest is spread evenly over the other ids. A NaN: the model
                             returns NaN there */
  int count;
} dt_fake_rule;

/* The time that passes of a scripted model take, by the clock of all timings (system/clock.h), which jumps ahead by
 * it. */
typedef struct {
  double first, row; /* ms of a pass over one row, and of each further row; zeros: what the table look-ups take */
  uint64_t bytes;    /* weights that the pair says it has */
} dt_fake_times;

/* Passes of a pair, counted from 1, that take `factor` times as long: another program had the processors. */
typedef struct {
  int from, to;
  double factor;
} dt_fake_delay;

#endif
