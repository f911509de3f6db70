/* The steps of a layer, launched for the rows of a pass, or of a prompt's chunk: CHUNK rows in groups of CHUNK_GROUP, each
 * with a pass_rows of its own, whose products are those of chunk.cu. */
#ifndef DT_CUDA_STEPS_CUH
#define DT_CUDA_STEPS_CUH

#include "matmul.cuh"
#include "norm.cuh"

/* What decides which kernels are launched, and how many blocks of each. */
struct pass_shape {
  int rows, units, wanted; /* of which there are at most so many; wanted may be 0 */
  dt_want want;
  bool filtered;  /* some row's token is drawn from a part of the ids */
  features given; /* of the target's cache, which a head reads; null: its own, or it is none */
  int distance;   /* of a Medusa head */
  bool operator==(const pass_shape &) const = default;
};

/* Launches on a stream until something fails. */
struct enqueuer {
  const dt_weights *w;
  const dt_cache *c;
  bool chunk;
  pass_shape shape; /* of a chunk: of each group */
  cudaStream_t stream;
  cudaError_t failed;
};

static inline void must(enqueuer *q, cudaError_t e) {
  if (q->failed == cudaSuccess) q->failed = e;
}

static inline const operands &operands_of(const enqueuer *q) { return q->chunk ? q->w->chunk : q->w->pass; }

static inline int groups(const enqueuer *q) { return q->chunk ? CHUNK / CHUNK_GROUP : 1; }

/* What enters x before a norm: the embeddings or a feature, or as many parts of a product in `partial`, and a bias. */
struct entry {
  entering kind;
  int parts;
  const float2 *bias;
  bool fresh, activates; /* as in norm_job */
};

/* All of a matrix with rows of a pass. */
product step_product(const enqueuer *, const matrix &, const operand &input);

/* Their products, for the next norms to take up. */
entry step_store(enqueuer *, const matrix &, const operand &input);

/* It enters x of a group's rows (`wanted`: of those that are): the job but for its norms. */
norm_job step_job(const enqueuer *, int group, const entry &, bool wanted);

/* Such a job, of the stream as it enters layer `layer`, which caches may keep (UNKEPT: one that none keeps), with the norms that
 * are given, to y1 and normed2. */
enum { UNKEPT = -1 };
void step_norms(enqueuer *, int layer, const entry &, bool wanted, const float *weight1, const float *bias1,
                const operand &y1, const float *weight2, const float *bias2);

/* What becomes of the product of layer `index` whose pairs are q, k, v and from inner_from on the MLP's inner row, in a
 * group of rows. */
spread step_spread(const enqueuer *, int group, int index, const matrix &, int inner_from);

/* The queries' and keys' own norms, if the layer has them, and their rotation then; arguments as for step_spread. */
void step_heads(enqueuer *, int index, const matrix &, int inner_from);

void step_attention(enqueuer *, int index);

/* Tiles of a layer's first product that hold q, k and v. */
static inline int attention_tiles(const dt_weights *w) {
  return blocks_of((w->shape.heads + 2 * w->shape.kv_heads) * (w->shape.head_dim / 2), 8);
}

#endif
