/* Which .gguf file a short name refers to. */
#include "model/gguf_name.h"
#include "unit.h"

static void a_kind_of_weights_is_a_whole_word_of_a_name(void **state) {
  (void)state;
  static const char *const fit[][2] = {
      {"model-Q4_K_M.gguf", "Q4_K_M"},
      {"model-Q4_K_M.gguf", "q4_k_m"},
      {"model.q4_k_m.gguf", "Q4_K_M"},
      {"Q4_K_M/model.gguf", "Q4_K_M"},
      {"model_Q8_0.gguf", "Q8_0"},
      {"Q8_0.gguf", "Q8_0"},
      {"model-Q4_K_M.gguf", "model-Q4_K_M.gguf"},
      {"sub/m.gguf", "m.gguf"},
      {"sub/m.gguf", "sub/m.gguf"},
      {"m-Q8_0.GGUF", "Q8_0"},
      {"m-UD-Q4_K_XL.gguf", "Q4_K_XL"},
      {"m-Q4_0-00001-of-00002.gguf", "Q4_0"},
      {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
      {"sub/m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
      {"sub/m-00001-of-00002.gguf", "sub/m-00002-of-00002.gguf"},
  };
  static const char *const unfit[][2] = {
      {"model-Q4_K_M.gguf", "Q4_K"},
      {"model-Q4_K_M.gguf", "4_K_M"},
      {"model-Q4_0_4_4.gguf", "Q4_0"},
      {"model-IQ4_NL.gguf", "Q4_NL"},
      {"model-Q4_K_M.gguf", ""},
      {"Q4_K_M.txt", "Q4_K_M"},
      {".gguf", "gguf"},
      {"m.gguf", "M.gguf2"},
      {"sub/m.gguf", "other/m.gguf"},
      {"m-Q8_0.gguf", "Q8_0.gguf.x"},
      {"", "Q8_0"},
      {"m.gguf", "n.gguf"},
      {"m-00001-of-00002.gguf", "n-00002-of-00002.gguf"},
      {"m-00001-of-00003.gguf", "m-00001-of-00002.gguf"},
  };
  for (size_t i = 0; i < sizeof fit / sizeof *fit; i++)
    if (!gguf_answers(fit[i][0], fit[i][1])) fail_msg("%s is not found as %s", fit[i][0], fit[i][1]);
  for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++)
    if (gguf_answers(unfit[i][0], unfit[i][1])) fail_msg("%s is %s", unfit[i][0], unfit[i][1]);
}

static void digits_make_a_part(void **state) {
  (void)state;
  static const char *const none[] = {"llama-every-of-breed.gguf",
                                     "m-0001-of-0002.gguf",
                                     "m-00001-of-00002.bin",
                                     "m-00003-of-00002.gguf",
                                     "m-00000-of-00002.gguf",
                                     "m00001-of-00002.gguf",
                                     "-00001-of-00002.gguf",
                                     "m-0000a-of-00002.gguf",
                                     "m-00001-off00002.gguf",
                                     "m-00001-of-00002-x.gguf",
                                     "m.gguf",
                                     ""};
  static const struct {
    const char *name;
    int number, count;
  } parts[] = {{"m-00001-of-00001.gguf", 1, 1},
               {"a/m-Q4_0-00002-of-00017.gguf", 2, 17},
               {"m-99999-of-99999.GGUF", 99999, 99999}};
  int number = 0, count = 7;
  char path[64];
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    if (gguf_part(none[i], &number, &count) || gguf_is_later_part(none[i])) fail_msg("%s is a part", none[i]);
    assert_int_equal(count, 7);
    assert_false(gguf_part_path(none[i], 1, path, sizeof path));
  }
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    assert_true(gguf_part(parts[i].name, &number, &count));
    assert_int_equal(number, parts[i].number);
    assert_int_equal(count, parts[i].count);
    assert_int_equal(gguf_is_later_part(parts[i].name), number > 1);
  }
  assert_true(gguf_part_path("a/m-00002-of-00017.gguf", 13, path, sizeof path));
  assert_string_equal(path, "a/m-00013-of-00017.gguf");
  assert_false(gguf_part_path("a/m-00002-of-00017.gguf", 13, path, 10));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_kind_of_weights_is_a_whole_word_of_a_name),
                                     cmocka_unit_test(digits_make_a_part)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
