/* Messages are one line of a terminal, whatever text is put into them. */
#include "unit.h"

static const char *message_of(const char *text) {
  static dt_error err;
  assert_int_equal(dt_fail(&err, DT_EINPUT, "config.json: \"%s\" is none", text), DT_EINPUT);
  return err.message;
}

static void control_characters_never_pass(void **state) {
  (void)state;
  assert_string_equal(message_of("a\nb\r\x1b[31m\x7f"), "config.json: \"a?b??[31m?\" is none");
  assert_string_equal(message_of("\xC2\x80 \xC2\x9B \xC2\x9F"), "config.json: \"?? ?? ??\" is none");
}

static void other_characters_stay(void **state) {
  (void)state;
  assert_string_equal(message_of(" ~\xC2\xA0\xC3\x9B\xE2\x82\x9B\xF0\x9F\x80\x80"),
                      "config.json: \" ~\xC2\xA0\xC3\x9B\xE2\x82\x9B\xF0\x9F\x80\x80\" is none");
}

static void a_message_too_long_is_cut(void **state) {
  (void)state;
  char text[2000] = {0};
  memset(text, '\n', sizeof text - 1);
  const char *message = message_of(text);
  assert_int_equal(strlen(message), sizeof((dt_error *)0)->message - 1);
  assert_null(strchr(message, '\n'));
}

/* One struct serves many calls: a later failure must not be reported with the place of an earlier one. */
static void a_failure_has_no_place_of_an_earlier_one(void **state) {
  (void)state;
  dt_error err = {.status = DT_EPOLICY, .message = "no", .file = "p.lua", .line = 3, .traceback = "p.lua:3: in step\n"};
  assert_int_equal(dt_fail(&err, DT_EIO, "short read"), DT_EIO);
  assert_int_equal(err.status, DT_EIO);
  assert_string_equal(err.file, "");
  assert_int_equal(err.line, 0);
  assert_string_equal(err.traceback, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(control_characters_never_pass),
      cmocka_unit_test(other_characters_stay),
      cmocka_unit_test(a_message_too_long_is_cut),
      cmocka_unit_test(a_failure_has_no_place_of_an_earlier_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
