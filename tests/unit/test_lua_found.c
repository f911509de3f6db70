/* Finding the draft that belongs to a target, and what is reported about loading. */
#include "models/found.h"
#include "models/hub.h"
#include "models/load.h"
#include "temp_files.h"
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

static char *folder; /* the folder of models */

static void model(const char *name, const char *of) {
  char path[512], to[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(to, sizeof to, SOURCE_DIR "/models/%s", of);
  assert_int_equal(symlink(to, path), 0);
}

/* Makes a folder with a config.json but no model. */
static void no_model(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(mkdir(path, 0700), 0);
  temp_write(path, "config.json", "{}", 2);
}

static void finds(const char *target, found_kind kind, const char *end) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, target);
  char *found = found_draft(path, kind);
  if (!found || strcmp(found + strlen(found) - strlen(end), end))
    fail_msg("found %s, not %s", found ? found : "nothing", end);
  free(found);
}

static int begin(void **state) {
  (void)state;
  folder = temp_folder();
  setenv("HF_HUB_CACHE", folder, 1);
  return 0;
}

static int end(void **state) {
  (void)state;
  temp_remove(folder);
  return 0;
}

static void heads_come_first_then_what_lies_beside(void **state) {
  (void)state;
  model("target", "mini-target");
  finds("target", FOUND_ANY, "/models/mini-head");
  finds("target", FOUND_HEADS, "/models/mini-head");
  model("a-draft", "mini-draft");
  finds("target", FOUND_ANY, "/models/mini-head");
  model("c-head", "mini-head");
  model("b-head", "mini-head");
  finds("target", FOUND_ANY, "/b-head");
  finds("target/", FOUND_HEADS, "/b-head");
}

static void a_target_that_nothing_was_made_for_has_none(void **state) {
  (void)state;
  char path[512];
  model("target", "mini-draft");
  snprintf(path, sizeof path, "%s/target", folder);
  assert_null(found_draft(path, FOUND_ANY));
  snprintf(path, sizeof path, "%s/nowhere", folder);
  assert_null(found_draft(path, FOUND_ANY));
}

/* The target counts, too: next to FOUND_MOST - 2 other models the draft is the last one looked at, and with one more it
 * is not found. */
static void so_many_files_are_looked_at(void **state) {
  (void)state;
  model("a", "mini-target");
  model("z", "mini-head");
  char name[16];
  for (int i = 0; i < FOUND_MOST - 2; i++) {
    snprintf(name, sizeof name, "m%03d", i);
    no_model(name);
  }
  finds("a", FOUND_HEADS, "/z");
  no_model("n");
  char path[512];
  snprintf(path, sizeof path, "%s/a", folder);
  assert_null(found_draft(path, FOUND_HEADS));
}

static void add_name(void *user, const char *id, const char *path) {
  char *seen = user, *snapshot = hub_snapshot(path);
  strcat(strcat(seen, " "), id);
  if (snapshot) strcat(strcat(seen, "="), snapshot + strlen(path) + 1);
  free(snapshot);
}

static void the_cache_is_looked_through(void **state) {
  (void)state;
  char seen[512] = "", path[256];
  for (int i = 0; i < 3; i++) {
    static const char *const names[] = {"models--o--b", "models--o--a", "models--o--empty"};
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    mkdir(path, 0700);
    strcat(path, "/refs");
    mkdir(path, 0700);
    if (i < 2) temp_write(path, "main", i ? "abc\n" : "def", i ? 4 : 3);
  }
  hub_each(add_name, seen);
  assert_string_equal(seen, " o/a=snapshots/abc o/b=snapshots/def o/empty");
}

static void loading_is_told_of_from_a_second_on(void **state) {
  (void)state;
  char text[40];
  assert_false(load_took(999, text, sizeof text) || load_took(1000, text, sizeof text));
  assert_string_equal(text, "");
  assert_true(load_took(1001, text, sizeof text));
  assert_string_equal(text, "loaded in 1.0 s");
  assert_true(load_took(1440, text, sizeof text));
  assert_string_equal(text, "loaded in 1.4 s");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(heads_come_first_then_what_lies_beside, begin, end),
      cmocka_unit_test_setup_teardown(a_target_that_nothing_was_made_for_has_none, begin, end),
      cmocka_unit_test_setup_teardown(so_many_files_are_looked_at, begin, end),
      cmocka_unit_test_setup_teardown(the_cache_is_looked_through, begin, end),
      cmocka_unit_test(loading_is_told_of_from_a_second_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
