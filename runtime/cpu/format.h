/* A weight format: how a matrix lies in memory, and how rows are multiplied with it. Each is described by a cpu_format in a
 * product_*.c, which is compiled once per variant; a new one is such a file and a line below. */
#ifndef DT_CPU_FORMAT_H
#define DT_CPU_FORMAT_H

#include "model/types.h"

#include <stddef.h>

/* They hold weights as their files have them; f32 is the first: it takes what no other does, widened. */
#define CPU_FORMAT_LIST(F)                                                                                             \
  F(f32)                                                                                                               \
  F(f16)                                                                                                               \
  F(bf16)                                                                                                              \
  F(q4_0)                                                                                                              \
  F(q4_1)                                                                                                              \
  F(q5_0)                                                                                                              \
  F(q5_1)                                                                                                              \
  F(q8_0)                                                                                                              \
  F(q4_k)                                                                                                              \
  F(q5_k)                                                                                                              \
  F(q6_k)                                                                                                              \
  F(q4_0_two)                                                                                                          \
  F(q4_1_two)                                                                                                          \
  F(q5_0_two)                                                                                                          \
  F(q5_1_two)                                                                                                          \
  F(q8_0_two)                                                                                                          \
  F(q4_k_two)                                                                                                          \
  F(q5_k_two)                                                                                                          \
  F(q6_k_two)

/* Types that weights can be rounded to when they are loaded, by a user's name for them: A(name, type). */
#define CPU_ASKED_LIST(A) A(f32, F32) A(q4, Q4_1) A(q8, Q8_0)

enum {
#define CPU_COUNT(name) +1
  CPU_FORMATS = CPU_FORMAT_LIST(CPU_COUNT),
#undef CPU_COUNT
  CPU_PANEL = 32, /* outputs of a matrix that lie together */
  CPU_GROUP = 4   /* panels that a pass of one row takes at once, to hide the latency of its chains of additions */
};

typedef struct cpu_format cpu_format;

/* Panels one behind the other: panel p has outputs 32 p and on, those behind the last one zero. */
typedef struct {
  const cpu_format *format;
  char *data;  /* [panels] format->panel_bytes(k) each */
  float *bias; /* [panels * 32], zeros where the model has none */
  int k, panels;
} cpu_matrix;

/* A product's sum for an output depends only on that output's weights and the row, whatever the variant, the other rows and
 * the panels taken at once. */
struct cpu_format {
  const char *name;
  dt_dtype takes;  /* the type of the rows that it packs */
  int activations; /* 8, 16: how finely `prepare` rounds rows of x; 0: not at all */
  size_t (*panel_bytes)(int k);
  /* Fills a panel, which is zeroed, from its outputs' rows of k numbers; NULL: an output of zeros. */
  void (*pack)(char *panel, int k, const char *const row[CPU_PANEL]);
  /* The k numbers of output j (0..31) as they were packed. */
  void (*unpack)(const char *panel, int k, int j, float *out);
  /* Prepares a row of x for `multiply`, once for all panels; its bytes, a multiple of 64. Both NULL: it takes
   * the row itself. */
  size_t (*prepared_bytes)(int k);
  void (*prepare)(const float *x, int k, char *to);
  /* sums[r * ld + j], j < 32 * count: rows 0..n-1, `step` bytes apart, times panels first..first+count-1, count <= GROUP. */
  void (*multiply)(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,
                   size_t ld);
};

#endif
