/* What programs in other languages call: JSON in, JSON out (dtl_bridge_call). The Python module's test goes through all of it. */
#include "unit.h"

#include "host.h"

#include <stdio.h>
#include <string.h>

static char *call(dtl_bridge *bridge, const char *function, const char *options, dtl_listener listener, void *user) {
  char *answer = dtl_bridge_call(bridge, function, options, listener, user);
  assert_non_null(answer);
  return answer;
}

static void says(dtl_bridge *bridge, const char *part, const char *function, const char *options) {
  char *answer = call(bridge, function, options, NULL, NULL);
  if (!strstr(answer, part)) fail_msg("%s(%s): no '%s' in %s", function, options, part, answer);
  dtl_bridge_free(answer);
}

static bool count(void *user, const char *bytes, size_t len) {
  (void)bytes;
  return len > 0 && ++*(int *)user < 3;
}

static void calls_answer_in_json(void **state) {
  (void)state;
  dtl_bridge *bridge = dtl_bridge_open();
  assert_non_null(bridge);
  char version[64];
  snprintf(version, sizeof version, "{\"value\": \"%s\"}", dt_version());
  says(bridge, version, "version", "{}");
  says(bridge, "\"pair\": 1", "load", "{\"threads\": 1}");
  says(bridge, "\"pair\": 2", "load", "{\"threads\": 1, \"draft\": false}");
  says(bridge, "{\"value\": \"The ship\"}", "decode", "{\"pair\": 1, \"ids\": [582, 3116]}");
  says(bridge, "\"policy\": \"ar\"", "generate", "{\"pair\": 2, \"prompt\": \"The ship\", \"tokens\": 4}");
  dtl_bridge_close(bridge);
}

static void a_listener_ends_the_text(void **state) {
  (void)state;
  dtl_bridge *bridge = dtl_bridge_open();
  int pieces = 0;
  dtl_bridge_free(call(bridge, "load", "{\"threads\": 1}", NULL, NULL));
  char *answer = call(bridge, "generate", "{\"pair\": 1, \"policy\": \"ar\", \"prompt\": \"It was\", \"tokens\": 50}",
                      count, &pieces);
  assert_int_equal(pieces, 3);
  assert_non_null(strstr(answer, "\"finish_reason\": \"interrupted\""));
  dtl_bridge_free(answer);
  pieces = 0; /* of several prompts too: none begins any more */
  answer = call(bridge, "generate_batch",
                "{\"pair\": 1, \"policy\": \"ar\", \"prompts\": [\"a\", \"b\", \"c\", \"d\", \"e\"], \"places\": 1, "
                "\"tokens\": 2}",
                count, &pieces);
  assert_int_equal(pieces, 3);
  dtl_bridge_free(answer);
  dtl_bridge_close(bridge);
}

static void mistakes_are_told(void **state) {
  (void)state;
  dtl_bridge *bridge = dtl_bridge_open();
  says(bridge, "{\"error\": {\"kind\": \"input\", \"message\": \"no function 'nothing'\"}}", "nothing", "{}");
  says(bridge, "{\"error\": {\"kind\": \"input\", \"message\": \"the options are not a JSON object\"}}", "version",
       "5");
  says(bridge, "\"message\": \"JSON: line 1: ", "version", "{");
  says(bridge, "the pair is closed", "generate", "{\"pair\": 7}");
  says(bridge, "\"message\": \"dt.load: unknown key 'colour'", "load", "{\"colour\": 1}");
  says(bridge, "\"kind\": \"input\"", "load", "{\"target\": \"/nowhere\"}");
  dtl_bridge_close(bridge);
  dtl_bridge_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_answer_in_json),
      cmocka_unit_test(a_listener_ends_the_text),
      cmocka_unit_test(mistakes_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
