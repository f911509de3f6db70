/* How a model's vectors and matrices get to the device: see builder.cu. The code that loads a model runs twice: once to
 * measure, once to take the memory and fill it. */
#ifndef DT_CUDA_BUILDER_CUH
#define DT_CUDA_BUILDER_CUH

#include "pack.cuh"

/* The state of an upload. It keeps the first failure, after which nothing more is done. */
struct builder {
  dt_weights *w;
  const dt_model_desc *desc;
  const dt_head_desc *head; /* null: the model is not a head */
  dt_error *err;
  dt_status status;
  char *rows;    /* on the host: STAGING bytes, or a longer row */
  char *raw;     /* the same rows as they are in the file */
  float *wide;   /* one row of floats */
  char *staging; /* on the device: the same size as `rows` */
  cudaError_t failed;
  bool filling;
};

static inline void must(builder *b, cudaError_t e) {
  if (!b->failed) b->failed = e;
}

static inline bool going(const builder *b) { return b->status == DT_OK && !b->failed; }

/* Reads a whole vector as floats; null after a failure. The caller frees it with delete[]. */
float *read_vector(builder *, const dt_matrix *source);
/* Copies bytes to the device. */
void copy_up(builder *, void *to, const void *from, size_t bytes);
/* Vectors on the device; null: there is no source. take_head_norm: a norm of one head or of all heads, in the order of
 * their pairs. take_floats: the rows of matrices with k columns, one matrix after another. */
float *take_vector(builder *, const dt_matrix *source);
float2 *take_head_norm(builder *, const dt_matrix *source, int head_dim, int rotary);
float *take_floats(builder *, const dt_matrix *const *sources, int count, int k);

/* Reads rows row..end-1 of a source, or of the rows that `only` lists (null: all), into b->rows as pack() takes them:
 * as many as fit. Returns their number. */
int read_rows(builder *, const dt_matrix *source, packing packed, const int32_t *only, int row, int end);

/* One source of a matrix with its bias. */
struct part {
  const dt_matrix *weights, *bias;
  pair_map map;
  int k0;
  const int32_t *only; /* [only_n] the rows to take, in this order; null: all */
  int only_n;
};

/* Whether one matrix can have both parts as they are stored. */
bool alike(const builder *, const part &, const part &other);
/* Builds a matrix of `pairs` pairs of outputs of k inputs from parts, with tiles from `first` on. Parts that are not
 * alike, or a part that cannot be packed, become 16-bit numbers. `split`: the sum over k may be split. */
matrix build(builder *, int first, int pairs, int k, bool split, const part *parts, int count);
/* Builds a whole matrix, row by row. */
matrix build_whole(builder *, const dt_matrix *source, const dt_matrix *bias, bool split);
static const dt_matrix NONE = {};

/* layers.cu: the sizes of all layers, before anything is built, and one layer. */
void size_layers(dt_weights *, const dt_layer *);
layer build_layer(builder *, const dt_layer *, layer sized);

constexpr int STAGING = 32 << 20; /* bytes of builder.rows */

#endif
