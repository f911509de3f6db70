/* Sampling on the CUDA backend: tokens compared with the definition in sample.h, applied to the backend's own logits;
 * candidates with noise; the same results whichever rows share the pass. */
#include "candidates_case.h"
#include "cuda_device.h"

enum { VOCAB = 2300, ROWS = CANDIDATES_ROWS, MANY = 64 };

/* A model with many equal logits, including zeros of both signs, in three blocks of ids. */
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

/* Adds one row for each of ROWS sequences. */
static void rows_add(row_list *l, int first, int count, uint64_t seed) {
  for (int i = first; i < first + count; i++) row_add_plain(l, i, (int32_t)((seed * 31 + (uint64_t)i * 7) % VOCAB), 0);
}

static dt_sampling some_sampling(uint64_t *r) {
  static const float top_ps[] = {0, 0.3f, 0.5f, 0.8f, 0.95f, 1}, min_ps[] = {0, 0, 0.02f, 0.2f};
  return (dt_sampling){.seed = (uint64_t)random_next(r) << 32 | random_next(r),
                       .temp = (float)(random_next(r) % 6), /* 0: the row is not sampled */
                       .top_k = random_next(r) % 2 ? 0 : 1 << random_next(r) % 12,
                       .top_p = top_ps[random_next(r) % 6],
                       .min_p = min_ps[random_next(r) % 4]};
}

/* Samples the token of each row, with the sampling of its sequence. */
static void sample(rig *r, const row_list *l, const dt_sampling *sampling, int32_t *sampled) {
  int32_t index[MANY];
  for (int i = 0; i < l->n; i++) index[i] = i;
  dt_rows rows = rows_of(l);
  dt_out out = {.want = DT_WANT_ARGMAX, .n = l->n, .row = index, .sampling = sampling, .argmax = sampled};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
}

/* Compares the token of a row with the definition. Returns how many ids are allowed. */
static int check_sampled(const dt_sampling *s, const float *logits, int vocab, int32_t sampled) {
  int allowed = vocab, expected = 0;
  if (s->temp > 0)
    expected = definition_sampled(s, 0, logits, vocab, &allowed);
  else
    for (int id = 1; id < vocab; id++) expected = logits[id] > logits[expected] ? id : expected;
  if (sampled != expected)
    fail_msg("of %d ids: token %d, not %d (seed %d, temp %g, top_k %d, top_p %g, min_p %g)", vocab, sampled, expected,
             (int)s->seed, (double)s->temp, s->top_k, (double)s->top_p, (double)s->min_p);
  return allowed;
}

static void draws_are_those_of_the_definition_alone_or_together(void **state) {
  (void)state;
  random_model *m = model_with_ties();
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, ROWS, 4);
  uint64_t random = 5;
  int rounds = emulated ? 30 : 300, cut = 0, sampled = 0;
  for (uint64_t round = 0; round < (uint64_t)rounds; round++) {
    row_list all = {0};
    dt_sampling sampling[ROWS];
    int32_t together[ROWS], alone;
    rows_add(&all, 0, ROWS, round);
    float *logits = rig_run(&r, &all, true);
    for (int i = 0; i < ROWS; i++) sampling[i] = some_sampling(&random);
    sample(&r, &all, sampling, together);
    for (int i = 0; i < ROWS; i++) {
      cut += check_sampled(&sampling[i], logits + i * VOCAB, VOCAB, together[i]) < VOCAB;
      sampled += sampling[i].temp > 0;
    }
    row_list one = {0};
    int i = (int)round % ROWS;
    rows_add(&one, i, 1, round);
    sample(&r, &one, sampling, &alone);
    assert_int_equal(alone, together[i]);
    free(logits);
  }
  assert_true(cut > ROWS * rounds / 2 && sampled > cut);
  rig_close(&r);
  random_model_free(m);
}

/* Finds the largest logit that several ids have. Returns the number of ids down to the last of these; *last is that
 * id. */
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

