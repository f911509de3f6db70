/* The interface of a device: upload weights, keep caches, run rows, move rows. Flat arrays only: a backend
 * knows no tree, no session and no policy, and nothing of other backends; it holds no file-level state.
 *
 * The exactness contract (promise 1): every number that forward() produces for a row (outputs, and the keys and values
 * it writes) depends only on that row's token, position and the keys and values at its prefix and path slots, read in
 * logical order. It does not depend on how many rows share the pass, on the row's place among them, on which slots the
 * keys lie in, on the number of threads, or on time. Ties in an argmax go to the lowest id. A sampled token (sample.h)
 * also depends on the row's sampling parameters and logit adjustments (adjustment.h); a row of a draft head, on the
 * feature that it reads; a row of a pass marked as a prompt, on how long the prompt is. */
#ifndef DT_BACKEND_H
#define DT_BACKEND_H

#include "backend/adjustment.h"
#include "backend/sample.h"
#include "backend/window.h"
#include "model/weights.h"
#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- one pass ---------------------------------------------------------------------------------------------------- */

/* The rows of one pass, parents before children. A row at logical position p attends to p + 1 keys: those in slots
 * 0..prefix-1 of its sequence, in order, then those in its path slots, in order; the last path slot is its own. So
 * position = prefix + path_len - 1. Prefix and path slots may be written by earlier rows of the same pass. */
typedef struct {
  int n;
  const int32_t *token;    /* [n] */
  const int32_t *position; /* [n] */
  const int32_t *sequence; /* [n] */
  const int32_t *slot;     /* [n] where this row's keys and values are written; no two rows of a pass share one */
  const int32_t *prefix;   /* [n] */
  const int32_t *path;     /* [n][path_stride] */
  const int32_t *path_len; /* [n] >= 1 */
  int path_stride;
  bool prompt;      /* a text from its beginning, row i at position i in slot i, its path: see the contract */
  dt_window window; /* zeros, unless the backend has windows: of the keys above those that the rows see */
  /* In a draft head's pass: the target's cache; a row reads the feature in its own sequence and slot there. NULL: a row
   * reads the head's output for the row before it on its path, from an earlier pass that wanted a result of that
   * row. */
  const struct dt_cache *features;
  /* In a Medusa head's pass, whose rows read features and no tokens: how many tokens ahead it guesses. In a
   * cross-attention head's: the depth of its rows. They see rows 0..position-1 of `features` and no others; at distance
   * 0 a row reads the feature of the last of these, at others the head's own of the row before it on its path. */
  int distance;
} dt_rows;

typedef enum {
  DT_WANT_NOTHING, /* only write the cache */
  DT_WANT_ARGMAX,  /* argmax */
  DT_WANT_TOPK,    /* top_id, top_logp, top_own, confidence, entropy */
  /* Argmax, and top_id, top_logp over all ids and logp of the unadjusted logits, also in sequences that sample. */
  DT_WANT_BOTH,
  DT_WANT_LOGITS /* logits */
} dt_want;

/* Where a pass puts its results, in the caller's arrays. Only rows named in row[] get results: result j is that of row
 * row[j]. The score of an id is its logit or, in a sequence that samples, logit / temp + G(seed, the row's position,
 * id): see sample.h. The noise is the same for every model, row, pass and number of threads, so target and draft can
 * share it. */
typedef struct {
  dt_want want;
  int n;                       /* rows that are wanted */
  const int32_t *row;          /* [n] indexes into dt_rows, ascending */
  const dt_sampling *sampling; /* [the cache's sequences], or NULL: nobody samples. TOPK looks at seed and temp only */
  const dt_row_adjustments *adjustments; /* [n] applied first, except where noted; NULL: none */
  const int32_t *given;                  /* [n] BOTH: ids whose logp is wanted instead of argmax's; NULL: argmax's */
  int32_t *argmax; /* [n] lowest id of the largest score among the allowed ids; -1 if any logit of the row is NaN. BOTH
                      with `given`: not set */
  float *logp;     /* [n] BOTH: log-probability of argmax, or of `given`, as top_logp; NULL: not wanted */
  int k;           /* TOPK, BOTH: candidates per row, at most 32 */
  int vocab;       /* TOPK: only ids 0..vocab-1 take part, in the softmax too */
  int32_t *top_id; /* [n][k] by falling score, ties by lower id; -1 where there are no more, or if a logit is NaN */
  float *top_logp; /* [n][k] log-probability: of the softmax of the scores */
  float *top_own;  /* [n][k] of that of the logits, at temperature 1 and without noise; NULL: not wanted */
  float *confidence; /* [n] the largest probability of the scores' softmax; 0 if a logit is NaN */
  float *entropy;    /* [n] of it, in nats */
  float *logits;     /* [n][the model's vocab] */
  /* Of a model with experts; NULL: not wanted. */
  int32_t *experts;  /* [n][layers][chosen] those that each row took, rising; -1 in layers without */
  int *experts_read; /* grows by the number of distinct experts of each layer; of a pass cut in parts, of each part */
} dt_out;

/* ---- the device -------------------------------------------------------------------------------------------------- */

typedef struct dt_backend dt_backend;   /* an opened device with its threads */
typedef struct dt_weights dt_weights;   /* one model on it */
typedef struct dt_cache dt_cache;       /* keys and values of some sequences for one model */
typedef struct dt_snapshot dt_snapshot; /* slots 0..n-1 of one sequence, copied */

