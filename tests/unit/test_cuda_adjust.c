/* Logit adjustments on the CUDA backend: the definition's bits, given the backend's own logits; lists and masks that
 * rows share; rows that allow nothing. */
#include "adjustment_case.h"
#include "cuda_device.h"

enum { VOCAB = 2300, MANY = 64, LISTS = 5 };

static model_shape wide_shape(void) {
  model_shape shape = cuda_shape(3);
  shape.vocab = VOCAB;
  return shape;
}

static void a_pass_adjusts_what_it_takes_and_not_what_it_reports(void **state) {
  (void)state;
  for (int shape = 0; shape < 4; shape++) {
    const model_shape plain = shape < 3 ? cuda_shape(shape) : wide_shape();
    random_model *m = random_model_new(&plain, 5);
    rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, ADJUSTED_ROWS, 4);
    row_list l = {0};
    for (int i = 0; i < ADJUSTED_ROWS; i++) row_add_plain(&l, i, 31 * i % r.vocab, 0);
    check_adjusted_pass(&r, &l);
    rig_close(&r);
    random_model_free(m);
  }
}

/* A list of about n ids, rising. */
static int random_list(dt_adjustment *list, int n, uint64_t *r) {
  int count = 0;
  for (int32_t id = 0; id < VOCAB; id++)
    if (random_next(r) % VOCAB < (uint32_t)n)
      list[count++] = (dt_adjustment){.id = id,
                                      .bias = random_next(r) % 9 ? (float)(random_next(r) % 64) / 16 - 2 : -INFINITY,
                                      .repeat = 0.5f + (float)(random_next(r) % 16) / 8,
                                      .minus = (float)(random_next(r) % 32) / 16 - 1};
  return count;
}

/* Rows with lists and masks that others have, too, of any length up to the whole vocabulary: the logits of each are
 * those of the definition, and the same if the row is alone. */
static void rows_share_lists_and_masks(void **state) {
  (void)state;
  enum { WORDS = (VOCAB + 63) / 64 };
  static dt_adjustment text[LISTS][VOCAB], path[MANY][VOCAB];
  static uint64_t mask[LISTS][WORDS];
  const model_shape shape = wide_shape();
  random_model *m = random_model_new(&shape, 7);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, MANY, 4);
  float *together = malloc(sizeof *together * MANY * VOCAB), *alone = malloc(sizeof *alone * VOCAB);
  uint64_t random = 9;
  for (int round = 0; round < (emulated ? 4 : 40); round++) {
    row_list l = {0};
    dt_row_adjustments has[MANY];
    int32_t index[MANY];
    int n_text[LISTS];
    for (int i = 0; i < LISTS; i++) {
      n_text[i] = random_list(text[i], i == round % LISTS ? VOCAB : 1 + (int)(random_next(&random) % 60), &random);
      for (int w = 0; w < WORDS; w++) mask[i][w] = (uint64_t)random_next(&random) << 32 | random_next(&random);
    }
    for (int i = 0; i < MANY; i++) {
      row_add_plain(&l, i, (int32_t)(random_next(&random) % VOCAB), 0);
      const uint32_t t = random_next(&random) % (LISTS + 2), a = random_next(&random) % (LISTS + 3);
      has[i] = (dt_row_adjustments){.text = t < LISTS ? text[t] : NULL,
                                    .n_text = t < LISTS ? n_text[t] : 0,
                                    .path = path[i],
                                    .n_path = random_next(&random) % 2 ? random_list(path[i], 5, &random) : 0,
                                    .allowed = a < LISTS ? mask[a] : NULL};
      index[i] = i;
    }
    float *logits = rig_run(&r, &l, true);
    dt_rows rows = rows_of(&l);
    dt_out out = {.want = DT_WANT_LOGITS, .n = MANY, .row = index, .adjustments = has, .logits = together};
    ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
    for (int i = 0; i < MANY; i++)
      for (int32_t id = 0; id < VOCAB; id++)
        assert_true(together[i * VOCAB + id] == adjusted_logit(&has[i], id, logits[i * VOCAB + id]));
    const int one = (int)(random_next(&random) % MANY);
    dt_out of_one = {.want = DT_WANT_LOGITS, .n = 1, .row = &index[one], .adjustments = &has[one], .logits = alone};
    ok(r.ops->forward(r.weights, r.cache, &rows, &of_one, &err));
    assert_memory_equal(alone, together + one * VOCAB, sizeof *alone * VOCAB);
    free(logits);
  }
  free(together), free(alone);
  rig_close(&r);
  random_model_free(m);
}

/* A row that allows one id takes it; one that allows none takes none, and has no candidates. */
static void a_row_that_allows_nothing_takes_nothing(void **state) {
  (void)state;
  enum { ROWS = 3, WORDS = (VOCAB + 63) / 64, TOP = 32 };
  const model_shape shape = wide_shape();
  random_model *m = random_model_new(&shape, 7);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, ROWS, 4);
  row_list l = {0};
  static uint64_t none[WORDS], one[WORDS];
  one[1777 / 64] = UINT64_C(1) << 1777 % 64;
  const dt_row_adjustments has[ROWS] = {{.allowed = none}, {0}, {.allowed = one}};
  int32_t index[ROWS] = {0, 1, 2}, taken[ROWS], top[ROWS][TOP];
  float logp[ROWS][TOP], own[ROWS][TOP], confidence[ROWS], entropy[ROWS];
  for (int i = 0; i < ROWS; i++) row_add_plain(&l, i, 5 + i, 0);
  dt_rows rows = rows_of(&l);
  for (int how = 0; how < 3; how++) {
    dt_sampling sampling[ROWS];
    for (int i = 0; i < ROWS; i++)
      sampling[i] = (dt_sampling){.seed = 3, .temp = how ? 1 : 0, .top_p = how > 1 ? 0.9f : 0};
    dt_out out = {
        .want = DT_WANT_ARGMAX, .n = ROWS, .row = index, .sampling = sampling, .adjustments = has, .argmax = taken};
    ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
    assert_true(taken[0] == -1 && taken[1] >= 0 && taken[2] == 1777);
    out = (dt_out){.want = DT_WANT_TOPK,
                   .n = ROWS,
                   .row = index,
                   .sampling = sampling,
                   .adjustments = has,
                   .k = TOP,
                   .vocab = VOCAB,
                   .top_id = top[0],
                   .top_logp = logp[0],
                   .top_own = own[0],
                   .confidence = confidence,
                   .entropy = entropy};
    ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
    assert_true(top[0][0] == -1 && confidence[0] == 0 && top[1][TOP - 1] >= 0);
    assert_true(top[2][0] == 1777 && top[2][1] == -1 && logp[2][0] == 0 && confidence[2] == 1);
  }
  rig_close(&r);
  random_model_free(m);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_pass_adjusts_what_it_takes_and_not_what_it_reports),
      cmocka_unit_test(rows_share_lists_and_masks),
      cmocka_unit_test(a_row_that_allows_nothing_takes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
