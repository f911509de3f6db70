/* Models that ranks share: which part of the model each rank has, and how ranks exchange their parts of a chunk's
 * rows. Outputs are split between whole units only, so that a rank's panels and blocks of ids are the same as in one
 * process. */
#include "chunk.h"

#include <string.h>

/* ---- parts of ranks ---------------------------------------------------------------------------------------------- */

static cpu_range range_of(int count, int unit, int rank, int ranks) {
  long long units = (count + unit - 1) / unit;
  int first = (int)(units * rank / ranks) * unit, last = (int)(units * (rank + 1) / ranks) * unit;
  if (first > count) first = count;
  return (cpu_range){first, (last < count ? last : count) - first};
}

cpu_mine cpu_mine_of(const dt_shape *s, int rank, int ranks) {
  cpu_mine mine = {.heads = range_of(s->heads, 1, rank, ranks),
                   .inter = range_of(s->inter, CPU_PANEL, rank, ranks),
                   .hidden = range_of(s->hidden, CPU_PANEL, rank, ranks),
                   .delta_keys = range_of(s->delta_key_heads, 1, rank, ranks),
                   .ids = range_of(s->vocab, CPU_LOGIT_BLOCK, rank, ranks)};
  int group = s->heads / s->kv_heads, first = mine.heads.first / group;
  int last = (mine.heads.first + mine.heads.count + group - 1) / group;
  mine.kv_heads = (cpu_range){first, mine.heads.count ? last - first : 0};
  return mine;
}

/* ---- exchange ---------------------------------------------------------------------------------------------------- */

/* A buffer of rows that ranks fill together. */
typedef struct {
  float *rows;
  size_t ld;
  int n, width; /* n rows, each of `width` numbers */
} table;

/* n ranges of columns with the same length; each begins `step` columns after the one before. */
typedef struct {
  cpu_range one;
  int n, step;
} runs;

/* The shape of the current layer. Before the first layer the model's shape will do: what ranks exchange there has the
 * same width in all layers. */
static const dt_shape *shape_of(const cpu_chunk *c) { return c->layer ? &c->layer->shape : &c->p->w->shape; }

/* The width of the input of o. */
static int attended(const cpu_chunk *c) {
  const dt_shape *s = shape_of(c);
  return c->layer->delta ? s->delta_value_heads * s->delta_value_dim : s->heads * s->head_dim;
}

static table table_of(const cpu_chunk *c, cpu_gathered what) {
  const dt_weights *w = c->p->w;
  const dt_shape *s = shape_of(c);
  switch (what) {
  case CPU_ATTENDED: return (table){w->scratch.cat, w->scratch.ldcat, c->n, attended(c)};
  case CPU_INNER: return (table){cpu_inner_of(w), w->scratch.ldcat, c->n, s->inter};
  case CPU_LOGITS: return (table){w->scratch.logits, w->scratch.ldlogits, c->wanted_n, s->vocab};
  case CPU_QUERIES: return (table){w->scratch.wide, w->scratch.ldwide, c->n, s->heads * s->head_dim};
  /* Ranks may share key heads, but all ranks together never have more key heads than query heads. */
  case CPU_KEYS:
    return (table){w->scratch.wide + w->scratch.wide_keys_at, w->scratch.ldwide, c->n, s->heads * s->head_dim};
  case CPU_ADDED: return (table){w->scratch.normed, w->scratch.ldx, c->n, s->hidden};
  case CPU_EMBEDDED:
  case CPU_STREAM: break;
  }
  return (table){w->scratch.x, w->scratch.ldx, c->n, s->hidden};
}

/* The columns of a rank's value heads in a delta layer. If they are tiled, a rank has some columns of each tile. */
static runs delta_columns_of(const dt_shape *s, const cpu_mine *its) {
  int tiles = s->delta_value_heads / s->delta_key_heads, first = its->delta_keys.first * s->delta_value_dim;
  int count = its->delta_keys.count * s->delta_value_dim;
  if (s->delta_tiled) return (runs){{first, count}, tiles, s->delta_key_heads * s->delta_value_dim};
  return (runs){{first * tiles, count * tiles}, 1, 0};
}

static cpu_range some_columns_of(const cpu_chunk *c, cpu_gathered what, const cpu_mine *its, int r) {
  const dt_shape *s = shape_of(c);
  switch (what) {
  case CPU_EMBEDDED: return (cpu_range){0, cpu_has_id(its, c->p->rows->token[c->first + r]) ? s->hidden : 0};
  case CPU_ATTENDED:
  case CPU_QUERIES: return (cpu_range){its->heads.first * s->head_dim, its->heads.count * s->head_dim};
  case CPU_KEYS: return (cpu_range){its->kv_heads.first * s->head_dim, its->kv_heads.count * s->head_dim};
  case CPU_INNER: return its->inter;
  case CPU_LOGITS: return its->ids;
  case CPU_ADDED:
  case CPU_STREAM: break;
  }
  return its->hidden;
}

static runs columns_of(const cpu_chunk *c, cpu_gathered what, const cpu_mine *its, int r) {
  if (what == CPU_ATTENDED && c->layer->delta) return delta_columns_of(shape_of(c), its);
  return (runs){some_columns_of(c, what, its, r), 1, 0};
}

/* Copies a rank's part of these rows to the wire or, with `back`, from it; if wire is NULL it copies nothing. Returns
 * the number of floats. */
static size_t carry(const cpu_chunk *c, cpu_gathered what, const table *t, int rank, cpu_range rows, float *wire,
                    bool back) {
  cpu_mine its = cpu_mine_of(shape_of(c), rank, c->p->w->ranks->count);
  size_t at = 0;
  for (int r = rows.first; r < rows.first + rows.count; r++) {
    runs columns = columns_of(c, what, &its, r);
    size_t n = (size_t)columns.one.count;
    float *here = t->rows + (size_t)r * t->ld + columns.one.first;
    for (int i = 0; i < columns.n; i++, here += columns.step, at += n)
      if (n && wire) memcpy(back ? here : wire + at, back ? wire + at : here, n * sizeof *here);
  }
  return at;
}

/* Exchanges these rows; they must fit on the wire. */
static void gather_some(const cpu_chunk *c, cpu_gathered what, const table *t, cpu_range rows) {
  const dt_weights *w = c->p->w;
  dt_ranks *ranks = w->ranks;
  int *bytes = w->scratch.wire_bytes, *offset = bytes + ranks->count, end = 0;
  for (int i = 0; i < ranks->count; i++) {
    offset[i] = end;
    bytes[i] = (int)(carry(c, what, t, i, rows, NULL, false) * sizeof *w->scratch.wire);
    end += bytes[i];
  }
  carry(c, what, t, ranks->rank, rows, w->scratch.wire + (size_t)offset[ranks->rank] / sizeof *w->scratch.wire, false);
  ranks->gather(ranks, w->scratch.wire, bytes, offset);
  for (int i = 0; i < ranks->count; i++)
    if (i != ranks->rank)
      carry(c, what, t, i, rows, w->scratch.wire + (size_t)offset[i] / sizeof *w->scratch.wire, true);
}

void cpu_gather(const cpu_chunk *c, cpu_gathered what) {
  const dt_weights *w = c->p->w;
  cpu_wait(c->me);
  if (!w->ranks) return;
  if (c->me->thread == 0) {
    table t = table_of(c, what);
    int most = (int)(w->scratch.wire_numbers / (size_t)t.width);
    for (int r = 0; r < t.n; r += most) gather_some(c, what, &t, (cpu_range){r, t.n - r < most ? t.n - r : most});
  }
  cpu_wait_for_ranks(c->me);
}
