/* Delta layers on the CUDA backend: the logits are near the CPU's, and the bits are those of plain decoding, wherever a
 * row's base lies and whatever other rows its pass has. test_golden_logits compares with transformers. */
#include "cpu.h"
#include "cuda_exact.h"
#include "random_parts.h"

typedef struct {
  const char *name;
  int shape, key_dim, value_dim;
  bool tiled;
} kind;

static const kind kinds[] = {{"keys of 32, values of 48", 4, 32, 48, false},
                             {"keys of 16, values of 16, tiled", 4, 16, 16, true},
                             {"keys of 256, values of 128, tiled", 4, 256, 128, true},
                             {"BF16", 5, 32, 48, false}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static random_model *model_of(const kind *k) {
  model_shape shape = cuda_shape(k->shape);
  shape.layers = RANDOM_LAYERS;
  random_model *m = random_model_new(&shape, 7);
  random_delta(m, k->key_dim, k->value_dim, k->tiled);
  return m;
}

/* Text and a tree after it, with rows on both sides of positions where bases change. */
static void logits_are_those_of_the_cpu(void **state) {
  (void)state;
  enum { LENGTH = 150, TREE = 40 };
  for (int i = 0; i < KINDS; i++) {
    random_model *m = model_of(&kinds[i]);
    rig cpu = rig_open_rounded(&dt_cpu_ops, (dt_backend_options){.threads = 2}, &m->desc, (dt_holding){.dtype = "f32"},
                               1, LENGTH + 60),
        gpu = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, LENGTH + 60);
    uint64_t seed = 3;
    row_list part[2] = {0};
    for (int p = 0; p < LENGTH; p++) row_add_plain(&part[0], 0, (int32_t)(random_next(&seed) % (uint32_t)gpu.vocab), p);
    row_add_tree(&part[1], 0, LENGTH, TREE, 5);
    double worst = 0;
    for (int p = 0; p < 2; p++) {
      float *expected = rig_run(&cpu, &part[p], true), *got = rig_run(&gpu, &part[p], true);
      worst = fmax(worst, logits_difference(got, expected, (size_t)(part[p].n * gpu.vocab)));
      free(expected), free(got);
    }
    print_message("%s: the logits differ by %.2g of their size\n", kinds[i].name, worst);
    assert_true(worst < 3 * rounding_of(kinds[i].shape == 4 ? DT_F16 : DT_BF16));
    rig_close(&cpu), rig_close(&gpu);
    random_model_free(m);
  }
}

/* Trees after prefixes before, at and after the first positions where a base changes. */
static void a_row_has_the_bits_of_plain_decoding_in_every_batch(void **state) {
  (void)state;
  const int prefixes[] = {1, 94, 127, 190};
  for (int i = 0; i < KINDS; i++) {
    random_model *m = model_of(&kinds[i]);
    for (int j = 0; j < 4; j++)
      if (!emulated || i == j) check_prefix(&m->desc, NULL, prefixes[j], emulated ? 34 : NODES, emulated, ALL);
    random_model_free(m);
  }
}

static void a_text_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i += 3) {
    random_model *m = model_of(&kinds[i]);
    check_text(&m->desc, NULL);
    random_model_free(m);
  }
}

/* Decodes n tokens from position `first` on, and returns the logits of the last one. */
static float *decode(rig *r, int sequence, int first, int n) {
  float *logits = NULL;
  for (int p = first; p < first + n; p++) {
    row_list l = {0};
    row_add_plain(&l, sequence, p * p % r->vocab, p);
    free(logits);
    logits = rig_run(r, &l, true);
  }
  return logits;
}

