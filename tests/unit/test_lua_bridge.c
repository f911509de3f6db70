/* What programs in other languages call: JSON in, JSON out (dtl_bridge_call). The Python module's test covers all of
 * it. */
#include "unit.h"

#include "host.h"

#include <limits.h>
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
  pieces = 0; /* with several prompts, too: no further one begins */
  answer = call(bridge, "generate_batch",
                "{\"pair\": 1, \"policy\": \"ar\", \"prompts\": [\"a\", \"b\", \"c\", \"d\", \"e\"], \"slots\": 1, "
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

/* A listener that calls its own bridge, and tries to close it. */
static bool ask(void *user, const char *bytes, size_t len) {
  (void)bytes, (void)len;
  says(user, "another call is running: call again when it has returned", "version", "{}");
  dtl_bridge_close(user);
  return true;
}

static void a_listener_cannot_call(void **state) {
  (void)state;
  dtl_bridge *bridge = dtl_bridge_open();
  dtl_bridge_free(call(bridge, "load", "{\"threads\": 1, \"draft\": false}", NULL, NULL));
  char *answer = call(bridge, "generate", "{\"pair\": 1, \"prompt\": \"It was\", \"tokens\": 3}", ask, bridge);
  assert_non_null(strstr(answer, "\"finish_reason\": \"length\""));
  dtl_bridge_free(answer);
  dtl_bridge_close(bridge);
}

static int signals;
static void hear(int number) { signals += number == SIGUSR1; }

/* Interrupts at its second piece. */
static bool strike(void *user, const char *bytes, size_t len) {
  (void)bytes, (void)len;
  return ++*(int *)user != 2 || raise(SIGUSR1) == 0;
}

static void a_signal_interrupts_and_goes_to_its_handler(void **state) {
  (void)state;
  const char *options = "{\"pair\": 1, \"policy\": \"ar\", \"prompt\": \"It was\", \"tokens\": 9}";
  dtl_bridge *bridge = dtl_bridge_open();
  int pieces = 0;
  dtl_bridge_free(call(bridge, "load", "{\"threads\": 1, \"draft\": false}", NULL, NULL));
  signal(SIGUSR1, hear);
  assert_true(dtl_bridge_catch(bridge, SIGUSR1));
  char *answer = call(bridge, "generate", options, strike, &pieces);
  assert_non_null(strstr(answer, "\"message\": \"interrupted\""));
  dtl_bridge_free(answer);
  assert_int_equal(pieces, 2);
  assert_int_equal(signals, 1);
  says(bridge, "interrupted", "generate", options); /* until the interrupt is taken back */
  dtl_bridge_interrupt(bridge, false);
  assert_true(dtl_bridge_catch(bridge, 0));
  raise(SIGUSR1);
  assert_int_equal(signals, 2);
  says(bridge, "\"finish_reason\": \"length\"", "generate", options);
  assert_false(dtl_bridge_catch(bridge, INT_MAX));
  assert_false(dtl_bridge_catch(bridge, -1));
  assert_false(dtl_bridge_catch(bridge, SIGKILL));
  assert_false(dtl_bridge_catch(NULL, SIGUSR1));
  assert_true(dtl_bridge_catch(bridge, SIGUSR1));
  dtl_bridge_close(bridge); /* does not catch signals any more */
  raise(SIGUSR1);
  assert_int_equal(signals, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_answer_in_json),
      cmocka_unit_test(a_listener_ends_the_text),
      cmocka_unit_test(mistakes_are_told),
      cmocka_unit_test(a_listener_cannot_call),
      cmocka_unit_test(a_signal_interrupts_and_goes_to_its_handler),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
