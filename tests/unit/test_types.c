/* The table of types, and its decoders compared with the results of the gguf package for random blocks
 * (tests/golden/make_types.py). */
#include "model/types.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The bytes of a file of tests/golden/types; malloc'd. */
static uint8_t *golden(const char *prefix, const char *type, size_t *size) {
  enum { MOST = 1 << 14 };
  char path[256];
  snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/types/%s%s.bin", prefix, type);
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s: no such file", path);
  uint8_t *bytes = malloc(MOST);
  *size = fread(bytes, 1, MOST, file);
  fclose(file);
  assert_true(*size > 0 && *size < MOST);
  return bytes;
}

static void every_type_but_f32_has_the_bits_of_the_gguf_package(void **state) {
  (void)state;
  for (int i = 0; i < DT_TYPES; i++) {
    if (i == DT_F32) continue;
    const dt_type *t = dt_type_of((dt_dtype)i);
    size_t size, block = (size_t)t->bytes + 4 * (size_t)t->numbers;
    uint8_t *bytes = golden("", t->name, &size);
    assert_int_equal(size % block, 0);
    size_t blocks = size / block, n = blocks * (size_t)t->numbers, encoded = blocks * (size_t)t->bytes;

    uint8_t *unaligned = malloc(encoded + 1);
    float *numbers = malloc(n * sizeof *numbers);
    memcpy(unaligned + 1, bytes, encoded);
    t->decode(unaligned + 1, n, numbers);
    if (memcmp(numbers, bytes + encoded, n * sizeof *numbers)) fail_msg("%s: the bits differ", t->name);
    assert_int_equal(dt_row_bytes((dt_dtype)i, n), encoded);
    free(unaligned), free(numbers), free(bytes);
  }
}

static void rounded_numbers_have_the_blocks_of_the_gguf_package(void **state) {
  (void)state;
  int rounded = 0;
  for (int i = 0; i < DT_TYPES; i++) {
    const dt_type *t = dt_type_of((dt_dtype)i);
    dt_round *to = dt_round_to((dt_dtype)i);
    if (!to) continue;
    size_t size, block = (size_t)t->bytes + 4 * (size_t)t->numbers;
    uint8_t *bytes = golden("rounded_", t->name, &size);
    size_t n = size / block * (size_t)t->numbers, encoded = size / block * (size_t)t->bytes;
    float *numbers = malloc(n * sizeof *numbers);
    uint8_t *blocks = malloc(encoded + 1);
    memcpy(numbers, bytes, n * sizeof *numbers);
    to(numbers, n, blocks + 1); /* unaligned */
    for (size_t b = 0; b < encoded / (size_t)t->bytes; b++)
      if (memcmp(blocks + 1 + b * (size_t)t->bytes, bytes + n * sizeof *numbers + b * (size_t)t->bytes,
                 (size_t)t->bytes))
        fail_msg("%s: the bits of block %zu differ", t->name, b);
    free(numbers), free(blocks), free(bytes);
    rounded++;
  }
  assert_int_equal(rounded, 2);
}

/* Such a block gets the scale NaN, so that the model's results become NaN. Numbers too small for a scale become 0. */
static void what_is_not_finite_is_not_hidden(void **state) {
  (void)state;
  const dt_dtype types[] = {DT_Q8_0, DT_Q4_1};
  const float odd[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < 3; k++) {
      float x[32] = {1, 2, [17] = odd[k]}, y[32];
      uint8_t block[64];
      dt_round_to(types[i])(x, 32, block);
      dt_type_of(types[i])->decode(block, 32, y);
      for (int j = 0; j < 32; j++) assert_true(isnan(y[j]));
    }
    float tiny[32] = {1e-45f, -1e-45f}, y[32];
    uint8_t block[64];
    dt_round_to(types[i])(tiny, 32, block);
    dt_type_of(types[i])->decode(block, 32, y);
    for (int j = 0; j < 32; j++) assert_true(y[j] == 0.0f);
  }
}

static void types_are_found_by_name_and_by_number(void **state) {
  (void)state;
  for (int i = 0; i < DT_TYPES; i++) {
    const dt_type *t = dt_type_of((dt_dtype)i);
    assert_int_equal(dt_type_named(t->name), i);
    assert_int_equal(dt_type_of_ggml((uint32_t)t->ggml), i);
  }
  assert_int_equal(dt_type_named("Q4_K_M"), DT_TYPES);
  assert_int_equal(dt_type_of_ggml(4), DT_TYPES);
  assert_int_equal(dt_type_of_ggml(UINT32_MAX), DT_TYPES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_but_f32_has_the_bits_of_the_gguf_package),
      cmocka_unit_test(rounded_numbers_have_the_blocks_of_the_gguf_package),
      cmocka_unit_test(what_is_not_finite_is_not_hidden),
      cmocka_unit_test(types_are_found_by_name_and_by_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
