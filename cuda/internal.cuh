/* The structures that the files of the CUDA backend share, and the launchers of its kernels. */
#ifndef DT_CUDA_INTERNAL_CUH
#define DT_CUDA_INTERNAL_CUH

#define restrict __restrict__ /* C's keyword, in headers of the runtime */
extern "C" {
#include "backend/check.h"
#include "backend/delta_rows.h"
}
#undef restrict
#include "cuda.h"
#include "device.cuh"
#include "row_batches.h"

constexpr int MULTIPROCESSORS = 132; /* of an H100 or H200; numbers of blocks are chosen for it */
constexpr int WIDE_ROWS = 144;       /* maximum number of rows of one block of a matrix product */
constexpr int BLOCK_TILES = 9;       /* tiles of 16 outputs of a block in a product of more than 64 rows */
constexpr int ROWS = 288;  /* maximum number of rows of a pass on the device; a longer pass runs in parts, in order */
constexpr int CHUNK = 512; /* rows of a prompt whose products are computed together */
constexpr int CHUNK_GROUP = 256; /* rows of a chunk that share buffers of ROWS rows */
constexpr int PIECE =
    4096; /* maximum number of outputs of a chunk's product that are computed together; a multiple of 16 */
constexpr int PATH = 64;          /* average number of path slots per row for which there is room */
constexpr int TREE_QUERIES = 8;   /* heads of rows of a tree that share a part where their paths begin */
constexpr int PLACES = 512;       /* attention blocks that a device runs at once: with fewer, rows share no work */
constexpr int SPLIT = 128;        /* keys of one part of an attention: part s begins at logical position s * SPLIT */
constexpr int PARTIALS = 8;       /* maximum number of parts of the sum over k of a matrix product */
constexpr int LOGIT_BLOCK = 1024; /* ids whose logits are reduced together */
constexpr int MAX_HEAD = 512, MAX_HIDDEN = 8192;
/* Bytes that models and caches leave to what has no size in advance: graphs, the code of kernels, cuBLASLt, and the
 * memory through which weights are loaded. */
constexpr size_t MARGIN = (size_t)256 << 20;
static_assert(ROWS % QUERIES == 0, "a batch has whole groups of queries");
static_assert(TREE_QUERIES == QUERIES / 2,
              "a row's heads that are computed together fit where rows have their own keys");

/* A stream, and whether its kernels are dependent launches, which cannot be queried from a stream while it is
 * captured. */
struct queue {
  cudaStream_t stream;
  bool overlaps;
  operator cudaStream_t() const { return stream; }
};

constexpr int TOP = WARP; /* maximum number of candidates of a row: they are a list (scores.cuh) */

/* How caches hold keys and values: in 16 bits, or rounded to 8.5: see cache_format.cuh. */
enum cache_format { CACHE_16, CACHE_Q8 };