/* Copies of a text, cut where its ring still has the rows that the next ones need, continue like the text itself. */
static void a_copy_continues_like_its_text(void **state) {
  (void)state;
  random_model *m = model_of(&kinds[0]);
  const dt_backend_ops *ops = &dt_cuda_ops;
  const int cuts[] = {0, 1, 50, 64, 97, 128, 131};
  enum { MORE = 40 };
  rig r = rig_holding(NULL, &m->desc, 2, 200);
  free(decode(&r, 0, 0, 131));
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    dt_snapshot *copy;
    ok(ops->snapshot(r.cache, 0, cuts[i], &copy, &err));
    ok(ops->restore(r.cache, 1, copy, &err));
    ops->free_snapshot(copy);
    assert_int_equal(ops->keep(r.cache, 1, cuts[i]), cuts[i]);
    float *found = decode(&r, 1, cuts[i], MORE);
    ops->keep(r.cache, 1, 0);
    float *expected = decode(&r, 1, 0, cuts[i] + MORE);
    assert_memory_equal(found, expected, sizeof *found * (size_t)r.vocab);
    free(found), free(expected);
  }
  rig_close(&r);
  random_model_free(m);
}

/* A text longer than the ring: what lies further back than that is gone, and a copy of it is computed again. */
static void what_the_ring_has_lost_is_not_kept(void **state) {
  (void)state;
  random_model *m = model_of(&kinds[1]);
  const dt_backend_ops *ops = &dt_cuda_ops;
  rig r = rig_holding(NULL, &m->desc, 1, 700);
  row_list l = {0};
  for (int p = 0; p < 650; p++) {
    row_add_plain(&l, 0, p % r.vocab, p);
    if (l.n == 96 || p == 649) rig_run(&r, &l, false), l.n = 0;
  }
  assert_int_equal(ops->keep(r.cache, 0, 600), 600); /* from the base at 512 */
  assert_int_equal(ops->keep(r.cache, 0, 645), 645);
  assert_int_equal(ops->keep(r.cache, 0, 100), 0);
  assert_int_equal(ops->keep(r.cache, 0, 0), 0);
  rig_close(&r);
  random_model_free(m);
}

/* A pass has 64 sequences at most: the 65th runs in the next one, with the same bits. */
static void more_sequences_than_a_pass_has_take_turns(void **state) {
  (void)state;
  enum { MANY = 65 };
  random_model *m = model_of(&kinds[1]);
  rig r = rig_holding(NULL, &m->desc, MANY, 3);
  row_list all = {0};
  for (int s = 0; s < MANY; s++) row_add_plain(&all, s, s % r.vocab, 0);
  float *found = rig_run(&r, &all, true);
  for (int s = MANY - 3; s < MANY; s++) {
    row_list one = {0};
    r.ops->keep(r.cache, s, 0);
    row_add_plain(&one, s, s % r.vocab, 0);
    float *expected = rig_run(&r, &one, true);
    assert_memory_equal(found + (size_t)(s * r.vocab), expected, sizeof *found * (size_t)r.vocab);
    free(expected);
  }
  free(found);
  rig_close(&r);
  random_model_free(m);
}

/* kinds[2] has the longest keys. */
static void longer_keys_are_refused(void **state) {
  (void)state;
  const kind longer = {"keys of 272", 4, 272, 16, false};
  random_model *m = model_of(&longer);
  dt_backend *b = NULL;
  dt_weights *w = NULL;
  ok(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
  fails(dt_cuda_ops.upload(b, &m->desc, NULL, &w, &err), DT_EINPUT,
        "supports delta layers with keys of up to 256 numbers, but this model's have 272");
  dt_cuda_ops.close(b);
  random_model_free(m);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(logits_are_those_of_the_cpu),
      cmocka_unit_test(a_row_has_the_bits_of_plain_decoding_in_every_batch),
      cmocka_unit_test(a_text_has_the_bits_of_plain_decoding),
      cmocka_unit_test(a_copy_continues_like_its_text),
      cmocka_unit_test(what_the_ring_has_lost_is_not_kept),
      cmocka_unit_test(more_sequences_than_a_pass_has_take_turns),
      cmocka_unit_test(longer_keys_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
