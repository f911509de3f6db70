/* Rows of a checkpoint's matrices into panels, and panels into int8: on all threads, each with panels of its own. */
#include "internal.h"

#include <math.h>
#include <string.h>

enum { PART = 256 }; /* numbers of a row that are copied at once: files need not be aligned */

size_t cpu_bytes_of(dt_dtype dtype) { return dtype == DT_F32 ? 4 : 2; }

const char *cpu_source_row(const dt_matrix *m, int row) {
  size_t at = (size_t)(row / m->group) * (size_t)m->stride + (size_t)(row % m->group);
  return (const char *)m->data + at * (size_t)m->cols * cpu_bytes_of(m->dtype);
}

typedef struct {
  const cpu_kernels *kernels;
  const cpu_matrix *to, *from; /* from: of a rounding */
  const cpu_piece *piece;
} job;

/* At most PART numbers of a row, to k0.. of an output. */
static void put(const job *j, int output, int k0, const char *from, int count) {
  const cpu_matrix *m = j->to;
  dt_dtype dtype = j->piece->source->dtype;
  float raw[PART], wide[PART];
  memcpy(raw, from, (size_t)count * cpu_bytes_of(dtype));
  size_t at = ((size_t)(output / CPU_PANEL) * (size_t)m->k + (size_t)k0) * CPU_PANEL + (size_t)(output % CPU_PANEL);
  if (m->dtype != DT_F32) {
    uint16_t half[PART], *to = (uint16_t *)m->data + at;
    memcpy(half, raw, (size_t)count * sizeof *half);
    for (int i = 0; i < count; i++) to[(size_t)i * CPU_PANEL] = half[i];
    return;
  }
  j->kernels->widen(raw, dtype, count, wide);
  float *to = (float *)m->data + at;
  for (int i = 0; i < count; i++) to[(size_t)i * CPU_PANEL] = wide[i];
}

static void pack_share(const cpu_member *me, void *context) {
  const job *j = context;
  const cpu_piece *p = j->piece;
  int first, last, rows = p->source->rows;
  cpu_share(me, (rows + CPU_PANEL - 1) / CPU_PANEL, &first, &last);
  for (int r = first * CPU_PANEL; r < last * CPU_PANEL && r < rows; r++) {
    const char *row = cpu_source_row(p->source, r) + (size_t)p->col * cpu_bytes_of(p->source->dtype);
    for (int i = 0; i < p->count; i += PART)
      put(j, p->output + r / p->height * p->stride + r % p->height, p->k0 + i,
          row + (size_t)i * cpu_bytes_of(p->source->dtype), p->count - i < PART ? p->count - i : PART);
  }
}

void cpu_pack(const dt_backend *b, const cpu_matrix *m, const cpu_piece *piece) {
  cpu_team_run(b->threads, pack_share, &(job){.kernels = b->kernels, .to = m, .piece = piece});
}

/* The weights of one panel as q * scale, q in -127..127. What is not finite becomes 0. */
static void round_panel(const job *j, int panel) {
  const cpu_matrix *from = j->from, *to = j->to;
  size_t line = CPU_PANEL * cpu_bytes_of(from->dtype), bytes = (size_t)cpu_blocks(to->k) * CPU_BLOCK * CPU_PANEL;
  const char *weights = (const char *)from->data + (size_t)panel * (size_t)from->k * line;
  uint8_t *q = (uint8_t *)to->data + (size_t)panel * bytes;
  float *scale = to->scale + (size_t)panel * CPU_PANEL, wide[CPU_PANEL];
  memset(q, 128, bytes);
  for (int k = 0; k < from->k; k++) {
    j->kernels->widen(weights + (size_t)k * line, from->dtype, CPU_PANEL, wide);
    for (int i = 0; i < CPU_PANEL; i++) scale[i] = fmaxf(scale[i], fabsf(wide[i]) / 127.0f);
  }
  for (int k = 0; k < from->k; k++) {
    j->kernels->widen(weights + (size_t)k * line, from->dtype, CPU_PANEL, wide);
    for (int i = 0; i < CPU_PANEL; i++) {
      float x = wide[i] / scale[i];
      if (fabsf(x) <= 127.5f) q[(k / 4 * CPU_PANEL + i) * 4 + k % 4] = (uint8_t)(128 + (int)rintf(x));
    }
  }
}

static void round_share(const cpu_member *me, void *context) {
  const job *j = context;
  int first, last;
  cpu_share(me, j->to->panels, &first, &last);
  for (int p = first; p < last; p++) round_panel(j, p);
}

void cpu_round(const dt_backend *b, const cpu_matrix *from, const cpu_matrix *to) {
  cpu_team_run(b->threads, round_share, &(job){.kernels = b->kernels, .to = to, .from = from});
}
