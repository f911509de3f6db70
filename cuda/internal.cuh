/* The structures that the files of the CUDA backend share, and the launchers of its kernels. */
#ifndef DT_CUDA_INTERNAL_CUH
#define DT_CUDA_INTERNAL_CUH

#define restrict __restrict__ /* C's keyword, in headers of the runtime */
extern "C" {
#include "backend/check.h"
}
#undef restrict
#include "cuda.h"
#include "device.cuh"
#include "turns.h"

constexpr int MULTIPROCESSORS = 132; /* of an H100 or H200; numbers of blocks are chosen for it */
constexpr int WIDE_ROWS = 144;       /* maximum number of rows of one block of a matrix product */
constexpr int BLOCK_TILES = 9;       /* tiles of 16 outputs of a block in a product of more than 64 rows */
constexpr int ROWS = 288;  /* maximum number of rows of a pass on the device; a longer pass runs in parts, in order */
constexpr int CHUNK = 512; /* rows of a prompt whose products are computed together */
constexpr int CHUNK_GROUP = 256; /* rows of a chunk that share buffers of ROWS rows */
constexpr int PIECE =
    4096; /* maximum number of outputs of a chunk's product that are computed together; a multiple of 16 */
constexpr int PATH = 64;          /* average number of path slots per row for which there is room */
constexpr int GROUP = 16;         /* heads of rows whose attention to a shared prefix is computed together */
constexpr int OWN = 8;            /* heads of rows of a tree that share a part where their paths begin */
constexpr int PLACES = 512;       /* attention blocks that a device runs at once: with fewer, rows share no work */
constexpr int SPLIT = 128;        /* keys of one part of an attention: part s begins at logical position s * SPLIT */
constexpr int PARTIALS = 8;       /* maximum number of parts of the sum over k of a matrix product */
constexpr int LOGIT_BLOCK = 1024; /* ids whose logits are reduced together */
constexpr int MAX_HEAD = 256, MAX_HIDDEN = 8192;
static_assert(GROUP == TURN_STEP && ROWS % GROUP == 0, "a turn has whole groups");
static_assert(OWN == TURN_STEP / 2, "a row's heads that are computed together fit where rows have their own keys");

/* A stream, and whether its kernels are dependent launches, which cannot be queried from a stream while it is
 * captured. */
struct queue {
  cudaStream_t stream;
  bool overlaps;
  operator cudaStream_t() const { return stream; }
};

constexpr int TOP = WARP; /* maximum number of candidates of a row: they are a list (scores.cuh) */

/* How caches hold keys and values: in 16 bits, or rounded to 8.5: see held.cuh. */
enum held { HELD_16, HELD_Q8 };

struct dt_backend {
  int device;
  queue stream;
  bool overlaps, graphs; /* whether kernels of passes are dependent launches, and passes are graphs */
  const char *refused;   /* the driver's reason if one of these was given up; otherwise null */
  bool widens;           /* whether matrices are not packed, although they could be; results are the same */
  bool guards;           /* see arena */
  held caches;           /* for the caches of all models */
  int turn;              /* maximum number of rows whose attention runs at once */
  int rows;              /* maximum number of rows of a pass; more run as several passes, with the same bits */
  bool broken;           /* the device cannot recover from an error: every call fails from now on */
  dt_memory memory;
  char name[256], description[300];
};

/* Device memory that the same code lays out twice: first with base null, to measure it, then with memory. With guards
 * (DTRUN_GUARD=1 in the environment) each array has a separate allocation, so that a memory checker detects an access
 * outside of an array. */
struct arena {
  char *base;
  size_t used, size;
  dt_backend *guards; /* null: none */
  struct guarded *arrays;
};
void *arena_apart(arena *, size_t bytes); /* zeroed; ends the program if there is no memory */
template <class T> T *take(arena *a, size_t count) {
  size_t at = a->used, bytes = count * sizeof(T);
  a->used += (bytes + 255) & ~(size_t)255;
  if (!a->base) return nullptr;
  return static_cast<T *>(a->guards ? arena_apart(a, bytes) : a->base + at);
}
void describe_device(dt_backend *); /* called again after `overlaps` or `graphs` changed */
dt_status arena_open(dt_backend *, arena *, const char *what, size_t *account, dt_error *); /* zeroed */
void arena_close(arena *, size_t *account);

/* Returns DT_OK, or fails with one line that names `what` and suggests the CPU backend. */
dt_status cuda_check(dt_backend *, cudaError_t, const char *what, dt_error *);

