/* Ledgers: what policies store about a pair, in memory and in a file. */
#include "unit.h"

#include "measure/ledger.h"
#include "temp_files.h"

#include <math.h>
#include <unistd.h>

static ledger *opened(void) {
  ledger *l = ledger_new("greedy, on this machine");
  assert_non_null(l);
  return l;
}

static void assert_list(ledger *l, const char *policy, const char *name, int n, const double *expected) {
  int found;
  const double *numbers = ledger_get(ledger_of(l, policy), name, &found);
  assert_int_equal(found, n);
  for (int i = 0; i < n; i++) assert_true(numbers[i] == expected[i]);
}

static void a_policy_finds_its_own_lists_only(void **state) {
  (void)state;
  ledger *l = opened();
  assert_true(ledger_set(ledger_of(l, "one"), "loss_budget", (double[]){1.5}, 1));
  assert_true(ledger_set(ledger_of(l, "two"), "loss_budget", (double[]){2.5, 3.5}, 2));
  assert_true(ledger_set(ledger_of(l, "two"), "loss_budget", (double[]){4, 5, 6}, 3));
  assert_list(l, "one", "loss_budget", 1, (double[]){1.5});
  assert_list(l, "two", "loss_budget", 3, (double[]){4, 5, 6});
  assert_list(l, "one", "copies", 0, NULL);
  assert_true(ledger_set(ledger_of(l, "two"), "loss_budget", NULL, 0));
  assert_list(l, "two", "loss_budget", 0, NULL);
  ledger_close(l);
}

static void names_numbers_and_lists_have_limits(void **state) {
  (void)state;
  ledger *l = opened();
  ledger_book *book = ledger_of(l, "one");
  char name[LEDGER_NAME + 2] = "";
  double many[LEDGER_NUMBERS + 1] = {0};
  assert_false(ledger_set(book, "", many, 1));
  memset(name, 'a', LEDGER_NAME);
  assert_true(ledger_set(book, name, many, LEDGER_NUMBERS));
  assert_false(ledger_set(book, name, many, LEDGER_NUMBERS + 1));
  name[LEDGER_NAME] = 'a';
  assert_false(ledger_set(book, name, many, 1));
  for (int i = 1; i < LEDGER_LISTS; i++) {
    snprintf(name, sizeof name, "list %d", i);
    assert_true(ledger_set(book, name, many, 1));
  }
  assert_false(ledger_set(book, "one more", many, 1));
  assert_true(ledger_set(book, "list 3", NULL, 0));
  assert_true(ledger_set(book, "one more", many, 1));
  assert_false(ledger_set(book, "one more", (double[]){NAN}, 1));
  assert_false(ledger_set(book, "one more", (double[]){1, INFINITY}, 2));
  assert_list(l, "one", "one more", 1, many);
  ledger_close(l);
}

static void the_policy_used_least_recently_makes_room(void **state) {
  (void)state;
  ledger *l = opened();
  char policy[20];
  for (int i = 0; i < LEDGER_BOOKS; i++) {
    snprintf(policy, sizeof policy, "policy %d", i);
    assert_true(ledger_set(ledger_of(l, policy), "x", (double[]){i}, 1));
  }
  assert_list(l, "policy 0", "x", 1, (double[]){0}); /* it was used, so policy 1 is the oldest one now */
  assert_list(l, "another", "x", 0, NULL);
  assert_list(l, "policy 0", "x", 1, (double[]){0});
  assert_list(l, "policy 1", "x", 0, NULL);
  ledger_close(l);
}

static void a_file_has_the_same_lists_and_order_of_use(void **state) {
  (void)state;
  ledger *l = opened(), *again = opened();
  char policy[20];
  for (int i = 0; i < LEDGER_BOOKS; i++) {
    snprintf(policy, sizeof policy, "policy %d", (i + 3) % LEDGER_BOOKS);
    ledger_set(ledger_of(l, policy), "x", (double[]){i, -1e300, 0.1}, 3);
    ledger_set(ledger_of(l, policy), "y", (double[]){1e-300}, 1);
  }
  char *json = ledger_json(l);
  assert_null(ledger_parse(again, json));
  assert_list(again, "policy 1", "x", 3, (double[]){6, -1e300, 0.1});
  assert_list(again, "another", "x", 0, NULL); /* was removed to make room */
  assert_list(again, "policy 4", "x", 3, (double[]){1, -1e300, 0.1});
  assert_list(again, "policy 3", "x", 0, NULL); /* was the oldest */
  free(json);
  ledger_close(l), ledger_close(again);
}

