/* What stands between the products: see norm.cu. */
#ifndef DT_CUDA_NORM_CUH
#define DT_CUDA_NORM_CUH

#include "internal.cuh"

/* What x becomes before it is normalized. */
enum entering {
  TOKEN,  /* the embedding of the row's token */
  GIVEN,  /* the row's feature, or streams of it, each a block's */
  BEFORE, /* the feature of the row before it */
  SUM     /* the parts of a product and its bias; and what x was, or not */
};

/* For row i of the pass, or (wanted given) for row wanted[i]: what enters becomes x; then up to two norms of x are written as
 * row i of y1 and y2, in the weights' type. */
struct norm_job {
  const int *n;          /* on the device */
  const int32_t *wanted; /* null: all */
  pass_rows rows;
  int hidden;
  float *x; /* [ROWS][hidden]; null: it is not kept */
  entering kind;
  const uint16_t *embed;
  features from;
  const float *parts; /* [count][part_stride], of which [ROWS][hidden] */
  int count;
  size_t part_stride;
  const float *bias;
  bool fresh;     /* without what x was */
  bool activates; /* the sum, before x takes it up */
  dt_act_kind act;
  dt_norm_kind norm;
  float eps;
  const float *weight1, *bias1, *weight2, *bias2; /* weight1 null: y1 is x as it is; weight2 null: there is no y2 */
  int norm_over;   /* of GIVEN: numbers of the feature whose mean square the norm takes; 0: those of the stream */
  bool keeps_norm; /* x goes on as the first norm has left it */
  operand y1, y2;
  int column;               /* of y1, the first */
  features kept;            /* where the rows leave their features, of streams of x: */
  unsigned taps, norm_taps; /* bits: which are x, and which its first norm */
};

/* `streams`: of GIVEN, side by side; else 1. */
cudaError_t normalize(cudaStream_t, number type, const norm_job &, int rows, int streams);

#endif
