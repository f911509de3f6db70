/* The interface of a device: it uploads weights, keeps caches, computes rows and moves rows. It uses flat arrays only:
 * a backend does not know about trees, sessions, policies or other backends, and it has no file-level state.
 *
 * The exactness contract (promise 1): every number that forward() computes for a row (its outputs, and the keys and
 * values that it writes) depends only on the row's token and position, and on the keys and values in its prefix and
 * path slots, read in logical order. It does not depend on the number of rows in the pass, the index of the row among
 * them, the slot numbers, the number of threads, or timing. Ties in an argmax go to the lowest id. There are three
 * additions: a sampled token (sample.h) also depends on the row's sampling parameters and logit adjustments
 * (adjustment.h), a row of a draft head on the feature that it reads, and a row of a prompt pass on whether it belongs
 * to a whole chunk (dt_backend_ops.chunk). */
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

/* The rows of one pass, parents before children. A row at logical position p attends to p + 1 keys: first those in
 * slots 0..prefix-1 of its sequence, then those in its path slots, in order; the last path slot is its own. Therefore
 * position = prefix + path_len - 1. Earlier rows of the same pass may write the prefix and path slots. */
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
  /* Rows of a text in order: row i has position p + i, the same slot and a path of that slot alone, and p is a multiple
   * of the backend's `chunk`; see the contract. */
  bool prompt;
  dt_window window; /* which of these keys the rows see; zeros: all. Only for backends with windows */
  /* Only in the pass of a draft head: the target's cache, in which a row reads the feature at its own sequence and
   * slot. NULL: a row reads the head's own output for the previous row on its path; an earlier pass must have asked for
   * a result of that row. In the pass of a block head: NULL for the rows of blocks, which read no features. */
  const struct dt_cache *features;
  /* In the pass of a Medusa head, whose rows read features and no tokens: how many tokens ahead it guesses. In the pass
   * of a cross-attention head: the depth of its rows. They see only rows 0..position-1 of `features`. At distance 0 a
   * row reads the feature of the last of these rows, at other distances the head's own feature of the previous row on
   * its path. */
  int distance;
  /* Rows of a block head's blocks: each has all slots of its block as its path, and position - prefix is the index of
   * its own. Rows of a block follow each other, and see keys of later ones. */
  bool blocks;
  /* Only in passes of a part of a model (dt_part), [n][hidden] each: the stream that enters it, and where the stream
   * that leaves it is written. Both may be the same array. */
  const float *entering;
  float *leaving;
  int layer; /* only in passes of a part with `halves`: the layer whose second half is computed */
  /* Only in passes of a model with layers that are `apart`: computes the second half of a layer for the rows
   * first..first+n-1 of the pass, in place in their streams, [n][hidden]. It may be called on any thread. */
  void (*second_half)(void *context, int layer, int first, int n, float *stream);
  void *context;
} dt_rows;

typedef enum {
  DT_WANT_NOTHING, /* only write the cache */
  DT_WANT_ARGMAX,  /* argmax */
  DT_WANT_TOPK,    /* top_id, top_logp, top_own, confidence, entropy */
  /* argmax; and top_id, top_logp and logp of the unadjusted logits over all ids, even in sequences that sample. */
  DT_WANT_BOTH,
  DT_WANT_LOGITS /* logits */
} dt_want;

/* Where a pass writes its results: arrays of the caller. Only the rows listed in row[] get results: result j belongs to
 * row row[j]. The score of an id is its logit or, in a sequence that samples, logit / temp + G(seed, position of the
 * row, id); see sample.h. The noise G does not depend on the model, the pass or the number of threads, so target and
 * draft can share it. */
