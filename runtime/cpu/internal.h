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
  char description[48];
  dt_memory memory;
};

/* Memory that the same code lays out twice: first with base NULL, to measure it, then with memory. */
typedef struct {
  char *base;
  size_t size, used;
} cpu_arena;

void *cpu_take(cpu_arena *arena, size_t bytes); /* aligned to 64; NULL while measuring */
/* Maps zeroed pages for arena->used bytes (huge pages for a large arena), counts them in *account, and begins the
 * layout anew. With a team the pages are cleared at once, without one when they are first written. DT_ENOMEM says how
 * much is needed and how much is free. */
dt_status cpu_arena_open(cpu_arena *arena, const char *what, cpu_team *, size_t *account, dt_error *err);
void cpu_arena_close(cpu_arena *arena, size_t *account);

typedef struct {
  int first, count;
} cpu_range;

/* The part of a model that this rank computes; the whole model without ranks. If heads of two ranks share a key head,
 * both have it. */
typedef struct {
  cpu_range heads, kv_heads;
  cpu_range delta_keys; /* key heads of delta layers, each with all value heads that share it */
  cpu_range inter;      /* numbers of an MLP's inner row: outputs of up (and gate) */
  cpu_range hidden;     /* numbers of the residual stream: outputs of o and down */
  cpu_range ids;        /* outputs of unembed, and rows of embed */
} cpu_mine;

typedef struct {
  cpu_matrix up, down; /* as in cpu_layer */
} cpu_expert;

/* What a layer has beside its experts: see dt_layer. Each may be NULL. */
typedef struct {
  float *correction, *scale;                                  /* [experts] */
  float *mlp_norm, *experts_norm, *expert_norm, *router_norm; /* [hidden] */
  cpu_matrix mlp_gate;                                        /* one output */
} cpu_routing;

/* In the place of a delta layer's heads: see delta_layer.h. */
typedef struct {
  cpu_matrix in, z, a, b;
  float *conv;                 /* [taps][ld] */
  float *decay, *shift, *norm; /* [values] twice, [value_dim] */
  size_t at;                   /* numbers of a sequence's store before this layer's */
} cpu_delta;

typedef struct {
  float *norm1, *norm1_bias, *norm2, *norm2_bias; /* [hidden]; biases may be NULL; a draft head has no norm1 */
  float *o_norm, *down_norm;                      /* [hidden], or NULL */
  float *q_norm, *k_norm;                         /* [head_dim], or [heads * head_dim] of all together, or NULL */
  float *v_norm;                                  /* [head_dim] ones, or NULL */
  cpu_matrix q, k, v;                             /* outputs: heads, each padded to `dim`; k, v: if it has keys */
  cpu_matrix up;      /* with a gate: a panel is 16 gates and the 16 outputs they multiply */
  cpu_matrix o;       /* parallel residual: its input is attention output and inner row */
  cpu_matrix down;    /* sequential residual only */
  float *sinks;       /* [heads], or NULL */
  cpu_matrix router;  /* these three in the place of up and down, or beside them; NULL: the layer has no experts */
  cpu_expert *expert; /* [experts] */
  cpu_routing routing;
  cpu_matrix q_gate;                /* as q; none if its heads have no gate */
  cpu_delta *delta;                 /* in the place of q, k and v; NULL: it has attention */
  cpu_matrix input_gate, input_out; /* with inputs */
  float *input_norm;
  float *scale; /* of the stream behind it, or NULL */
  int window;   /* these two as in dt_layer */
  bool still;
  dt_shape shape; /* the model's with this layer's numbers */
  cpu_mine mine;
  int dim; /* head_dim rounded up to 16: the width of a head in q, k, v and the cache */
  /* The layer whose keys and values it reads: its own number, an earlier one or, in a cross-attention head, one of the
   * target's. */
  int keys_of;
  size_t cache_at; /* bytes of a slot before its keys */
} cpu_layer;

/* The weights of a draft head beside those of a model: see dt_head_desc. */
typedef struct {
  const dt_weights *target; /* NULL: not a head */
  dt_head_kind kind;
  bool norm_residual;
  cpu_matrix fc, post;
  float *all_norm, *stream_norm[DT_TAPS], *token_norm, *feature_norm; /* or NULL */
  int given;                                                          /* numbers of a feature of the target */
  int distances, blocks;                                              /* of a Medusa head */
  cpu_matrix block[DT_DISTANCES][DT_BLOCKS], output[DT_DISTANCES];
} cpu_head;

typedef struct cpu_chunk cpu_chunk; /* chunk.h */

/* The numbers of all delta layers, of this rank's heads: its key heads, and by them the value heads in their order. A
 * store is what a sequence keeps of a layer: rows in a ring, then bases, then their positions. */
