/* If contexts are long, the attention of a pass runs in batches of its rows. Tests how many rows a batch has, how much
 * memory they take, and that all rows have the bits of plain decoding. DTRUN_ATTENTION_ROWS makes batches small, so
 * that short contexts have several. */
#include "cuda_device.h"
#include "row_batches.h"
#include "tree_case.h"

enum { ROWS = 288, PART = 128 }; /* maximum number of rows of a pass; keys of a part */

#if defined(__SANITIZE_ADDRESS__)
static const int batches[] = {48}; /* rows of a batch */
static const bool few = true;
#else
static const int batches[] = {16, 48, 112};
static const bool few = false;
#endif
enum { BATCHES = sizeof batches / sizeof *batches };

static rig rig_in_batches(int rows, const dt_model_desc *desc, int sequences, int slots) {
  char text[16];
  snprintf(text, sizeof text, "%d", rows);
  setenv("DTRUN_ATTENTION_ROWS", text, 1);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, desc, sequences, slots);
  unsetenv("DTRUN_ATTENTION_ROWS");
  return r;
}

static void a_batch_has_the_rows_whose_parts_fit(void **state) {
  (void)state;
  const size_t mib = (size_t)1 << 20, row = 8 * mib;
  assert_int_equal(attention_row_bytes(32, 512, 126), row);
  assert_int_equal(rows_of_batch(ROWS, row, 0), 64); /* 512 MiB exactly */
  assert_int_equal(rows_of_batch(ROWS, row + 4, 0), 48);
  assert_int_equal(rows_of_batch(ROWS, row - 4, 0), 64);
  assert_int_equal(rows_of_batch(ROWS, row, 8 * 80 * row), 80); /* an eighth of the cache */
  assert_int_equal(rows_of_batch(ROWS, row, 8 * 80 * row - 1), 64);
  assert_int_equal(rows_of_batch(ROWS, row, 8 * 80 * row + 1), 80);
  assert_int_equal(rows_of_batch(ROWS, 32 * mib, 0), 16);
  assert_int_equal(rows_of_batch(ROWS, 33 * mib, 0), 16); /* never fewer than 16 */
  size_t all = 512 * mib / ROWS;
  assert_int_equal(rows_of_batch(ROWS, all, 0), ROWS);
  assert_int_equal(rows_of_batch(ROWS, all + 1, 0), ROWS - 16);
  assert_int_equal(rows_of_batch(ROWS, 0, 0), ROWS);
  assert_int_equal(rows_of_batch(48, row, 0), 48); /* unless fewer are asked for */
  assert_int_equal(rows_of_batch(47, row, 0), 32);
  assert_int_equal(rows_of_batch(1, row, 0), 16);
}

/* How many heads of a group a block takes: the largest divisor of the group's size whose multiples fill at least 14 of
 * a block's 16 rows. */
static void a_block_has_the_heads_that_fill_it(void **state) {
  (void)state;
  static const int heads[][2] = {{1, 1}, {2, 2},  {3, 3},  {4, 4},  {5, 5},  {6, 3},  {7, 7},  {8, 8},
                                 {9, 3}, {10, 5}, {11, 1}, {12, 4}, {13, 1}, {14, 7}, {16, 8}, {32, 8}};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) assert_int_equal(heads_together(heads[i][0]), heads[i][1]);
}

/* Models of 32 heads, 32 layers and 16-bit caches. At the contexts that benchmarks measure, a pass has one batch. */
static void long_contexts_take_bounded_memory(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int dim, kv_heads, context, rows;
  } models[] = {{"Pythia-2.8B", 80, 32, 2048, ROWS},
                {"Llama-3.1-8B", 128, 8, 8192, ROWS},
                {"Llama-3.1-8B", 128, 8, 32768, 112},
                {"Llama-3.1-8B", 128, 8, 131072, 112}};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    int slots = models[i].context + 258, parts = (slots + PART - 1) / PART;
    size_t row = attention_row_bytes(32, parts, models[i].dim);
    size_t cache = (size_t)slots * 32 * 2 * (size_t)models[i].kv_heads * (size_t)models[i].dim * 2;
    int rows = rows_of_batch(ROWS, row, cache);
    print_message("%s, a context of %d: %d rows a batch, %zu MiB, of all rows at once %zu\n", models[i].name,
                  models[i].context, rows, (size_t)rows * row >> 20, ROWS * row >> 20);
    assert_int_equal(rows, models[i].rows);
    assert_true((size_t)rows * row <= BATCH_BYTES || (size_t)rows * row <= cache / 8);
  }
}