/* How a matrix stores its weights: as numbers of 16 bits, or as codes of 4 to 8 bits with scales (see record.cuh). */
enum packing { BITS16, BITS4, BITS5, BITS6, BITS8, PACKINGS };

/* The number of 16-byte pieces of a tile's weights in one step. */
__host__ __device__ constexpr int pieces_of(packing p) {
  constexpr int pieces[PACKINGS] = {64, 20, 24, 28, 34};
  return pieces[p];
}

/* A matrix laid out for the tensor cores: see pack.cu. */
struct matrix {
  number format; /* type in which the tensor cores get its weights */
  packing packed;
  uint4 *data;  /* [tiles][steps][pieces_of(packed)] */
  float2 *bias; /* [tiles * 8], one for each pair of outputs */
  int first;    /* its first tile; the tiles before it belong to another matrix and are not in `data` */
  int tiles;    /* number of tiles (8 pairs of outputs each), including those before the first */
  int steps;    /* number of steps, of 32 k each */
  int splits;   /* number of parts of k that are summed separately; depends only on the shape */
};

/* Rows that a product multiplies, in the weights' type; columns after the last are zero. Rows of a pass are stored in
 * the order that tensor cores need: blocks of 8 rows by 32 columns, row by row, and then the next 32 columns. Rows of a
 * prompt's chunk, which the library multiplies, are stored row by row. */
struct operand {
  uint16_t *at;
  int ld; /* a multiple of 32 */
  bool tiled;
  __host__ __device__ size_t place(int row, int column) const {
    return tiled ? (size_t)(row / 8) * 8 * ld + column / 32 * 256 + row % 8 * 32 + column % 32
                 : (size_t)row * ld + column;
  }
  /* Returns the operand without its first rows (a multiple of 8) and its first columns (a multiple of 32). */
  operand after(int rows, int columns) const { return {at + place(rows, columns), ld, tiled}; }
};
struct operands {
  operand normed1, normed2;
  operand cat; /* attention output; the MLP's inner row from inner_at on */
};

struct layer {
  float *norm1, *norm1_bias, *norm2, *norm2_bias; /* [hidden]; biases may be null */
  float2 *q_norm, *k_norm; /* [head_dim / 2] in the order of the pairs of outputs; null: no norm */
  matrix in;               /* q, k and v of all heads; parallel residual: then the MLP's up, or gate and up */
  matrix rest;             /* the last tiles of `in`, if they are packed differently; otherwise it has no tiles */
  matrix up;               /* sequential residual only */
  matrix out;              /* o; parallel residual: o and down side by side, with `cat` as input */
  matrix down;             /* sequential residual only */
};

/* The features of a cache's rows: that of sequence s, slot p is at ((s * slots) + p) * width. */
struct features {
  float *at;
  int slots, width;
  bool operator==(const features &) const = default;
};

/* The weights that a draft head has in addition to those of a model: see dt_head_desc. Its layer reads `pair` (EAGLE-3)
 * or x. */
struct draft_head {
  const dt_weights *target; /* null: not a head */
  dt_head_kind kind;
  bool norm_residual;
  int leads;     /* see dt_head_leads */
  bool backward; /* rows of a block do not see later ones */
  int streams;   /* streams of the target in a feature */
  matrix fc;
  float *given_norm; /* [streams][hidden of the target]; null: none */
  bool norms_all;    /* one norm over all streams, not one per stream */
  float *token_norm, *feature_norm;
  int distances, blocks; /* of a Medusa head */
  matrix block[DT_DISTANCES][DT_BLOCKS], output[DT_DISTANCES];
  operand given, pair; /* scratch of a pass: the input of fc from the target; the embedding and feature side by side */
};

/* The rows of a pass as the kernels read them: filled on the host and copied at once. The arrays follow the header. */
struct pass_header {
  int n, wanted, units, top_k, top_ids;
  dt_window window;
  int turns; /* number of turns, with dt_cache.turn rows each; `units` is the number in each turn */
};
struct pass_rows {
  pass_header *header;
  dt_sampling *sampling;                                                   /* [ROWS] for the wanted rows */
  int32_t *token, *position, *sequence, *slot, *prefix, *path_at, *wanted; /* [ROWS] */
  /* [ROWS] the position of the last key that the row sees: its own or, if it sees its whole block, the block's last */
  int32_t *reach;
  /* The units of attention, eight numbers each: the first row in its turn; the number of rows (0: an unused unit); the
   * part; the key in the part from which each row has its own keys (SPLIT: none); and the sequence, prefix, path_at and
   * reach of the last of these rows. With these a block can find its keys at once. */
  int4 *unit;
  int32_t *path; /* the path of row r begins at path_at[r]; paths follow the units in the same memory */

