/* The steps of a layer, launched for the rows of a pass, or for a prompt's chunk: CHUNK rows in groups of CHUNK_GROUP,
 * each group with its own pass_rows and the products of chunk.cu. */
#ifndef DT_CUDA_STEPS_CUH
#define DT_CUDA_STEPS_CUH

#include "matmul.cuh"
#include "norm.cuh"

/* The values that determine the kernels of a pass, and their numbers of blocks. */
struct pass_shape {
  int rows, units, batches, wanted; /* upper bounds; of units in a batch of attention; wanted may be 0 */
  dt_want want;
  bool filtered;  /* some row's token is sampled among its allowed ids */
  bool adjusted;  /* some row has logit adjustments */
  bool logp;      /* BOTH: log-probabilities are wanted, too */
  bool routes;    /* the rows' experts are wanted */
  features given; /* of the target's cache, which a head reads; null: the head's own features, or no head */
  int distance;   /* of a Medusa head, or of the rows of a cross-attention head */
  key_rows keys;  /* of the target's cache, which a cross-attention head reads */
  int runs;       /* an upper bound; see delta_rows */
  bool operator==(const pass_shape &) const = default;
};

/* Launches on a stream until a call fails. */
struct enqueuer {
  const dt_weights *w;
  const dt_cache *c;
  bool chunk;
  pass_shape shape; /* for a chunk: of each group */
  const queue &stream;
  cudaError_t failed;
};

static inline void must(enqueuer *q, cudaError_t e) {
  if (q->failed == cudaSuccess) q->failed = e;
}

static inline const operands &operands_of(const enqueuer *q) { return q->chunk ? q->w->chunk : q->w->pass; }

static inline int groups(const enqueuer *q) { return q->chunk ? CHUNK / CHUNK_GROUP : 1; }

/* The numbers that enter x before a norm: the embeddings or a feature, or the parts of a product in `partial`, and a
 * bias. */
struct entry {
  entering kind;
  int parts;
  const float2 *bias;
  bool fresh, activates;             /* as in norm_job */
  const float *norm_after = nullptr; /* the same */
  float scale = 1.0f;                /* the same */
};

/* The product of a whole matrix with rows of a pass. */
product step_product(const enqueuer *, const matrix &, const operand &input);

/* Computes such a product, for the next norms to sum. */
entry step_store(enqueuer *, const matrix &, const operand &input);

/* The job in which it enters x, for the rows of a group (`wanted`: for its wanted rows), without norms. */
norm_job step_job(const enqueuer *, int group, const entry &, bool wanted);

/* Runs such a job for the stream that enters layer `layer`, which caches may keep (UNKEPT: none keeps it), with the
 * given norms, to y1 and normed2. */
enum { UNKEPT = -1 };
void step_norms(enqueuer *, int layer, const entry &, bool wanted, const float *weight1, const float *bias1,
                const operand &y1, const float *weight2, const float *bias2);

/* The end of the product of layer `index`, for a group of rows: its pairs are q, k and v and, from inner_from on, the
 * MLP's inner row. */
layer_epilogue step_epilogue(const enqueuer *, int group, int index, const matrix &, int inner_from);

/* Computes the norms of queries and keys, if the layer has them, and then their rotation; arguments as for
 * step_epilogue. */
void step_heads(enqueuer *, int index, const matrix &, int inner_from);

/* Rounds the layer's new keys and values, where caches are in q8. */
void step_hold(enqueuer *, int index);

void step_attention(enqueuer *, int index);

/* Multiplies the output of attention by the gates of its heads, if the layer has them. input: that of q. */
void step_gates(enqueuer *, int index, const operand &input);

/* Tiles of a layer's first product that hold q, k and v. */
static inline int attention_tiles(const dt_weights *w, const layer &l) {
  return blocks_of((w->shape.heads + 2 * (l.has_keys ? l.kv_heads : 0)) * (l.head_dim / 2), 8);
}

#endif
