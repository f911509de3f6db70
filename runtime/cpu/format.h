/* A weight format: the layout of a matrix in memory, and its product with rows. Each format is a cpu_format in a
 * product_*.c, which is compiled once per variant. A new format is such a file and a line below. */
#ifndef DT_CPU_FORMAT_H
#define DT_CPU_FORMAT_H

#include "model/types.h"

#include <stddef.h>

/* These formats keep weights as their files have them. f32, the first, takes all types that no other format takes, and
 * widens them. */
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

/* Types to which weights can be rounded on load, with the names that users give: A(name, type). */
#define CPU_ASKED_LIST(A) A(f32, F32) A(q4, Q4_1) A(q8, Q8_0)

enum {
#define CPU_COUNT(name) +1
  CPU_FORMATS = CPU_FORMAT_LIST(CPU_COUNT),
#undef CPU_COUNT
  CPU_PANEL = 32, /* outputs of a matrix that lie together */
  CPU_GROUP = 4   /* panels that a pass of one row takes at once, so that their chains of additions overlap */
};

typedef struct cpu_format cpu_format;

/* A matrix: its panels lie one after the other. Panel p has outputs 32 p to 32 p + 31; outputs past the last are
 * zero. */
typedef struct {
  const cpu_format *format;
  char *data;  /* [panels], of format->panel_bytes(k) bytes each */
  float *bias; /* [panels * 32], zero where the model has no bias */
  int k, panels;
} cpu_matrix;

/* An output's sum depends on that output's weights and on the row only; variant, other rows, and the number of panels
 * taken at once cannot change it. */
struct cpu_format {
  const char *name;
  dt_dtype takes;  /* type of the rows that it packs */
  int activations; /* bits to which `prepare` rounds rows of x: 8, 16; 0: it does not round */
  size_t (*panel_bytes)(int k);
  /* Fills a zeroed panel from rows of k numbers, one for each output; a row of NULL leaves its output zero. */
  void (*pack)(char *panel, int k, const char *const row[CPU_PANEL]);
  /* Writes the k numbers of output j (0..31) as they were packed. */
  void (*unpack)(const char *panel, int k, int j, float *out);
  /* Prepares a row of x for `multiply`, once for all panels, in prepared_bytes(k) bytes, a multiple of 64. Both NULL:
   * `multiply` takes the row itself. */
  size_t (*prepared_bytes)(int k);
  void (*prepare)(const float *x, int k, char *to);
  /* sums[r * ld + j], j < 32 * count, = rows 0..n-1, `step` bytes apart, times panels first..first+count-1, count <=
   * CPU_GROUP. */
  void (*multiply)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,
                   size_t ld);
};

#endif