/* Several ids have the same score. The allowed ids end one before the last of these, at it, or one after it. */
static void ids_of_one_score_are_allowed_up_to_the_last(void **state) {
  (void)state;
  random_model *m = model_with_ties();
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, ROWS, 4);
  row_list l = {0};
  int32_t index[ROWS], sampled[ROWS];
  int end[ROWS], last[ROWS], lasts = 0;
  dt_sampling sampling[ROWS];
  rows_add(&l, 0, ROWS, 1);
  float *logits = rig_run(&r, &l, true);
  for (int i = 0; i < ROWS; i++) index[i] = i, end[i] = end_of_ties(logits + i * VOCAB, &last[i]);
  dt_rows rows = rows_of(&l);
  dt_out out = {.want = DT_WANT_ARGMAX, .n = ROWS, .row = index, .sampling = sampling, .argmax = sampled};
  for (int round = 0; round < 60; round++) {
    for (int i = 0; i < ROWS; i++)
      sampling[i] = (dt_sampling){.seed = (uint64_t)(round * ROWS + i), .temp = 20, .top_k = end[i] + round % 3 - 1};
    ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
    for (int i = 0; i < ROWS; i++) {
      int allowed;
      assert_int_equal(sampled[i], definition_sampled(&sampling[i], 0, logits + i * VOCAB, VOCAB, &allowed));
      assert_int_equal(allowed, sampling[i].top_k);
      lasts += sampled[i] == last[i];
    }
  }
  assert_true(lasts > 0);
  free(logits);
  rig_close(&r);
  random_model_free(m);
}

/* ---- logits that are chosen: numbers, times a positive factor of the row ----------------------------------------- */

static uint16_t f16(float x) {
  uint16_t bits;
  put_random(DT_F16, x, (char *)&bits);
  return bits;
}
enum { MINUS_INFINITY = 0xfc00 };
static uint16_t falling(int id) { return f16((float)(id * 1021 % 2049) / 128); } /* all different, from 0 to 16 */
static uint16_t steep(int id) { return f16(32 * (float)(id * 1021 % 2049) - 32768); }
static uint16_t equal(int id) { return (void)id, f16(1); }
/* Each of these logits belongs to more ids than a list has room for. */
static uint16_t heaps(int id) { return f16(id % 8 == 0 ? 2 : id % 2 ? 1 : 0.5f); }
static uint16_t zero(int id) { return id % 2 ? 0x8000 : 0; } /* zeros of both signs */
static uint16_t sparse(int id) { return id % 3 == 1 ? falling(id) : MINUS_INFINITY; }
static uint16_t minus_infinity(int id) { return (void)id, MINUS_INFINITY; }

typedef struct {
  random_model *model;
  rig r;
  row_list rows; /* MANY rows, one for each sequence */
  float *logits;
} chosen;

static chosen chosen_open(int vocab, uint16_t (*number)(int id)) {
  model_shape shape = cuda_shape(3);
  shape.vocab = vocab;
  chosen c = {.model = random_model_new(&shape, 3)};
  dt_model_desc *d = &c.model->desc;
  uint16_t *rows = (uint16_t *)d->unembed.source->bytes;
  memset(rows, 0, sizeof *rows * (size_t)(vocab * shape.hidden));
  for (int id = 0; id < vocab; id++) rows[id * shape.hidden] = number(id);
  ((uint16_t *)d->final_norm.source->bytes)[0] = f16(0.125f);
  ((uint16_t *)d->final_norm_bias.source->bytes)[0] = f16(2);
  c.r = rig_open(&dt_cuda_ops, NULL, 1, d, MANY, 4);
  for (int i = 0; i < MANY; i++) row_add_plain(&c.rows, i, i % vocab, 0);
  c.logits = rig_run(&c.r, &c.rows, true);
  return c;
}

static void chosen_close(chosen *c) {
  free(c->logits);
  rig_close(&c->r);
  random_model_free(c->model);
}

/* Combines every filter with every other one, at the ends of their ranges. Among them are rows without filters, and
 * rows that are not sampled. */
static void samplings_at_the_ends(int vocab, dt_sampling sampling[MANY]) {
  const int top_ks[] = {0, 1, (vocab + 1) / 2, vocab - 1, vocab, vocab + 1};
  static const float top_ps[] = {0, 0.5f, 0.999f}, min_ps[] = {0, 0.1f, 1};
  for (int i = 0; i < MANY; i++)
    sampling[i] = i < 54 ? (dt_sampling){.seed = (uint64_t)i,
                                         .temp = i % 2 ? 8 : 0.5f,
                                         .top_k = top_ks[i / 9],
                                         .top_p = top_ps[i / 3 % 3],
                                         .min_p = min_ps[i % 3]}
                         : (dt_sampling){.seed = (uint64_t)i, .temp = (float)(i % 3), .top_k = i % 3 == 1 ? 3 : 0};
}

