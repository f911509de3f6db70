/* Listing and removing models on this machine: calls with wrong arguments. tests/cli/models.sh tests the rest. */
#include "wrong_arguments.h"

#include "host.h"

#define REFUSED(call, part) HOST_REFUSES(call, DT_EINPUT, part)
#define NULL_REFUSED(call) REFUSED(call, "is NULL")

static bool never_asked(void *user, const char *path, uint64_t bytes) {
  (void)user, (void)path, (void)bytes;
  fail_msg("asked about models that do not exist");
  return false;
}

static void wrong_names_are_refused(void **unused) {
  (void)unused;
  static const char *const WRONG[] = {"", ".", "..", "../x", "/", "a", "a/..", "a/b/c", "a/b:", "a\nb", "mini-target"};
  dtl_model *list;
  bool removed = true;
  char *script, *folder, *names;
  int n;
  NULL_REFUSED(dtl_models(NULL, &n, err));
  NULL_REFUSED(dtl_models(&list, NULL, err));
  dtl_models_free(NULL, 3);
  NULL_REFUSED(dtl_remove_model(NULL, never_asked, NULL, &removed, err));
  NULL_REFUSED(dtl_remove_model("a/b", NULL, NULL, &removed, err));
  NULL_REFUSED(dtl_remove_model("a/b", never_asked, NULL, NULL, err));
  setenv("HF_HUB_CACHE", "/dev/null/cache", 1);
  for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
    REFUSED(dtl_remove_model(WRONG[i], never_asked, NULL, &removed, err), "");
  assert_false(removed);
  char *cache = dtl_hub_folder();
  assert_string_equal(cache, "/dev/null/cache");
  free(cache);
  NULL_REFUSED(dtl_named_model(NULL, &script, &folder, &names, err));
  NULL_REFUSED(dtl_named_model("a", NULL, &folder, &names, err));
  NULL_REFUSED(dtl_named_model("a", &script, NULL, &names, err));
  NULL_REFUSED(dtl_named_model("a", &script, &folder, NULL, err));
  assert_int_equal(dtl_named_model("nonsense", &script, &folder, &names, NULL), DT_OK);
  assert_null(script);
  assert_null(folder);
  free(names);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_names_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