  /* Returns the rows as one turn of attention sees them, without the rows and units of earlier turns. */
  pass_rows after(int rows, int units) const {
    return {header,        sampling,       token + rows, position + rows, sequence + rows,  slot + rows,
            prefix + rows, path_at + rows, wanted,       reach + rows,    unit + 2 * units, path};
  }
};
constexpr int ROWS_HEADER = 32; /* bytes; ROWS_FIXED: bytes before the units */
constexpr int ROWS_FIXED = ROWS_HEADER + ROWS * ((int)sizeof(dt_sampling) + 8 * 4);
static_assert(CHUNK_GROUP <= ROWS && CHUNK <= PARTIALS * ROWS, "a chunk's sums lie where a pass's parts do");
static_assert(sizeof(pass_header) <= ROWS_HEADER && ROWS_FIXED % sizeof(int4) == 0,
              "units are read 16 bytes at a time");

/* The results of a pass, in host memory that the device writes to. */
struct pass_results {
  int32_t *argmax;   /* [ROWS] */
  int32_t *top_id;   /* [ROWS][TOP] */
  float *top_logp;   /* [ROWS][TOP] */
  float *top_own;    /* [ROWS][TOP] */
  float *confidence; /* [ROWS] */
  float *entropy;    /* [ROWS] */
};

/* One block of ids of one row: sums of the softmax of the scores and of the logits. */
struct logit_part {
  float max, sum, weighted;
  float own_max, own_sum;
  int nan;
};

/* The data that the blocks which sample a row's token exchange: see sample.cu. Between passes all sums and counts are
 * 0. */
constexpr int SAMPLE_STEPS = 2048;
struct sample_row {
  unsigned long long weight[SAMPLE_STEPS]; /* sum of the weights of the ids in each step */
  unsigned ids[SAMPLE_STEPS];              /* their number */
  float largest;                           /* the largest logit; NaN if any logit is NaN */
  int above, least; /* steps `least` to `above` are in question; above -1: no step is, and all ids are allowed */
  unsigned long long weight_above,
      weight_below;                 /* weights of the ids above these steps, and of those below in the top k */
  unsigned ids_above, ids_to_least; /* number of ids above these steps, and above or in them */
  unsigned listed, done;            /* listed ids in question; blocks that have finished */
  unsigned long long best;          /* the largest key so far */
};

struct dt_weights {
  dt_backend *backend;
  number activations; /* type of the activations, and of caches with 16 bits */
  const char *stored; /* name of the type of its matrices on the device; "mixed": several types */
  dt_shape shape;
  int dim; /* head_dim rounded up to a width that attention is compiled for: the width of a head in q and the cache */
  int joined;       /* heads of a row that share their keys and whose attention is computed together */
  float scale;      /* head_dim^-0.5 */
  layer *layers_of; /* [layers], on the host */
  float *final_norm, *final_norm_bias;
  uint16_t *embed; /* [vocab][hidden] */
  matrix unembed;
  int32_t *ids, *ids_here; /* [outputs] ids of unembed's outputs, rising; on the device, on the host; null: all */
  int outputs;
  draft_head head;
  int taps, tap[DT_TAPS]; /* streams that caches store, as in dt_head_desc */
  float *inv_freq;        /* [rotary_dims / 2], on the host */

  /* Scratch of a pass. Leading dimensions are in numbers. */
  int ldx, ldcat, inner_at;
  float *x;             /* [CHUNK][hidden] the residual stream */
  operands pass, chunk; /* [ROWS], [CHUNK] rows of ldx numbers; cat: of ldcat */
  uint16_t *q;          /* [CHUNK][heads][dim] */
  int fresh_rows;
  uint16_t
      *fresh; /* [2 * kv_heads][fresh_rows][dim] keys and values of a layer, before they are rounded; otherwise null */
  int32_t *order;  /* [ROWS] 0, 1, 2, ..: the slots of rows in `fresh` */
  float *partial;  /* [PARTIALS][ROWS][hidden] sums over parts of k, not yet in x; for a chunk [CHUNK][hidden] */
  float *logits;   /* [ROWS][outputs] */
  uint16_t *plain; /* a piece of a matrix, row by row */
  float *sums; /* [CHUNK][PIECE] the product of `plain` with a chunk, in the memory of `logits`, which a chunk does not
                  need */
  logit_part *parts;   /* [ROWS][blocks of ids] */
  uint64_t *best;      /* [ROWS][blocks of ids][TOP], the largest score first: see scores.cuh */
  sample_row *samples; /* [ROWS] */
  arena weights_arena, scratch_arena;
  struct gemm_library *gemms; /* null: there was no long prompt yet */
  bool no_chunks;             /* the library is missing, or cannot compute chunks */
};

