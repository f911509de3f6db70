/* Matrices whose weights stay codes of 3 to 8 bits give the same bits as the same matrices widened to F16 on load
 * (DTRUN_WIDEN), for every number of rows and in the chunks of a prompt. test_cuda_forward compares the numbers
 * themselves with the CPU. */
#include "cpu.h"
#include "cuda_device.h"
#include "tree_case.h"

enum { CHUNK = 512, WIDEST = 257 };

/* The shape without the finer type that files use for some matrices: all matrices have one type. */
static model_shape shape_of(dt_dtype dtype) {
  bool large = dt_type_of(dtype)->numbers > 32;
  model_shape shape = {.name = dt_type_of(dtype)->name,
                       .vocab = 75,
                       .hidden = large ? 256 : 96,
                       .layers = 1,
                       .heads = large ? 4 : 3,
                       .kv_heads = 1,
                       .head_dim = large ? 64 : 32,
                       .inter = large ? 512 : 160,
                       .rotary_dims = 32,
                       .dtype = dtype,
                       .norm = DT_NORM_RMS,
                       .act = DT_ACT_SILU,
                       .gated = true};
  return shape;
}

static const dt_dtype packed_types[] = {DT_Q4_0, DT_Q4_1, DT_Q4_K,   DT_Q5_0,   DT_Q5_1, DT_Q5_K, DT_Q6_K,
                                        DT_Q8_0, DT_Q2_K, DT_IQ4_XS, DT_IQ4_NL, DT_Q3_K, DT_MXFP4};
enum { TYPES = sizeof packed_types / sizeof *packed_types };

/* The two ways of storing the weights: packed and widened. */
typedef struct {
  rig packed, widened;
} both_ways;

static both_ways open_both(const dt_model_desc *desc, int slots) {
  both_ways b;
  b.packed = rig_open(&dt_cuda_ops, NULL, 1, desc, 1, slots);
  setenv("DTRUN_WIDEN", "1", 1);
  b.widened = rig_open(&dt_cuda_ops, NULL, 1, desc, 1, slots);
  unsetenv("DTRUN_WIDEN");
  return b;
}

static void close_both(both_ways *b) { rig_close(&b->packed), rig_close(&b->widened); }

static void check_slots(both_ways *b, const char *what, int first, int end) {
  for (int p = first; p < end; p++) {
    size_t len;
    void *x = rig_slot(&b->packed, 0, p, &len), *y = rig_slot(&b->widened, 0, p, &len);
    if (memcmp(x, y, len)) fail_msg("%s: keys or values of slot %d differ from the widened model's", what, p);
    free(x), free(y);
  }
}

/* Runs a pass over the first n tokens of a text. */
static void check_rows(both_ways *b, const char *what, int n) {
  row_list l = {0};
  for (int p = 0; p < n; p++) row_add_plain(&l, 0, (p * 29 + n) % b->packed.vocab, p);
  float *packed = rig_run(&b->packed, &l, true), *widened = rig_run(&b->widened, &l, true);
  for (int i = 0; i < n * b->packed.vocab; i++) assert_true(isfinite(widened[i]));
  if (memcmp(packed, widened, sizeof *packed * (size_t)(n * b->packed.vocab)))
    fail_msg("%s, %d rows: logits differ from the widened model's", what, n);
  free(packed), free(widened);
  check_slots(b, what, 0, n);
}

/* Runs a chunk of a prompt, for which codes are unpacked for the library. */
static void check_chunk(both_ways *b, const char *what) {
  static int32_t token[CHUNK];
  for (int p = 0; p < CHUNK; p++) token[p] = p * 13 % 71;
  dt_rows rows = text_rows(token, 0, 0, CHUNK);
  rows.prompt = true;
  ok(b->packed.ops->forward(b->packed.weights, b->packed.cache, &rows, NULL, &err));
  ok(b->widened.ops->forward(b->widened.weights, b->widened.cache, &rows, NULL, &err));
  check_slots(b, what, 0, CHUNK);
}

static void check_counts(const model_shape *shape, uint64_t seed, bool all) {
  const int few[] = {1, 2, 7, 9, 16, 17, 33, 64, 65, 144, WIDEST};
  random_model *m = random_model_new(shape, seed);
  both_ways b = open_both(&m->desc, WIDEST);
  if (all)
    for (int n = 1; n <= WIDEST; n++) check_rows(&b, shape->name, n);
  else
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) check_rows(&b, shape->name, few[i]);
  close_both(&b);
  random_model_free(m);
}

static void packed_rows_have_the_bits_of_widened_ones(void **state) {
  (void)state;
  for (int i = 0; i < TYPES; i++) {
    model_shape shape = shape_of(packed_types[i]);
    check_counts(&shape, (uint64_t)i + 1, !emulated);
  }
}

