/* Which tools an answer may call. */
#include "wrong_arguments.h"

#include "host.h"

#include <stdlib.h>

#define TOOL(name) "{\"type\":\"function\",\"function\":{\"name\":\"" name "\"}}"

static void tools_to_choose_from(void **unused) {
  (void)unused;
  static const char tool[] = "[" TOOL("f") "]";
  static const char *const wrong[][3] = {
      {"", NULL, "tools: expected a list"},
      {"{}", NULL, "tools: expected a list"},
      {"[1]", NULL, "tools[0]: expected {type: function"},
      {"[" TOOL("") "]", NULL, "tools[0]: expected {type: function"},
      {tool, "", "tool_choice: expected none"},
      {tool, "3", "tool_choice: expected none"},
      {tool, "\"any\"", "tool_choice: expected none"},
      {tool, TOOL("g"), "tool_choice: no tool is called 'g'"},
      {tool, "{\"allowed_tools\":{\"mode\":\"auto\",\"tools\":[]}}", "tool_choice: expected none"},
      {NULL, "\"required\"", "tool_choice: there are no tools"},
  };
  dtl_tool_choice choice;
  ANSWERS(dtl_choose_tools(tool, NULL, true, NULL, &err), DT_EINPUT, "NULL");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ANSWERS(dtl_choose_tools(wrong[i][0], wrong[i][1], true, &choice, &err), DT_EINPUT, wrong[i][2]);
  dtl_answer answer;
  ANSWERS(dtl_answer_read(NULL, NULL, NULL, 0, "", 0, &answer, &err), DT_EINPUT, "NULL");
  dtl_answer_free(NULL);
}

static void check_choice(const char *choice, const char *list, bool required, bool several) {
  static const char tools[] = "[" TOOL("f") ", " TOOL("g") "]";
  dtl_tool_choice chosen;
  dt_error err = {0};
  if (dtl_choose_tools(tools, choice, true, &chosen, &err)) fail_msg("%s", err.message);
  if (list)
    assert_string_equal(chosen.list, *list ? list : tools);
  else
    assert_null(chosen.list);
  assert_int_equal(chosen.required, required);
  assert_int_equal(chosen.several, several);
  free(chosen.list);
}

static void choices(void **state) {
  (void)state;
  check_choice(NULL, "", false, true);
  check_choice("null", "", false, true);
  check_choice("\"auto\"", "", false, true);
  check_choice("\"required\"", "", true, true);
  check_choice("\"none\"", NULL, false, true);
  check_choice(TOOL("g"), "[" TOOL("g") "]", true, false);
  check_choice("{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\",\"tools\":[" TOOL("f") "]}}",
               "[" TOOL("f") "]", false, true);
  check_choice(
      "{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\",\"tools\":[" TOOL("f") "," TOOL("g") "]}}",
      "", true, true);
  dtl_tool_choice chosen;
  assert_int_equal(dtl_choose_tools(NULL, "null", true, &chosen, NULL), DT_OK);
  assert_true(!chosen.list && !chosen.required && chosen.several);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tools_to_choose_from), cmocka_unit_test(choices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