/* The reported memory is exact, whatever the context, the number of sequences and the batch. */
static void the_memory_that_is_told_is_taken(void **state) {
  (void)state;
  static const int cases[][3] = {{ROWS, 1, 40}, {ROWS, 3, 700}, {16, 1, 40}, {16, 3, 700}, {48, 2, 1000}};
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 20);
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int sequences = cases[i][1], slots = cases[i][2];
    rig r = rig_in_batches(cases[i][0], &m->desc, 1, 8);
    dt_memory before = r.ops->memory(r.backend);
    dt_cache *c = NULL;
    ok(r.ops->create_cache(r.weights, sequences, slots, &c, &err));
    dt_memory after = r.ops->memory(r.backend);
    size_t scratch = r.ops->scratch_bytes(r.weights, sequences, slots);
    assert_int_equal(after.scratch - before.scratch, scratch);
    assert_in_range(after.caches - before.caches - (size_t)sequences * r.ops->cache_bytes(r.weights, slots), 0, 255);
    if (slots == 700 && cases[i][0] == ROWS) least = scratch;
    if (slots == 700 && cases[i][0] < ROWS) assert_true(scratch < least);
    r.ops->free_cache(c);
    rig_close(&r);
  }
  random_model_free(m);
}

static void a_tree_in_batches_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  enum { PREFIX = 126 };
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 21);
  rig plain = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, PREFIX + SPREAD);
  tree_case t;
  decode_plainly(&plain, &t, PREFIX, few ? 98 : NODES, 22);
  for (int i = 0; i < BATCHES; i++) {
    rig r = rig_in_batches(batches[i], &m->desc, 1, PREFIX + SPREAD);
    ok(r.ops->restore(r.cache, 0, t.prefix_rows, &err));
    for (int n = batches[i] - 1; n <= batches[i] + 1; n++)
      if (n <= t.nodes) check_batch(&r, &t, n, (uint64_t)n);
    check_batch(&r, &t, t.nodes, 1);
    rig_close(&r);
  }
  tree_case_free(&plain, &t);
  rig_close(&plain);
  random_model_free(m);
}

enum { SEQUENCES = 3, MIXED = 400 };

/* Runs one pass with two trees and a text between them, so that batches end within each. Then runs a part of it, and
 * all of it again, as passes with different graphs. Returns the logits of all three. */
static float *mixed_logits(rig *r, int *n) {
  static const int before[SEQUENCES] = {130, 100, 250};
  row_list all = {0}, some = {0};
  for (int s = 0; s < SEQUENCES; s++) {
    row_list l = {0};
    for (int p = 0; p < before[s]; p++) row_add_plain(&l, s, (p * 13 + s) % 90, p);
    rig_run(r, &l, false);
  }
  row_add_tree(&all, 0, before[0], 71, 1);
  for (int p = 0; p < 50; p++) row_add_plain(&all, 1, p * 17 % 90, before[1] + p);
  row_add_tree(&all, 2, before[2], 40, 2);
  row_add_tree(&some, 2, before[2], 40, 2);
  const row_list *passes[] = {&all, &some, &all};
  *n = 2 * all.n + some.n;
  float *logits = malloc(sizeof *logits * (size_t)*n * (size_t)r->vocab), *to = logits;
  for (int i = 0; i < 3; i++) {
    float *got = rig_run(r, passes[i], true);
    size_t count = (size_t)passes[i]->n * (size_t)r->vocab;
    memcpy(to, got, count * sizeof *to);
    to += count;
    free(got);
  }
  return logits;
}

static void expect_same_slots(rig *a, rig *b, int sequence, int n) {
  for (int p = 0; p < n; p++) {
    size_t len, same;
    void *x = rig_slot(a, sequence, p, &len), *y = rig_slot(b, sequence, p, &same);
    assert_memory_equal(x, y, len);
    assert_int_equal(len, same);
    free(x), free(y);
  }
}