static void a_damaged_file_is_ignored_whole(void **state) {
  (void)state;
  ledger *l = opened();
  ledger_set(ledger_of(l, "p"), "x", (double[]){1, 2}, 2);
  char *good = ledger_json(l);
  const char *const damage[][3] = {{"dtrun.ledger/2", "dtrun.ledger/1", "its schema is not dtrun.ledger/2"},
                                   {"greedy", "sampled", "it was learned on another machine or model"},
                                   {"[1,2]", "[]", "a list is not 1 to 256 finite numbers"},
                                   {"[1,2]", "[1,null]", "a list is not 1 to 256 finite numbers"},
                                   {"[1,2]", "[1,1e999]", "a list is not 1 to 256 finite numbers"},
                                   {"\"policy\":\"p\"", "\"policy\":7", "a book has no policy or no lists"},
                                   {"\"lists\":{", "\"list\":{", "a book has no policy or no lists"},
                                   {"\"books\":[", "\"books\":7,\"b\":[", "books is not a list"}};
  for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
    const char *at = strstr(good, damage[i][0]), *wrong;
    assert_non_null(at);
    char *bad = malloc(strlen(good) + 100);
    sprintf(bad, "%.*s%s%s", (int)(at - good), good, damage[i][1], at + strlen(damage[i][0]));
    ledger *other = opened();
    wrong = ledger_parse(other, bad);
    assert_string_equal(wrong ? wrong : "", damage[i][2]);
    assert_list(other, "p", "x", 0, NULL);
    ledger_close(other);
    free(bad);
  }
  for (size_t n = 0; n < strlen(good); n++) {
    char *bad = strndup(good, n);
    assert_non_null(ledger_parse(l, bad));
    free(bad);
  }
  free(good);
  ledger_close(l);
}

static void a_new_policy_begins_with_the_drafts_calibration(void **state) {
  (void)state;
  static const char good[] =
      "{\"schema\":\"dtrun.calibration/2\",\"greedy\":{\"guesses1\":[1,2],\"copy\":[3]},\"sampled\":{\"copy\":[4]}}";
  ledger *l = opened();
  assert_true(ledger_set(ledger_of(l, "old"), "copy", (double[]){7}, 1));
  assert_null(ledger_begin_with(l, good, "greedy"));
  assert_list(l, "new", "guesses1", 2, (double[]){1, 2});
  assert_list(l, "new", "copy", 1, (double[]){3});
  assert_list(l, "old", "copy", 1, (double[]){7});
  assert_true(ledger_set(ledger_of(l, "new"), "copy", (double[]){8}, 1));
  assert_list(l, "another", "copy", 1, (double[]){3});
  assert_list(l, "new", "copy", 1, (double[]){8});
  assert_null(ledger_begin_with(l, good, "sampled without the noise")); /* not measured: it gets nothing more */
  static const char *const bad[] = {"",
                                    "[]",
                                    "{}",
                                    "{\"schema\":\"dtrun.calibration/1\"}",
                                    "{\"schema\":\"dtrun.calibration/2\",\"greedy\":[]}",
                                    "{\"schema\":\"dtrun.calibration/2\",\"greedy\":{\"x\":[]}}",
                                    "{\"schema\":\"dtrun.calibration/2\",\"greedy\":{\"x\":[1],\"y\":[null]}}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ledger *other = opened();
    assert_non_null(ledger_begin_with(other, bad[i], "greedy"));
    assert_list(other, "p", "x", 0, NULL);
    ledger_close(other);
  }
  ledger_close(l);
}

static ledger *of_pair(dt_pair *pair, ledger_faults *faults) {
  ledger *l;
  ok(ledger_open(pair, "greedy", &l, faults, &err));
  return l;
}

static void what_was_kept_is_found_by_the_next_process(void **state) {
  (void)state;
  char *folder = temp_folder();
  ledger_faults faults;
  setenv("XDG_CACHE_HOME", folder, 1);
  dt_pair *pair;
  ok(dt_pair_open(&(dt_pair_options){.target = SOURCE_DIR "/models/mini-draft", .threads = 1, .backend = "cpu"}, &pair,
                  &err));
  for (int turn = 0; turn < 2; turn++) {
    ledger *l = of_pair(pair, &faults);
    assert_true(!faults.file && !faults.calibration);
    assert_list(l, "p", "x", turn, (double[]){7});
    ledger_set(ledger_of(l, "p"), "x", (double[]){7}, 1);
    assert_null(ledger_store(l));
    if (turn && truncate(ledger_path(l), 20)) fail_msg("truncate");
    ledger_close(l);
  }
  ledger *l = of_pair(pair, &faults);
  assert_string_equal(faults.file, "it is not a JSON object");
  assert_list(l, "p", "x", 0, NULL);
  assert_null(ledger_store(l));
  ledger_close(l);
  l = of_pair(pair, &faults);
  assert_null(faults.file); /* it was replaced, although nothing was kept */
  ledger_close(l);
  dt_pair_close(pair);
  unsetenv("XDG_CACHE_HOME");
  temp_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_policy_finds_its_own_lists_only),
      cmocka_unit_test(names_numbers_and_lists_have_limits),
      cmocka_unit_test(the_policy_used_least_recently_makes_room),
      cmocka_unit_test(a_file_has_the_same_lists_and_order_of_use),
      cmocka_unit_test(a_damaged_file_is_ignored_whole),
      cmocka_unit_test(a_new_policy_begins_with_the_drafts_calibration),
      cmocka_unit_test(what_was_kept_is_found_by_the_next_process),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