typedef struct {
  cpu_range keys; /* mine.delta_keys; a rank that has none computes the first, too, to know which bases there are */
  int values;     /* value heads */
  int mixed;      /* queries, keys and values of a row, 2K + U */
  size_t row;     /* numbers of a ring's row: mixed, keys, deltas, rates */
  size_t keys_at, deltas_at, rates_at;   /* in such a row */
  size_t base, bases_at, tags_at, store; /* numbers of a base; of a store before its bases, its positions; of a store */
  size_t all;                            /* of all layers' stores: 0: the model has none */
  size_t ldin, ldz, ldrates;             /* leading dimensions of rows of mixed numbers (so the taps have), z, rates */
} cpu_deltas;

/* Scratch of a chunk's experts. A pair is a row and one of the experts that it chose; places are those of the pairs by
 * rising expert. */
typedef struct {
  size_t ldlogits, ldinner;
  size_t step;   /* bytes between rows of pairs */
  float *logits; /* [CPU_ROWS][ldlogits] the router's */
  int32_t *id;   /* [CPU_ROWS][chosen], rising */
  float *weight; /* [CPU_ROWS][chosen] */
  int *place;    /* [threads][CPU_ROWS * chosen] */
  char *rows;    /* [CPU_ROWS * chosen] at their places, as the products take them */
  float *inner;  /* [CPU_ROWS * chosen][ldinner] at their places */
  float *out;    /* [CPU_ROWS * chosen][ldx] at their places */
  float *beside; /* [CPU_ROWS][ldx] what the MLP beside them adds, */
  float *gate;   /* [CPU_ROWS][CPU_PANEL] and the first of each row: what its gate says */
} cpu_routes;

/* Scratch of a chunk's delta layers, whose leading dimensions are in cpu_deltas. */
typedef struct {
  float *in;    /* [CPU_ROWS][ldin] */
  float *z;     /* [CPU_ROWS][ldz] */
  float *a, *b; /* [CPU_ROWS][ldrates] */
} cpu_delta_rows;

/* Scratch of a chunk of at most CPU_ROWS rows; leading dimensions are in numbers. */
typedef struct {
  size_t ldx, ldqkv, ldcat, ldwide, ldangles, ldinputs, ldgates, ldlogits, ldgiven, ldpair;
  int keys_at, values_at; /* columns of qkv */
  int wide_keys_at;       /* of wide */
  float *x;               /* [CPU_ROWS][ldx] the residual stream */
  float *normed;          /* [2][CPU_ROWS][ldx] */
  float *own;             /* [threads][2][CPU_OWN_ROWS][ldx] norms that each thread computes for itself */
  float *qkv;             /* [CPU_ROWS][ldqkv] */
  float *gates;           /* [CPU_ROWS][ldgates] of heads that have them, each padded */
  float *angles; /* [2][CPU_ROWS][2][ldangles] cosines, then sines, of inv_freq and of local_freq; two chunks in turn */
  float *inputs; /* [CPU_ROWS][ldinputs] */
  float *own_inputs; /* [threads][layers * inputs] a token's row of inputs_embed */
  float *wide;       /* [CPU_ROWS][ldwide] queries, then keys of all heads, for wide norms */
  float *cat;        /* [CPU_ROWS][ldcat] attention output, then the MLP's inner row */
  float *heads;      /* [threads][CPU_ATTENTION_ROWS][widest dim] attention output with padded heads */
  cpu_routes routes;
  cpu_delta_rows delta;
  /* Rows of x prepared for formats, prepared_bytes each, for up to CPU_PRODUCTS products at once. */
  char *prepared;     /* [CPU_PRODUCTS][CPU_ROWS] */
  char *own_prepared; /* [threads][CPU_PRODUCTS][CPU_OWN_ROWS] */
  size_t prepared_bytes;
  float *features;         /* [CPU_ROWS][ldgiven] of a draft head: the target's features, normalized */
  float *pair;             /* [CPU_ROWS][ldpair] of a draft head: embedding and feature, side by side */
  float *sums;             /* [threads][CPU_ROWS][CPU_LOGIT_BLOCK] */
  cpu_top *top;            /* [threads][CPU_ROWS][2] by score, by logit */
  cpu_softmax_part *parts; /* [blocks][2][CPU_ROWS] of the softmax of scores, of logits */
  float *logits;           /* [CPU_ROWS][ldlogits] for rows that need all logits */
  uint32_t *weight;        /* [threads][ldlogits] */
  float *adjusted;         /* [threads][ldlogits] adjusted logits of a row */
  float *wire;             /* [wire_numbers] rows on their way between ranks */
  size_t wire_numbers;
  int *wire_bytes; /* [2][ranks] */
} cpu_scratch;

