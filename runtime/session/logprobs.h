/* Log-probabilities of a sequence's tokens, by their position in the text. */
#ifndef DT_LOGPROBS_H
#define DT_LOGPROBS_H

#include "dtrun.h"

typedef struct {
  dt_logprobs asked;
  bool *there;     /* [context] known of that token */
  float *logp;     /* [context] */
  int32_t *top_id; /* [context][asked.top] */
  float *top_logp; /* the same */
} logprobs;

dt_status logprobs_check(const dt_logprobs *asked, dt_error *err);
dt_status logprobs_open(logprobs *l, const dt_logprobs *asked, int context, dt_error *err);
void logprobs_close(logprobs *l); /* zeros are allowed */

/* What a row said of the token that came behind it: its own, and the likeliest, asked.top of them. */
void logprobs_put(logprobs *l, int position, float logp, const int32_t *top_id, const float *top_logp);

#endif