struct dt_backend {
  int device;
  queue stream;
  bool overlaps, graphs; /* whether kernels of passes are dependent launches, and passes are graphs */
  bool no_library;       /* a prompt was computed without cuBLASLt */
  const char *refused;   /* the driver's reason if one of these was given up; otherwise null */
  bool widens;           /* whether matrices are not packed, although they could be; results are the same */
  bool guards;           /* see arena */
  cache_format caches;   /* for the caches of all models */
  int batch;             /* maximum number of rows whose attention runs at once */
  int rows;              /* maximum number of rows of a pass; more run as several passes, with the same bits */
  bool broken;           /* the device cannot recover from an error: every call fails from now on */
  dt_memory memory;
  char name[256], description[400];
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

/* How a matrix stores its weights: as numbers of 16 bits, or as codes of 3 to 8 bits with scales (see record.cuh). */
enum packing { BITS16, BITS3, BITS4, TABLE4, BITS5, BITS6, BITS8, PACKINGS };

/* The number of 16-byte pieces of a tile's weights in one step. */
__host__ __device__ constexpr int pieces_of(packing p) {
  constexpr int pieces[PACKINGS] = {64, 20, 20, 18, 24, 28, 34};
  return pieces[p];
}

/* A matrix laid out for the tensor cores: see pack.cu. */
struct matrix {
  number format; /* type in which the tensor cores get its weights */
  packing packed;
  uint4 table;  /* TABLE4: the values of the 16 codes, a byte each, plus 128 */
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

/* The experts of a layer, and what chooses them: see dt_layer. Vectors may be null. */
struct expert_parts {
  int outputs; /* of the router: the experts and, if the MLP has a gate, the gate; 0: the layer has no experts */
  float *router, *router_bias, *correction, *scale;           /* [outputs][hidden] [outputs] [experts] [experts] */
  float *router_norm, *expert_norm, *experts_norm, *mlp_norm; /* [hidden] */
  matrix up, down; /* of all experts: each has the same number of whole tiles; up: pairs of gate and up */
};

/* What a delta layer has instead of heads: see dt_layer. */
struct delta_parts {
  int products;                /* matrices of `in`; 0: the layer has heads */
  matrix in[4];                /* delta_in, z, a and b: their tiles are counted as those of one matrix */
  float *conv;                 /* [DT_DELTA_TAPS][mixed] */
  float *decay, *shift, *norm; /* [values] [values] [value_dim] */
  size_t at;                   /* where the layer's store begins among those of its sequence */
};

/* The sizes of delta layers. A store is what a sequence keeps for one layer: a ring of rows, then the bases. All counts
 * are of numbers of 32 bits. */
struct delta_sizes {
  int values;           /* number of value heads; 0: the model has no delta layers */
  int mixed;            /* queries, keys and values of a row */
  int z_at, a_at, b_at; /* where the outputs of z, a and b begin, after those of delta_in */
  int outputs;          /* number of all these */
  size_t row;           /* of the ring: what delta_in computed, keys, deltas, rates */
  size_t keys_at, deltas_at, rates_at;
  size_t base, bases_at, store; /* of a base: [values][key_dim][value_dim] */
  size_t all;                   /* the stores of all layers */
};

constexpr int DELTA_FACTORS = DT_DELTA_ROWS + 1;

/* The scratch of a pass for delta layers. */
struct delta_scratch {
  float *in;       /* [ROWS][outputs] what the first product computes */
  float *mixed;    /* [ROWS][mixed] queries, keys and values */
  float *strength; /* [ROWS][values] */
  float2 *factor;  /* [ROWS][values][DELTA_FACTORS] of the rows since the base; then that of the base, and of the row */
  float *y;        /* [ROWS][values][value_dim] */
};

struct layer {
  float *norm1, *norm1_bias, *norm2, *norm2_bias; /* [hidden]; a layer may lack any */
  float *o_norm, *down_norm;                      /* [hidden] of what `out` and `down` add to x; null: no norm */
  float2 *q_norm, *k_norm; /* for the pairs of outputs of one head, or (wide_norms) of all heads; null: no norm */
  matrix in;               /* q, k and v of all heads; parallel residual: then the MLP's up, or gate and up */
  matrix in_tail;          /* the last tiles of `in`, if they are packed differently; otherwise it has no tiles */
  matrix up;               /* sequential residual only */
  matrix out;              /* o; parallel residual: o and down side by side, with `cat` as input */
  matrix down;             /* sequential residual only; up and down: no tiles if the layer has experts alone */
  expert_parts experts;
  delta_parts delta;            /* if it has products, there are no `in` and `q_gate` */
  matrix q_gate;                /* no tiles: the heads have no gates */
  matrix input_gate, input_out; /* if the model has inputs */
  float *input_norm;            /* [hidden] of what input_out adds to x */
  float scale;                  /* of x after the layer; 1: none */
  float *sinks;                 /* [heads] see attention.cuh; null: none */
  int window;                   /* the same; 0: none */
  int kv_heads, head_dim, inter;
  int dim;           /* head_dim rounded up to a width that attention is compiled for: of a head in q and the cache */
  float score_scale; /* of attention's scores */
  bool has_keys;     /* the layer has k and v; otherwise it reads those of an earlier layer */
  size_t keys_at;    /* where the keys begin that it reads, in bytes of a slot: see dt_cache.data */
  bool still;        /* its queries and keys are not rotated */
  bool local;        /* it rotates by the second of the model's rotations */
  bool apart;        /* see dt_layer */
};

/* The frequencies by which heads rotate, on the host, and the factor of the cosines and sines of their angles. */
struct rotation {
  float *frequency; /* [pairs] */
  int pairs;        /* 0: there is no such rotation */
  float scale;
};

/* The cosines and sines of a rotation's angles: [positions][pairs]. The number of positions is that of slots, at most
 * the model's context. */
struct angle_table {
  float *cosine, *sine;
};

/* The features of a cache's rows: that of sequence s, slot p is at ((s * slots) + p) * width. */
struct features {
  float *at;
  int slots, width;
  bool operator==(const features &) const = default;
};

/* The keys and values of a cache: those of sequence s begin at s * slots * slot_bytes. */
struct key_rows {
  unsigned char *data;
  int slots;
  size_t slot_bytes;
  bool operator==(const key_rows &) const = default;
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
  matrix post;       /* CROSS_ATTENTION only: computes the row's feature */
  float *given_norm; /* [streams][hidden of the target]; null: none */
  bool norms_all;    /* one norm over all streams, not one per stream */
  float *token_norm, *feature_norm;
  int distances, blocks; /* of a Medusa head */
  matrix block[DT_DISTANCES][DT_BLOCKS], output[DT_DISTANCES];
  operand given, pair; /* scratch of a pass: the input of fc from the target; the embedding and feature side by side */
};

/* The adjustments of a wanted row (dt_row_adjustments), by places in arrays that all rows of a pass share. */
struct adjusted_row {
  int text, n_text, path, n_path; /* in `list` */
  int mask;                       /* in `mask`; -1: all ids are allowed */
  int raw;                        /* in `raw`: one logit for each entry of `text`, and then of `path` */
  int given;                      /* the id whose log-probability is wanted; -1: the chosen one */
};
struct adjusted_rows {
  adjusted_row *row; /* [ROWS]; null: no row is adjusted, and no id is given */
  dt_adjustment *list;
  uint64_t *mask;
  float *raw; /* the logits of listed ids before they were adjusted */
};

/* The rows of a pass as the kernels read them: filled on the host and copied at once. The arrays follow the header. */
struct pass_header {
  int n, wanted, units, top_k, top_ids;
  dt_window window;
  int batches; /* number of batches, with dt_cache.batch rows each; `units` is the number in each batch */
  adjusted_rows adjusted;
};
/* The rows of one sequence in a pass of a model with delta layers. They follow each other. */
struct delta_run {
  int32_t sequence, first, n;
  int32_t from, to; /* positions of bases: those after `from` up to `to` are computed before the rows */
  int32_t unused[3];
};
constexpr int DELTA_RUNS = 64; /* maximum number of these in a pass */
constexpr int32_t DELTA_NO_TAP = INT32_MIN;
struct delta_rows {
  int32_t runs, unused[3];
  delta_run run[DELTA_RUNS];
  /* The rows before each row, the nearest last: rows of the pass, ~slots, or (before the text) DELTA_NO_TAP. */
  int32_t tap[ROWS][DT_DELTA_TAPS - 1];
};

struct pass_rows {
  pass_header *header;
  dt_sampling *sampling;                                           /* [ROWS] for the wanted rows */
  int32_t *position, *sequence, *slot, *prefix, *path_at, *wanted; /* [ROWS] */
  /* [ROWS] the position of the last key that the row sees: its own or, if it sees its whole block, the block's last */
  int32_t *reach;
  /* The units of attention, eight numbers each: the first row in its batch; the number of rows (0: an unused unit); the
   * part; the key in the part from which each row has its own keys (SPLIT: none); and the sequence, prefix, path_at and
   * reach of the last of these rows. With these a block can find its keys at once. */
  int4 *unit;
  int32_t *path;      /* the path of row r begins at path_at[r]; paths follow the units in the same memory */
  delta_rows *deltas; /* null: the model has no delta layers */

