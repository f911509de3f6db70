/* The structures that the files of the CPU backend share. */
#ifndef DT_CPU_INTERNAL_H
#define DT_CPU_INTERNAL_H

#include "backend/check.h"
#include "backend/ranks.h"
#include "kernels.h"
#include "team.h"

struct dt_backend {
  const cpu_kernels *kernels;
  int threads;
  cpu_team *team;
  dt_ranks *ranks; /* NULL: this process has the whole model */
  const cpu_cache_type *cache_type;
  char *packed; /* the folder where packed weights are kept; NULL: none are */
  char description[48];
  dt_memory memory;
};

/* A block of memory that the same code lays out twice: first with base NULL to measure the size, then with memory. */
typedef struct {
  char *base;
  size_t size, used;
} cpu_arena;

static inline int cpu_round_up(int n, int to) { return (n + to - 1) / to * to; }

/* A digest of what the layout of weights in memory depends on. */
const char *cpu_layout(void);

void *cpu_take(cpu_arena *arena, size_t bytes); /* aligned to 64; NULL while measuring */
/* Maps zeroed pages for arena->used bytes (huge pages if the arena is large), adds them to *account, and restarts the
 * layout from the beginning. With a team the pages are cleared at once and distributed over the nodes of its members,
 * without one they are cleared when they are first written, on the node of the thread that writes.
 * DT_ENOMEM: the message says how much memory is needed and how much is free. */
dt_status cpu_arena_open(cpu_arena *arena, const char *what, cpu_team *, size_t *account, dt_error *err);
void cpu_arena_close(cpu_arena *arena, size_t *account);

typedef struct {
  int first, count;
} cpu_range;

/* The part of a model that this rank computes; without ranks, the whole model. If the heads of two ranks share a key
 * head, both ranks have that key head. */
typedef struct {
  cpu_range heads, kv_heads;
  cpu_range delta_keys; /* key heads of delta layers; each comes with all value heads that share it */
  cpu_range inter;      /* columns of an MLP's inner row: outputs of up (and gate) */
  cpu_range hidden;     /* columns of the residual stream: outputs of o and down */
  cpu_range ids;        /* outputs of unembed, and rows of embed */
} cpu_mine;

typedef struct {
  cpu_matrix up, down; /* as in cpu_layer */
} cpu_expert;

/* What a layer with experts has in addition to them: see dt_layer. Each may be NULL. */
typedef struct {
  float *correction, *scale;                                  /* [experts] */
  float *mlp_norm, *experts_norm, *expert_norm, *router_norm; /* [hidden] */
  cpu_matrix mlp_gate;                                        /* one output */
} cpu_routing;

/* What a delta layer has instead of attention heads: see delta_layer.h. */
typedef struct {
  cpu_matrix in, z, a, b;
  float *conv;                 /* [taps][ld] */
  float *decay, *shift, *norm; /* [values], [values], [value_dim] */
  size_t at;                   /* where this layer's part of a sequence's store begins, in floats */
} cpu_delta;

typedef struct {
  float *norm1, *norm1_bias, *norm2, *norm2_bias; /* [hidden]; biases may be NULL; a draft head has no norm1 */
  float *o_norm, *down_norm;                      /* [hidden], or NULL */
  float *q_norm, *k_norm; /* [head_dim] or, for one norm over all heads, [heads * head_dim]; or NULL */
  float *v_norm;          /* [head_dim], all ones, or NULL */
  cpu_matrix q, k, v;     /* outputs: heads, each padded to `dim`; k, v: if it has its own keys */
  cpu_matrix up;          /* with a gate, a panel holds 16 gates and the 16 outputs that they multiply */
  cpu_matrix o;           /* with a parallel residual, the input is the attention output and the inner row */
  cpu_matrix down;        /* sequential residual only */
  float *sinks;           /* [heads], or NULL */
  cpu_matrix router;      /* this and the next two: experts, instead of up and down or in addition */
  cpu_expert *expert;     /* [experts] */
  cpu_routing routing;
  cpu_matrix q_gate;                /* laid out as q; empty if the heads have no gate */
  cpu_delta *delta;                 /* replaces q, k and v; NULL: the layer has attention */
  cpu_matrix input_gate, input_out; /* for per-layer inputs */
  float *input_norm;
  float *scale;             /* multiplies the stream after the layer, or NULL */
  cpu_matrix mix[2];        /* around attention and around the MLP (see mix.c); empty: the layer has none */
  const float *mix_base[2]; /* [2][taps][hidden] each */
  int window;               /* these two are as in dt_layer */
  bool still;
  bool backward;  /* rows of a block do not see later ones */
  dt_shape shape; /* the model's shape with this layer's numbers */
  cpu_mine mine;
  int dim; /* head_dim rounded up to a multiple of 16: the width of a head in q, k, v and the cache */
  /* The number of the layer whose keys and values this layer reads: its own, an earlier one or, in a cross-attention
   * head, a layer of the target. */
  int keys_of;
  size_t cache_at; /* where this layer's keys begin in a slot, in bytes */
} cpu_layer;