static void sequences_that_share_a_batch_keep_their_bits(void **state) {
  (void)state;
  static const int lengths[SEQUENCES] = {201, 150, 290};
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 23);
  rig once = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, SEQUENCES, MIXED);
  int n, count;
  float *expected = mixed_logits(&once, &n);
  for (int i = 0; i < BATCHES; i++) {
    rig r = rig_in_batches(batches[i], &m->desc, SEQUENCES, MIXED);
    float *got = mixed_logits(&r, &count);
    assert_int_equal(count, n);
    assert_memory_equal(got, expected, sizeof *got * (size_t)n * (size_t)r.vocab);
    for (int s = 0; s < SEQUENCES; s++) expect_same_slots(&once, &r, s, lengths[s]);
    free(got);
    rig_close(&r);
  }
  free(expected);
  rig_close(&once);
  random_model_free(m);
}

/* Also for chunks whose rows belong to two groups. */
static void a_prompt_in_batches_leaves_the_same_cache(void **state) {
  (void)state;
  enum { LENGTH = 512 + 40 };
  int32_t token[LENGTH];
  for (int p = 0; p < LENGTH; p++) token[p] = p * 13 % 89;
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 24);
  rig once = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, LENGTH);
  dt_rows rows = text_rows(token, 0, 0, LENGTH);
  rows.prompt = true;
  ok(once.ops->forward(once.weights, once.cache, &rows, NULL, &err));
  for (int i = 0; i < BATCHES; i++) {
    rig r = rig_in_batches(batches[i], &m->desc, 1, LENGTH);
    ok(r.ops->forward(r.weights, r.cache, &rows, NULL, &err));
    expect_same_slots(&once, &r, 0, LENGTH);
    rig_close(&r);
  }
  rig_close(&once);
  random_model_free(m);
}

/* DTRUN_ROWS lowers the number of rows of a pass. More rows are split into several passes. */
static void a_pass_in_groups_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  enum { PREFIX = 40 };
  static const int counts[] = {63, 64, 65, 97};
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 25);
  rig plain = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, PREFIX + SPREAD);
  tree_case t;
  decode_plainly(&plain, &t, PREFIX, few ? 98 : NODES, 26);
  setenv("DTRUN_ROWS", "64", 1);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, PREFIX + SPREAD);
  unsetenv("DTRUN_ROWS");
  ok(r.ops->restore(r.cache, 0, t.prefix_rows, &err));
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check_batch(&r, &t, counts[i], i);
  check_batch(&r, &t, t.nodes, 1);
  rig_close(&r);
  tree_case_free(&plain, &t);
  rig_close(&plain);
  random_model_free(m);
}

#if defined(CUDA_EMU)
/* The number of kernels in a pass over n rows: the device fails if it may run only one less. */
static int kernels_of_pass(const random_model *m, int n) {
  row_list l = {0};
  int kernels = 0;
  for (int p = 0; p < n; p++) row_add_plain(&l, 0, p % 90, p);
  for (bool fails = true; fails; kernels += fails) {
    emu_faults((faults){1, (size_t)1 << 40, -1, 0});
    rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, n);
    dt_rows rows = rows_of(&l);
    dt_error why;
    emu_faults((faults){1, (size_t)1 << 40, kernels, 0});
    fails = r.ops->forward(r.weights, r.cache, &rows, NULL, &why) != DT_OK;
    rig_close(&r);
  }
  emu_faults((faults){1, (size_t)1 << 40, -1, 0});
  return kernels;
}

static void a_pass_in_groups_is_several_passes(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 27);
  int once = kernels_of_pass(m, 64);
  assert_int_equal(kernels_of_pass(m, 128), once);
  setenv("DTRUN_ROWS", "64", 1);
  int alone = kernels_of_pass(m, 64), groups = kernels_of_pass(m, 128);
  unsetenv("DTRUN_ROWS");
  assert_int_equal(alone, once);
  assert_int_equal(groups, 2 * once);
  random_model_free(m);
}
#endif

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_batch_has_the_rows_whose_parts_fit),
    cmocka_unit_test(a_block_has_the_heads_that_fill_it),
    cmocka_unit_test(long_contexts_take_bounded_memory),
    cmocka_unit_test(the_memory_that_is_told_is_taken),
    cmocka_unit_test(a_tree_in_batches_has_the_bits_of_plain_decoding),
    cmocka_unit_test(sequences_that_share_a_batch_keep_their_bits),
    cmocka_unit_test(a_prompt_in_batches_leaves_the_same_cache),
    cmocka_unit_test(a_pass_in_groups_has_the_bits_of_plain_decoding),
#if defined(CUDA_EMU)
    cmocka_unit_test(a_pass_in_groups_is_several_passes),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
