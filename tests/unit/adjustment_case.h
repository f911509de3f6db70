/* Compares what a pass does with the adjustments of its rows with their definition (backend/adjustment.h), applied to
 * the backend's own logits. */
#ifndef ADJUSTMENT_CASE_H
#define ADJUSTMENT_CASE_H

#include "backend/adjustment.h"
#include "rig.h"
#include "sample_definition.h"

/* A row's adjustment of an id; one that changes nothing if it has none. */
static inline dt_adjustment entry_of(const dt_row_adjustments *r, int32_t id) {
  dt_adjustment found = {.id = id, .repeat = 1};
  for (int i = 0; i < r->n_text; i++)
    if (r->text[i].id == id) found = r->text[i];
  for (int i = 0; i < r->n_path; i++)
    if (r->path[i].id == id) found = r->path[i];
  return found;
}

/* What a row's adjustments make of an id's logit. */
static inline float adjusted_logit(const dt_row_adjustments *r, int32_t id, float logit) {
  const dt_adjustment s = entry_of(r, id);
  if (!adjustment_allows(r, id)) return -INFINITY;
  return s.bias != 0 || s.repeat != 1 || s.minus != 0 ? adjust_logit(&s, logit) : logit;
}

enum { ADJUSTED_ROWS = 9, ADJUSTED_TOP = 5 };

typedef struct {
  int32_t argmax[ADJUSTED_ROWS], id[ADJUSTED_ROWS][ADJUSTED_TOP];
  float logp[ADJUSTED_ROWS], top[ADJUSTED_ROWS][ADJUSTED_TOP];
} told;

static inline int token_of(const dt_sampling *s, const float *logits, int n) {
  int allowed, best = 0;
  for (int v = 1; v < n; v++) best = logits[v] > logits[best] ? v : best;
  return s->temp > 0 ? definition_sampled(s, 0, logits, n, &allowed) : best;
}

/* Each row has its own adjustments, except for the first one, which has none. Its results show these adjustments and
 * nothing else. */