struct dt_weights {
  dt_backend *backend;
  dt_shape shape;
  dt_ranks *ranks; /* ranks that share the model; NULL: it is whole here */
  cpu_mine mine;
  void (*run_layer)(const cpu_chunk *, int layer); /* cpu_parallel_layer or cpu_sequential_layer */
  float scale;                                     /* of scores */
  float residual_scale;
  cpu_layer *layer;  /* [layers] */
  int writing;       /* layers up to the last one with keys of its own */
  size_t slot_bytes; /* keys and values of all layers in one slot */
  float *ones;       /* [head_dim] */
  float *final_norm, *final_norm_bias;
  void *embed; /* [mine.ids][hidden] as in the file; NULL: unembed has exact copies of these rows */
  dt_dtype embed_dtype;
  cpu_matrix unembed;
  void *inputs_embed; /* [vocab][layers * inputs] as in the file */
  dt_dtype inputs_dtype;
  cpu_matrix inputs_proj; /* outputs: layers, each padded to `inputs_dim` */
  float *inputs_norm;
  int inputs_dim; /* shape.inputs rounded up to 16 */
  int32_t *ids;   /* [n_ids], rising: the ids of unembed's rows; NULL: all */
  int n_ids;
  cpu_head head;
  cpu_deltas delta;
  bool gated;             /* heads of some layer have gates */
  int taps, tap[DT_TAPS]; /* streams that caches keep, as in dt_head_desc */
  size_t ldfeature;       /* numbers of a cache's feature; 0: none is kept */
  const char *stored;     /* name of its matrices' format; "mixed": several */
  int activations;        /* bits to which quantized matrices round x: 8 or 16; 0: none is quantized */
  float *inv_freq;        /* [rotary_dims / 2] */
  float *local_freq;      /* [local_dims / 2] the same for layers with a window; NULL: they turn as the others */
  cpu_scratch scratch;
  cpu_arena weights_arena, scratch_arena;
};

enum {
  CPU_OWN_ROWS = 4, /* up to so many rows, each thread normalizes and prepares all itself: cheaper than a barrier */
  CPU_PRODUCTS = 4  /* products in one phase, at most */
};

/* Keys, or values, of one head, layer and sequence are [slots] rows of the cache's type, at cpu_rows_of(); a layer that
 * reads the keys of another has none. After all of these lie the features, at cpu_feature_of(). */
struct dt_cache {
  dt_weights *weights;
  int sequences, slots;
  char *data;      /* [sequences][layers with keys][2][kv_heads][slots] rows */
  float *features; /* [sequences][slots][ldfeature] */
  float *deltas;   /* [sequences][delta.all] */
  int *since;      /* [sequences] the first slot whose row in the rings is its own */
  float *scores;   /* [threads][CPU_ATTENTION_ROWS][ldscores] */
  size_t ldscores;
  cpu_arena cache_arena, scratch_arena;
};

static inline dt_limits cpu_limits(const dt_cache *c) {
  return (dt_limits){c->weights->shape.vocab, c->weights->shape.context, c->sequences, c->slots};
}

/* Bytes of the keys, or values, of one head of a layer in one slot. */
static inline size_t cpu_row_bytes(const dt_weights *w, int layer) {
  return w->backend->cache_type->row_bytes(w->layer[layer].dim);
}

/* part 0: keys; 1: values. head: counted within this rank's part. */
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

/* The outputs that a source's rows become: groups of `height` rows; each group begins `stride` outputs after the one
 * before, the first one at `output`. stride 0: all rows lie together. */
typedef struct {
  int output, height, stride;
} cpu_place;

/* A source's rows become outputs; its columns become inputs k0 and on. */
typedef struct {
  const dt_matrix *source;
  cpu_place to;
  int first; /* the matrix's first output */
  int k0;
  const int32_t *only; /* [count] the rows to take; NULL: all that have a place */
  int count;
} cpu_piece;

dt_status cpu_fill(const dt_backend *, const cpu_matrix *, const cpu_piece *, int count, dt_error *);
dt_status cpu_copy_rows(const dt_backend *, const dt_matrix *, cpu_range, void *to, dt_error *); /* unchanged */

cpu_mine cpu_mine_of(const dt_shape *, int rank, int ranks);

dt_status cpu_upload(dt_backend *, const dt_model_desc *, const dt_holding *, dt_weights **, dt_error *);
dt_status cpu_upload_head(dt_backend *, const dt_head_desc *, const char *dtype, dt_weights *target, dt_weights **,
                          dt_error *);
dt_status cpu_first_layers(const dt_weights *whole, int layers, dt_weights **, dt_error *);
void cpu_free_weights(dt_weights *);

size_t cpu_cache_bytes(const dt_weights *, int slots);
size_t cpu_bytes_free(const dt_backend *);
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
