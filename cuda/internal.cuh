/* The structures that the files of the CUDA backend share, and the launchers of its kernels. */
#ifndef DT_CUDA_INTERNAL_CUH
#define DT_CUDA_INTERNAL_CUH

#define restrict __restrict__ /* C's word for it, in the headers of the runtime */
extern "C" {
#include "backend/check.h"
}
#undef restrict
#include "cuda.h"
#include "device.cuh"

constexpr int MULTIPROCESSORS = 132; /* of an H100 or H200: what blocks are reckoned for */
constexpr int WIDE_ROWS = 144;       /* rows that one block of a matrix product takes at most */
constexpr int BLOCK_TILES = 9;       /* tiles of 16 outputs that a block of a product of more than 16 rows takes */
constexpr int FEW_TILES = 3;         /* where those would be blocks for few multiprocessors only */
constexpr int ROWS = 288;        /* most rows of a pass on the device, a multiple of that; more are split, in order */
constexpr int CHUNK = 512;       /* rows of a prompt whose products are computed together */
constexpr int CHUNK_GROUP = 256; /* of which so many share what has room for ROWS */
constexpr int PIECE = 4096;      /* most outputs of a chunk's product that are computed together, a multiple of 16 */
constexpr int PATH = 64;         /* slots of a path that there is room for per row, taken together */
constexpr int GROUP = 16;        /* rows whose attention to a shared prefix is computed together */
constexpr int OWN = 8;           /* rows of a tree that share a part where their paths begin */
constexpr int PLACES = 512;      /* blocks of attention that a device computes at once: for fewer, rows share no work */
constexpr int SPLIT = 128;       /* keys of one part of an attention: part s has logical positions s * SPLIT and on */
constexpr int PARTIALS = 8;      /* most parts of the sum over k of a matrix product */
constexpr int LOGIT_BLOCK = 1024; /* ids whose logits are reduced together */
constexpr int MAX_HEAD = 256, MAX_HIDDEN = 8192;

struct dt_backend {
  int device;
  cudaStream_t stream;
  bool overlaps, graphs; /* whether kernels of passes are dependent launches, and passes graphs */
  bool broken;           /* an error that the device does not get over: everything fails from now on */
  dt_memory memory;
  char description[300];
};

/* Device memory that is laid out twice by the same code: first with base null, to measure it, then for good. */
struct arena {
  char *base;
  size_t used, size;
};
template <class T> T *take(arena *a, size_t count) {
  T *p = a->base ? reinterpret_cast<T *>(a->base + a->used) : nullptr;
  a->used += (count * sizeof(T) + 255) & ~(size_t)255;
  return p;
}
cudaError_t stream_open(dt_backend *, bool overlaps); /* in place of the one it has: see launch.cuh */
dt_status arena_open(dt_backend *, arena *, const char *what, size_t *account, dt_error *); /* zeroed */
void arena_close(arena *, size_t *account);

/* DT_OK, or the failure as one line that says what was being done; offers the CPU backend. */
dt_status cuda_check(dt_backend *, cudaError_t, const char *what, dt_error *);

/* A matrix as the tensor cores want it: see pack.cu. */
struct matrix {
  number format; /* of its weights */
  uint4 *data;   /* [tiles][steps][2][32] */
  float2 *bias;  /* [tiles * 8] of each pair of outputs */
  int tiles;     /* of 8 pairs of outputs */
  int steps;     /* of 32 k */
  int splits;    /* parts of k that are summed apart: a constant of the shape */
};

/* Rows that a product multiplies, in the weights' type; columns behind the last one are zero. Those of a pass lie as tensor
 * cores take them: 8 rows by 32 columns together, row by row; these side by side. Those of a prompt's chunk, which the
 * library multiplies, lie row by row. */
struct operand {
  uint16_t *at;
  int ld; /* a multiple of 32 */
  bool tiled;
  __host__ __device__ size_t place(int row, int column) const {
    return tiled ? (size_t)(row / 8) * 8 * ld + column / 32 * 256 + row % 8 * 32 + column % 32
                 : (size_t)row * ld + column;
  }
  /* Without the first rows, a multiple of 8, and columns, a multiple of 32. */
  operand behind(int rows, int columns) const { return {at + place(rows, columns), ld, tiled}; }
};
struct operands {
  operand normed1, normed2;
  operand cat; /* attention output, then from inner_at on the MLP's inner row */
};

