/* The table of types, and its decoders against what the gguf package made of random blocks (tests/golden/make_types.py). */
#include "model/types.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static void every_type_but_f32_has_the_bits_of_the_gguf_package(void **state) {
  (void)state;
  for (int i = 0; i < DT_TYPES; i++) {
    if (i == DT_F32) continue;
    const dt_type *t = dt_type_of((dt_dtype)i);
    char path[256];
    snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/types/%s.bin", t->name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: no such file", path);
    uint8_t bytes[1 << 14];
    size_t size = fread(bytes, 1, sizeof bytes, file), block = (size_t)t->bytes + 4 * (size_t)t->numbers;
    fclose(file);
    assert_true(size > 0 && size < sizeof bytes && size % block == 0);
    size_t blocks = size / block, n = blocks * (size_t)t->numbers, encoded = blocks * (size_t)t->bytes;

    uint8_t *unaligned = malloc(encoded + 1);
    float *numbers = malloc(n * sizeof *numbers);
    memcpy(unaligned + 1, bytes, encoded);
    t->decode(unaligned + 1, n, numbers);
    if (memcmp(numbers, bytes + encoded, n * sizeof *numbers)) fail_msg("%s: other bits", t->name);
    assert_int_equal(dt_row_bytes((dt_dtype)i, n), encoded);
    free(unaligned), free(numbers);
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
      cmocka_unit_test(types_are_found_by_name_and_by_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
