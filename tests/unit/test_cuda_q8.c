/* Caches in q8 on the CUDA backend: rows are rounded as the CPU rounds the same numbers, byte for byte, and have the
 * bits of plain decoding in every batch. The other tests of the backend use caches in 16 bits; test_cuda_forward and
 * _prompt compare both with the CPU. */
#include "cuda_exact.h"
#include "kernels.h"

static const char Q8[] = "q8";

static const cpu_cache_type *cpu_q8(void) {
  const cpu_kernels *k = cpu_variant(0);
  for (int i = 0; i < CPU_CACHES; i++)
    if (strcmp(k->cache[i]->name, Q8) == 0) return k->cache[i];
  fail_msg("the CPU has no q8");
  return NULL;
}

/* The size in bytes of a row of `dim` numbers: codes, and a scale of 2 bytes for each 32 of them, padded to a multiple
 * of 8. */
static size_t bytes_of(int dim) { return ((size_t)dim + 2 * (((size_t)dim + 31) / 32) + 7) / 8 * 8; }

/* Compares a row of 16-bit numbers with the row of q8 that stores the same. */
static void check_row(const char *wide, dt_dtype dtype, const unsigned char *held, int dim) {
  float x[512];
  char expected[512 + 32];
  dt_type_of(dtype)->decode(wide, (size_t)dim, x);
  cpu_q8()->write(x, dim, expected);
  for (int d = 0; d < dim; d++)
    if (held[d] - 128 != (int8_t)expected[d])
      fail_msg("number %d of %d, %g: the code is %d, on the CPU %d", d, dim, x[d], held[d] - 128, (int8_t)expected[d]);
  assert_memory_equal(held + dim, expected + dim, cpu_q8()->row_bytes(dim) - (size_t)dim);
}

/* Runs a text and a tree after it with both types of caches. There is only one layer, so both store the same keys and
 * values. */
static void check_rows(random_model *m, int dim) {
  enum { TEXT = 40, TREE = 30 };
  rig wide = rig_holding(NULL, &m->desc, 2, TEXT + TREE), held = rig_holding(Q8, &m->desc, 2, TEXT + TREE);
  int lists = 2 * m->desc.shape.kv_heads;
  row_list l = {0};
  for (int p = 0; p < TEXT; p++) row_add_plain(&l, 0, p * 13 % 90, p), row_add_plain(&l, 1, p * 17 % 90, p);
  rig_run(&wide, &l, false), rig_run(&held, &l, false);
  l.n = 0;
  row_add_tree(&l, 1, TEXT, TREE, 5);
  rig_run(&wide, &l, false), rig_run(&held, &l, false);
  for (int sequence = 0; sequence < 2; sequence++)
    for (int slot = 0; slot < TEXT + (sequence ? TREE : 0); slot++) {
      size_t len, held_len;
      char *numbers = rig_slot(&wide, sequence, slot, &len);
      unsigned char *codes = rig_slot(&held, sequence, slot, &held_len);
      assert_int_equal(len, 2 * (size_t)lists * (size_t)dim);
      assert_int_equal(held_len, (size_t)lists * bytes_of(dim));
      for (int i = 0; i < lists; i++)
        check_row(numbers + 2 * i * dim, m->dtype, codes + (size_t)i * bytes_of(dim), dim);
      free(numbers), free(codes);
    }
  rig_close(&wide), rig_close(&held);
}

/* Heads are padded with zeros to one of seven widths. The last group of numbers that share a scale may be 16 instead of
 * 32. */
