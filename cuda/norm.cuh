/* The steps between products: see norm.cu. */
#ifndef DT_CUDA_NORM_CUH
#define DT_CUDA_NORM_CUH

#include "internal.cuh"

/* The numbers that become x before it is normalized. */
enum entering {
  TOKEN,  /* the embedding of the row's token */
  STREAM, /* dt_rows.entering, which lies where the embedding would */
  GIVEN,  /* the row's feature, or streams of it, one block each */
  BEFORE, /* the feature of the row before it */
  LISTED, /* the feature in the first slot of its path */
  SUM     /* the sum of a product's parts, its bias and, unless `fresh`, the old x */
};

/* For row i of the pass, or (wanted not null) for row wanted[i]: computes x, then writes up to two norms of x as row i
 * of y1 and y2, in the weights' type. */
struct norm_job {
  const int *n;          /* on the device */
  const int32_t *wanted; /* null: all rows */
  pass_rows rows;
  int hidden, embedding; /* embedding: see embedding_of */
  float *x;              /* [ROWS][hidden]; null: x is not kept */
  entering kind;
  float embed_scale;
  features from;
  const float *parts; /* [count][part_stride]; a part is [ROWS][hidden] */
  int count;
  size_t part_stride;
  const float *bias;
  bool fresh;     /* without the old x */
  bool activates; /* applies the activation to the sum, before adding the old x */
  dt_act_kind act;
  float residual_scale; /* the factor of what is added to the old x */
  float scale;          /* with norm_after: the factor of the whole */
  /* [hidden] for SUM: normalizes the sum before the old x is added; then `fresh` and weight2 are not set. Null: no norm
   */
  const float *norm_after;
  dt_norm_kind norm;
  float eps;
  const float *weight1, *bias1, *weight2, *bias2; /* weight1 null: y1 is x without a norm; weight2 null: no y2 */
  int norm_over; /* for GIVEN: how many numbers of the feature are in the norm's mean square; 0: those of the stream */
  bool keeps_norm; /* x becomes the result of the first norm */
  operand y1, y2;
  int column;               /* first column of y1 */
  features kept;            /* where the features of the rows are stored, which are streams of x */
  unsigned taps, norm_taps; /* bits: which streams are x, and which are its first norm */
};

/* streams: with GIVEN, the number of streams side by side; otherwise 1. */
cudaError_t normalize(const queue &, number type, const norm_job &, int rows, int streams);

#endif
