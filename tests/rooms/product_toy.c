/* A synthetic format, of weights of the synthetic type: the blocks of the outputs' rows, one output after the other. */
#include "variant.h"

static size_t toy_bytes(int k) { return CPU_PANEL * dt_row_bytes(DT_TOY, (size_t)k); }

static void toy_pack(char *panel, int k, const char *const row[CPU_PANEL]) {
  size_t bytes = dt_row_bytes(DT_TOY, (size_t)k);
  for (int j = 0; j < CPU_PANEL; j++)
    if (row[j]) memcpy(panel + (size_t)j * bytes, row[j], bytes);
}

static void toy_unpack(const char *panel, int k, int j, float *out) {
  dt_type_of(DT_TOY)->decode(panel + (size_t)j * dt_row_bytes(DT_TOY, (size_t)k), (size_t)k, out);
}

static void toy_multiply(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,
                         size_t ld) {
  float weights[16];
  size_t block = dt_row_bytes(DT_TOY, 16);
  for (int r = 0; r < n; r++)
    for (int j = 0; j < count * CPU_PANEL; j++) {
      const char *row = m->data + (size_t)(first * CPU_PANEL + j) * dt_row_bytes(DT_TOY, (size_t)m->k);
      const float *xr = (const float *)(x + (size_t)r * step);
      float sum = 0.0f;
      for (int k = 0; k < m->k; k += 16, row += block) {
        dt_type_of(DT_TOY)->decode(row, 16, weights);
        for (int i = 0; i < 16; i++) sum = fmaf(xr[k + i], weights[i], sum);
      }
      sums[(size_t)r * ld + (size_t)j] = sum;
    }
}

const cpu_format V(cpu_format_toy) = {"toy", DT_TOY, 0, toy_bytes, toy_pack, toy_unpack, NULL, NULL, toy_multiply};