static void rows_are_rounded_as_the_cpu_rounds_them(void **state) {
  (void)state;
  static const int sizes[][2] = {{2, 32},    {30, 32},   {32, 32},   {34, 64},   {64, 64},
                                 {66, 80},   {80, 80},   {82, 96},   {96, 96},   {112, 128},
                                 {128, 128}, {130, 256}, {256, 256}, {258, 512}, {512, 512}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    model_shape shape = cuda_shape(i % 2 ? 2 : 3);
    shape.layers = 1, shape.heads = 2, shape.kv_heads = 1 + (int)i % 2, shape.head_dim = sizes[i][0];
    if (shape.rotary_dims > sizes[i][0]) shape.rotary_dims = sizes[i][0];
    random_model *m = random_model_new(&shape, i);
    check_rows(m, sizes[i][1]);
    random_model_free(m);
  }
}

/* Numbers so small that their scale is the smallest, 2^-24, or so large that F16 has no scale for them and all 32 are
 * NaN. */
static void numbers_of_all_sizes_are_rounded_as_the_cpu_rounds_them(void **state) {
  (void)state;
  for (int s = 4; s < 6; s++) {
    model_shape shape = cuda_shape(s);
    shape.layers = 1, shape.biased_qkv = false;
    random_model *m = uneven_model(&shape);
    check_rows(m, s == 4 ? 32 : 64);
    random_model_free(m);
  }
}

/* F16 values of 65,440, 65,472 and 65,504, the largest one. On the CPU the scale of the last two is 516, and 127 times
 * this is infinite in F16; here all three have the scale 515.5 instead. */
static void the_largest_numbers_of_f16_stay_finite(void **state) {
  (void)state;
  static const float values[] = {8180, 8184, 8188}; /* an eighth of them */
  model_shape shape = cuda_shape(3);
  shape.biased = false;
  int h = shape.hidden, n = (int)(sizeof values / sizeof *values);
  assert_int_equal(h, 64); /* so if a row is a single number, its norm turns this into 8 with the same sign */
  random_model *m = random_model_new(&shape, 16);
  uint16_t *embed = (uint16_t *)m->desc.embed.source->bytes, *norm = (uint16_t *)m->layer[0].norm1.source->bytes;
  uint16_t *v = (uint16_t *)m->layer[0].v.source->bytes;
  memset(embed, 0, sizeof *embed * (size_t)shape.vocab * (size_t)h);
  for (int i = 0; i < h; i++) put_random(DT_F16, 1, (char *)&norm[i]);
  for (int i = 0; i < n; i++) put_random(DT_F16, 1024, (char *)&embed[i * h + i]);
  for (int i = 0; i < n; i++) put_random(DT_F16, values[i], (char *)&v[i]); /* of dimension 0 */
  rig wide = rig_holding(NULL, &m->desc, 1, n), held = rig_holding(Q8, &m->desc, 1, n);
  row_list l = {0};
  for (int p = 0; p < n; p++) row_add_plain(&l, 0, p, p);
  rig_run(&wide, &l, false);
  float *logits = rig_run(&held, &l, true);
  for (int i = 0; i < n * held.vocab; i++) assert_true(isfinite(logits[i]));
  for (int p = 0; p < n; p++) {
    size_t len;
    char *numbers = rig_slot(&wide, 0, p, &len);
    unsigned char *codes = rig_slot(&held, 0, p, &len);
    float value, scale;
    dt_type_of(DT_F16)->decode(numbers + 2 * 32, 1, &value); /* after the key, whose 16 numbers are padded to 32 */
    dt_type_of(DT_F16)->decode((char *)codes + bytes_of(32) + 32, 1, &scale);
    assert_true(value == 8 * values[p]);
    assert_true(codes[bytes_of(32)] == 127 + 128 && scale == 515.5f);
    free(numbers), free(codes);
  }
  free(logits);
  rig_close(&wide), rig_close(&held);
  random_model_free(m);
}

/* The size of a slot in bytes, in q8 and in 16 bits. The guides' 8.5 bits per number hold for widths whose scales fill
 * whole groups of 8 bytes. */
