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

#endif
