/* JSON schemas as grammars: texts that they accept, bounds and messages. */
#include "byte_grammar.h"

#include "grammar/exact_json.h"
#include "grammar/schema.h"
#include "text/utf8.h"

typedef struct {
  const char *schema, *yes[4], *no[4];
} texts;

static void check_texts(const vocabulary *v, const texts *of, const schema_options *options) {
  char *gbnf;
  ok(schema_to_gbnf(of->schema, options, &gbnf, &err));
  masks *m = read_grammar(v, gbnf);
  for (int k = 0; k < 4 && of->yes[k]; k++)
    if (!takes(m, of->yes[k])) fail_msg("%s: refuses '%s'", of->schema, of->yes[k]);
  for (int k = 0; k < 4 && of->no[k]; k++)
    if (takes(m, of->no[k])) fail_msg("%s: takes '%s'", of->schema, of->no[k]);
  masks_release(m);
  free(gbnf);
}

static void texts_of_a_schema_are_those_that_it_takes(void **state) {
  (void)state;
  static const texts of[] = {
      {"true", {"1", "[]", "{\"a\":[1,null]}", "\"\\u00e9\""}, {"", "01", "[1,]", "\"\\ud800\""}},
      {"{\"type\":\"integer\"}", {"0", "-12"}, {"1.5", "1e3", "01", "true"}},
      {"{\"type\":[\"number\",\"null\"]}", {"1.5e-3", "null", "7"}, {"\"7\"", ".5", "1."}},
      {"{\"type\":\"string\",\"minLength\":1,\"maxLength\":2}",
       {"\"a\"", "\"\xc3\xa9z\"", "\"\\n\""},
       {"\"\"", "\"abc\"", "\"\n\""}},
      {"{\"enum\":[\"a\\\"b\",1,null],\"type\":[\"string\",\"integer\"]}", {"\"a\\\"b\"", "1"}, {"null", "\"a\""}},
      {"{\"const\":{\"k\":[true]}}", {"{\"k\":[true]}"}, {"{}", "true"}},
      {"{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"maxItems\":3}",
       {"[true, false]", "[true,true,true]"},
       {"[true]", "[1,2]", "[true,true,true,true]"}},
      {"{\"type\":\"array\",\"maxItems\":0}", {"[]", "[ ]"}, {"[1]"}},
      {"{\"type\":\"array\",\"minItems\":1}", {"[1]", "[[],{}]"}, {"[]"}},
      {"{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":true,\"c\":{\"type\":\"null\"}},\"required\":[\"b\"]}",
       {"{\"b\":1}", "{\"a\":null,\"b\": 2}", "{\"b\":{},\"c\":null}", "{\"a\":null,\"b\":\"\",\"c\":null}"},
       {"{}", "{\"a\":null}", "{\"c\":null,\"b\":1}", "{\"b\":1,\"d\":1}"}},
      {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}}}",
       {"{}", "{\"b\":null}", "{\"a\":null}", "{\"a\":null,\"b\":null}"},
       {"{,}", "{\"b\":null,}"}},
      {"{\"type\":\"object\",\"additionalProperties\":false}", {"{}"}, {"{\"a\":1}"}},
      {"{\"properties\":{\"ab\":{\"type\":\"null\"},\"\":true,\"a\\\"\":true},\"required\":[\"ab\"],"
       "\"additionalProperties\":{\"type\":\"integer\"}}",
       {"{\"ab\":null}", "{\"ab\":null,\"a\":1,\"abc\":2}", "{\"ab\":null,\"\":[],\"b\":1,\"\\u001f\":3}",
        "{\"ab\":null,\"a\\\"\":true,\"a\\\\\": 4}"},
       {"{\"ab\":1}", "{\"ab\":null,\"ab\":1}", "{\"ab\":null,\"b\":1,\"a\\\"\":1}", "{\"ab\":null,\"a\\u0062\":1}"}},
      {"{\"properties\":{\"a\":true},\"additionalProperties\":true}",
       {"{}", "{\"b\":[]}", "{\"a\":1,\"b\":1}"},
       {"{\"b\":1,\"a\":1}", "{,\"b\":1}"}},
      {"{\"additionalProperties\":{\"type\":\"null\"}}", {"{}", "{\"a\":null, \"\":null}"}, {"{\"a\":1}"}},
      {"{\"const\":12345678901234567890,\"type\":[\"integer\"]}",
       {"12345678901234567890"},
       {"12345678901234567000", "1.2345678901234567e19"}},
      {"{\"type\":[\"string\",\"integer\"],\"pattern\":\"^a$\",\"minimum\":7}", {"7", "\"a\""}, {"6", "\"b\""}},
      {"{\"enum\":[1.50,{\"a\":-0}]}", {"1.50", "{\"a\":-0}"}, {"1.5"}},
      {"{\"type\":\"integer\",\"minimum\":-0.5,\"exclusiveMaximum\":2.5e0}", {"0", "1", "2"}, {"-1", "3", "-0", "00"}},
      {"{\"type\":\"integer\",\"minimum\":999999999999999999999999999999}",
       {"999999999999999999999999999999"},
       {"999999999999999999999999999998", "1000000000000000000000000000000"}},
      {"{\"type\":\"integer\",\"exclusiveMaximum\":-999999999999999999999999999999}",
       {"-1000000000000000000000000000000"},
       {"-999999999999999999999999999999"}},
      {"{\"type\":\"integer\",\"exclusiveMinimum\":0.00001e-999999,\"maximum\":1e2}", {"1", "100"}, {"0", "101"}},
      {"{\"type\":\"integer\"}", {"999999999999999999"}, {"1000000000000000000"}},
      {"{\"type\":[\"integer\",\"null\"],\"minimum\":5}",
       {"5", "999999999999999999", "null"},
       {"4", "-5", "1000000000000000000"}},
      {"{\"type\":\"integer\",\"maximum\":5}", {"5", "0", "-999999999999999999"}, {"6", "-1000000000000000000"}},
      {"{\"pattern\":\"^[\\\\\\\\\\\"a-z]{2}$\"}",
       {"\"ab\"", "\"\\\\\\\"\""},
       {"\"a\"", "\"abc\"", "\"\\u0061b\"", "\"A\""}},
      {"{\"pattern\":\"b|^[^\\\\u0000-\\\\u001e]$\"}",
       {"\"abc\"", "\"\\u001f\"", "\"\\n\\u0001b\""},
       {"\"\\u001e\"", "\"ac\"", "\"b"}},
      {"{\"type\":\"object\"}", {"{}", "{\"a\":1,\"b\":[]}"}, {"[]", "{a:1}"}},
      {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}]}",
       {"null", "[null,[null]]"},
       {"[1]", "{}"}},
      {"{\"$ref\":\"#/$defs/n\",\"$defs\":{\"x\":true,\"n\":{\"type\":\"null\",\"title\":\"t\"}}}", {"null"}, {"1"}},
  };
  static const char *const bad[][2] = {
      {"", "not JSON"},
      {"{} x", "JSON schema, line 1, column 4: not JSON"},
      {"{\"a\":\n\n 1 2}", "JSON schema, line 3, column 4: not JSON"},
      {"{\"const\":\"\xff\"}", "byte 10 is not UTF-8"},
      {"{\"const\":\"a\\u0000\"}", "\\u0000 in a string is not supported"},
      {"{\"const\":{\"a\":1,\"b\":2,\"a\":3}}", "the name a is there twice in one object"},
      {"{\"$ref\":\"#/$defs/a\",\"$defs\":[true]}", "$ref: there is no #/$defs/a in the schema"},
      {"{\"$ref\":3}", "$ref: expected a text"},
      {"3", "a schema must be an object, true or false"},
      {"false", "no value matches the schema"},
      {"{\"type\":\"string\",\"enum\":[1]}", "no value matches the schema"},
      {"{\"type\":\"string\",\"const\":1}", "no value matches the schema"},
      {"{\"minLength\":2,\"maxLength\":1,\"type\":\"string\"}", "no value matches the schema"},
      {"{\"type\":\"integer\",\"minimum\":2,\"maximum\":1}", "no value matches the schema"},
      {"{\"type\":\"integer\",\"exclusiveMinimum\":2,\"exclusiveMaximum\":3}", "no value matches the schema"},
      {"{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":false}}", "no value matches the schema"},
      {"{\"oneOf\":[]}", "JSON schema: oneOf: expected a list of schemas"},
      {"{\"items\":{\"oneOf\":{}}}", "JSON schema, #/items: oneOf: expected a list of schemas"},
      {"{\"anyOf\":[]}", "anyOf: expected a list of schemas"},
      {"{\"items\":{\"$dynamicRef\":\"#a\"}}", "JSON schema, #/items: the keyword $dynamicRef is not supported"},
      {"{\"type\":\"text\"}", "type: text is not supported; string, integer"},
      {"{\"type\":3}", "JSON schema: type: string, integer"},
      {"{\"properties\":{\"a\":true,\"b\":{\"anyOf\":[true,{\"pattern\":\"a(\"}]}}}",
       "JSON schema, #/properties/b/anyOf/1: pattern, column 2: this parenthesis"},
      {"{\"items\":{\"items\":true},\"minItems\":-1}", "JSON schema: minItems: expected"},
      {"{\"minLength\":-1}", "minLength: expected a whole number"},
      {"{\"minLength\":1.5}", "minLength: expected a whole number"},
      {"{\"properties\":{\"a\":{\"maxLength\":65536},\"b\":{\"maxLength\":65537}}}",
       "#/properties/b: maxLength: the bounds of the schema up to here make a grammar of more than 262144 parts: lower "
       "them"},
      {"{\"items\":{\"minLength\":262144}}", "#/items: minLength: the bounds of the schema"},
      {"{\"properties\":{\"a\":{\"maxItems\":131073}}}", "#/properties/a: maxItems: the bounds of the schema"},
      {"{\"required\":\"a\"}", "required: expected a list"},
      {"{\"required\":[1]}", "required: expected names"},
      {"{\"properties\":[1]}", "properties: expected an object"},
      {"{\"enum\":1}", "enum: expected a list of values"},
      {"{\"not\":{\"properties\":[1]}}", "#/not: properties: expected an object"},
      {"{\"oneOf\":[{\"patternProperties\":[\"a\"]},{\"type\":\"null\"}]}", "patternProperties: expected an object"},
      {"{\"not\":{\"enum\":{\"a\":1}}}", "#/not: enum: expected a list of values"},
      {"{\"not\":{\"enum\":\"a\"}}", "#/not: enum: expected a list of values"},
      {"{\"const\":01}", "01 is not a JSON number"},
      {"[1.]", "1. is not a JSON number"},
      {"{\"pattern\":\"a(\"}", "pattern, column 2: this parenthesis is not closed"},
      {"{\"pattern\":1}", "pattern: expected a regular expression"},
      {"{\"minimum\":\"1\"}", "minimum: expected a number"},
      {"{\"type\":\"integer\",\"minimum\":1e30}", "minimum: more than 30 digits"},
      {"{\"type\":\"integer\",\"minimum\":1e999999999999}", "minimum: more than 30 digits"},
      {"{\"minimum\":1e999999999999}", "minimum: more than 60 digits"},
      {"{\"multipleOf\":0}", "multipleOf: expected a number greater than 0"},
      {"{\"multipleOf\":0.12345}", "multipleOf: 0.12345 has too many digits"},
      {"{\"items\":{\"type\":\"string\"},\"uniqueItems\":true}",
       "uniqueItems is supported only for items with at most"},
      {"{\"contains\":true,\"maxContains\":3}", "maxContains is not supported"},
      {"{\"contains\":true,\"minContains\":2}", "minContains: only 0 and 1 are supported"},
      {"{\"minProperties\":2}", "minProperties: more than the listed properties and one other"},
      {"{\"not\":{\"contains\":true}}", "JSON schema, #/not: not: contains cannot be negated"},
      {"{\"oneOf\":[{\"type\":\"array\"},{\"type\":\"array\",\"contains\":true}]}",
       "oneOf: one value may match both branches 0 and 1, and contains in the second cannot be negated"},
      {"{\"$ref\":\"#/x\"}", "$ref: there is no #/x"},
      {"{\"$ref\":\"#\"}", "JSON schema: $ref: # leads back to itself: put a property or an item in between"},
      {"{\"anyOf\":[true,{\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"b\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
       "a\"}]},\"a\":{\"$ref\":\"#/$defs/b\"}}}",
       "#/$defs/b/anyOf/0: $ref: #/$defs/a leads back to itself"},
  };
  vocabulary *v = bytes();
  char *gbnf;
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) check_texts(v, &of[i], NULL);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    fails(schema_to_gbnf(bad[i][0], NULL, &gbnf, &err), DT_EINPUT, bad[i][1]);
  char *named = repeated("{\"properties\":{\"", "\xc3\xa9", 200, "\":3}}"); /* long places are cut between characters */
  dt_error why;
  assert_int_equal(schema_to_gbnf(named, NULL, &gbnf, &why), DT_EINPUT);
  assert_non_null(strstr(why.message, "JSON schema, #/properties/\xc3\xa9"));
  assert_non_null(strstr(why.message, "\xc3\xa9: a schema must be an object, true or false"));
  assert_int_equal(utf8_valid_prefix(why.message, strlen(why.message)), strlen(why.message));
  free(named);
  for (int depth = SCHEMA_DEPTH - 1; depth <= SCHEMA_DEPTH + 1; depth++) {
    char *deep = repeated("", "{\"items\":", depth, "true"), *last = repeated(deep, "}", depth, "");
    if (depth > SCHEMA_DEPTH) {
      fails(schema_to_gbnf(last, NULL, &gbnf, &err), DT_EINPUT, "more than 400 nested schemas");
    } else {
      ok(schema_to_gbnf(last, NULL, &gbnf, &err));
      free(gbnf);
    }
    free(deep), free(last);
  }
  for (int digits = EXACT_JSON_DIGITS - 1; digits <= EXACT_JSON_DIGITS + 1; digits++) {
    char *number = repeated("{\"const\":", "7", digits, "}");
    if (digits > EXACT_JSON_DIGITS) {
      fails(schema_to_gbnf(number, NULL, &gbnf, &err), DT_EINPUT, "a number of more than 40 digits at byte 9");
    } else {
      ok(schema_to_gbnf(number, NULL, &gbnf, &err));
      free(gbnf);
    }
    free(number);
  }
  vocabulary_close(v);
}

