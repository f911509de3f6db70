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
      cmocka_unit_test(candidates_know_the_noise),
      cmocka_unit_test(a_row_with_a_nan_draws_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
