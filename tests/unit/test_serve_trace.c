/* How much of a trace may wait for its reader: 32 MiB, and not a byte more. */
#include "unit.h"

#include "serve/answer.h"

#include <stdint.h>

static void a_trace_has_room_for_32_mib(void **state) {
  const size_t most = 33554432;
  (void)state;
  assert_true(answer_has_room(0, most - 1));
  assert_true(answer_has_room(0, most));
  assert_false(answer_has_room(0, most + 1));
  assert_true(answer_has_room(most - 10, 9));
  assert_true(answer_has_room(most - 10, 10));
  assert_false(answer_has_room(most - 10, 11));
  assert_true(answer_has_room(most, 0));
  assert_false(answer_has_room(most, 1));
  assert_false(answer_has_room(most + 1, 0)); /* the answer's text is never left out */
  assert_false(answer_has_room(SIZE_MAX, 1));
  assert_false(answer_has_room(1, SIZE_MAX));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_trace_has_room_for_32_mib)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
