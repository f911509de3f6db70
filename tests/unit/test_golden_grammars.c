/* Grammars, regular expressions and bounds of integers, compared with the verdicts of other programs;
 * golden/make_grammars.py lists these. */
#include "byte_grammar.h"

#include "grammar/regex.h"
#include "grammar/schema.h"

#include <cjson/cJSON.h>
#include <stdio.h>

static cJSON *golden(void) {
  static cJSON *all;
  if (all) return all;
  FILE *f = fopen(SOURCE_DIR "/tests/golden/grammars.json", "rb");
  assert_non_null(f);
  char *text = NULL;
  size_t len = 0;
  assert_true(getdelim(&text, &len, 0, f) > 0);
  fclose(f);
  all = cJSON_Parse(text);
  free(text);
  assert_non_null(all);
  return all;
}

static const char *text_of(const cJSON *of, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(of, name));
  assert_non_null(text);
  return text;
}

/* Writes the text as JSON in the one form that grammars accept. */
static void spell(const char *text, char *out, size_t room) {
  cJSON string = {.type = cJSON_String, .valuestring = (char *)text};
  assert_true(cJSON_PrintPreallocated(&string, out, (int)room, false));
}

/* Compares every text of the case with the verdicts of this name. */
static void compare(const cJSON *of, const char *what, const char *gbnf, const char *verdicts, bool as_json) {
  vocabulary *v = bytes();
  masks *m = read_grammar(v, gbnf);
  const char *verdict = text_of(of, verdicts);
  const cJSON *text;
  cJSON_ArrayForEach(text, cJSON_GetObjectItem(of, "texts")) {
    char spelled[1024];
    snprintf(spelled, sizeof spelled, "%s", text->valuestring);
    if (as_json) spell(text->valuestring, spelled, sizeof spelled - 64);
    if (takes(m, spelled) != (*verdict == '1'))
      fail_msg("%s: '%s' should be %s", what, spelled, *verdict == '1' ? "taken" : "refused");
    verdict++;
  }
  assert_int_equal(*verdict, '\0');
  masks_release(m);
  vocabulary_close(v);
}

static void recursive_grammars_take_what_xgrammar_takes(void **state) {
  (void)state;
  const cJSON *of;
  int n = 0;
  cJSON_ArrayForEach(of, cJSON_GetObjectItem(golden(), "grammars")) {
    compare(of, text_of(of, "grammar"), text_of(of, "grammar"), "takes", false);
    n++;
  }
  assert_int_equal(n, 50);
}

static void expressions_match_what_quickjs_matches(void **state) {
  (void)state;
  const cJSON *of;
  cJSON_ArrayForEach(of, cJSON_GetObjectItem(golden(), "regexes")) {
    const char *regex = text_of(of, "regex");
    char *gbnf;
    ok(regex_to_gbnf(regex, &gbnf, &err));
    compare(of, regex, gbnf, "takes", false);
    free(gbnf);
    cJSON *schema = cJSON_CreateObject();
    cJSON_AddStringToObject(schema, "pattern", regex);
    char *json = cJSON_PrintUnformatted(schema);
    ok(schema_to_gbnf(json, NULL, &gbnf, &err));
    compare(of, json, gbnf, "finds", true);
    free(gbnf), free(json);
    cJSON_Delete(schema);
  }
}

static void integers_are_between_bounds_as_jsonschema_has_them(void **state) {
  (void)state;
  const cJSON *of;
  cJSON_ArrayForEach(of, cJSON_GetObjectItem(golden(), "integers")) {
    char *gbnf;
    ok(schema_to_gbnf(text_of(of, "schema"), NULL, &gbnf, &err));
    compare(of, text_of(of, "schema"), gbnf, "takes", false);
    free(gbnf);
  }
}

/* Counts the texts that are valid, and those of them that the grammar takes; it takes no others. */
static void count_valid(const cJSON *of, const char *gbnf, int *valid, int *taken) {
  vocabulary *v = bytes();
  masks *m = read_grammar(v, gbnf);
  const char *verdict = text_of(of, "takes");
  const cJSON *text;
  cJSON_ArrayForEach(text, cJSON_GetObjectItem(of, "texts")) {
    const bool is_valid = *verdict++ == '1', is_taken = takes(m, text->valuestring);
    if (is_taken && !is_valid) fail_msg("%s takes %s", text_of(of, "schema"), text->valuestring);
    *valid += is_valid;
    *taken += is_taken;
  }
  masks_release(m);
  vocabulary_close(v);
}

static void schemas_take_nothing_that_jsonschema_refuses(void **state) {
  (void)state;
  const cJSON *of;
  int compiled = 0, n = 0, valid = 0, taken = 0;
  cJSON_ArrayForEach(of, cJSON_GetObjectItem(golden(), "schemas")) {
    char *gbnf;
    dt_error why;
    n++;
    if (schema_to_gbnf(text_of(of, "schema"), &(schema_options){.open = true}, &gbnf, &why)) {
      if (strstr(why.message, "no value matches")) assert_null(strchr(text_of(of, "takes"), '1'));
      continue;
    }
    compiled++;
    count_valid(of, gbnf, &valid, &taken);
    free(gbnf);
  }
  print_message("%d of %d schemas compiled, %d of %d valid texts taken\n", compiled, n, taken, valid);
  assert_true(100 * compiled >= 70 * n && 100 * taken >= 90 * valid);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recursive_grammars_take_what_xgrammar_takes),
      cmocka_unit_test(expressions_match_what_quickjs_matches),
      cmocka_unit_test(integers_are_between_bounds_as_jsonschema_has_them),
      cmocka_unit_test(schemas_take_nothing_that_jsonschema_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
