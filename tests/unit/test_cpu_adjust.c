/* Banned ids in blocks of logits: the result is compared with banning each id alone. */
#include "chunk.h"
#include "unit.h"

#include <math.h>

/* Blocks of ids, all or only some, which begin and end anywhere in words of bits. Ids outside of the block keep their
 * logits. */
static void a_block_loses_each_id_that_is_not_allowed(void **state) {
  (void)state;
  enum { IDS = 512, MOST = 200 };
  uint64_t allowed[IDS / 64] = {UINT64_MAX, 0, UINT64_C(1) << 63, UINT64_MAX, 1, UINT64_MAX >> 1}, r = 3;
  for (int w = 6; w < IDS / 64; w++) allowed[w] = (uint64_t)random_next(&r) << 32 | random_next(&r);
  dt_row_adjustments row = {.allowed = allowed};
  int32_t ids[IDS]; /* two of three ids */
  for (int i = 0; i < IDS; i++) ids[i] = i / 2 * 3 + i % 2;
  for (int some = 0; some < 2; some++)
    for (int from = 0; from < 200; from++)
      for (int count = 1; count <= MOST; count += count < 70 ? 1 : 13) {
        if (some && ids[from + count - 1] >= IDS) break;
        float logits[MOST + 1];
        for (int i = 0; i <= MOST; i++) logits[i] = (float)i;
        assert_true(cpu_is_adjusted(&row, some ? ids : NULL, from, count));
        cpu_adjust(&row, some ? ids : NULL, from, count, logits);
        for (int i = 0; i <= MOST; i++) {
          bool kept = i >= count || adjustment_allows(&row, some ? ids[from + i] : from + i);
          assert_true(logits[i] == (kept ? (float)i : -INFINITY));
        }
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_block_loses_each_id_that_is_not_allowed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