/* In a Q4_K model v has 6 bits. If it begins at a tile of 16 outputs it is a matrix of its own; otherwise q, k and v
 * are widened together. The test has norms of heads, and a k with another type than q, which does not occur in
 * files. */
static void a_matrix_of_unlike_parts_has_the_bits_of_a_widened_one(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    model_shape shape = shape_of(DT_Q4_K);
    shape.normed_heads = i == 1, shape.parallel = i == 3, shape.biased = i == 3;
    if (i == 2) shape.heads = 64, shape.head_dim = 4, shape.rotary_dims = 4; /* v begins with pair 130 */
    random_model *m = random_model_new(&shape, 17);
    m->layer[0].v = random_in(m, DT_Q6_K, m->layer[0].v.rows, m->layer[0].v.cols, 0.2f, 0.0f);
    if (i == 1) m->layer[0].k = random_in(m, DT_Q6_K, m->layer[0].k.rows, m->layer[0].k.cols, 0.2f, 0.0f);
    both_ways b = open_both(&m->desc, CHUNK);
    check_rows(&b, shape.name, 3), check_rows(&b, shape.name, 40);
    check_chunk(&b, shape.name);
    assert_string_equal(b.packed.ops->weight_dtype(b.packed.weights), "mixed");
    if (i == 0) { /* nothing is widened: q, k, o, gate and up have 5 bits, v, down and unembed 7 */
      double saved = 256.0 * (256 + 64 + 256 + 2 * 512) * (16 - 5) / 8 + 256.0 * (64 + 512 + 80) * (16 - 7) / 8;
      double packed = (double)b.packed.ops->memory(b.packed.backend).weights,
             widened = (double)b.widened.ops->memory(b.widened.backend).weights;
      assert_true(fabs(widened - packed - saved) < 4096);
    }
    close_both(&b);
    random_model_free(m);
  }
}

/* The shapes of quantized random models: matrices of several types, and products with two inputs. */
/* Parts with codes of equal lengths, but different tables, cannot share a matrix. */
static void unlike_tables_have_the_bits_of_widened_ones(void **state) {
  (void)state;
  model_shape shape = shape_of(DT_IQ4_NL);
  random_model *m = random_model_new(&shape, 19);
  m->layer[0].k = random_in(m, DT_MXFP4, m->layer[0].k.rows, m->layer[0].k.cols, 0.2f, 0.0f);
  m->layer[0].up = random_in(m, DT_MXFP4, m->layer[0].up.rows, m->layer[0].up.cols, 0.2f, 0.0f);
  both_ways b = open_both(&m->desc, CHUNK);
  check_rows(&b, shape.name, 3), check_rows(&b, shape.name, 40);
  check_chunk(&b, shape.name);
  close_both(&b);
  random_model_free(m);
}

static void mixtures_have_the_bits_of_widened_ones(void **state) {
  (void)state;
  for (int s = PLAIN_SHAPES; s < RANDOM_SHAPES; s++) {
    model_shape shape = random_shapes[s];
    if (emulated) shape.layers = 1;
    random_model *m = random_model_new(&shape, 3);
    both_ways b = open_both(&m->desc, 40);
    check_rows(&b, shape.name, 3), check_rows(&b, shape.name, 40);
    close_both(&b);
    random_model_free(m);
  }
}

static void check_wide(model_shape shape, int rows, int more_rows) {
  random_model *m = random_model_new(&shape, 13);
  both_ways b = open_both(&m->desc, more_rows);
  check_rows(&b, shape.name, rows), check_rows(&b, shape.name, more_rows);
  close_both(&b);
  random_model_free(m);
}

/* In products of few rows, a ring has up to 16 steps of 32 k for each of four slices. With many outputs, a block takes
 * two tiles of 16. */
static void rings_that_are_filled_again_have_the_bits_of_widened_ones(void **state) {
  (void)state;
  const dt_dtype types[] = {DT_Q4_0, DT_Q5_0, DT_Q8_0, DT_Q6_K, DT_Q3_K, DT_IQ4_NL};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    model_shape shape = shape_of(types[i]);
    shape.hidden = 2304, shape.inter = dt_type_of(types[i])->numbers;
    check_wide(shape, 3, 12);
  }
  model_shape shape = shape_of(DT_Q4_0);
  shape.hidden = 1088, shape.inter = 4256, shape.vocab = 8500;
  check_wide(shape, 3, 12);
}

/* Has enough outputs that a block for up to 64 rows takes 9 tiles of 16. */
static void blocks_of_many_tiles_have_the_bits_of_widened_ones(void **state) {
  (void)state;
  model_shape shape = shape_of(DT_Q4_0);
  shape.gated = false, shape.inter = 6528, shape.hidden = 32, shape.heads = 1;
  check_wide(shape, 17, 64);
}