/* The weights that a draft head has in addition to those of a model: see dt_head_desc. */
typedef struct {
  const dt_weights *target; /* NULL: this is not a head */
  dt_head_kind kind;
  bool norm_residual;
  cpu_matrix fc, post;
  float *all_norm, *stream_norm[DT_TAPS], *token_norm, *feature_norm; /* or NULL */
  int given;             /* length of a feature of the target, in numbers */
  int post_rows;         /* numbers that post computes; 0: there is no post */
  int leads;             /* see dt_head_leads */
  int distances, blocks; /* for a Medusa head */
  cpu_matrix block[DT_DISTANCES][DT_BLOCKS], output[DT_DISTANCES];
} cpu_head;

typedef struct cpu_chunk cpu_chunk; /* chunk.h */

/* How the delta layers' state is laid out; all sizes are in floats. A store is what a sequence keeps for one layer: a
 * ring of rows, then the bases, then the positions of the bases. Value heads are grouped by the key head that they
 * share. */
typedef struct {
  cpu_range keys; /* mine.delta_keys; a rank without any computes the first one, in order to know which bases exist */
  int values;     /* number of value heads */
  int mixed;      /* queries, keys and values of a row, 2K + U */
  size_t row;     /* size of a row in the ring: mixed numbers, keys, deltas, rates */
  size_t keys_at, deltas_at, rates_at;   /* where these begin in such a row */
  size_t base, bases_at, tags_at, store; /* size of a base; offsets of bases and their positions; size of a store */
  size_t all;                            /* size of all layers' stores; 0: the model has no delta layers */
  size_t ldin, ldz, ldrates;             /* leading dimensions of mixed numbers (and of the taps), of z, and of rates */
} cpu_deltas;

/* Scratch memory for a chunk's experts. A pair is a row and one of the experts that it chose. The pairs are sorted by
 * expert; the place of a pair is its index in that order. */
typedef struct {
  size_t ldlogits, ldinner;
  size_t step;   /* bytes between the prepared rows of two pairs */
  float *logits; /* [CPU_ROWS][ldlogits] the router's logits */
  int32_t *id;   /* [CPU_ROWS][chosen] the chosen experts, rising */
  float *weight; /* [CPU_ROWS][chosen] */
  int *place;    /* [threads][CPU_ROWS * chosen] each pair's place */
  char *rows;    /* [CPU_ROWS * chosen] by place, prepared for the products */
  float *inner;  /* [CPU_ROWS * chosen][ldinner] by place */
  float *out;    /* [CPU_ROWS * chosen][ldx] by place */
  float *dense;  /* [CPU_ROWS][ldx] the output of the MLP that runs in addition to the experts */
  float *gate;   /* [CPU_ROWS][CPU_PANEL] that MLP's gate is the first number of each row */
} cpu_routes;

/* Scratch memory for a chunk's delta layers; cpu_deltas has the leading dimensions. */
typedef struct {
  float *in;    /* [CPU_ROWS][ldin] */
  float *z;     /* [CPU_ROWS][ldz] */
  float *a, *b; /* [CPU_ROWS][ldrates] */
} cpu_delta_rows;

