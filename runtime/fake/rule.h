/* One rule of a scripted model. Shared by the public API (dtrun_fake.h) and the scripted backend (fake/). */
#ifndef DT_FAKE_RULE_H
#define DT_FAKE_RULE_H

#include <stdint.h>

/* A model is a list of rules. Among the rules whose `context` the text ends with, the one with the longest context
 * gives the distribution of the next token. */
typedef struct {
  const int32_t *context; /* [context_len] */
  int context_len;        /* 0: the default rule */
  const int32_t *token;   /* [count] distinct */
  /* [count] Probabilities with a sum <= 1; the rest is spread evenly over the other ids. With a NaN the model returns
   * NaN. */
  const float *p;
  int count;
} dt_fake_rule;

/* The simulated time of passes of a scripted model, by which the clock for all timings (system/clock.h) jumps ahead. */
typedef struct {
  double first, row; /* ms for a pass over one row, and for each additional row; zeros: the real time */
  uint64_t bytes;    /* size of the weights that the pair reports */
} dt_fake_times;

/* Makes passes from..to of a pair (counted from 1) take `factor` times as long, to simulate another program that uses
 * the processors. */
typedef struct {
  int from, to;
  double factor;
} dt_fake_delay;

#endif