static void a_tree_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  for (int i = 0; i < TYPES; i += emulated ? 2 : 1) {
    model_shape shape = shape_of(packed_types[i]);
    random_model *m = random_model_new(&shape, 21);
    rig plain = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, 3 + SPREAD),
        r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 3 + SPREAD);
    tree_case t;
    decode_plainly(&plain, &t, 3, 40, 5);
    ok(r.ops->restore(r.cache, 0, t.prefix_rows, &err));
    check_batch(&r, &t, 5, 1), check_batch(&r, &t, 12, 2), check_batch(&r, &t, 40, 3);
    tree_case_free(&plain, &t);
    rig_close(&plain), rig_close(&r);
    random_model_free(m);
  }
}

static void a_prompts_chunk_has_the_bits_of_a_widened_one(void **state) {
  (void)state;
  for (int i = 0; i < TYPES; i++) {
    model_shape shape = shape_of(packed_types[i]);
    random_model *m = random_model_new(&shape, 31);
    both_ways b = open_both(&m->desc, CHUNK);
    check_chunk(&b, shape.name);
    close_both(&b);
    random_model_free(m);
  }
}

/* Logits are close to the CPU's, so the codes are those of the file. */
static void packed_logits_are_near_those_of_the_cpu(void **state) {
  (void)state;
  for (int i = 0; i < TYPES; i++) {
    model_shape shape = shape_of(packed_types[i]);
    random_model *m = random_model_new(&shape, 7);
    rig cpu = rig_open_rounded(&dt_cpu_ops, (dt_backend_options){.threads = 2}, &m->desc,
                               (dt_holding){.activations = "16"}, 1, 8),
        gpu = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 8);
    row_list l = {0};
    for (int p = 0; p < 8; p++) row_add_plain(&l, 0, p * 7 % shape.vocab, p);
    float *expected = rig_run(&cpu, &l, true), *got = rig_run(&gpu, &l, true);
    double d = logits_difference(got, expected, (size_t)(l.n * shape.vocab));
    print_message("%s: the logits differ from the CPU's by %.2g of their size\n", shape.name, d);
    if (d > 0.012) fail_msg("%s: the logits differ by %g of their size", shape.name, d);
    free(expected), free(got);
    rig_close(&cpu), rig_close(&gpu);
    random_model_free(m);
  }
}

/* Matrices take about the bytes of their type. */
static void packed_weights_take_less_memory(void **state) {
  (void)state;
  static const struct {
    dt_dtype type;
    double bits;
    const char *name;
  } types[] = {{DT_Q4_0, 5, "q4_0"}, {DT_Q5_0, 6, "q5_0"}, {DT_Q6_K, 7, "q6_k"},      {DT_Q8_0, 8.5, "q8_0"},
               {DT_Q2_K, 5, "q2_k"}, {DT_Q3_K, 5, "q3_k"}, {DT_IQ4_NL, 4.5, "iq4_nl"}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    model_shape shape = shape_of(types[i].type);
    shape.hidden = 512, shape.inter = 1536, shape.vocab = 64;
    random_model *m = random_model_new(&shape, 1);
    both_ways b = open_both(&m->desc, 8);
    size_t packed = b.packed.ops->memory(b.packed.backend).weights,
           widened = b.widened.ops->memory(b.widened.backend).weights;
    int q = shape.heads * shape.head_dim, kv = shape.kv_heads * shape.head_dim;
    double numbers = 512.0 * (q + 2 * kv + q + 3 * 1536 + 64); /* each is a multiple of 16 outputs */
    assert_true(fabs((double)(widened - packed) - numbers * (16 - types[i].bits) / 8) < 4096);
    assert_string_equal(b.packed.ops->weight_dtype(b.packed.weights), types[i].name);
    assert_string_equal(b.widened.ops->weight_dtype(b.widened.weights), "f16");
    close_both(&b);
    random_model_free(m);
  }
}

int main(int argc, char **argv) { /* runs only the tests whose names match a pattern, if one is given */
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packed_rows_have_the_bits_of_widened_ones),
      cmocka_unit_test(a_matrix_of_unlike_parts_has_the_bits_of_a_widened_one),
      cmocka_unit_test(unlike_tables_have_the_bits_of_widened_ones),
      cmocka_unit_test(mixtures_have_the_bits_of_widened_ones),
      cmocka_unit_test(rings_that_are_filled_again_have_the_bits_of_widened_ones),
      cmocka_unit_test(blocks_of_many_tiles_have_the_bits_of_widened_ones),
      cmocka_unit_test(a_tree_has_the_bits_of_plain_decoding),
      cmocka_unit_test(a_prompts_chunk_has_the_bits_of_a_widened_one),
      cmocka_unit_test(packed_logits_are_near_those_of_the_cpu),
      cmocka_unit_test(packed_weights_take_less_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
