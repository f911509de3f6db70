/* An output matrix that has only some of its rows. Candidates are those of the whole model among these ids, with the
 * noise that belongs to the ids. They have the same bits in every variant, next to any other rows, with any number of
 * threads. */
#include "cpu.h"
#include "kernels.h"
#include "model/model.h"
#include "pair/draft_output.h"
#include "random_model.h"
#include "rig.h"
#include "sample_definition.h"

enum { ROWS = 7, MOST = 32 };

typedef struct {
  int32_t id[ROWS][MOST];
  float logp[ROWS][MOST], own[ROWS][MOST], confidence[ROWS], entropy[ROWS];
} candidates;

/* The adjustments of the last rows: some ids are listed, some are not, and one is banned. */
static const dt_adjustment text_adjustments[] = {{0, 2, 1, 0},
                                                 {1, -INFINITY, 1, 0},
                                                 {4, 1, 1.5f, 0.5f},
                                                 {700, 0.5f, 1, 0}},
                           path_adjustments[] = {{2, -1, 1, 0.25f}, {4, 3, 1, 0}};
static dt_row_adjustments adjustments_of(int row) {
  return row < 3 ? (dt_row_adjustments){0}
                 : (dt_row_adjustments){text_adjustments, path_adjustments, 4, row < 5 ? 0 : 2, NULL};
}

static double adjusted(int row, int32_t id, float logit) {
  dt_row_adjustments s = adjustments_of(row);
  for (int i = 0; i < s.n_path; i++)
    if (s.path[i].id == id) return (double)adjust_logit(&s.path[i], logit);
  for (int i = 0; i < s.n_text; i++)
    if (s.text[i].id == id) return (double)adjust_logit(&s.text[i], logit);
  return (double)logit;
}

/* Runs rows first..first+n-1 of the text, with temperatures 0, 0.5, 1, .. by row. Each row is a sequence of its own. */
static void run(rig *r, int first, int n, int vocab, candidates *to) {
  dt_sampling sampling[ROWS];
  int32_t index[ROWS];
  row_list l = {0};
  memset(to, 0, sizeof *to);
  for (int i = 0; i < ROWS; i++) sampling[i] = (dt_sampling){.seed = (uint64_t)i + 5, .temp = 0.5f * (float)(i % 3)};
  dt_row_adjustments adjustments[ROWS];
  for (int i = 0; i < n; i++)
    index[i] = i, adjustments[i] = adjustments_of(first + i),
    row_add_plain(&l, first + i, (first + i) * 13 % r->vocab, 0);
  dt_rows rows = rows_of(&l);
  dt_out out = {.want = DT_WANT_TOPK,
                .n = n,
                .row = index,
                .sampling = sampling,
                .adjustments = adjustments,
                .k = MOST,
                .vocab = vocab,
                .top_id = to->id[first],
                .top_logp = to->logp[first],
                .top_own = to->own[first],
                .confidence = to->confidence + first,
                .entropy = to->entropy + first};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
}

static void near(double is, double should) { assert_true(fabs(is - should) < 1e-4 * (1 + fabs(should))); }

/* Compares row i with the logits of the whole model. */
static void check_row(const candidates *c, int i, const float *logits, const int32_t *ids, int n) {
  double *score = malloc(sizeof *score * (size_t)n), sum = 0, own = 0, largest = -INFINITY;
  int possible = 0;
  float temp = 0.5f * (float)(i % 3);
  for (int k = 0; k < n; k++) {
    double logit = adjusted(i, ids[k], logits[ids[k]]);
    possible += logit > -INFINITY;
    score[k] = temp > 0 ? logit / (double)temp + definition_noise((uint64_t)i + 5, 0, ids[k]) : logit;
    sum += exp(score[k]), own += exp(logit);
    largest = fmax(largest, score[k]);
  }
  near((double)c->confidence[i], exp(largest) / sum);
  for (int k = 0; k < MOST; k++) {
    int at = 0, larger = 0;
    if (k >= possible) {
      assert_int_equal(c->id[i][k], -1);
      continue;
    }
    while (at < n && ids[at] != c->id[i][k]) at++;
    assert_true(at < n);
    for (int o = 0; o < n; o++) larger += score[o] > score[at] + 1e-5;
    assert_true(larger <= k);
    near((double)c->logp[i][k], score[at] - log(sum));
    near((double)c->own[i][k], adjusted(i, ids[at], logits[ids[at]]) - log(own));
  }
  free(score);
}

static void check_cut(const dt_model_desc *whole, const int32_t *ids, int n) {
  dt_model_desc cut = *whole;
  cut.ids = ids, cut.n_ids = n;
  row_list all = {0};
  for (int i = 0; i < ROWS; i++) row_add_plain(&all, i, i * 13 % whole->shape.vocab, 0);
  rig full = rig_open(&dt_cpu_ops, NULL, 1, whole, ROWS, 2);
  float *logits = rig_run(&full, &all, true);
  rig_close(&full);
  candidates first;
  for (int v = 0; cpu_variant(v); v++)
    for (int threads = 1; threads <= 3; threads++) {
      rig r = rig_open(&dt_cpu_ops, cpu_variant(v)->name, threads, &cut, ROWS, 2);
      candidates together, alone;
      run(&r, 0, ROWS, whole->shape.vocab, &together);
      for (int i = 0; i < ROWS; i++) {
        run(&r, i, 1, whole->shape.vocab, &alone);
        assert_memory_equal(alone.id[i], together.id[i], sizeof alone.id[i]);
        assert_memory_equal(alone.logp[i], together.logp[i], sizeof alone.logp[i]);
      }
      if (v == 0 && threads == 1) {
        first = together;
        for (int i = 0; i < ROWS; i++) check_row(&first, i, logits + (size_t)i * (size_t)whole->shape.vocab, ids, n);
      }
      assert_memory_equal(&together, &first, sizeof first);
      rig_close(&r);
    }
  free(logits);
}

