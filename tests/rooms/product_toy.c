/* Two made-up formats: weights of the made-up type as they are, and any rounded to 8 bits with one scale a row. */
#include "variant.h"

/* ---- the blocks of the outputs' rows, one output behind the other ---------------------------------------------------- */

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

const cpu_format V(cpu_format_toy) = {"toy", DT_TOY, toy_bytes, toy_pack, toy_unpack, NULL, NULL, toy_multiply};

/* ---- the rows' scales, then their bytes; rows of x are doubled when they are prepared, and sums halved ----------------- */

static size_t rows8_bytes(int k) { return CPU_PANEL * (sizeof(float) + (size_t)k); }

static void rows8_pack(char *panel, int k, const char *const row[CPU_PANEL]) {
  float *scale = (float *)panel;
  for (int j = 0; j < CPU_PANEL; j++) {
    const float *w = (const float *)row[j];
    int8_t *q = (int8_t *)(scale + CPU_PANEL) + (size_t)j * (size_t)k;
    for (int i = 0; w && i < k; i++) scale[j] = fmaxf(scale[j], fabsf(w[i]) / 127.0f);
    for (int i = 0; w && i < k && scale[j] > 0.0f; i++) q[i] = (int8_t)rintf(w[i] / scale[j]);
  }
}

static size_t rows8_prepared(int k) { return ((size_t)k * sizeof(float) + 63) & ~(size_t)63; }

static void rows8_prepare(const float *x, int k, char *to) {
  for (int i = 0; i < k; i++) ((float *)to)[i] = 2.0f * x[i];
}

static void rows8_multiply(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,
                           size_t ld) {
  for (int r = 0; r < n; r++)
    for (int j = 0; j < count * CPU_PANEL; j++) {
      const char *panel = m->data + (size_t)(first + j / CPU_PANEL) * rows8_bytes(m->k);
      const float *scale = (const float *)panel, *xr = (const float *)(x + (size_t)r * step);
      const int8_t *q = (const int8_t *)(scale + CPU_PANEL) + (size_t)(j % CPU_PANEL) * (size_t)m->k;
      float sum = 0.0f;
      for (int k = 0; k < m->k; k++) sum = fmaf(xr[k], (float)q[k], sum);
      sums[(size_t)r * ld + (size_t)j] = 0.5f * sum * scale[j % CPU_PANEL];
    }
}

const cpu_format V(cpu_format_rows8) = {"rows8", DT_F32,         rows8_bytes,   rows8_pack,
                                        NULL,    rows8_prepared, rows8_prepare, rows8_multiply};
