/* Drawing on the CUDA backend: tokens against the definition in draw.h, given the backend's own logits; candidates with
 * the noise; the same whichever rows share the pass. */
#include "candidates_case.h"
#include "cuda_device.h"

enum { VOCAB = 2300, ROWS = CANDIDATES_ROWS };

/* A model with many equal logits, of both zeros too, in three blocks of ids. */
static random_model *model_with_ties(void) {
  model_shape shape = cuda_shape(3);
  shape.vocab = VOCAB;
  random_model *m = random_model_new(&shape, 3);
  uint16_t *rows = (uint16_t *)m->desc.unembed.source->bytes;
  for (int r = 0; r < VOCAB; r++)
    if (r % 3) memcpy(rows + r * shape.hidden, rows + r / 30 * 30 * shape.hidden, sizeof *rows * (size_t)shape.hidden);
  for (int r = 5; r < VOCAB; r += 50)
    for (int c = 0; c < shape.hidden; c++) rows[r * shape.hidden + c] = r % 2 ? 0x8000 : 0;
  return m;
}

/* One row of each of ROWS sequences. */
static void rows_add(row_list *l, int first, int count, uint64_t seed) {
  for (int i = first; i < first + count; i++) row_add_plain(l, i, (int32_t)((seed * 31 + (uint64_t)i * 7) % VOCAB), 0);
}

static dt_sampling some_sampling(uint64_t *r) {
  static const float top_ps[] = {0, 0.3f, 0.5f, 0.8f, 0.95f, 1}, min_ps[] = {0, 0, 0.02f, 0.2f};
  return (dt_sampling){.seed = (uint64_t)random_next(r) << 32 | random_next(r),
                       .temp = (float)(random_next(r) % 6), /* 0: not drawn */
                       .top_k = random_next(r) % 2 ? 0 : 1 << random_next(r) % 12,
                       .top_p = top_ps[random_next(r) % 6],
                       .min_p = min_ps[random_next(r) % 4]};
}

static void draws_are_those_of_the_definition_alone_or_together(void **state) {
  (void)state;
  random_model *m = model_with_ties();
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, ROWS, 4);
  uint64_t random = 5;
  int rounds = emulated ? 30 : 300, cut = 0, drawn = 0;
  for (uint64_t round = 0; round < (uint64_t)rounds; round++) {
    row_list all = {0};
    dt_sampling sampling[ROWS];
    int32_t index[ROWS], together[ROWS], alone;
    rows_add(&all, 0, ROWS, round);
    float *logits = rig_run(&r, &all, true);
    for (int i = 0; i < ROWS; i++) index[i] = i, sampling[i] = some_sampling(&random);
    dt_rows rows = rows_of(&all);
    dt_out out = {.want = DT_WANT_ARGMAX, .n = ROWS, .row = index, .sampling = sampling, .argmax = together};
    ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
    for (int i = 0; i < ROWS; i++) {
      const float *row = logits + i * VOCAB;
      int allowed = VOCAB, expected = 0;
      if (sampling[i].temp > 0)
        expected = definition_drawn(&sampling[i], 0, row, VOCAB, &allowed), drawn++;
      else
        for (int id = 1; id < VOCAB; id++) expected = row[id] > row[expected] ? id : expected;
      cut += allowed < VOCAB;
      if (together[i] != expected)
        fail_msg("round %d, row %d: token %d, not %d (temp %g, top_k %d, top_p %g, min_p %g)", (int)round, i,
                 together[i], expected, (double)sampling[i].temp, sampling[i].top_k, (double)sampling[i].top_p,
                 (double)sampling[i].min_p);
    }
    row_list one = {0};
    int i = (int)round % ROWS;
    rows_add(&one, i, 1, round);
    rows = rows_of(&one);
    out.n = 1, out.argmax = &alone;
    ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
    assert_int_equal(alone, together[i]);
    free(logits);
  }
  assert_true(cut > ROWS * rounds / 2 && drawn > cut);
  rig_close(&r);
  random_model_free(m);
}

