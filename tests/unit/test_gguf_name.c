/* Which .gguf file a short name means. */
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
  };
  for (size_t i = 0; i < sizeof fit / sizeof *fit; i++)
    if (!gguf_answers(fit[i][0], fit[i][1])) fail_msg("%s is no %s", fit[i][0], fit[i][1]);
  for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++)
    if (gguf_answers(unfit[i][0], unfit[i][1])) fail_msg("%s is %s", unfit[i][0], unfit[i][1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_kind_of_weights_is_a_whole_word_of_a_name)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