static void a_slot_takes_its_codes_and_scales(void **state) {
  (void)state;
  static const struct {
    int dim, bytes;
  } widths[] = {{32, 40}, {64, 72}, {80, 88}, {96, 104}, {128, 136}, {256, 272}, {512, 544}};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    model_shape shape = cuda_shape(3);
    shape.heads = 2, shape.head_dim = widths[i].dim;
    random_model *m = random_model_new(&shape, 17);
    rig wide = rig_holding(NULL, &m->desc, 1, 1), held = rig_holding(Q8, &m->desc, 1, 1);
    size_t lists = 2 * (size_t)shape.kv_heads, before = held.ops->memory(held.backend).caches;
    assert_int_equal(wide.ops->cache_bytes(wide.weights, 10), 10 * lists * 2 * (size_t)widths[i].dim);
    assert_int_equal(held.ops->cache_bytes(held.weights, 10), 10 * lists * (size_t)widths[i].bytes);
    dt_cache *c = NULL;
    ok(held.ops->create_cache(held.weights, 3, 100, &c, &err));
    assert_in_range(held.ops->memory(held.backend).caches - before - 3 * 100 * lists * (size_t)widths[i].bytes, 0, 255);
    held.ops->free_cache(c);
    rig_close(&wide), rig_close(&held);
    random_model_free(m);
  }
}

/* Runs every shape, with sanitizers two of them; the whole tree for the smallest shape. */
static void a_row_has_the_bits_of_plain_decoding_in_every_batch(void **state) {
  (void)state;
  static const int prefixes[PLAIN_SHAPES] = {1, 126, 128, 250, 3, 60};
  for (int s = 0; s < PLAIN_SHAPES; s++) {
    if (MOST < 64 && s % 3 != 2) continue;
    model_shape shape = cuda_shape(s);
    random_model *m = random_model_new(&shape, 7);
    check_prefix(&m->desc, Q8, prefixes[s], s == 3 || !emulated ? NODES : MOST, s != 3 || MOST < 64, ALL);
    random_model_free(m);
  }
}

static void rows_that_share_work_have_the_bits_of_plain_decoding(void **state) {
  (void)state;
  model_shape shape = cuda_shape(1);
  shape.layers = 1, shape.heads = 16, shape.kv_heads = 4, shape.head_dim = 40;
  random_model *m = random_model_new(&shape, 12);
  check_prefix(&m->desc, Q8, 126, MOST, true, ALL);
  check_prefix(&m->desc, Q8, 131, MOST, true, (dt_window){5, 2});
  random_model_free(m);
}

static void a_prompt_pass_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 8);
  check_text(&m->desc, Q8);
  random_model_free(m);
}

/* As in test_cuda_exact.c, as far as q8 can represent the values. */
static void values_of_all_sizes_have_the_bits_of_plain_decoding(void **state) {
  (void)state;
  model_shape shape = cuda_shape(4);
  shape.layers = 1, shape.biased_qkv = false;
  random_model *m = uneven_model(&shape);
  check_text(&m->desc, Q8);
  check_prefix(&m->desc, Q8, 126, emulated ? 34 : MOST, emulated, ALL);
  random_model_free(m);
}

static void moved_rows_serve_as_if_computed_there(void **state) {
  (void)state;
  check_moves(Q8);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_rounded_as_the_cpu_rounds_them),
      cmocka_unit_test(numbers_of_all_sizes_are_rounded_as_the_cpu_rounds_them),
      cmocka_unit_test(the_largest_numbers_of_f16_stay_finite),
      cmocka_unit_test(a_slot_takes_its_codes_and_scales),
      cmocka_unit_test(a_row_has_the_bits_of_plain_decoding_in_every_batch),
      cmocka_unit_test(rows_that_share_work_have_the_bits_of_plain_decoding),
      cmocka_unit_test(a_prompt_pass_has_the_bits_of_plain_decoding),
      cmocka_unit_test(values_of_all_sizes_have_the_bits_of_plain_decoding),
      cmocka_unit_test(moved_rows_serve_as_if_computed_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
