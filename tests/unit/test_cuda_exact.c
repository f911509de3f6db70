/* Promise 1 on the CUDA backend: the bits of a row do not depend on the rows next to it, on its index among them, or on
 * the slots of its keys. The reference is plain decoding on the same device. */
#include "cuda_exact.h"

/* The parts of an attention begin at multiples of 128. The emulation can afford fewer cases than a GPU. */
static void a_row_has_the_bits_of_plain_decoding_in_every_batch(void **state) {
  (void)state;
  const int prefixes[] = {1, 126, 128, 250, 500};
  for (int s = 0; s < PLAIN_SHAPES; s++) {
    model_shape shape = cuda_shape(s);
    random_model *m = random_model_new(&shape, 7);
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
      if (!emulated)
        check_prefix(&m->desc, NULL, prefixes[p], NODES, false, ALL);
      else if (p == (size_t)s || (p == 2 && s == 0))
        check_prefix(&m->desc, NULL, prefixes[p], s == 3 ? NODES : MOST, s < 3 || MOST < 64, ALL);
    random_model_free(m);
  }
}

/* With many heads, rows of a tree share the work for the part in which their common prefix ends, and still get the same
 * bits; also if a window hides some of that part. */
static void rows_that_share_work_have_the_bits_of_plain_decoding(void **state) {
  (void)state;
  const int prefixes[] = {126, 131, 128, 245};
  model_shape shape = cuda_shape(1);
  shape.layers = 1, shape.heads = 16, shape.kv_heads = 4, shape.head_dim = 40;
  random_model *m = random_model_new(&shape, 12);
  for (size_t p = 0; p < (emulated ? 2 : 4); p++)
    check_prefix(&m->desc, NULL, prefixes[p], MOST, true, p == 1 ? (dt_window){5, 2} : ALL);
  random_model_free(m);
}

/* The values of heads of 512 are multiplied in two parts. The rows of 34 nodes and more share work. */
static void rows_of_the_widest_heads_have_the_bits_of_plain_decoding(void **state) {
  (void)state;
  model_shape shape = cuda_shape(1);
  shape.layers = 1, shape.heads = 16, shape.kv_heads = 4, shape.head_dim = 512;
  random_model *m = random_model_new(&shape, 15);
  for (int i = 0; i < 2; i++) check_prefix(&m->desc, i ? "q8" : NULL, 131, emulated ? 36 : NODES, true, ALL);
  random_model_free(m);
}

/* Has enough outputs that a block for up to 64 rows takes 9 tiles of 16. Other models here are so small that it takes
 * 3. */
static void blocks_of_many_tiles_have_the_bits_of_plain_decoding(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  shape.gated = false, shape.inter = 6500;
  random_model *m = random_model_new(&shape, 13);
  check_prefix(&m->desc, NULL, 1, 17, true, ALL);
  random_model_free(m);
}

static void a_prompt_pass_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 8);
  check_text(&m->desc, NULL);
  random_model_free(m);
}

/* In a pass of many rows a value may be multiplied by a weight of zero where a single row has no such product. The
 * device must therefore add a zero product without loss, however large or small its neighbours are. */
static void values_of_all_sizes_have_the_bits_of_plain_decoding(void **state) {
  (void)state;
  for (int s = 4; s < 6; s++) { /* F16 and BF16, without biases, so that the sizes of numbers stay */
    model_shape shape = cuda_shape(s);
    shape.layers = 1, shape.biased_qkv = false;
    random_model *m = uneven_model(&shape);
    check_text(&m->desc, NULL);
    check_prefix(&m->desc, NULL, 126, emulated ? 34 : MOST, emulated, ALL);
    if (!emulated) check_prefix(&m->desc, NULL, 250, MOST, false, ALL);
    random_model_free(m);
  }
}

