/* The experts of a layer: routes.cu chooses those of each row, experts.cu multiplies, expert_layer.cu adds up. A row
 * and an expert that it chose are a pair: pair row * chosen + j belongs to the j-th expert of the row, by rising ids.
 */
#ifndef DT_CUDA_EXPERTS_CUH
#define DT_CUDA_EXPERTS_CUH

#include "steps.cuh"

/* Chooses the experts of the rows of a pass, whose stream is complete in x, and sorts the pairs by expert. */
void step_routes(enqueuer *, int layer);

/* What the products of experts do with their sums. multiply_inner multiplies each row of `input` with the gates and ups
 * of all experts that it chose, and writes an inner row for each pair. multiply_outer multiplies each pair's row of
 * `input` with its expert's down projection. */
struct expert_inner {
  const float2 *bias; /* of the pairs of outputs of all experts */
  operand inner;
  int inter;
  dt_act_kind act;
};
struct expert_outer {
  const float2 *bias;
  float *out; /* [pairs][outputs] */
  int outputs;
};
cudaError_t multiply_inner(const queue &, const dt_weights *, const matrix &, const operand &input,
                           const expert_inner &, int rows);
cudaError_t multiply_outer(const queue &, const dt_weights *, const matrix &, const operand &input,
                           const expert_outer &, int rows);
cudaError_t experts_prepare(number type); /* once per device, before the first call for this type */

/* Runs the experts of a layer, for rows after norm2 in pass.normed2. mlp: what the layer's MLP adds; null: it has none.
 * Returns the sum, in the order of rising ids. */
entry step_experts(enqueuer *, int layer, const entry *mlp);

/* Takes the scratch memory of a pass for the model's experts. */
void take_routes(arena *, dt_weights *);

#endif
