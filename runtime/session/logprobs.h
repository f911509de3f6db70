/* Log-probabilities of a sequence's tokens, by their position in the text. */
#ifndef DT_LOGPROBS_H
#define DT_LOGPROBS_H

#include "dtrun.h"

typedef struct {
  dt_logprobs asked;
  bool *there;     /* [context] whether anything is known about that token */
  float *logp;     /* [context] */
  int32_t *top_id; /* [context][asked.top] */
  float *top_logp; /* the same */
} logprobs;

dt_status logprobs_check(const dt_logprobs *asked, dt_error *err);
dt_status logprobs_open(logprobs *l, const dt_logprobs *asked, int context, dt_error *err);
void logprobs_close(logprobs *l); /* zeros are allowed */

/* Stores what a row says about the token that followed it: the token's log-probability, and the asked.top likeliest
 * tokens. */
void logprobs_put(logprobs *l, int position, float logp, const int32_t *top_id, const float *top_logp);

#endif