/* With the meaning of the standard, integers may be longer. */
static void open_integers_have_up_to_30_digits(void **state) {
  (void)state;
  static const texts of[] = {
      {"{\"type\":\"integer\"}", {"999999999999999999999999999999"}, {"1000000000000000000000000000000"}},
      {"{\"type\":[\"integer\",\"null\"],\"minimum\":5}",
       {"5", "999999999999999999999999999999", "null"},
       {"4", "-5", "1000000000000000000000000000000"}},
      {"{\"type\":\"integer\",\"maximum\":5}",
       {"5", "0", "-999999999999999999999999999999"},
       {"6", "-1000000000000000000000000000000"}},
  };
  vocabulary *v = bytes();
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) check_texts(v, &of[i], &(schema_options){.open = true});
  vocabulary_close(v);
}

static void an_enum_has_at_most_10000_values(void **state) {
  (void)state;
  for (int n = SCHEMA_VALUES; n <= SCHEMA_VALUES + 1; n++) {
    char *schema = repeated("{\"enum\":[1", ",1", n - 1, "]}"), *gbnf;
    if (n > SCHEMA_VALUES) {
      fails(schema_to_gbnf(schema, NULL, &gbnf, &err), DT_EINPUT, "enum: more than 10000 values");
    } else {
      ok(schema_to_gbnf(schema, NULL, &gbnf, &err));
      free(gbnf);
    }
    free(schema);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_of_a_schema_are_those_that_it_takes),
      cmocka_unit_test(open_integers_have_up_to_30_digits),
      cmocka_unit_test(an_enum_has_at_most_10000_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