static void candidates_are_those_among_the_listed_ids(void **state) {
  (void)state;
  for (int s = 0; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 9);
    int vocab = m->desc.shape.vocab, n = 0;
    int32_t *ids = malloc((size_t)vocab * sizeof *ids);
    for (int id = 0; id < vocab; id++)
      if (id < 20 || id * id % 7 == 2 || id == vocab - 1) ids[n++] = id;
    check_cut(&m->desc, ids, n);
    check_cut(&m->desc, (int32_t[]){vocab / 2}, 1);
    for (n = 0; n < vocab; n++) ids[n] = n;
    check_cut(&m->desc, ids, vocab);
    free(ids);
    random_model_free(m);
  }
}

/* As with the ids that target and draft have in common. */
static void only_ids_below_a_bound_take_part(void **state) {
  (void)state;
  random_model *m = random_model_new(&random_shapes[0], 9);
  const int32_t ids[] = {3, 70, 500, 700, 1000};
  dt_model_desc cut = m->desc;
  cut.ids = ids, cut.n_ids = 5;
  rig r = rig_open(&dt_cpu_ops, NULL, 2, &cut, ROWS, 2);
  const struct { int below, n; } cases[] = {{1001, 5}, {1000, 4}, {501, 3}, {500, 2}, {4, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    candidates c;
    run(&r, 0, ROWS, cases[i].below, &c);
    for (int k = 0; k < 6; k++) assert_true((c.id[0][k] >= 0) == (k < cases[i].n) && c.id[0][k] < cases[i].below);
  }
  rig_close(&r);
  random_model_free(m);
}

/* A pass reads less memory, although all embeddings exist. */
static void fewer_rows_are_held(void **state) {
  (void)state;
  model *m = NULL;
  ok(model_open(SOURCE_DIR "/models/mini-draft", &m, &err));
  int32_t ids[256];
  for (int i = 0; i < 256; i++) ids[i] = i;
  dt_model_desc cut = *model_desc(m);
  size_t bytes[2];
  for (int i = 0; i < 2; i++) {
    rig r = rig_open(&dt_cpu_ops, NULL, 1, &cut, 1, 4);
    bytes[i] = r.ops->memory(r.backend).weights;
    rig_close(&r);
    cut.ids = ids, cut.n_ids = 256;
  }
  size_t rows = (size_t)(cut.shape.vocab - 256);
  assert_true(bytes[0] - bytes[1] > rows * 2 * (size_t)cut.shape.hidden * 9 / 10);
  model_close(m);
}

static void a_set_of_the_lowest_ids_has_an_eighth_but_8192_at_least(void **state) {
  (void)state;
  const struct {
    int lowest, vocab, n;
  } cases[] = {{-1, 8191, 8191},    {-1, 8192, 8192}, {-1, 8193, 8192},   {-1, 65543, 8192}, {-1, 65544, 8193},
               {-1, 151936, 18992}, {0, 151936, 0},   {100, 151936, 100}, {100, 100, 100}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const dt_draft_vocab v = {.lowest = cases[i].lowest};
    assert_int_equal(draft_output_lowest(&v, cases[i].vocab), cases[i].n);
  }
}

static void whatever_is_no_candidate_is_refused(void **state) {
  (void)state;
  random_model *m = random_model_new(&random_shapes[0], 9);
  dt_model_desc cut = m->desc;
  dt_backend *b;
  dt_weights *w;
  ok(dt_cpu_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
  cut.n_ids = 2;
  const struct {
    int32_t ids[2];
    const char *message;
  } wrong[] = {{{4, 4}, "model: its output has id 4 after 4, expected rising ids below 1031"},
               {{-1, 4}, "model: its output has id -1 after -1, expected rising ids below 1031"},
               {{4, 1031}, "model: its output has id 1031 after 4, expected rising ids below 1031"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    cut.ids = wrong[i].ids;
    fails(dt_cpu_ops.upload(b, &cut, NULL, &w, &err), DT_EINPUT, wrong[i].message);
  }
  dt_cpu_ops.close(b);
  cut.ids = (int32_t[]){4, 1030};
  rig r = rig_open(&dt_cpu_ops, NULL, 1, &cut, 1, 4);
  row_list l = {0};
  row_add_plain(&l, 0, 1, 0);
  dt_rows rows = rows_of(&l);
  int32_t argmax, row = 0;
  dt_out out = {.want = DT_WANT_ARGMAX, .n = 1, .row = &row, .argmax = &argmax};
  fails(r.ops->forward(r.weights, r.cache, &rows, &out, &err), DT_EINPUT,
        "a model loaded with only 2 of its output rows can return candidates only");
  rig_close(&r);
  random_model_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(candidates_are_those_among_the_listed_ids),
      cmocka_unit_test(only_ids_below_a_bound_take_part),
      cmocka_unit_test(fewer_rows_are_held),
      cmocka_unit_test(a_set_of_the_lowest_ids_has_an_eighth_but_8192_at_least),
      cmocka_unit_test(whatever_is_no_candidate_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