typedef struct {
  const char *variant; /* the part of --backend after ':' (cpu: "scalar", "avx2", ..); NULL: the best that works here */
  int threads;         /* >= 1 */
  const char *cache_dtype; /* one of cache_dtypes below; NULL: the first */
  struct dt_ranks *ranks;  /* the ranks that this process belongs to (CPU); NULL: none */
} dt_backend_options;

/* How a model is held; a NULL of these is: as its files have it. */
typedef struct {
  const char *dtype;       /* one of weight_dtypes below, NULL: as the files have them */
  const char *activations; /* one of activations below, NULL: the first */
} dt_holding;

typedef struct {
  size_t weights, caches, scratch; /* bytes held now, on the host or on the device */
  bool on_device;
} dt_memory;

typedef struct {
  const char *name; /* "cpu", "cuda", "fake" */
  /* The types its caches may have, ending in NULL; the first is the one they have unless asked otherwise. */
  const char *const *cache_dtypes;
  /* Types that weights can be rounded to when they are uploaded; NULL ends the list. "f32" widens them, "q8" and "q4"
   * round matrices that are held in more bits than that. Unless asked, they stay what they are. */
  const char *const *weight_dtypes;
  /* Precisions of the rows that quantized matrices multiply, ending in NULL; the first is the default. "8": one digit
   * of 8 bits; "16": two digits (runtime/cpu/quant.h). An empty list: it has no such matrices. */
  const char *const *activations;
  bool windows;          /* whether passes may have one */
  bool adjustments;      /* whether rows may have adjustments, given ids and logp */
  bool (*present)(void); /* whether there is such a device: "auto" takes the first backend that has one */
  /* Why a device that is there is not `present`: a driver that is too old; static. NULL: none is there, or it is
   * present. NULL for the function: what has it is always present. */
  const char *(*unusable)(void);
  dt_status (*open)(const dt_backend_options *, dt_backend **, dt_error *);
  void (*close)(dt_backend *);                 /* after its models are freed */
  const char *(*describe)(const dt_backend *); /* its name in results, "cpu:avx512"; owned by the backend */

  /* Reads the weights, which may be closed afterwards; desc is not kept. Fails as source_read does, and on unsupported
   * shapes. With desc->ids every forward wants TOPK or nothing, and all other ids count as beyond `vocab`; a backend
   * may refuse that. */
  dt_status (*upload)(dt_backend *, const dt_model_desc *desc, const dt_holding *, dt_weights **, dt_error *);
  /* The type of its matrices in memory; "mixed": several. Static */
  const char *(*weight_dtype)(const dt_weights *);
  /* One of `activations`; NULL: none of its matrices is quantized. Static */
  const char *(*weight_activations)(const dt_weights *);
  void (*free_weights)(dt_weights *);

  /* Bytes of the cache of one sequence of `slots` rows; bytes that can still be allocated (SIZE_MAX: unknown). */
  size_t (*cache_bytes)(const dt_weights *, int slots);
  size_t (*bytes_free)(const dt_backend *);
  /* Bytes that a cache of `sequences` times `slots` rows takes for its passes beside those of its rows. NULL: few. */
  size_t (*scratch_bytes)(const dt_weights *, int sequences, int slots);

  /* Uploads a draft head for this target. New caches of the target then keep each row's feature (the streams that the
   * head reads) in addition to its keys and values; no other number changes. The target outlives the head, whose
   * matrices take the first of `activations`. NULL: the backend has no heads. */
  dt_status (*upload_head)(dt_backend *, const dt_head_desc *, const char *dtype, dt_weights *target, dt_weights **,
                           dt_error *);

  /* An early exit: a model's first layers, its final norm and its output as a model of its own, which holds no weights:
   * those of the whole model, which outlives it and never runs at the same time. DT_EINPUT: not 1..layers-1, or a model
   * that cannot. NULL: the backend has none. */
  dt_status (*first_layers)(const dt_weights *, int layers, dt_weights **, dt_error *);

  /* Room for `sequences` times `slots` rows. */
  dt_status (*create_cache)(dt_weights *, int sequences, int slots, dt_cache **, dt_error *);
  void (*free_cache)(dt_cache *);

  /* Runs the rows: writes their keys and values, fills out (NULL: nothing wanted). Any n >= 1: a backend splits a large
   * pass itself, in order. */
  dt_status (*forward)(dt_weights *, dt_cache *, const dt_rows *, const dt_out *out, dt_error *);

  /* Copies slot from[i] to slot to[i], in order of i. Plans have to[i] <= from[i], both ascending. */
  dt_status (*move)(dt_cache *, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *);

  /* Says that a sequence's text goes on, perhaps otherwise than before, after its first `rows` rows. Returns how many
   * rows there are to go on from: all of these or, where a model keeps the end of a text only and that is gone, 0.
   * NULL: always all. */
  int (*keep)(dt_cache *, int sequence, int rows);

  dt_status (*snapshot)(const dt_cache *, int sequence, int n, dt_snapshot **, dt_error *);
  dt_status (*restore)(dt_cache *, int sequence, const dt_snapshot *, dt_error *);
  void (*free_snapshot)(dt_snapshot *);

  /* For tests: the bytes of one slot (all layers' keys and values, and the feature), malloc'd; the caller frees. */
  dt_status (*read_slot)(const dt_cache *, int sequence, int slot, void **bytes, size_t *len, dt_error *);

  dt_memory (*memory)(const dt_backend *);
  double (*read_bandwidth)(dt_backend *); /* bytes per second of a streaming sum over memory, measured now */
} dt_backend_ops;

#endif