/* Of the largest logit that several ids have: the number of ids down to the last of these; *last: that id. */
static int end_of_ties(const float *logits, int *last) {
  int end = VOCAB + 1;
  for (int id = 0; id < VOCAB; id++) {
    int larger = 0, same = 0, of_same = id;
    for (int other = 0; other < VOCAB; other++) {
      larger += logits[other] > logits[id], same += logits[other] == logits[id];
      if (logits[other] == logits[id]) of_same = other;
    }
    if (same > 1 && larger + same < end) end = larger + same, *last = of_same;
  }
  assert_in_range(end, 2, VOCAB);
  return end;
}

/* The allowed ids end one before the last of one score, at it, one behind it. */
static void ids_of_one_score_are_allowed_up_to_the_last(void **state) {
  (void)state;
  random_model *m = model_with_ties();
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, ROWS, 4);
  row_list l = {0};
  int32_t index[ROWS], drawn[ROWS];
  int end[ROWS], last[ROWS], lasts = 0;
  dt_sampling sampling[ROWS];
  rows_add(&l, 0, ROWS, 1);
  float *logits = rig_run(&r, &l, true);
  for (int i = 0; i < ROWS; i++) index[i] = i, end[i] = end_of_ties(logits + i * VOCAB, &last[i]);
  dt_rows rows = rows_of(&l);
  dt_out out = {.want = DT_WANT_ARGMAX, .n = ROWS, .row = index, .sampling = sampling, .argmax = drawn};
  for (int round = 0; round < 60; round++) {
    for (int i = 0; i < ROWS; i++)
      sampling[i] = (dt_sampling){.seed = (uint64_t)(round * ROWS + i), .temp = 20, .top_k = end[i] + round % 3 - 1};
    ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
    for (int i = 0; i < ROWS; i++) {
      int allowed;
      assert_int_equal(drawn[i], definition_drawn(&sampling[i], 0, logits + i * VOCAB, VOCAB, &allowed));
      assert_int_equal(allowed, sampling[i].top_k);
      lasts += drawn[i] == last[i];
    }
  }
  assert_true(lasts > 0);
  free(logits);
  rig_close(&r);
  random_model_free(m);
}

static void candidates_know_the_noise(void **state) {
  (void)state;
  static candidates said;
  random_model *m = model_with_ties();
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, ROWS, 4);
  row_list l = {0};
  rows_add(&l, 0, ROWS, 1);
  candidates_are_those_of_the_definition(&r, &l, VOCAB - 7, 1e-4, &said);
  both_are_the_argmax_and_the_quiet_candidates(&r, &l, r.vocab);
  rig_close(&r);
  random_model_free(m);
}

static void a_row_with_a_nan_draws_nothing(void **state) {
  (void)state;
  random_model *m = model_with_ties();
  ((uint16_t *)m->desc.embed.source->bytes)[5 * m->desc.shape.hidden + 3] = 0x7e00; /* token 5 */
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, 4);
  row_list l = {0};
  row_add_plain(&l, 0, 5, 0), row_add_plain(&l, 1, 6, 0);
  dt_rows rows = rows_of(&l);
  dt_sampling sampling[2] = {{1, 1, 5, 0.5f, 0.1f}, {1, 1, 5, 0.5f, 0.1f}};
  int32_t token[2];
  dt_out out = {.want = DT_WANT_ARGMAX, .n = 2, .row = (int32_t[]){0, 1}, .sampling = sampling, .argmax = token};
  for (int filtered = 1; filtered >= 0; filtered--) {
    ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
    assert_true(token[0] == -1 && token[1] >= 0);
    for (int i = 0; i < 2; i++) sampling[i] = (dt_sampling){.seed = 1, .temp = 1};
  }
  rig_close(&r);
  random_model_free(m);
}

int main(void) {
  cuda_device_or_skip();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_are_those_of_the_definition_alone_or_together),
      cmocka_unit_test(ids_of_one_score_are_allowed_up_to_the_last),
      cmocka_unit_test(candidates_know_the_noise),
      cmocka_unit_test(a_row_with_a_nan_draws_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
