/* The line after an answer in a chat: tokens per second, and the speedup over plain decoding. */
#include "cli/report.h"
#include "unit.h"

/* The line for a text with this number of tokens, the first after 100 ms and the last after total_ms. Plain decoding
 * takes `plain` ms per pass. */
static const char *line_of(int generated, double total_ms, double plain) {
  static char line[80];
  dtl_result r = {.stats = {.generated = generated, .ttft_ms = 100, .total_ms = total_ms}};
  report_speedup(&r, plain, line, sizeof line);
  return line;
}

static void it_tells_speed_with_the_prompt_and_speedup_after_it(void **state) {
  (void)state;
  assert_string_equal(line_of(31, 1000, 57), "31 tokens/s, 1.9x"); /* 30 passes of 57 ms in 900 ms */
  assert_string_equal(line_of(31, 1000, 30), "31 tokens/s, 1.0x");
  assert_string_equal(line_of(31, 2000, 30), "16 tokens/s, 0.5x"); /* a slowdown is reported, too */
}

static void it_tells_tenths_below_ten(void **state) {
  (void)state;
  assert_string_equal(line_of(94, 10000, 0), "9.4 tokens/s");
  assert_string_equal(line_of(1989, 200000, 0), "9.9 tokens/s");
  assert_string_equal(line_of(199, 20000, 0), "10 tokens/s");
  assert_string_equal(line_of(201, 20000, 0), "10 tokens/s");
}

static void it_tells_no_speedup_where_little_is_known(void **state) {
  (void)state;
  assert_string_equal(line_of(31, 1000, 0), "31 tokens/s");
  assert_string_equal(line_of(15, 1000, 60), "15 tokens/s");
  assert_string_equal(line_of(16, 1000, 60), "16 tokens/s, 1.0x"); /* 15 passes of 60 ms in 900 ms */
  assert_string_equal(line_of(17, 1000, 60), "17 tokens/s, 1.1x");
  assert_string_equal(line_of(31, 100, 57), "310 tokens/s"); /* all tokens at once: there is nothing to divide by */
  assert_string_equal(line_of(0, 0, 57), "0.0 tokens/s");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(it_tells_speed_with_the_prompt_and_speedup_after_it),
                                     cmocka_unit_test(it_tells_tenths_below_ten),
                                     cmocka_unit_test(it_tells_no_speedup_where_little_is_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
