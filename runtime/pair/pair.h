/* The parts of a pair that a session uses: a device, the models on it, and the tokenizer. */
#ifndef DT_PAIR_H
#define DT_PAIR_H

#include "backend/backend.h"
#include "dtrun.h"
#include "grammar/vocabulary.h"
#include "model/model.h"
#include "pair/successors.h"
#include "text/tokenizer.h"

typedef struct {
  dt_weights *weights;
  dt_model_info info;
  char *path;
  char *vocab;          /* name of the draft vocabulary; NULL: all ids */
  const char *output;   /* the type that its output was rounded to, if it is another than that of its weights; static */
  char head[112];       /* the head's kind and the inputs that it reads; "": the draft is a model */
  int distances;        /* how many tokens ahead a Medusa head guesses; 0: no Medusa head */
  bool cross_attention; /* the head reads the target's keys and has none of its own */
  int32_t mask;         /* the token of all rows of a block but the first */
  bool from_anchor;     /* the first row of a block guesses, too */
  dt_window window;     /* which tokens of the text it sees; zeros: all */
  char window_text[32]; /* dt_pair_info.draft_window; "": NULL */
  successors *successors; /* of a block head that has them, or NULL */
} pair_draft;

struct dt_pair {
  const dt_backend_ops *ops;
  dt_backend *backend;
  dt_weights *target;
  dt_model_info target_info;
  char *target_path;
  pair_draft draft;        /* draft.weights is NULL when there is none */
  const char *cache_dtype; /* one of ops->cache_dtypes */
  char rope[96];           /* dt_pair_info.rope_scaling; "": NULL */
  char *device_left_out;   /* see dt_pair_info */
  char *left_out;          /* why an optional draft was not loaded, or NULL */
  dt_backend_options open; /* with which its backend was opened; only while the pair opens */
  bool all_that_fit;       /* gpu_layers = "auto" */
  size_t reserved;         /* with all_that_fit: bytes of a GPU that the draft will need */
  int threads;
  double load_ms;         /* time of dt_pair_open */
  tok *tokenizer;         /* NULL: a scripted pair, whose text is its ids */
  vocabulary *vocabulary; /* of the tokenizer, for grammars; NULL: none was asked for yet */
  int32_t eos[MODEL_MAX_EOS];
  int n_eos;
  bool searched;    /* the target's weights have been searched for numbers that are not finite */
  char *flaw;       /* where the first such number is, or NULL */
  dt_session *idle; /* the session that was closed last, or NULL; the next one with the same shape reuses its memory */
  void (*free_idle)(dt_session *);
};

/* Returns the bytes of one token, as the first or a later token of a text. A scripted pair writes them to `buffer`. */
const char *pair_token_bytes(const dt_pair *pair, int32_t id, bool first, char buffer[16], size_t *len);

/* Returns the vocabulary as grammars need it. It is built at the first call. */
dt_status pair_vocabulary(dt_pair *pair, const vocabulary **out, dt_error *err);

int pair_context(const dt_pair *pair); /* the context of a session that names none */

/* Fails because the target returned NaN at a position: with DT_EWEIGHTS if its files contain numbers that are not
 * finite, otherwise with DT_EDEVICE. */
dt_status pair_gave_nan(dt_pair *pair, int position, dt_error *err);

int32_t pair_mark(const dt_pair *pair, const char *string); /* the id of the added token with this text, or -1 */
bool pair_is_eos(const dt_pair *pair, int32_t id);

#endif