typedef struct {
  dt_want want;
  int n;                       /* the number of results */
  const int32_t *row;          /* [n] indexes into dt_rows, ascending */
  const dt_sampling *sampling; /* [sequences of the cache]; NULL: no sequence samples. TOPK uses only seed and temp */
  const dt_row_adjustments *adjustments; /* [n] applied first, unless noted otherwise; NULL: none */
  const int32_t *given;                  /* [n] BOTH: the ids whose logp is returned; NULL: those of argmax */
  /* [n] The allowed id with the largest score, the lowest one in a tie; -1 if any logit of the row is NaN. Not set if
   * BOTH has `given`. */
  int32_t *argmax;
  float *logp;     /* [n] BOTH: log-probability of argmax, or of `given`, as top_logp; NULL: not wanted */
  int k;           /* TOPK, BOTH: candidates per row, at most `candidates` of the backend */
  int vocab;       /* TOPK: only ids 0..vocab-1 are considered, also in the softmax */
  int32_t *top_id; /* [n][k] by falling score, ties by lower id; filled up with -1; all -1 if a logit is NaN */
  float *top_logp; /* [n][k] log-probabilities in the softmax of the scores */
  float *top_own;  /* [n][k] the same in the softmax of the logits at temperature 1, without noise; NULL: not wanted */
  float *confidence; /* [n] the largest probability of the scores' softmax; 0 if a logit is NaN */
  float *entropy;    /* [n] entropy of the scores' softmax, in nats */
  float *logits;     /* [n][the model's vocab] */
  float *post;       /* [n][R] of a block head with `post` (dt_head_desc), in addition to the rest; NULL: not wanted */
  /* Only for models with experts; NULL: not wanted. */
  int32_t *experts; /* [n][layers][chosen] the experts that each row chose, rising; -1 in layers without experts */
  /* The number of distinct experts of each layer is added to it, for each part if the backend splits the pass. */
  int *experts_read;
} dt_out;

/* ---- the device -------------------------------------------------------------------------------------------------- */

typedef struct dt_backend_ops dt_backend_ops;
typedef struct dt_backend dt_backend;   /* an opened device with its threads */
typedef struct dt_weights dt_weights;   /* one model on it */
typedef struct dt_cache dt_cache;       /* keys and values of some sequences for one model */
typedef struct dt_snapshot dt_snapshot; /* slots 0..n-1 of one sequence, copied */

typedef struct {
  const char *variant; /* the part of --backend after ':' (cpu: "scalar", "avx2", ..); NULL: the best that works here */
  int threads;         /* >= 1 */
  const char *numa;    /* one of NUMA_MODES (CPU); NULL: the first */
  const char *cache_dtype; /* one of cache_dtypes below; NULL: the first */
  struct dt_ranks *ranks;  /* the ranks that this process belongs to (CPU); NULL: none */
  const char *packed;      /* a folder in which weights may be kept as the device stores them, for the next start (CPU);
                              NULL:      none */
  /* For the backend that splits a target (split.h): the two that share it, how many of its last layers are on devices,
   * and how many of its first layers have their experts on the host in any case. */
  const dt_backend_ops *host, *device;
  int device_layers, host_experts; /* 0: all layers; none */
  int devices;                     /* how many devices share these layers; 0: one */
  int device_index;                /* which of several devices is opened, from 0 on (CUDA) */
} dt_backend_options;

/* How a model is stored in memory. NULL gives the default. */
typedef struct {
  const char *dtype;       /* one of weight_dtypes below; NULL: the types of the files */
  const char *activations; /* one of activations below; NULL: the first */
  const char *output;      /* the type of the output matrix, if it is another; one of weight_dtypes. Only for drafts */
} dt_holding;

/* Bytes of a backend's memory. */
typedef struct {
  size_t weights, caches, scratch; /* on the host or on the device */
  size_t host;                     /* weights that stay on the host although the others are on the device */
  bool on_device;
} dt_memory;

struct dt_backend_ops {
  const char *name; /* "cpu", "cuda", "split", "fake" */
  /* The types that its caches can have. The list ends in NULL, and its first entry is the default. */
  const char *const *cache_dtypes;
  /* The types to which weights can be converted when they are uploaded; the list ends in NULL. "f32" widens all
   * matrices; "q8" and "q4" round those that have more bits. By default nothing is converted. */
  const char *const *weight_dtypes;
  /* The precisions of the rows that quantized matrices multiply. The list ends in NULL, and its first entry is the
   * default. "8": one 8-bit digit per number; "16": two digits (runtime/cpu/quant.h). An empty list: the backend has no
   * quantized matrices. */
  const char *const *activations;
  int candidates; /* the maximum of dt_out.k, at least DT_CANDIDATES */
  bool windows;   /* whether passes may have a window */
  /* Each `chunk` rows of a prompt pass without results, from its first row on, may be computed in another way than
   * other rows, and have other bits. The rest of the pass has the bits of other rows. 0: all are computed alike. */
  int chunk;
  bool (*present)(void); /* whether the device can be used: "auto" takes the first such backend */
  /* Returns why a device that exists cannot be used (its driver is too old), as a static string; NULL if there is none
   * or it can be used. The function itself may be NULL in a backend that can always be used. */
  const char *(*unusable)(void);
  dt_status (*open)(const dt_backend_options *, dt_backend **, dt_error *);
  void (*close)(dt_backend *);                 /* only after its models are freed */
  const char *(*describe)(const dt_backend *); /* its name in results, "cpu:avx512"; owned by the backend */