struct layer {
  float *norm1, *norm1_bias, *norm2, *norm2_bias; /* [H], the biases may be null */
  float2 *q_norm, *k_norm;                        /* [head_dim / 2] in the order of the pairs of outputs; null: none */
  matrix in;   /* q, k and v of all heads, then (parallel residual) the MLP's up or gate and up */
  matrix up;   /* sequential residual only */
  matrix out;  /* o; with a parallel residual o and down side by side: their input is `cat` */
  matrix down; /* sequential residual only */
};

/* The features that a cache keeps of its rows: that of sequence s, slot p at ((s * slots) + p) * width. */
struct features {
  float *at;
  int slots, width;
  bool operator==(const features &) const = default;
};

/* What a draft head has beside a model's: see dt_head_desc. Its own layer reads `pair` (EAGLE-3) or x. */
struct draft_head {
  const dt_weights *target; /* null: this is no head */
  dt_head_kind kind;
  bool norm_residual;
  int streams; /* of the target, of which a feature is made */
  matrix fc;
  float *given_norm; /* [streams][the target's hidden], null: none */
  bool norms_all;    /* together, not each stream by itself */
  float *token_norm, *feature_norm;
  int distances, blocks; /* MEDUSA */
  matrix block[DT_DISTANCES][DT_BLOCKS], output[DT_DISTANCES];
  operand given, pair; /* scratch of a pass: what fc reads of the target; embedding and feature side by side */
};

/* The rows of a pass as the kernels read them: filled on the host, copied in one go. The arrays lie behind it. */
struct pass_header {
  int n, wanted, units, top_k, top_ids;
  dt_window window;
};
struct pass_rows {
  pass_header *header;
  dt_sampling *sampling;                                                   /* [ROWS] of the wanted rows */
  int32_t *token, *position, *sequence, *slot, *prefix, *path_at, *wanted; /* [ROWS] */
  int4 *unit; /* of attention: first row, rows, part, and from which key of it on each row has its own (SPLIT: none) */
  int32_t *path; /* row r's begins at path_at[r]; behind the units, in the same memory */
};
constexpr int ROWS_HEADER = 32; /* bytes; and those before the units: */
constexpr int ROWS_FIXED = ROWS_HEADER + ROWS * ((int)sizeof(dt_sampling) + 7 * 4);
static_assert(CHUNK_GROUP <= ROWS && CHUNK <= PARTIALS * ROWS, "a chunk's sums lie where a pass's parts do");
static_assert(sizeof(pass_header) <= ROWS_HEADER && ROWS_FIXED % sizeof(int4) == 0,
              "units are read 16 bytes at a time");

/* What comes back of a pass, in host memory that the device writes to. */
struct pass_results {
  int32_t *argmax;   /* [ROWS] */
  int32_t *top_id;   /* [ROWS][CHECK_TOP] */
  float *top_logp;   /* [ROWS][CHECK_TOP] */
  float *top_own;    /* [ROWS][CHECK_TOP] */
  float *confidence; /* [ROWS] */
  float *entropy;    /* [ROWS] */
};

/* Of one block of ids of one row: of the scores' softmax, and of the logits'. */
struct logit_part {
  float max, sum, weighted;
  float own_max, own_sum;
  int nan;
};

struct dt_weights {
  dt_backend *backend;
  number activations; /* the type of what is multiplied with the weights, and of the caches */
  dt_shape shape;
  int dim;          /* head_dim rounded up to one that the attention knows: the width of a head in q and the cache */
  float scale;      /* head_dim^-0.5 */
  layer *layers_of; /* [layers], on the host */
  float *final_norm, *final_norm_bias;
  uint16_t *embed; /* [vocab][hidden] */
  matrix unembed;
  int32_t *ids, *ids_here; /* [outputs] of the outputs of unembed, rising; on the device, and on the host; null: all */
  int outputs;
  draft_head head;
  int taps, tap[DT_TAPS]; /* what caches keep of the residual stream, as in dt_head_desc */
  float *cosine, *sine;   /* [context][rotary_dims / 2] */