  /* Returns the rows as one batch of attention sees them, without the rows and units of earlier batches. */
  pass_rows after(int rows, int units) const {
    return {header,         sampling, position + rows, sequence + rows,  slot + rows, prefix + rows,
            path_at + rows, wanted,   reach + rows,    unit + 2 * units, path,        deltas};
  }
};

/* The embedding of a row's token: `numbers` of them (dt_weights.embedding). The rows lie before the header, the first
 * one next to it: so the embeddings of any number of rows are copied together with the header and what follows. */
__host__ __device__ inline uint16_t *embedding_of(const pass_rows &rows, int r, int numbers) {
  return reinterpret_cast<uint16_t *>(rows.header) - (size_t)(r + 1) * (size_t)numbers;
}
constexpr int ROWS_HEADER = 64; /* bytes; ROWS_FIXED: bytes before the units and, if there are any, delta_rows */
constexpr int ROWS_FIXED = ROWS_HEADER + ROWS * ((int)sizeof(dt_sampling) + 7 * 4);
static_assert(CHUNK_GROUP <= ROWS && CHUNK <= PARTIALS * ROWS, "a chunk's sums lie where a pass's parts do");
static_assert(sizeof(pass_header) <= ROWS_HEADER && ROWS_FIXED % sizeof(int4) == 0 &&
                  sizeof(delta_rows) % sizeof(int4) == 0,
              "units are read 16 bytes at a time");

/* The results of a pass, in host memory that the device writes to. */
struct pass_results {
  int32_t *argmax;       /* [ROWS] */
  int32_t *top_id;       /* [ROWS][TOP] */
  float *top_logp;       /* [ROWS][TOP] */
  float *top_own;        /* [ROWS][TOP] */
  float *confidence;     /* [ROWS] */
  float *entropy;        /* [ROWS] */
  float *logp;           /* [ROWS] */
  int32_t *expert;       /* [layers][ROWS][chosen] as in dt_out.experts, for all rows; null: the model has no experts */
  int32_t *experts_read; /* [layers] distinct experts; 0 in layers without experts */
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

/* The routes of a layer's rows: see experts.cuh. */
struct route_scratch {
  float *logits;  /* [ROWS][outputs of the router] */
  int32_t *id;    /* [ROWS][chosen] the experts of each row, rising */
  float *weight;  /* the same: their weights */
  int32_t *order; /* [pairs] the pairs, by expert */
  int4 *group;    /* [groups] pairs that are multiplied together: expert, first in `order`, number of pairs, 0 */
  int *groups;    /* their number */
  operand inner;  /* a row of each pair */
  float *out;     /* [pairs][hidden] */
};

struct dt_weights {
  dt_backend *backend;
  dt_part part;
  bool apart;         /* some of its layers are */
  number activations; /* type of the activations, and of caches with 16 bits */
  const char *stored; /* name of the type of its matrices on the device; "mixed": several types */
  dt_shape shape;
  int dim;           /* the widest of its layers */
  int joined;        /* heads of a row that share their keys and whose attention is computed together */
  int last_keys;     /* the last layer that has keys of its own or is a delta layer; -1: none */
  size_t slot_bytes; /* bytes of a slot's keys and values, of all layers */
  float embed_scale, residual_scale, logit_scale; /* 1 if the model has no such factor */
  layer *layers_of;                               /* [layers], on the host */
  float *final_norm, *final_norm_bias;
  const uint16_t *embed; /* [vocab][hidden], on the host: stage_rows() copies the rows that a pass needs */
  uint16_t *embed_own;   /* the same; null: it is another model's */
  size_t embed_bytes;    /* of embed_own and inputs_rows, once they are there */
  size_t host_bytes;     /* what this model has added to backend->memory.host */
  int embed_width;       /* the numbers of a row of embed; in a part that a stream enters, of that, two for each f32 */
  int embedding;         /* the numbers that come with a row's token: its embedding, and then the layers' inputs */
  char *inputs_rows;     /* on the host: the rows of inputs_embed, as stored in the file */
  dt_dtype inputs_type;  /* their type */
  float *inputs_wide;    /* on the host: room for one row */
  matrix inputs_proj;    /* outputs: all layers' inputs */
  float *inputs_norm;    /* [inputs] */
  matrix unembed;
  int32_t *ids, *ids_here; /* [outputs] ids of unembed's outputs, rising; on the device, on the host; null: all */
  int outputs;
  delta_sizes delta;
  draft_head head;
  int taps, tap[DT_TAPS]; /* streams that caches store, as in dt_head_desc */
  rotation rotations[2];  /* that of all layers; that of layers with a window, if theirs is another */

