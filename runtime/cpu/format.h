/* The weight formats: the layout of a matrix in memory, and its product with rows. A format is a cpu_format in a
 * product_*.c, which is compiled once per variant. To add a format, write such a file and add a line below. */
#ifndef DT_CPU_FORMAT_H
#define DT_CPU_FORMAT_H

#include "model/types.h"

#include <stddef.h>

/* The list of formats. Each keeps weights as files store them. f32, the first one, takes the types that no other format
 * takes, and widens them. */
#define CPU_FORMAT_LIST(F)                                                                                             \
  F(f32)                                                                                                               \
  F(f16)                                                                                                               \
  F(bf16)                                                                                                              \
  F(q4_0)                                                                                                              \
  F(q4_1)                                                                                                              \
  F(q5_0)                                                                                                              \
  F(q5_1)                                                                                                              \
  F(q8_0)                                                                                                              \
  F(q2_k)                                                                                                              \
  F(q3_k)                                                                                                              \
  F(q4_k)                                                                                                              \
  F(q5_k)                                                                                                              \
  F(q6_k)                                                                                                              \
  F(iq4_nl)                                                                                                            \
  F(iq4_xs)                                                                                                            \
  F(mxfp4)                                                                                                             \
  F(q4_0_two)                                                                                                          \
  F(q4_1_two)                                                                                                          \
  F(q5_0_two)                                                                                                          \
  F(q5_1_two)                                                                                                          \
  F(q8_0_two)                                                                                                          \
  F(q2_k_two)                                                                                                          \
  F(q3_k_two)                                                                                                          \
  F(q4_k_two)                                                                                                          \
  F(q5_k_two)                                                                                                          \
  F(q6_k_two)                                                                                                          \
  F(iq4_nl_two)                                                                                                        \
  F(iq4_xs_two)                                                                                                        \
  F(mxfp4_two)

/* The types to which weights can be rounded on load, with the names that users give: A(name, type). */
#define CPU_ASKED_LIST(A) A(f32, F32) A(q4, Q4_1) A(q8, Q8_0)

enum {
#define CPU_COUNT(name) +1
  CPU_FORMATS = CPU_FORMAT_LIST(CPU_COUNT),
#undef CPU_COUNT
  CPU_PANEL = 32, /* outputs of a panel; they are stored together */
  CPU_GROUP = 4   /* panels that a pass over one row takes at once, so that their chains of additions overlap */
};

typedef struct cpu_format cpu_format;

/* A matrix: a sequence of panels. Panel p has the outputs 32 p to 32 p + 31; outputs past the last one are zero. */
typedef struct {
  const cpu_format *format;
  char *data;  /* [panels], of format->panel_bytes(k) bytes each */
  float *bias; /* [panels * 32], zero where the model has no bias */
  int k, panels;
} cpu_matrix;

/* A format. The sum of an output depends only on that output's weights and on the row. The variant, other rows in the
 * pass, and the number of panels computed at once cannot change a bit of it. */
struct cpu_format {
  const char *name;
  dt_dtype takes;  /* the type of the rows that `pack` takes */
  int activations; /* bits to which `prepare` rounds x: 8 or 16; 0: it does not round */
  size_t (*panel_bytes)(int k);
  /* Fills a zeroed panel from rows of k numbers, one row for each output. If a row is NULL, its output stays zero. */
  void (*pack)(char *panel, int k, const char *const row[CPU_PANEL]);
  /* Writes the k numbers of output j (0..31) as they were packed. */
  void (*unpack)(const char *panel, int k, int j, float *out);
  /* prepare converts a row of x for `multiply`, once for all panels. The result takes prepared_bytes(k) bytes, a
   * multiple of 64. Both are NULL if `multiply` takes the row as it is. */
  size_t (*prepared_bytes)(int k);
  void (*prepare)(const float *x, int k, char *to);
  /* Multiplies rows 0..n-1, which are `step` bytes apart, with panels first..first+count-1 (count <= CPU_GROUP): sums[r
   * * ld + j] becomes the sum for row r and output j of these panels, j < 32 * count. */
  void (*multiply)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,
                   size_t ld);
};

#endif
