/* The parts of a pair that a session uses: a device, one or two models on it, and the text side. */
#ifndef DT_PAIR_H
#define DT_PAIR_H

#include "backend/backend.h"
#include "dtrun.h"
#include "model/model.h"
#include "text/tokenizer.h"

struct dt_pair {
  const dt_backend_ops *ops;
  dt_backend *backend;
  dt_weights *target, *draft; /* draft: NULL when there is none */
  dt_model_info target_info, draft_info;
  char *target_path, *draft_path;
  const char *cache_dtype; /* one of ops->cache_dtypes */
  char *draft_vocab;       /* NULL: the draft has all its output's rows */
  char head[112]; /* what kind of head the draft is, and what of the target it reads; "": it is a model of its own */
  char *left_out; /* why an optional draft was not loaded, or NULL */
  int distances;  /* at which a Medusa head guesses; 0: it is no such head */
  int threads;
  double load_ms; /* what opening it took */
  tok *tokenizer; /* NULL: a scripted pair, whose text is its ids */
  int32_t eos[MODEL_MAX_EOS];
  int n_eos;
  bool searched; /* the target's weights, for numbers that are not finite, */
  char *flaw;    /* and what was found, or NULL */
  dt_session
      *idle; /* the session closed last, for the next one of its shape: its memory is taken and touched. Or NULL */
  void (*free_idle)(dt_session *); /* for good */
};

/* The bytes of one token, as the first of a text or as a later one; a scripted pair writes them to `buffer` (room for 16). */
const char *pair_token_bytes(const dt_pair *pair, int32_t id, bool first, char buffer[16], size_t *len);

int pair_context(const dt_pair *pair); /* of a session that asks for none */

/* The failure of a target that gave NaN: DT_EWEIGHTS where its files hold such numbers, else DT_EDEVICE. */
dt_status pair_gave_nan(dt_pair *pair, int position, dt_error *err);

bool pair_is_eos(const dt_pair *pair, int32_t id);

#endif
