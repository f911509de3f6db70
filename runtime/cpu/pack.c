/* Packs rows of a checkpoint's matrices into panels. All threads take part, each with its own panels. */
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const cpu_matrix *to;
  const cpu_piece *piece;
  int pieces;
  const dt_matrix *rows; /* the source of a plain copy */
  cpu_range copied;
  char *copy;
  atomic_flag *failed;
  dt_error *err; /* the first error of any thread */
} job;

static void report(const job *j, const dt_error *err) {
  if (err->status != DT_OK && !atomic_flag_test_and_set(j->failed)) *j->err = *err;
}

static dt_status run(const dt_backend *b, void (*share)(const cpu_member *, void *), job j, dt_error *err) {
  dt_error first = {0};
  atomic_flag failed = ATOMIC_FLAG_INIT;
  j.err = &first, j.failed = &failed;
  cpu_team_run(b->team, share, &j);
  if (first.status != DT_OK && err) *err = first;
  return first.status;
}

/* The row of the source that becomes this output; -1 if none does. */
static int row_of(const cpu_piece *p, int output) {
  if (p->only) return output < p->count ? p->only[output] : -1;
  int at = p->first + output - p->to.output;
  if (at < 0) return -1;
  int row = p->to.stride ? at / p->to.stride * p->to.height + at % p->to.stride : at;
  bool between = p->to.stride && at % p->to.stride >= p->to.height;
  return between || row >= p->source->rows ? -1 : row;
}

/* A thread's buffers: the rows of a panel as the format takes them, rows as the file stores them, and one row of
 * floats. */
typedef struct {
  char *rows, *raw;
  size_t row; /* bytes of one of `rows` */
  float *wide;
} buffers;

/* Converts a row of the source to the type that the format takes. */
static void convert(const dt_matrix *s, const char *from, dt_dtype takes, float *wide, char *to) {
  size_t n = (size_t)s->cols;
  dt_round *round = dt_round_to(takes);
  if (s->dtype == takes) {
    memcpy(to, from, dt_row_bytes(takes, n));
  } else {
    dt_type_of(s->dtype)->decode(from, n, round ? wide : (float *)to);
    if (round) round(wide, n, to);
  }
}

/* Reads `count` rows of a source, which become outputs j, j + 1, .. of a panel. */
static dt_status read_some(const job *work, const cpu_piece *p, int row, int count, int j, const buffers *b,
                           dt_error *err) {
  const dt_matrix *s = p->source;
  dt_dtype takes = work->to->format->takes;
  size_t bytes = dt_row_bytes(s->dtype, (size_t)s->cols);
  dt_status status = dt_read_rows(s, row, count, b->raw, err);
  for (int i = 0; status == DT_OK && i < count; i++) {
    char *to = b->rows + (size_t)(j + i) * b->row + dt_row_bytes(takes, (size_t)p->k0);
    convert(s, b->raw + (size_t)i * bytes, takes, b->wide, to);
  }
  return status;
}

static dt_status fill_panel(const job *work, int panel, const buffers *b, dt_error *err) {
  const cpu_matrix *m = work->to;
  const char *row[CPU_PANEL] = {NULL};
  dt_status status = DT_OK;
  for (const cpu_piece *p = work->piece; p < work->piece + work->pieces; p++)
    for (int j = 0, count; j < CPU_PANEL && status == DT_OK; j += count) {
      int first = row_of(p, panel * CPU_PANEL + j);
      for (count = 1; first >= 0 && j + count < CPU_PANEL; count++)
        if (row_of(p, panel * CPU_PANEL + j + count) != first + count) break;
      if (first >= 0) status = read_some(work, p, first, count, j, b, err);
      for (int i = j; first >= 0 && i < j + count; i++) row[i] = b->rows + (size_t)i * b->row;
    }
  if (status == DT_OK) m->format->pack(m->data + (size_t)panel * m->format->panel_bytes(m->k), m->k, row);
  return status;
}

static void fill_share(const cpu_member *me, void *context) {
  const job *j = context;
  const cpu_matrix *m = j->to;
  size_t raw = 0;
  for (int i = 0; i < j->pieces; i++) {
    const dt_matrix *s = j->piece[i].source;
    size_t bytes = CPU_PANEL * dt_row_bytes(s->dtype, (size_t)s->cols);
    if (bytes > raw) raw = bytes;
  }
  dt_error err = {0};
  buffers b = {.row = dt_row_bytes(m->format->takes, (size_t)m->k)};
  b.rows = malloc(CPU_PANEL * b.row), b.raw = malloc(raw), b.wide = malloc((size_t)m->k * sizeof *b.wide);
  if (!b.rows || !b.raw || !b.wide) dt_fail_memory(&err, "a panel's rows", CPU_PANEL * b.row + raw);
  int first, last;
  cpu_share(me, m->panels, &first, &last);
  for (int p = first; p < last && err.status == DT_OK; p++) fill_panel(j, p, &b, &err);
  report(j, &err);
  free(b.rows), free(b.raw), free(b.wide);
}

dt_status cpu_fill(const dt_backend *b, const cpu_matrix *m, const cpu_piece *pieces, int count, dt_error *err) {
  return run(b, fill_share, (job){.to = m, .piece = pieces, .pieces = count}, err);
}

static void copy_share(const cpu_member *me, void *context) {
  const job *j = context;
  size_t row = dt_row_bytes(j->rows->dtype, (size_t)j->rows->cols);
  int first, last;
  dt_error err = {0};
  cpu_share(me, j->copied.count, &first, &last);
  dt_read_rows(j->rows, j->copied.first + first, last - first, j->copy + (size_t)first * row, &err);
  report(j, &err);
}

dt_status cpu_copy_rows(const dt_backend *b, const dt_matrix *rows, cpu_range some, void *to, dt_error *err) {
  return run(b, copy_share, (job){.rows = rows, .copied = some, .copy = to}, err);
}