/* Tests numbers of ids at the bounds of a block's share, and lists with and without room for the ids in question. */
static void filters_at_their_ends_sample_as_the_definition(void **state) {
  (void)state;
  static const struct {
    int vocab;
    uint16_t (*number)(int id);
  } models[] = {{1, equal},      {2, falling},  {1023, falling}, {1024, falling}, {1025, falling}, {2048, falling},
                {2049, falling}, {2049, steep}, {2049, equal},   {1025, zero},    {1025, sparse},  {1025, heaps}};
  for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
    int vocab = models[m].vocab;
    chosen c = chosen_open(vocab, models[m].number);
    dt_sampling sampling[MANY];
    int32_t together[MANY], apart[MANY];
    samplings_at_the_ends(vocab, sampling);
    sample(&c.r, &c.rows, sampling, together);
    for (int i = 0; i < MANY; i++) check_sampled(&sampling[i], c.logits + i * vocab, vocab, together[i]);
    for (int n = 8; n >= 1; n -= 7) { /* in passes of 8 rows and of 1; with fewer rows, more blocks share a row */
      row_list few = {0};
      int first = (int)(m * 8) % (MANY - 8);
      for (int i = first; i < first + n; i++) row_add_plain(&few, i, i % vocab, 0);
      sample(&c.r, &few, sampling, apart);
      assert_memory_equal(apart, together + first, sizeof *apart * (size_t)n);
    }
    chosen_close(&c);
  }
}

/* Sets top-p a little below and above the probability of the first 1 to 8 ids: these are allowed, or one more. */
static void top_p_ends_where_its_share_is_reached(void **state) {
  (void)state;
  enum { IDS = 1025, ROUNDS = 8 };
  chosen c = chosen_open(IDS, falling);
  int lasts = 0;
  for (int round = 0; round < ROUNDS; round++) {
    dt_sampling sampling[MANY];
    int32_t sampled[MANY];
    int last[MANY];
    for (int i = 0; i < MANY; i++) {
      const float *logits = c.logits + i * IDS;
      int first = i % 8 + 1, more = i / 8 % 2;
      float temp = 1, least = INFINITY, largest = -INFINITY;
      double share = 0, sum = 0;
      for (int id = 0; id < IDS; id++) largest = logits[id] > largest ? logits[id] : largest;
      for (int id = 0; id < IDS; id++) sum += exp((double)(logits[id] - largest) / (double)temp);
      for (int k = 0; k < first + more; k++) { /* from the largest one on */
        float next = -INFINITY;
        for (int id = 0; id < IDS; id++)
          if (logits[id] < least && logits[id] > next) next = logits[id], last[i] = id;
        least = next;
        if (k < first) share += exp((double)(next - largest) / (double)temp);
      }
      sampling[i] = (dt_sampling){.seed = (uint64_t)(round * MANY + i),
                                  .temp = temp,
                                  .top_k = i / 16 % 2 ? IDS - 1 : 0,
                                  .top_p = (float)(share / sum * (more ? 1 + 1e-5 : 1 - 1e-5))};
    }
    sample(&c.r, &c.rows, sampling, sampled);
    for (int i = 0; i < MANY; i++) {
      assert_int_equal(check_sampled(&sampling[i], c.logits + i * IDS, IDS, sampled[i]), i % 8 + 1 + i / 8 % 2);
      lasts += sampled[i] == last[i];
    }
  }
  assert_true(lasts > MANY);
  chosen_close(&c);
}

static void ids_of_probability_zero_are_not_sampled(void **state) {
  (void)state;
  chosen c = chosen_open(1025, minus_infinity);
  dt_sampling sampling[MANY];
  int32_t sampled[MANY];
  samplings_at_the_ends(1025, sampling);
  sample(&c.r, &c.rows, sampling, sampled);
  for (int i = 0; i < MANY; i++)
    if (sample_is_filtered(&sampling[i])) assert_int_equal(sampled[i], -1);
  chosen_close(&c);
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

static void a_row_with_a_nan_samples_nothing(void **state) {
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

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_are_those_of_the_definition_alone_or_together),
      cmocka_unit_test(ids_of_one_score_are_allowed_up_to_the_last),
      cmocka_unit_test(filters_at_their_ends_sample_as_the_definition),
      cmocka_unit_test(top_p_ends_where_its_share_is_reached),
      cmocka_unit_test(ids_of_probability_zero_are_not_sampled),
      cmocka_unit_test(candidates_know_the_noise),
      cmocka_unit_test(a_row_with_a_nan_samples_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
