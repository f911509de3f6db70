/* Sampling on the CPU, in every variant: the random bits, the noise, and the tokens and candidates, compared with the
 * definition in sample.h in double precision. */
#include "candidates_case.h"
#include "cpu.h"
#include "kernels.h"
#include "random_model.h"

#include <math.h>
#include <stdlib.h>

#define EACH_VARIANT(k)                                                                                                \
  const cpu_kernels *k;                                                                                                \
  for (int variant = 0; (k = cpu_variant(variant)); variant++)

enum { IDS = DEFINITION_IDS, PADDED = (IDS + 15) / 16 * 16 };

static float uniform(uint64_t *state) { return (float)(random_next(state) & 0xffffff) / 16777216.0f; }

/* The known answers that come with the authors' library (Random123, kat_vectors). */
static void philox_gives_the_known_answers(void **state) {
  (void)state;
  uint32_t zero[4] = {0}, pi[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  sample_philox(0, zero);
  assert_memory_equal(zero, ((uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}), sizeof zero);
  sample_philox(0x299f31d0a4093822u, pi);
  assert_memory_equal(pi, ((uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}), sizeof pi);
}

static void noise_is_that_of_the_definition_and_the_same_bits_in_every_variant(void **state) {
  (void)state;
  static float logits[PADDED], scores[PADDED], plain[PADDED];
  for (uint64_t seed = 1; seed <= 40; seed++) {
    dt_sampling s = {.seed = seed * 0x123456789abcdefu, .temp = 0.25f * (float)(1 + seed % 8)};
    int first = (int)(seed % 3) * 64, count = 1 + (int)(seed * 97 % (IDS - 192)), position = (int)seed * 31;
    uint64_t r = seed;
    for (int i = 0; i < count; i++) logits[i] = 20 * uniform(&r) - 10;
    EACH_VARIANT(k) {
      k->add_noise(&s, position, first, count, logits, scores);
      for (int i = 0; i < count; i++) {
        double scaled = (double)logits[i] / (double)s.temp, g = definition_noise(s.seed, position, first + i);
        /* u is a float and lacks digits near 1, where G is smallest. */
        double of_u = 0x1p-24 * exp(exp(-g)) * exp(g);
        assert_true(fabs((double)scores[i] - scaled - g) < 3e-7 * (1 + fabs(scaled) + fabs(g)) + of_u || g < -2.7);
      }
      if (variant == 0) memcpy(plain, scores, sizeof plain);
      assert_memory_equal(scores, plain, (size_t)count * sizeof *scores);
    }
  }
}

/* Samples block by block of `step` ids, as passes do. */
static void the_best_are_equal(const cpu_kernels *k, const dt_sampling *s, const float *logits, int n, int step) {
  static float block[PADDED], scores[PADDED];
  cpu_top all = {.count = 0}, some = {.count = 0};
  for (int first = 0; first < n; first += step) {
    int count = n - first < step ? n - first : step;
    memcpy(block, logits + first, (size_t)count * sizeof *block);
    k->add_noise(s, 9, first, count, block, scores);
    k->rank(scores, block, first, count, 1, &all);
    k->sample_among(s, 9, first, count, block, block, &some);
    assert_int_equal(some.nan, all.nan);
    assert_int_equal(some.count, all.count);
    if (!all.count) continue;
    assert_int_equal(some.id[0], all.id[0]);
    assert_memory_equal(some.score, all.score, sizeof *all.score);
    assert_memory_equal(some.logit, all.logit, sizeof *all.logit);
  }
}

static void the_best_is_found_without_looking_at_all_noise(void **state) {
  (void)state;
  static float logits[PADDED], noise[PADDED];
  for (uint64_t seed = 1; seed <= 200; seed++) {
    dt_sampling s = {.seed = seed, .temp = seed % 5 ? 0.5f : 1e-39f};
    int n = 1 + (int)(seed * 97 % IDS), step = seed % 2 ? 256 : 64;
    uint64_t r = seed;
    for (int i = 0; i < n; i++) logits[i] = (float)(seed % 7) * uniform(&r);
    if (seed % 3 == 0) logits[seed % (uint64_t)n] = seed % 2 ? NAN : INFINITY;
    if (seed % 10 == 1)
      for (int i = 0; i < n; i++) logits[i] = -INFINITY;
    if (seed % 4 == 0) { /* in each run the id with the most noise, so that its score is just above the earlier ones */
      s.temp = 1;
      memset(logits, 0, sizeof logits);
      cpu_variant(0)->add_noise(&s, 9, 0, n, logits, noise);
      for (int i = 0, most = 0; i < n; i++) {
        if (i % 64 == 0) most = i;
        if (noise[i] > noise[most]) most = i;
        logits[i] = -INFINITY;
        if (i % 64 == 63) logits[most] = 1e-6f * (float)most - noise[most];
      }
    }
    EACH_VARIANT(k) { the_best_are_equal(k, &s, logits, n, step); }
  }
}

static void draws_are_those_of_the_definition(void **state) {
  (void)state;
  static float logits[PADDED];
  static uint32_t weight[PADDED];
  static const int sizes[] = {1, 2, 15, 16, 17, 64, 65, 1000, IDS};
  static const float top_ps[] = {0, 0.001f, 0.5f, 0.9f, 0.999f, 1}, min_ps[] = {0, 0.02f, 1};
  long cut = 0;
  for (uint64_t seed = 1; seed <= 600; seed++) {
    uint64_t r = seed * 7919;
    int n = sizes[seed % 9], allowed;
    dt_sampling s = {.seed = seed,
                     .temp = 0.3f + 0.3f * (float)(random_next(&r) % 5),
                     .top_k = random_next(&r) % 2 ? 0 : 1 + (int)(random_next(&r) % (uint32_t)(n + 2)),
                     .top_p = top_ps[random_next(&r) % 6],
                     .min_p = min_ps[random_next(&r) % 3]};
    for (int i = 0; i < n; i++) /* many ties, including zeros of both signs, or none */
      logits[i] = seed % 2 ? ((float)(random_next(&r) % 5) - 2) * (random_next(&r) % 2 ? 1.0f : -1.0f)
                           : 16 * uniform(&r) * uniform(&r) - 3;
    int expected = definition_sampled(&s, (int)seed, logits, n, &allowed);
    cut += allowed < n;
    EACH_VARIANT(k) {
      int got = k->sample(&s, (int)seed, logits, n, weight);
      if (got != expected)
        fail_msg("%s, case %d: token %d, not %d (n %d, temp %g, top_k %d, top_p %g, min_p %g)", k->name, (int)seed, got,
                 expected, n, (double)s.temp, s.top_k, (double)s.top_p, (double)s.min_p);
    }
  }
  assert_in_range(cut, 300, 600);
}

static void a_row_with_a_nan_samples_nothing_and_infinities_do_no_harm(void **state) {
  (void)state;
  float logits[PADDED];
  static uint32_t weight[PADDED];
  dt_sampling s = {.seed = 1, .temp = 1, .top_k = 50, .top_p = 0.5f, .min_p = 0.1f};
  EACH_VARIANT(k) {
    for (int i = 0; i < 100; i++) logits[i] = i == 7 ? NAN : (float)i;
    assert_int_equal(k->sample(&s, 3, logits, 100, weight), -1);
    for (int i = 0; i < 100; i++) logits[i] = i == 7 ? 1.0f : -INFINITY;
    assert_int_equal(k->sample(&s, 3, logits, 100, weight), 7);
    for (int i = 0; i < 100; i++) logits[i] = i == 7 ? INFINITY : (float)i;
    assert_int_equal(k->sample(&s, 3, logits, 100, weight), 7);
  }
}

static void candidates_know_the_noise_and_are_the_same_bits_in_every_variant(void **state) {
  (void)state;
  static candidates said, first;
  random_model *m = random_model_new(&random_shapes[0], 5);
  EACH_VARIANT(k) {
    rig r = rig_open(&dt_cpu_ops, k->name, 2, &m->desc, CANDIDATES_ROWS, 4);
    row_list l = {0};
    for (int i = 0; i < CANDIDATES_ROWS; i++) row_add_plain(&l, i, 31 * i, 0);
    candidates_are_those_of_the_definition(&r, &l, 1000, 1e-5, &said);
    both_are_the_argmax_and_the_quiet_candidates(&r, &l, r.vocab);
    rig_close(&r);
    if (k == cpu_variant(0)) first = said;
    assert_memory_equal(&said, &first, sizeof said);
  }
  random_model_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(philox_gives_the_known_answers),
      cmocka_unit_test(noise_is_that_of_the_definition_and_the_same_bits_in_every_variant),
      cmocka_unit_test(the_best_is_found_without_looking_at_all_noise),
      cmocka_unit_test(draws_are_those_of_the_definition),
      cmocka_unit_test(a_row_with_a_nan_samples_nothing_and_infinities_do_no_harm),
      cmocka_unit_test(candidates_know_the_noise_and_are_the_same_bits_in_every_variant),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