/* Scratch memory for a chunk of at most CPU_ROWS rows; leading dimensions are in numbers. */
typedef struct {
  size_t ldx, ldqkv, ldcat, ldwide, ldangles, ldinputs, ldgates, ldlogits, ldgiven, ldpair, ldmixes;
  int keys_at, values_at; /* columns of qkv where keys and values begin */
  int wide_keys_at;       /* column of wide where keys begin */
  float *x;               /* [CPU_ROWS][ldx] the residual stream */
  float *normed;          /* [2][CPU_ROWS][ldx] */
  float *own;             /* [threads][2][CPU_OWN_ROWS][ldx] norms that each thread computes for itself */
  float *qkv;             /* [CPU_ROWS][ldqkv] */
  float *gates;           /* [CPU_ROWS][ldgates] gates of heads, each head padded */
  float *mixes, *mixed;   /* [CPU_ROWS][ldmixes] weights of the mix of a layer's block; [CPU_ROWS][ldx] its rows */
  float *angles; /* [2][CPU_ROWS][2][ldangles] cosines, then sines, by inv_freq and local_freq; two chunks alternate */
  float *inputs; /* [CPU_ROWS][ldinputs] */
  float *own_inputs; /* [threads][layers * inputs] a token's row of inputs_embed */
  float *wide;       /* [CPU_ROWS][ldwide] queries, then keys, for norms over all heads */
  float *cat;        /* [CPU_ROWS][ldcat] attention output, then the MLP's inner row */
  float *heads;      /* [threads][CPU_ATTENTION_ROWS][widest dim] attention output, heads padded */
  cpu_routes routes;
  cpu_delta_rows delta;
  /* Rows of x, prepared for the formats of up to CPU_PRODUCTS products; a row takes prepared_bytes. */
  char *prepared;     /* [CPU_PRODUCTS][CPU_ROWS] */
  char *own_prepared; /* [threads][CPU_PRODUCTS][CPU_OWN_ROWS] */
  size_t prepared_bytes;
  float *features; /* [CPU_ROWS][ldgiven] in a draft head: the target's features, normalized; then what post computes */
  float *pair;     /* [CPU_ROWS][ldpair] in a draft head: embedding, then feature */
  float *sums;     /* [threads][CPU_ROWS][CPU_LOGIT_BLOCK] */
  cpu_top *top;    /* [threads][CPU_ROWS][2] the best ids by score and by logit */
  cpu_softmax_part *parts; /* [blocks][2][CPU_ROWS] parts of the softmax of scores and of logits */
  float *logits;           /* [CPU_ROWS][ldlogits] for rows that need all logits */
  uint32_t *weight;        /* [threads][ldlogits] */
  float *adjusted;         /* [threads][ldlogits] a row's logits with adjustments */
  float *wire;             /* [wire_numbers] rows that ranks exchange */
  size_t wire_numbers;
  int *wire_bytes; /* [2][ranks] */
} cpu_scratch;

struct dt_weights {
  dt_backend *backend;
  dt_shape shape;
  dt_part part;
  dt_ranks *ranks; /* the ranks that share the model; NULL: this process has all of it */
  cpu_mine mine;
  void (*run_layer)(const cpu_chunk *, int layer); /* cpu_parallel_layer or cpu_sequential_layer */
  float scale;                                     /* multiplies attention scores */
  float residual_scale;
  cpu_layer *layer;  /* [layers] */
  int writing;       /* number of layers up to the last one that has keys of its own */
  size_t slot_bytes; /* bytes of the keys and values of all layers in one slot */
  float *ones;       /* [head_dim] */
  float *final_norm, *final_norm_bias;
  void *embed; /* [mine.ids][hidden] as stored in the file; NULL: an output matrix holds exact copies of these rows */
  dt_dtype embed_dtype;
  cpu_matrix unembed;
  const cpu_matrix *tied; /* the matrix with copies of the embedding's rows, if embed is NULL */
  void *inputs_embed;     /* [vocab][layers * inputs] as stored in the file */
  dt_dtype inputs_dtype;
  cpu_matrix inputs_proj; /* outputs: layers, each padded to `inputs_dim` */
  float *inputs_norm;
  int inputs_dim; /* shape.inputs rounded up to a multiple of 16 */
  int32_t *ids;   /* [n_ids] the token ids of unembed's rows, rising; NULL: all ids */
  int n_ids;
  cpu_head head;
  cpu_deltas delta;
  bool gated;             /* the heads of some layer have gates */
  int taps, tap[DT_TAPS]; /* the streams whose features caches keep, as in dt_head_desc */
  size_t ldfeature;       /* length of a feature in a cache; 0: caches keep no features */
  const char *stored;     /* the format of its matrices; "mixed" if there are several */
  int activations;        /* bits to which quantized matrices round x: 8 or 16; 0: no matrix is quantized */
  float *inv_freq;        /* [rotary_dims / 2] */
  float *local_freq;      /* [local_dims / 2] the same for layers with a window; NULL: those use inv_freq */
  cpu_scratch scratch;
  cpu_arena weights_arena, scratch_arena;
  struct cpu_packed_writer *writer; /* keeps the weights for the next start; NULL: it does not */
};