static void check_adjusted_pass(rig *r, row_list *l) {
  dt_adjustment text[ADJUSTED_ROWS][4], path[ADJUSTED_ROWS][2];
  size_t words = (size_t)(r->vocab + 63) / 64;
  uint64_t *allowed = malloc(ADJUSTED_ROWS * words * sizeof *allowed), bits = 5;
  dt_row_adjustments row_has[ADJUSTED_ROWS];
  dt_sampling sampling[ADJUSTED_ROWS];
  int32_t index[ADJUSTED_ROWS], given[ADJUSTED_ROWS];
  float *plain = rig_run(r, l, true), *adjusted = malloc(sizeof *adjusted * (size_t)ADJUSTED_ROWS * (size_t)r->vocab);
  dt_rows rows = rows_of(l);
  told quiet, moved, of_given;
  int different = 0;
  for (int j = 0; j < ADJUSTED_ROWS; j++) {
    const float *logits = plain + (size_t)j * (size_t)r->vocab;
    int best = 0;
    for (int v = 1; v < r->vocab; v++) best = logits[v] > logits[best] ? v : best;
    int32_t third = r->vocab - 1 - j;
    for (int k = 0; k < 4; k++)
      text[j][k] =
          (dt_adjustment){.id = 3 * k + j % 2, .bias = k == 2 ? -INFINITY : (float)k, .repeat = 1.3f, .minus = 0.5f};
    if (best > 12 && best < third) { /* the path bans the likeliest one, which overrides the text's adjustment of it */
      text[j][3] = (dt_adjustment){.id = best, .bias = 50, .repeat = 1};
      path[j][0] = (dt_adjustment){.id = best, .bias = -INFINITY, .repeat = 1};
    } else {
      path[j][0] = (dt_adjustment){.id = 20, .bias = 1, .repeat = 0.5f};
    }
    path[j][1] = (dt_adjustment){.id = third, .bias = 1.5f, .repeat = 1.1f};
    for (size_t k = 0; k < words; k++) /* also words with all bits equal, of each kind */
      allowed[(size_t)j * words + k] = k % 3 == 1   ? UINT64_MAX
                                       : k % 3 == 2 ? 0
                                                    : (uint64_t)random_next(&bits) << 32 | 1;
    row_has[j] =
        j ? (dt_row_adjustments){text[j], path[j], 4, j % 4 ? 2 : 0, j % 3 ? NULL : allowed + (size_t)j * words}
          : (dt_row_adjustments){0};
    sampling[j] = (dt_sampling){(uint64_t)j, 0.5f * (float)(j % 3), j % 2 ? 7 : 0, 0, 0};
    index[j] = j, given[j] = (7 * j + 1) % r->vocab;
  }
  dt_out out = {.want = DT_WANT_LOGITS, .n = ADJUSTED_ROWS, .row = index, .adjustments = row_has, .logits = adjusted};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  for (int j = 0; j < ADJUSTED_ROWS; j++)
    for (int32_t v = 0; v < r->vocab; v++) {
      float is = adjusted[j * r->vocab + v], was = plain[j * r->vocab + v];
      assert_true(is == adjusted_logit(&row_has[j], v, was));
      different += is != was;
    }
  assert_true(different > 3 * (ADJUSTED_ROWS - 1));
  out = (dt_out){.want = DT_WANT_BOTH,
                 .n = ADJUSTED_ROWS,
                 .row = index,
                 .sampling = sampling,
                 .k = ADJUSTED_TOP,
                 .argmax = quiet.argmax,
                 .logp = quiet.logp,
                 .top_id = quiet.id[0],
                 .top_logp = quiet.top[0]};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  out.adjustments = row_has, out.argmax = moved.argmax, out.logp = moved.logp, out.top_id = moved.id[0],
  out.top_logp = moved.top[0];
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  assert_memory_equal(quiet.id, moved.id, sizeof quiet.id);
  assert_memory_equal(quiet.top, moved.top, sizeof quiet.top);
  out.given = given, out.argmax = NULL, out.logp = of_given.logp, out.top_id = of_given.id[0],
  out.top_logp = of_given.top[0];
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  assert_memory_equal(quiet.id, of_given.id, sizeof quiet.id);
  int32_t alone[ADJUSTED_ROWS];
  out = (dt_out){.want = DT_WANT_ARGMAX,
                 .n = ADJUSTED_ROWS,
                 .row = index,
                 .sampling = sampling,
                 .adjustments = row_has,
                 .argmax = alone};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  assert_memory_equal(alone, moved.argmax, sizeof alone);
  for (int j = 0; j < ADJUSTED_ROWS; j++) {
    const float *logits = plain + (size_t)j * (size_t)r->vocab;
    float *mine = adjusted + (size_t)j * (size_t)r->vocab;
    double sum = 0;
    for (int v = 0; v < r->vocab; v++) sum += exp((double)logits[v]);
    assert_int_equal(moved.argmax[j], token_of(&sampling[j], mine, r->vocab));
    assert_true(fabs((double)moved.logp[j] - (double)logits[moved.argmax[j]] + log(sum)) < 1e-5);
    assert_true(fabs((double)of_given.logp[j] - (double)logits[given[j]] + log(sum)) < 1e-5);
    for (int k = 0; k < ADJUSTED_TOP; k++)
      if (moved.id[j][k] == moved.argmax[j]) assert_true(moved.logp[j] == moved.top[j][k]);
  }
  assert_int_equal(moved.argmax[0], quiet.argmax[0]);
  given[2] = r->vocab;
  out = (dt_out){.want = DT_WANT_BOTH,
                 .n = ADJUSTED_ROWS,
                 .row = index,
                 .k = 1,
                 .given = given,
                 .logp = quiet.logp,
                 .top_id = quiet.id[0],
                 .top_logp = quiet.top[0]};
  fails(r->ops->forward(r->weights, r->cache, &rows, &out, &err), DT_EINPUT, "result 2 is wanted of id");
  free(plain), free(allowed), free(adjusted);
}

#endif