struct dt_cache {
  dt_weights *weights;
  int sequences, slots;
  int splits;          /* number of parts of an attention over all slots */
  int turn;            /* rows whose attention runs at once: see turns.h */
  unsigned char *data; /* [sequences][layers][2][kv_heads][slots], rows of row_bytes() each */
  features kept;       /* features, after all keys and values; width 0: none */
  float *cosine,
      *sine;   /* [positions][rotary_dims / 2]; the number of positions is that of slots, at most the model's context */
  float *part; /* [turn][heads][splits][dim] sums of values, not yet divided */
  float2 *weight; /* [turn][heads][splits] largest score of a part, sum of its exponentials */
  unsigned *done; /* [turn][heads] number of finished parts */
  pass_rows rows[CHUNK / CHUNK_GROUP], staged[CHUNK / CHUNK_GROUP]; /* a pass uses only the first */
  size_t tail;                                                      /* room for units and paths, counted in int32_t */
  pass_results results;
  void *host; /* memory of staged and results */
  arena cache_arena, scratch_arena;
  struct graph_list *graphs;
};

/* Returns the number of lists of rows of a sequence: the keys and values of all layers and heads, one after another. */
inline size_t cache_heads(const dt_weights &w) { return (size_t)w.shape.layers * 2 * w.shape.kv_heads; }

/* Returns the number of values of a row's feature in its caches; a feature is moved 16 bytes at a time. */
inline int cache_feature(const dt_weights &w) { return (w.taps * w.shape.hidden + 3) / 4 * 4; }

/* Returns whether the cache stores the stream after the last layer even for rows without wanted results. In the cache
 * of a head this stream is not needed. */
inline bool keeps_ends(const dt_weights &w) {
  bool any = false;
  for (int t = 0; t < w.taps; t++) any |= w.tap[t] >= w.shape.layers;
  return any && !w.head.target;
}

static inline int round_up(int n, int to) { return (n + to - 1) / to * to; }
static inline int blocks_of(int n, int block) { return (n + block - 1) / block; }

/* upload.cu */
dt_status cuda_upload(dt_backend *, const dt_model_desc *, const dt_holding *, dt_weights **, dt_error *);
dt_status cuda_upload_head(dt_backend *, const dt_head_desc *, const dt_holding *, dt_weights *target, dt_weights **,
                           dt_error *);
void cuda_free_weights(dt_weights *);
/* cache.cu */
size_t cuda_cache_bytes(const dt_weights *, int slots);
size_t cuda_scratch_bytes(const dt_weights *, int sequences, int slots);
dt_status cuda_create_cache(dt_weights *, int sequences, int slots, dt_cache **, dt_error *);
void cuda_free_cache(dt_cache *);
dt_status cuda_move(dt_cache *, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *);
dt_status cuda_snapshot(const dt_cache *, int sequence, int n, dt_snapshot **, dt_error *);
dt_status cuda_restore(dt_cache *, int sequence, const dt_snapshot *, dt_error *);
void cuda_free_snapshot(dt_snapshot *);
dt_status cuda_read_slot(const dt_cache *, int sequence, int slot, void **bytes, size_t *len, dt_error *);
/* rows.cu: writes rows from `first` on, `most` or as many as fit, where the device reads them; returns their number. */
int stage_rows(const dt_cache *, const pass_rows &to, const dt_rows *, int first, int most, size_t *bytes);
/* forward.cu */
dt_status cuda_forward(dt_weights *, dt_cache *, const dt_rows *, const dt_out *, dt_error *);
dt_status cuda_warm_up(dt_weights *, dt_error *); /* before the first pass */
void graphs_free(graph_list *);
/* probe.cu */
double cuda_read_bandwidth(dt_backend *);

#endif