enum {
  CPU_OWN_ROWS = 4, /* each thread itself normalizes and prepares up to this number of rows: cheaper than a barrier */
  CPU_PRODUCTS = 4  /* maximum number of products in one phase */
};

/* A cache. The keys (or values) of one head, layer and sequence are [slots] rows of the cache's type, at
 * cpu_rows_of(). A layer that reads another layer's keys has none. After all keys and values come the features, at
 * cpu_feature_of(). */
struct dt_cache {
  dt_weights *weights;
  int sequences, slots;
  char *data;      /* [sequences][layers with keys][2][kv_heads][slots] rows */
  float *features; /* [sequences][slots][ldfeature] */
  float *deltas;   /* [sequences][delta.all] */
  int *since;      /* [sequences] the first slot whose row is still in the rings */
  float *scores;   /* [threads][CPU_ATTENTION_ROWS][ldscores] */
  size_t ldscores;
  cpu_arena cache_arena, scratch_arena;
};

static inline dt_limits cpu_limits(const dt_cache *c) {
  return (dt_limits){c->weights->shape.vocab, c->weights->shape.context, c->sequences, c->slots, CPU_TOP};
}

/* The size in bytes of the keys (or values) of one head of a layer in one slot. */
static inline size_t cpu_row_bytes(const dt_weights *w, int layer) {
  return w->backend->cache_type->row_bytes(w->layer[layer].dim);
}

/* The rows of one head. part: 0 for keys, 1 for values. head: counted within this rank's part. */
static inline char *cpu_rows_of(const dt_cache *c, int sequence, int layer, int part, int head) {
  const dt_weights *w = c->weights;
  const cpu_layer *l = &w->layer[layer];
  size_t rows = (size_t)part * (size_t)l->mine.kv_heads.count + (size_t)head;
  size_t before = (size_t)sequence * w->slot_bytes + l->cache_at + rows * cpu_row_bytes(w, layer);
  return c->data + before * (size_t)c->slots;
}

static inline float *cpu_feature_of(const dt_cache *c, int sequence, int slot) {
  return c->features + ((size_t)sequence * (size_t)c->slots + (size_t)slot) * c->weights->ldfeature;
}

/* Which outputs of a matrix a source's rows become. The rows form groups of `height`; the first group begins at
 * `output`, and each next group `stride` outputs after the one before. stride 0: the rows are consecutive outputs. */
typedef struct {
  int output, height, stride;
} cpu_place;

/* A source of a matrix: its rows become outputs, its columns become the inputs from k0 on. */
typedef struct {
  const dt_matrix *source;
  cpu_place to;
  int first; /* the matrix's first output */
  int k0;
  const int32_t *only; /* [count] which rows to take; NULL: all rows that belong to an output */
  int count;
} cpu_piece;

dt_status cpu_fill(const dt_backend *, const cpu_matrix *, const cpu_piece *, int count, dt_error *);
/* Copies the rows as they are stored in the source. */
dt_status cpu_copy_rows(const dt_backend *, const dt_matrix *, cpu_range, void *to, dt_error *);

cpu_mine cpu_mine_of(const dt_shape *, int rank, int ranks);

dt_status cpu_upload(dt_backend *, const dt_model_desc *, const dt_holding *, dt_weights **, dt_error *);
dt_status cpu_upload_head(dt_backend *, const dt_head_desc *, const dt_holding *, dt_weights *target, dt_weights **,
                          dt_error *);
void cpu_lay_out_scratch(dt_weights *);
void cpu_free_weights(dt_weights *);

size_t cpu_cache_bytes(const dt_weights *, int slots);
dt_status cpu_create_cache(dt_weights *, int sequences, int slots, dt_cache **, dt_error *);
void cpu_free_cache(dt_cache *);
dt_status cpu_move(dt_cache *, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *);
dt_status cpu_snapshot(const dt_cache *, int sequence, int n, dt_snapshot **, dt_error *);
dt_status cpu_restore(dt_cache *, int sequence, const dt_snapshot *, dt_error *);
void cpu_free_snapshot(dt_snapshot *);
int cpu_keep(dt_cache *, int sequence, int rows);
dt_status cpu_read_slot(const dt_cache *, int sequence, int slot, void **bytes, size_t *len, dt_error *);

dt_status cpu_forward(dt_weights *, dt_cache *, const dt_rows *, const dt_out *, dt_error *);

#endif