  /* Loads the weights of a model. `desc` and its sources are not needed afterwards. Fails as source_read does, and if a
   * shape is not supported. If desc->ids is set, every forward() asks for TOPK or nothing, and all other ids are
   * treated as ids outside the vocabulary. */
  dt_status (*upload)(dt_backend *, const dt_model_desc *desc, const dt_holding *, dt_weights **, dt_error *);
  /* The type of the model's matrices in memory, or "mixed" if there are several. A static string. */
  const char *(*weight_dtype)(const dt_weights *);
  /* One of `activations`; NULL: none of the model's matrices is quantized. A static string. */
  const char *(*weight_activations)(const dt_weights *);
  void (*free_weights)(dt_weights *);

  /* Computes the memory that a model will take, with a cache for `sequences` times `slots` rows, without reading its
   * weights. Fails as upload does if the model is not supported. The function is NULL if the memory of the device is
   * that of the host. */
  dt_status (*account)(dt_backend *, const dt_model_desc *, int sequences, int slots, dt_memory *, dt_error *);
  /* cache_bytes: the size of the cache of one sequence of `slots` rows. bytes_free: how many bytes can still be
   * allocated for weights, caches and scratch (SIZE_MAX: unknown). */
  size_t (*cache_bytes)(const dt_weights *, int slots);
  size_t (*bytes_free)(const dt_backend *);
  /* The bytes that a cache for `sequences` times `slots` rows needs for its passes, in addition to cache_bytes. The
   * function may be NULL if these are few. */
  size_t (*scratch_bytes)(const dt_weights *, int sequences, int slots);

  /* Uploads a draft head for this target. Caches of the target that are created afterwards also store the feature of
   * each row (the streams that the head reads); no other number changes. The target must outlive the head. The head's
   * matrices use the first of `activations`. The function is NULL if the backend does not support heads. */
  dt_status (*upload_head)(dt_backend *, const dt_head_desc *, const dt_holding *, dt_weights *target, dt_weights **,
                           dt_error *);

  /* Allocates a cache for `sequences` times `slots` rows. */
  dt_status (*create_cache)(dt_weights *, int sequences, int slots, dt_cache **, dt_error *);
  void (*free_cache)(dt_cache *);

  /* Computes the rows: writes their keys and values, and fills `out` (NULL: nothing is wanted). Any number of rows >= 1
   * is allowed; a backend splits a large pass itself, in order. */
  dt_status (*forward)(dt_weights *, dt_cache *, const dt_rows *, const dt_out *out, dt_error *);

  /* Copies slot from[i] to slot to[i] for each i, in order. Both lists ascend, and to[i] <= from[i]. */
  dt_status (*move)(dt_cache *, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *);

  /* Announces that a sequence continues after its first `rows` rows, perhaps with other tokens than before. Returns how
   * many of these rows are usable: all of them, or 0 if the model stores only the state at the end of a text and the
   * state after `rows` is gone. The function may be NULL if all rows are always usable. */
  int (*keep)(dt_cache *, int sequence, int rows);

  dt_status (*snapshot)(const dt_cache *, int sequence, int n, dt_snapshot **, dt_error *);
  dt_status (*restore)(dt_cache *, int sequence, const dt_snapshot *, dt_error *);
  void (*free_snapshot)(dt_snapshot *);

  /* For tests: returns the bytes of one slot (the keys and values of all layers, and the feature), malloc'd; the caller
   * frees them. */
  dt_status (*read_slot)(const dt_cache *, int sequence, int slot, void **bytes, size_t *len, dt_error *);

  dt_memory (*memory)(const dt_backend *); /* allocated now */
  double (*read_bandwidth)(dt_backend *);  /* measures the bytes per second of a streaming sum over memory */
};

#endif