  /* Scratch of a pass. Leading dimensions are in numbers. */
  int ldx, ldcat, inner_at;
  float *x;             /* [CHUNK][hidden] the residual stream */
  operands pass, chunk; /* [ROWS], [CHUNK] rows of ldx numbers; cat: of ldcat */
  uint16_t *q;          /* [CHUNK][heads][dim] */
  int fresh_rows;
  /* [2 * kv_heads][fresh_rows][dim] keys and values of a layer, before they are rounded; otherwise null */
  uint16_t *fresh;
  int32_t *order; /* [ROWS] 0, 1, 2, ..: the slots of rows in `fresh` */
  float *partial; /* [PARTIALS][ROWS][hidden] sums over parts of k, not yet in x; for a chunk [CHUNK][hidden] */
  float *inputs;  /* [ROWS][layers * inputs] */
  route_scratch routes;
  float *gates; /* [ROWS][heads * head_dim] of heads; null: they have none */
  delta_scratch delta_pass;
  float *logits;   /* [ROWS][outputs]; before that, products of inputs */
  uint16_t *plain; /* a piece of a matrix, row by row */
  float *sums; /* [CHUNK][PIECE] the product of `plain` with a chunk, in the memory of `logits`, which a chunk does not
                  need */
  logit_part *parts;   /* [ROWS][blocks of ids] */
  uint64_t *best;      /* [ROWS][blocks of ids][TOP], the largest score first: see scores.cuh */
  sample_row *samples; /* [ROWS] */
  double *log_sums;    /* [ROWS] see reduction */
  arena weights_arena, scratch_arena;
  struct gemm_library *gemms; /* null: there was no long prompt yet */
  bool no_chunks;             /* the library is missing, or cannot compute chunks */
};

/* The adjustments of a pass on the host, which the device copies, and on the device; it grows when more are needed. */
struct adjustment_buffer {
  char *host, *device;
  size_t bytes;
};

/* What the host knows of a sequence's stores. */
struct delta_state {
  int32_t tag[DT_DELTA_BASES]; /* the positions of the bases; 0: the base is not computed yet */
  int since;                   /* the ring has no rows before this one */
};

/* For layers that are apart: the rows first..first+n-1 of a pass, which run now. */
struct running_rows {
  const dt_rows *rows; /* null: none, as when kernels run for the first time */
  int first, n;
  float *stream; /* [ROWS][hidden] on the host: their streams */
};

struct dt_cache {
  dt_weights *weights;
  int sequences, slots;
  int splits; /* number of parts of an attention over all slots */
  int batch;  /* rows whose attention runs at once: see row_batches.h */
  /* Of each sequence, slots * slot_bytes: for each layer with keys, from slots * keys_at on, [2][kv_heads][slots] rows
   * of row_bytes(). */
  unsigned char *data;
  features kept;             /* features, after all keys and values; width 0: none */
  float *deltas;             /* [sequences][weights->delta.all] */
  delta_state *delta_states; /* [sequences]; null: the model has no delta layers */
  angle_table angles[2];     /* by the model's rotations */
  float *part;               /* [batch][heads][splits][dim] sums of values, not yet divided */
  float2 *weight;            /* [batch][heads][splits] largest score of a part, sum of its exponentials */
  unsigned *done;            /* [batch][heads] number of finished parts */
  pass_rows rows[CHUNK / CHUNK_GROUP], staged[CHUNK / CHUNK_GROUP]; /* a pass uses only the first */
  size_t tail;                                                      /* room for units and paths, counted in int32_t */
  pass_results results;
  void *host; /* memory of staged and results */
  adjustment_buffer adjustments;
  arena cache_arena, scratch_arena;
  struct graph_list *graphs;
  running_rows running;
};

/* Whether it is a head that reads the keys of its target's cache. */
inline bool reads_keys(const dt_weights &w) { return w.head.kind == DT_HEAD_CROSS_ATTENTION; }

/* Returns the number of values of a row's feature in its caches; a feature is moved 16 bytes at a time. */
inline int cache_feature(const dt_weights &w) {
  int values = reads_keys(w) ? w.head.target->shape.hidden : w.taps * w.shape.hidden;
  return (values + 3) / 4 * 4;
}

/* Bytes of a pass's rows before the units. */
inline size_t rows_fixed(const dt_weights &w) { return ROWS_FIXED + (w.delta.all ? sizeof(delta_rows) : 0); }

inline key_rows keys_in(const dt_cache &c) { return {c.data, c.slots, c.weights->slot_bytes}; }

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
dt_status cuda_account(dt_backend *, const dt_model_desc *, int sequences, int slots, dt_memory *, dt_error *);
void cuda_free_weights(dt_weights *);
/* scratch.cu: lays out the memory that passes of the model need, apart from that of a cache. */
void build_scratch(dt_weights *);
/* cache.cu */
size_t cuda_cache_bytes(const dt_weights *, int slots);
size_t cuda_scratch_bytes(const dt_weights *, int sequences, int slots);
size_t cuda_bytes_free(const dt_backend *); /* of the device, without MARGIN; SIZE_MAX: unknown */
void cuda_account_cache(const dt_weights *, int sequences, int slots, dt_memory *); /* adds what such a cache takes */
dt_status cuda_create_cache(dt_weights *, int sequences, int slots, dt_cache **, dt_error *);
void cuda_free_cache(dt_cache *);
dt_status cuda_move(dt_cache *, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *);
dt_status cuda_snapshot(const dt_cache *, int sequence, int n, dt_snapshot **, dt_error *);
dt_status cuda_restore(dt_cache *, int sequence, const dt_snapshot *, dt_error *);
void cuda_free_snapshot(dt_snapshot *);
dt_status cuda_read_slot(const dt_cache *, int sequence, int slot, void **bytes, size_t *len, dt_error *);
/* experts.cu: the maximum number of pairs that a block of the products takes together, in a pass of `rows` rows. */
int pairs_of_group(const dt_weights *, int rows);
/* rows.cu. stage_rows: writes rows from `first` on, `most` or as many as fit, to staged[group]; returns their number.
 * copy_rows: copies n rows from there to rows[group], on the device; `bytes` is what stage_rows has set. */
int stage_rows(const dt_cache *, int group, const dt_rows *, int first, int most, size_t *bytes);
cudaError_t copy_rows(const dt_cache *, int group, int n, size_t bytes);
/* forward.cu */
dt_status cuda_forward(dt_weights *, dt_cache *, const dt_rows *, const dt_out *, dt_error *);
dt_status cuda_warm_up(dt_weights *, dt_error *); /* before the first pass */
void graphs_free(graph_list *);
/* probe.cu */
double cuda_read_bandwidth(dt_backend *);

#endif
