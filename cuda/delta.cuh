/* Delta layers (dt_layer, backend/delta_rows.h). delta.cu computes, delta_layer.cu runs the steps of a layer,
 * delta_rows.cu plans a pass and keeps what a cache has of its sequences. */
#ifndef DT_CUDA_DELTA_CUH
#define DT_CUDA_DELTA_CUH

#include "steps.cuh"

constexpr int DELTA_KEYS = 256; /* maximum number of numbers of a key */

/* One layer, for the rows of a pass. The rows' numbers follow each other in this order:
 *   in -> (convolution, norms) -> mixed, rates, strengths -> factors -> deltas and sums -> (norm, gate) -> out */
struct delta_job {
  pass_rows rows;
  delta_sizes size;
  delta_scratch scratch;
  int key_heads, key_dim, value_dim;
  bool tiled; /* see dt_shape.delta_tiled */
  float eps;
  float *store;  /* of the layer; that of sequence s begins at s * stride */
  size_t stride; /* numbers of all layers' stores */
  const float *conv, *decay, *shift, *norm;
  operand out;
};

/* Convolves what the layer's first product computed, normalizes queries and keys, and computes rates and strengths;
 * writes the rows' numbers, keys and rates to their stores. */
cudaError_t delta_mix(const queue &, const delta_job &, int rows);
/* Computes by which factors a row's sums take the deltas of the rows on its path, and the base. */
cudaError_t delta_factors(const queue &, const delta_job &, int rows);
/* Computes new bases, and then the rows' deltas and sums. */
cudaError_t delta_sums(const queue &, const delta_job &, int runs);
/* Normalizes and gates the sums. */
cudaError_t delta_out(const queue &, number type, const delta_job &, int rows);

/* Runs a layer on the rows after norm1 in pass.normed1, up to the input of its last product, in pass.cat. */
void step_delta(enqueuer *, int layer);
/* Takes the scratch memory of a pass for these layers. */
void take_deltas(arena *, dt_weights *);

/* ---- delta_rows.cu ------------------------------------------------------------------------------------------------
 */

/* Sets the sizes of what rows and sequences have, without `all`. */
delta_sizes size_deltas(const dt_shape &);

/* How many of a pass's rows can run together (see delta_rows_together), at most `most`: those of a sequence follow each
 * other, and there are at most DELTA_RUNS sequences. */
int delta_together(const dt_rows *, int first, int most);
/* Writes the plan of n rows from `first` on, and takes note of the bases that they compute and the rows that they
 * overwrite. Returns the number of runs. */
int stage_deltas(const dt_cache *, delta_rows *, const dt_rows *, int first, int n);

/* Copies rows within the rings, as cuda_move does within the cache. */
cudaError_t delta_move(const dt_cache *, int sequence, const int32_t *from, const int32_t *to, int n);
/* The position of the newest base that exists and from which row `rows` and all later ones can be computed; -1: there
 * is none. 0 if the model has no delta layers. */
int delta_newest(const dt_cache *, int sequence, int rows);
/* Forgets everything of a sequence except what delta_carry restores: the rows from this base on. */
void delta_restart(dt_cache *, int sequence, int base);
/* delta_bytes: the size in bytes of a base and the rows from it up to n, for all layers; 0 if base is -1. delta_carry
 * copies them to `to`, or (null) back from `from`. */
size_t delta_bytes(const dt_weights *, int base, int n);
cudaError_t delta_carry(const dt_cache *, int sequence, int base, int n, void *to, const void *from, cudaMemcpyKind);
int cuda_keep(dt_cache *, int sequence, int rows);

#endif
