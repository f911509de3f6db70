/* What policies remember between their runs: a table compared with a simple list of its contents, how much memory a
 * full table takes, and that forgotten contents return to the system. */
#include "lookup/memory.h"
#include "resident.h"

#include <stdlib.h>

#define MB ((size_t)1 << 20)
#define KEYS 300
#define LONGEST 60000

static memory_bytes key_of(const int *i) { return (memory_bytes){i, sizeof *i}; }

/* Sets and drops random keys, often existing ones, so that holes arise and entries are moved together. */
static void a_table_holds_what_was_put_in_last(void **state) {
  (void)state;
  static unsigned char text[LONGEST + 256], first[KEYS];
  static size_t len[KEYS];
  static bool there[KEYS];
  uint64_t seed = 5;
  memory_table t = {0};
  memory_bytes value;
  for (size_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)i;
  for (int turn = 0; turn < 20000; turn++) {
    int i = (int)(random_next(&seed) % KEYS);
    bool found = memory_get(&t, key_of(&i), &value);
    assert_int_equal(found, there[i]);
    if (found && (value.len != len[i] || memcmp(value.bytes, text + first[i], len[i]))) fail_msg("another value");
    if (random_next(&seed) % 4 == 0) {
      memory_drop(&t, key_of(&i));
      there[i] = false;
      continue;
    }
    there[i] = true;
    first[i] = (unsigned char)random_next(&seed);
    len[i] = random_next(&seed) % (turn % 3 ? LONGEST : 20);
    assert_true(memory_set(&t, key_of(&i), (memory_bytes){text + first[i], len[i]}));
  }
  size_t n = 0, used = 0;
  for (int i = 0; i < KEYS; i++) {
    assert_int_equal(memory_get(&t, key_of(&i), &value), there[i]);
    if (there[i]) n++, used += MEMORY_ENTRY + sizeof i + len[i];
  }
  assert_int_equal(t.n, n);
  assert_int_equal(memory_room(&t), MEMORY_BYTES - used);
  for (int i = 0; i < KEYS; i++) memory_drop(&t, key_of(&i));
  assert_int_equal(memory_room(&t), MEMORY_BYTES);
  assert_true(memory_forget(&t));
  assert_false(memory_forget(&t));
}

/* Adds values of `len` bytes, with keys from `from` on, until there is no room. Returns how many there were. */
static int fill(memory_table *t, int from, size_t len) {
  char *value = calloc(1, len + 1);
  int i = from;
  while (memory_room(t) >= MEMORY_ENTRY + sizeof i + len) {
    assert_true(memory_set(t, key_of(&i), (memory_bytes){value, len}));
    i++;
  }
  if (memory_room(t) >= MEMORY_ENTRY + sizeof i) {
    size_t left = memory_room(t) - MEMORY_ENTRY - sizeof i;
    assert_false(memory_set(t, key_of(&i), (memory_bytes){value, left + 1}));
    assert_true(memory_set(t, key_of(&i), (memory_bytes){value, left}));
    i++;
    assert_int_equal(memory_room(t), 0);
  }
  free(value);
  return i - from;
}

/* Fills the table with values of one size, removes most of them, and fills it with larger ones, which fit into no
 * hole. */
static void leave_holes(memory_table *t) {
  static const size_t sizes[] = {2, 500, 7000, 64000};
  int from = 0;
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    int n = fill(t, from, sizes[k]);
    for (int i = from; i < from + n; i++)
      if (i % 50) memory_drop(t, key_of(&i));
    from += n;
  }
  fill(t, from, 64000);
}

static void check_taken(size_t before, size_t least, size_t most) {
  size_t now = resident(), taken = now > before ? now - before : 0;
  print_message("%zu MiB\n", taken / MB);
  if (taken < least || taken > most) fail_msg("%zu bytes, expected %zu to %zu", taken, least, most);
}

/* No table contains more than 64 MB by the policy's count, and none takes more than 80 MB of memory. */
static void a_full_table_takes_no_more_than_80_mb(void **state) {
  (void)state;
  if (RESIDENT_MEANS_NOTHING) skip();
  memory_table t = {0};
  size_t before = resident();
  fill(&t, 0, 60000);
  check_taken(before, 60 * MB, 66 * MB);
  assert_true(memory_forget(&t));
  check_taken(before, 0, 2 * MB);
  fill(&t, 0, 2); /* the maximum number of entries */
  check_taken(before, 20 * MB, 80 * MB);
  assert_true(memory_forget(&t));
  leave_holes(&t);
  check_taken(before, 60 * MB, 80 * MB);
  assert_true(memory_forget(&t));
}

static void add_output(corpus_outputs *o, int n) {
  int32_t *token = calloc((size_t)n, sizeof *token);
  for (int i = 0; i < n; i++) token[i] = i % 50000;
  corpus_add(o, token, n);
  free(token);
}

static void what_is_forgotten_goes_back_to_the_system(void **state) {
  (void)state;
  if (RESIDENT_MEANS_NOTHING) skip();
  dtl_memory *memory = dtl_memory_open();
  size_t before = resident();
  for (int i = 0; i < MEMORY_POLICIES; i++) {
    policy_memory *p = memory_of(memory, (const char[]){(char)('a' + i), '\0'});
    fill(&p->table, 0, 100);
    for (int k = 0; k < 40; k++) add_output(&p->outputs, 20000);
  }
  size_t outputs = (size_t)MEMORY_POLICIES * 40 * 20001 * 9;
  check_taken(before, MEMORY_POLICIES * 40 * MB + outputs, MEMORY_POLICIES * 80 * MB + outputs + 8 * MB);
  memory_of(memory, "another"); /* the one that ran longest ago is removed */
  check_taken(before, 0, (MEMORY_POLICIES - 1) * (80 * MB + 40 * 20001 * 9) + 8 * MB);
  dtl_memory_forget(memory);
  check_taken(before, 0, 4 * MB);
  dtl_memory_close(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_table_holds_what_was_put_in_last),
      cmocka_unit_test(a_full_table_takes_no_more_than_80_mb),
      cmocka_unit_test(what_is_forgotten_goes_back_to_the_system),
  };
  if (RESIDENT_MEANS_NOTHING)
    print_message("the sanitizers keep freed memory: what the process takes is not measured\n");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