  /* Scratch of a pass. Leading dimensions in numbers. */
  int ldx, ldcat, inner_at;
  float *x;             /* [CHUNK][hidden] the residual stream */
  operands pass, chunk; /* [ROWS], [CHUNK]; [ldx], of cat [ldcat] */
  uint16_t *q;          /* [CHUNK][heads][dim] */
  float *partial;       /* [PARTIALS][ROWS][hidden] sums over parts of k, not yet in x; of a chunk: [CHUNK][hidden] */
  float *logits;        /* [ROWS][outputs] */
  uint16_t *plain;      /* a piece of a matrix, row by row, and */
  float *sums;          /* [CHUNK][PIECE] its product with a chunk: where the logits are, which a chunk has not */
  logit_part *parts;    /* [ROWS][blocks of ids] */
  uint64_t *best;       /* [ROWS][blocks of ids][CHECK_TOP] largest score first: see scores.cuh */
  arena weights_arena, scratch_arena;
  struct gemm_library *gemms; /* null: no prompt was long enough so far */
  bool no_chunks;             /* there is no library, or it cannot compute them */
};

/* Keys of head g of layer l, sequence s: [slot][dim] at cache_rows(); values likewise. */
struct dt_cache {
  dt_weights *weights;
  int sequences, slots;
  int splits;     /* parts of an attention over all slots */
  uint16_t *data; /* [sequences][layers][2][kv_heads][slots][dim] */
  features kept;  /* behind all of these; of no width: none */
  float *part;    /* [ROWS][heads][splits][dim] sums of values, not yet divided */
  float2 *weight; /* [ROWS][heads][splits] of each part: largest score, sum of exponentials */
  unsigned *done; /* [ROWS][heads] parts that are there */
  pass_rows rows[CHUNK / CHUNK_GROUP], staged[CHUNK / CHUNK_GROUP]; /* those of a pass are the first */
  size_t tail;                                                      /* room for units and paths, in int32_t */
  pass_results results;
  void *host; /* what staged and results lie in */
  arena cache_arena, scratch_arena;
  struct graph_list *graphs;
};

/* The heads' rows of a sequence, keys and values of all layers: as many as this, one behind the other. */
inline size_t cache_heads(const dt_weights &w) { return (size_t)w.shape.layers * 2 * w.shape.kv_heads; }

/* Numbers of a row's feature in its caches: moved 16 bytes at a time. */
inline int cache_feature(const dt_weights &w) { return (w.taps * w.shape.hidden + 3) / 4 * 4; }

/* Whether the stream behind the last layer is kept of rows that nobody asks anything of: a head's own need not be. */
inline bool keeps_ends(const dt_weights &w) {
  bool any = false;
  for (int t = 0; t < w.taps; t++) any |= w.tap[t] >= w.shape.layers;
  return any && !w.head.target;
}

static inline int round_up(int n, int to) { return (n + to - 1) / to * to; }
static inline int blocks_of(int n, int block) { return (n + block - 1) / block; }

/* upload.cu */
dt_status cuda_upload(dt_backend *, const dt_model_desc *, const dt_holding *, dt_weights **, dt_error *);
dt_status cuda_upload_head(dt_backend *, const dt_head_desc *, const char *dtype, dt_weights *target, dt_weights **,
                           dt_error *);
void cuda_free_weights(dt_weights *);
/* cache.cu */
size_t cuda_cache_bytes(const dt_weights *, int slots);
dt_status cuda_create_cache(dt_weights *, int sequences, int slots, dt_cache **, dt_error *);
void cuda_free_cache(dt_cache *);
dt_status cuda_move(dt_cache *, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *);
dt_status cuda_snapshot(const dt_cache *, int sequence, int n, dt_snapshot **, dt_error *);
dt_status cuda_restore(dt_cache *, int sequence, const dt_snapshot *, dt_error *);
void cuda_free_snapshot(dt_snapshot *);
dt_status cuda_read_slot(const dt_cache *, int sequence, int slot, void **bytes, size_t *len, dt_error *);
/* rows.cu: puts rows from `first` on, `most` or as many as fit, where the device will read them; returns how many. */
int stage_rows(const dt_cache *, const pass_rows &to, const dt_rows *, int first, int most, size_t *bytes);
/* forward.cu */
dt_status cuda_forward(dt_weights *, dt_cache *, const dt_rows *, const dt_out *, dt_error *);
dt_status cuda_warm_up(dt_weights *, dt_error *); /* before the first pass */
void graphs_free(graph_list *);
/* probe.cu */
double cuda_read_bandwidth(dt_backend *);

#endif