/* For the same rows, argmax and candidates are those of the logits. */
static void results_are_those_of_the_logits(void **state) {
  (void)state;
  enum { N = 20, K = 32 };
  model_shape shape = cuda_shape(0);
  random_model *m = random_model_new(&shape, 9);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, N);
  row_list l = {0};
  int32_t wanted[N], best[N], id[N][K];
  float logp[N][K], confidence[N], entropy[N];
  int count = 0, shared = shape.vocab - 5;
  for (int p = 0; p < N; p++) row_add_plain(&l, 0, p * 13 % shape.vocab, p);
  for (int p = 0; p < N; p += 1 + p % 3) wanted[count++] = p;
  dt_rows rows = rows_of(&l);
  float *logits = rig_run(&r, &l, true);
  dt_out out = {.want = DT_WANT_ARGMAX, .n = count, .row = wanted, .argmax = best, .k = K, .vocab = shared};
  out.top_id = &id[0][0], out.top_logp = &logp[0][0], out.confidence = confidence, out.entropy = entropy;
  ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
  out.want = DT_WANT_TOPK;
  ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
  for (int j = 0; j < count; j++) {
    const float *row = logits + (size_t)wanted[j] * (size_t)shape.vocab;
    int expected = 0;
    double sum = 0, plogp = 0;
    for (int i = 1; i < shape.vocab; i++)
      if (row[i] > row[expected]) expected = i;
    assert_int_equal(best[j], expected);
    for (int i = 0; i < shared; i++) sum += exp((double)row[i]);
    for (int i = 0; i < shared; i++) plogp += exp(row[i]) / sum * (row[i] - log(sum));
    assert_true(fabs(entropy[j] + plogp) < 1e-4);
    assert_true(fabs(confidence[j] - exp(row[id[j][0]]) / sum) < 1e-5);
    for (int i = 0; i < K; i++) {
      assert_true(id[j][i] >= 0 && id[j][i] < shared);
      assert_true(fabs(logp[j][i] - (row[id[j][i]] - log(sum))) < 1e-4);
      int larger = 0; /* exactly i ids come before it */
      for (int v = 0; v < shared; v++) larger += row[v] > row[id[j][i]] || (row[v] == row[id[j][i]] && v < id[j][i]);
      assert_int_equal(larger, i);
    }
  }
  free(logits);
  rig_close(&r);
  random_model_free(m);
}

static void moved_rows_serve_as_if_computed_there(void **state) {
  (void)state;
  check_moves(NULL);
}

/* If the embedding of a token is NaN, only the rows of this token are reported, and not the others of the pass. */
static void a_nan_does_not_spread_to_other_rows(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 11);
  ((uint16_t *)m->desc.embed.source->bytes)[5 * shape.hidden + 3] = 0x7e00; /* token 5 */
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 3, 8);
  row_list l = {0};
  for (int s = 0; s < 3; s++) row_add_plain(&l, s, 4 + s, 0);
  dt_rows rows = rows_of(&l);
  int32_t best[3], all[3] = {0, 1, 2}, id[3][2];
  float logp[3][2], confidence[3], entropy[3];
  dt_out out = {.want = DT_WANT_ARGMAX, .n = 3, .row = all, .argmax = best, .k = 2, .vocab = shape.vocab};
  out.top_id = &id[0][0], out.top_logp = &logp[0][0], out.confidence = confidence, out.entropy = entropy;
  ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
  assert_true(best[0] >= 0 && best[1] == -1 && best[2] >= 0);
  out.want = DT_WANT_TOPK;
  ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
  assert_true(id[0][0] == best[0] && id[1][0] == -1 && id[2][0] == best[2]);
  assert_true(confidence[1] == 0.0f && confidence[0] > 0.0f);
  rig_close(&r);
  random_model_free(m);
}

int main(int argc, char **argv) { /* runs only the tests whose names match a pattern, if one is given */
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_has_the_bits_of_plain_decoding_in_every_batch),
      cmocka_unit_test(rows_that_share_work_have_the_bits_of_plain_decoding),
      cmocka_unit_test(rows_of_the_widest_heads_have_the_bits_of_plain_decoding),
      cmocka_unit_test(blocks_of_many_tiles_have_the_bits_of_plain_decoding),
      cmocka_unit_test(a_prompt_pass_has_the_bits_of_plain_decoding),
      cmocka_unit_test(values_of_all_sizes_have_the_bits_of_plain_decoding),
      cmocka_unit_test(results_are_those_of_the_logits),
      cmocka_unit_test(moved_rows_serve_as_if_computed_there),
      cmocka_unit_test(a_nan_does_not_spread_to_other_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
