/* Which tokenizer.json files are refused, and with which message; which files are accepted although they look
 * different. */
#include "small_tokenizer.h"

static void expect_refusal(const char *from, const char *to, const char *message) {
  char *json = small_json(from, to);
  tok *t;
  dt_error err;
  assert_int_equal(open_bytes(json, strlen(json), &t, &err), DT_EINPUT);
  assert_string_equal(err.message, message);
  free(json);
}

/* Replaces the beginning of an element. The rest of the element becomes an object that nobody reads. */
#define SEQUENCE(list) "{\"type\":\"Sequence\",\"pretokenizers\":[" list "],\"was\":\"\""
#define SPLIT(pattern, behavior)                                                                                       \
  "{\"type\":\"Split\",\"pattern\":{" pattern "},\"behavior\":" behavior ",\"invert\":false"
#define DECODERS(list) "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"}," list "]},\"rest\":{"
#define TEMPLATE(single, ids)                                                                                          \
  "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" single                                            \
  "],\"special_tokens\":{\"<|end|>\":{\"ids\":[" ids "]}},"
#define END "{\"SpecialToken\":{\"id\":\"<|end|>\",\"type_id\":0}}"
#define TEXT "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"

static void what_is_not_implemented_is_refused_by_name(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"NFKC\"}",
       "normalizer: found type \"NFKC\"; supported: NFC, Prepend, Replace, Sequence, null"},
      {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":7",
       "normalizer: found 7; supported: NFC, Prepend, Replace, Sequence, null"},
      {"{\"type\":\"NFC\"}", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Lowercase\"}]}",
       "normalizer: found type \"Lowercase\"; supported: NFC, Prepend, Replace, Sequence, null"},
      {"{\"type\":\"NFC\"}", "{\"type\":\"Sequence\"}", "normalizers: found nothing; supported: a list"},
      {"{\"type\":\"NFC\"}", "{\"type\":\"Prepend\",\"prepend\":\"\"}",
       "prepend: found \"\"; supported: a string of at least one character"},
      {"{\"type\":\"NFC\"}", "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" \"},\"content\":\"_\"}",
       "Replace: its pattern is not a \"String\"; supported: {\"String\": ...}"},
      {"{\"type\":\"NFC\"}", "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":7}",
       "content: found 7; supported: a string"},
      {"{\"type\":\"NFC\"}", "{\"type\":\"Prepend\",\"prepend\":\"\xFF\"}", "prepend is not UTF-8: JSON is UTF-8"},
      {"{\"type\":\"ByteLevel\"", "{\"type\":\"Whitespace\"",
       "pre_tokenizer: found type \"Whitespace\"; supported: ByteLevel, Split, Digits, Metaspace, Sequence, null"},
      {"{\"type\":\"ByteLevel\"", SEQUENCE("{\"type\":\"ByteLevel\"},{\"type\":\"Digits\"}"),
       "pre_tokenizer: a step after ByteLevel; supported: ByteLevel as the last"},
      {"{\"type\":\"ByteLevel\"", SPLIT("\"Glob\":\"x\"", "\"Isolated\""),
       "Split: its pattern is not a \"Regex\"; supported: {\"Regex\": ...}"},
      {"{\"type\":\"ByteLevel\"", SPLIT("\"Regex\":\"x\"", "\"MergedWithNext\""),
       "pre_tokenizer: behavior: found \"MergedWithNext\"; supported: \"Isolated\", \"Removed\", and "
       "\"MergedWithPrevious\" "
       "without invert"},
      {"{\"type\":\"ByteLevel\"", SPLIT("\"String\":\" \"", "\"MergedWithPrevious\",\"invert\":true"),
       "pre_tokenizer: behavior: found \"MergedWithPrevious\"; supported: \"Isolated\", \"Removed\", and "
       "\"MergedWithPrevious\" without invert"},
      {"{\"type\":\"ByteLevel\"", SPLIT("\"String\":\"\"", "\"Isolated\""),
       "String: found \"\"; supported: a string of at least one character"},
      {"{\"type\":\"ByteLevel\"", "{\"type\":\"Metaspace\",\"replacement\":\"__\"",
       "replacement: found \"__\"; supported: one character"},
      {"{\"type\":\"ByteLevel\"", "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"last\"",
       "prepend_scheme: found \"last\"; supported: \"first\", \"always\", \"never\""},
      {"\"add_prefix_space\":false", "\"add_prefix_space\":1", "add_prefix_space: found 1; supported: true and false"},
      {"\"trim_offsets\":true", "\"use_regex\":\"no\"", "use_regex: found \"no\"; supported: true and false"},
      {"\"decoder\":{\"type\":\"ByteLevel\"", "\"decoder\":{\"type\":\"WordPiece\"",
       "decoder: found type \"WordPiece\"; supported: ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, "
       "Sequence"},
      {"\"decoder\"", "\"decoded\"",
       "decoder: found nothing; supported: ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, Sequence"},
      {"\"decoder\":{\"type\":\"ByteLevel\"",
       "\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0",
       "decoder: a Strip without a Fuse before it; supported: after Fuse"},
      {"\"decoder\":{", "\"decoder\":" DECODERS("{\"type\":\"Strip\",\"content\":\" \",\"start\":2,\"stop\":0}"),
       "decoder: Strip: start: found 2; supported: 0 and 1"},
      {"\"decoder\":{", "\"decoder\":" DECODERS("{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}"),
       "decoder: Strip: stop: found 1; supported: 0"},
      {"\"decoder\":{", "\"decoder\":" DECODERS("{\"type\":\"ByteFallback\"}"),
       "decoder: ByteFallback after the tokens are fused; supported: Strip"},
      {"\"post_processor\":{\"type\":\"ByteLevel\"", "\"post_processor\":{\"type\":\"RobertaProcessing\"",
       "post_processor: found type \"RobertaProcessing\"; supported: ByteLevel, TemplateProcessing, Sequence, null"},
      {"\"post_processor\":{\"type\":\"ByteLevel\",", TEMPLATE(TEXT "," END, "261"),
       "post_processor: a TemplateProcessing that adds tokens after the text; supported: before it"},
      {"\"post_processor\":{\"type\":\"ByteLevel\",", TEMPLATE(END "," TEXT, "262"),
       "post_processor: it adds token 262, which neither vocabulary has"},
      {"\"post_processor\":{\"type\":\"ByteLevel\",", TEMPLATE(END "," TEXT, "-1"),
       "the id of \"<|end|>\" is -1: it must be a whole number from 0 to 4194303"},
      {"\"post_processor\":{\"type\":\"ByteLevel\",", TEMPLATE("{}," TEXT, "261"),
       "id: found nothing; supported: a string of at least one character"},
      {"\"type\":\"BPE\"", "\"type\":\"Unigram\"", "model: found type \"Unigram\"; supported: type \"BPE\""},
      {"\"dropout\":null", "\"dropout\":0.1", "model.dropout: found 0.1; supported: null and 0"},
      {"\"fuse_unk\":false", "\"byte_fallback\":3", "byte_fallback: found 3; supported: true and false"},
      {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"",
       "model.end_of_word_suffix: found \"</w>\"; supported: null"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_refusal(cases[i][0], cases[i][1], cases[i][2]);
}

/* Oniguruma and PCRE2 interpret these differently. */
static void patterns_that_are_read_in_two_ways_are_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"a.b", ". at byte 1 of the pattern is not supported"},
      {"^a", "^ at byte 0 of the pattern is not supported"},
      {"a$", "$ at byte 1 of the pattern is not supported"},
      {"a\\\\d", "\\d at byte 1 of the pattern is not supported"},
      {"[\\\\S]", "\\S at byte 1 of the pattern is not supported"},
      {"\\\\pL", "\\p without {} at byte 0 of the pattern is not supported"},
      {"a\\\\", "a lone \\ at byte 1 of the pattern is not supported"},
      {"[]a]", "an empty class at byte 1 of the pattern is not supported"},
      {"[[:alpha:]]", "a class inside a class at byte 1 of the pattern is not supported"},
      {"[a&&b]", "&& at byte 2 of the pattern is not supported"},
      {"[ab", "a class without its ] at byte 3 of the pattern is not supported"},
      {"(?<n>a)", "this kind of group at byte 0 of the pattern is not supported"},
      {"(?i)a", "this kind of group at byte 0 of the pattern is not supported"},
      {"a{,3}", "this kind of {} at byte 1 of the pattern is not supported"},
      {"a{2}+", "a possessive {} at byte 1 of the pattern is not supported"},
      {"a*", "the pattern matches an empty text"},
      {"(a", "the pattern: missing closing parenthesis"},
      {"\\\\p{Nonsense}", "the pattern: unknown property after \\P or \\p"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char split[256], message[256];
    snprintf(split, sizeof split, SPLIT("\"Regex\":\"%s\"", "\"Isolated\""), cases[i][0]);
    snprintf(message, sizeof message, "pre_tokenizer: %s", cases[i][1]);
    expect_refusal("{\"type\":\"ByteLevel\"", split, message);
  }
}

static void what_changes_nothing_is_accepted(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":null"},
      {"\"dropout\":null", "\"dropout\":0.0"},
      {"\"fuse_unk\":false", "\"byte_fallback\":false,\"ignore_merges\":false"},
      {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"\""},
      {"\"unk_token\":null", "\"unk_token\":\"<unk>\",\"byte_fallback\":true"}, /* the vocabulary has every byte */
      {"\"post_processor\":{\"type\":\"ByteLevel\",", "\"post_processor\":null,\"unknown\":{"},
      {"\"post_processor\":{\"type\":\"ByteLevel\",",
       "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"},
      {"\"truncation\":null", "\"truncation\":{\"max_length\":2}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tok *t = open_small(cases[i][0], cases[i][1]);
    EXPECT_IDS(t, "abc<|end|> a", 257, 261, 259);
    tok_close(t);
  }
}

/* Replaces each space by `spaces` spaces and, with `twice`, each of these by two more. Does " " have ids then? */
static dt_status encode_replaced(int spaces, bool twice) {
  char normalizer[4096], content[2048] = "";
  memset(content, 'a', (size_t)spaces);
  snprintf(normalizer, sizeof normalizer,
           "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\" "
           "\"},\"content\":\"%s\"}%s]}",
           content, twice ? ",{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"bb\"}" : "");
  tok *t = open_small("{\"type\":\"NFC\"}", normalizer);
  int32_t *ids = NULL;
  int n;
  dt_error err;
  dt_status status = tok_encode(t, " ", 1, false, &ids, &n, &err);
  if (status) assert_non_null(strstr(err.message, "longer than the limit of 1088 bytes"));
  free(ids);
  tok_close(t);
  return status;
}

static void replacements_do_not_grow_without_end(void **state) { /* a replacement of 64 bytes for one, and of 1024 */
  (void)state;
  assert_int_equal(encode_replaced(1087, false), DT_OK);
  assert_int_equal(encode_replaced(1088, false), DT_OK);
  assert_int_equal(encode_replaced(1089, false), DT_EINPUT);
  assert_int_equal(encode_replaced(544, true), DT_OK);
  assert_int_equal(encode_replaced(545, true), DT_EINPUT);
}

static void a_vocabulary_does_not_grow_without_end(void **state) { /* "c" becomes 64 + 1024 bytes at most */
  (void)state;
  for (int n = 1088; n <= 1089; n++) {
    char decoder[2048], content[1100] = "";
    memset(content, 'b', (size_t)n);
    snprintf(decoder, sizeof decoder,
             "\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"c\"},\"content\":\"%s\"", content);
    char *json = small_json("\"decoder\":{\"type\":\"ByteLevel\"", decoder);
    tok *t = NULL;
    dt_error err;
    dt_status status = open_bytes(json, strlen(json), &t, &err);
    assert_int_equal(status, n == 1088 ? DT_OK : DT_EINPUT);
    if (status) assert_non_null(strstr(err.message, "the vocabulary's text: the tokenizer's replacements make"));
    if (!status) tok_close(t);
    free(json);
  }
}

static void a_wrong_vocabulary_is_refused(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"\"abc\":257", "\"abc\":256", "\"ab\" and \"abc\" have the same id 256: an id stands for one token"},
      {"\"abc\":257", "\"ab\":257", "model.vocab lists \"ab\" twice: a token has one id"},
      {"\"abc\":257", "\"abc\":-1", "the id of \"abc\" is -1: it must be a whole number from 0 to 4194303"},
      {"\"abc\":257", "\"abc\":2.5", "the id of \"abc\" is 2.5: it must be a whole number from 0 to 4194303"},
      {"\"abc\":257", "\"abc\":4194304", "the id of \"abc\" is 4194304: it must be a whole number from 0 to 4194303"},
      {"\"abc\":257", "\"abc\":1e300", "the id of \"abc\" is 1e+300: it must be a whole number from 0 to 4194303"},
      {"\"abc\":257", "\"abc\":1e999", "the id of \"abc\" is inf: it must be a whole number from 0 to 4194303"},
      {"\"abc\":257", "\"abc\":\"257\"", "the id of \"abc\" is \"257\": it must be a whole number from 0 to 4194303"},
      {"\"abc\":257", "\"abc\":null", "the id of \"abc\" is null: it must be a whole number from 0 to 4194303"},
      {"\"abc\":257", "\"abc\":[257]", "the id of \"abc\" is a list: it must be a whole number from 0 to 4194303"},
      {"\"abc\":257", "\"a\xFF\":257", "a token's string is not UTF-8 at its byte 1: JSON is UTF-8"},
      {"\"vocab\":{", "\"vocab\":[],\"was\":{", "model.vocab: found a list; supported: an object"},
      {"\"vocab\":{", "\"was\":{", "model.vocab: found nothing; supported: an object"},
      {"\"model\":{", "\"model\":[],\"was\":{", "model: found a list; supported: type \"BPE\""},
      {"\"model\":{", "\"was\":{", "model: found nothing; supported: type \"BPE\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_refusal(cases[i][0], cases[i][1], cases[i][2]);
}

static void wrong_merges_are_refused(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"\"ab c\"", "\"abc\"", "model.merges: merge 1 is \"abc\": it must be \"a b\" or [\"a\", \"b\"]"},
      {"\"ab c\"", "\"a b c\"", "model.merges: merge 1 is \"a b c\": it must be \"a b\" or [\"a\", \"b\"]"},
      {"\"ab c\"", "\" c\"", "model.merges: merge 1 is \" c\": it must be \"a b\" or [\"a\", \"b\"]"},
      {"\"ab c\"", "[\"ab\",\"c\",\"d\"]", "model.merges: merge 1 is a list: it must be \"a b\" or [\"a\", \"b\"]"},
      {"\"ab c\"", "[\"ab\",3]", "model.merges: merge 1 is a list: it must be \"a b\" or [\"a\", \"b\"]"},
      {"\"ab c\"", "[\"\",\"ab\"]", "model.merges: merge 1 is a list: it must be \"a b\" or [\"a\", \"b\"]"},
      {"\"ab c\"", "[]", "model.merges: merge 1 is a list: it must be \"a b\" or [\"a\", \"b\"]"},
      {"\"ab c\"", "null", "model.merges: merge 1 is null: it must be \"a b\" or [\"a\", \"b\"]"},
      {"\"ab c\"", "\"xy c\"", "model.merges: merge 1 joins \"xy\" and \"c\": model.vocab lacks the first"},
      {"\"ab c\"", "\"c xy\"", "model.merges: merge 1 joins \"c\" and \"xy\": model.vocab lacks the second"},
      {"\"ab c\"", "\"c ab\"", "model.merges: merge 1 joins \"c\" and \"ab\": model.vocab lacks the two joined"},
      {"\"merges\":", "\"merges\":{},\"was\":", "model.merges: found an object without a type; supported: a list"},
      {"\"merges\":", "\"was\":", "model.merges: found nothing; supported: a list"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_refusal(cases[i][0], cases[i][1], cases[i][2]);
}

static void wrong_added_tokens_are_refused(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"\"id\":261", "\"id\":260", "\"bc\" and \"<|end|>\" have the same id 260: an id stands for one token"},
      {"\"content\":\"<|end|>\"", "\"content\":\"ab\"",
       "\"ab\" has id 256 in model.vocab and 261 in added_tokens: they must be equal"},
      {"\"special\":true}]", "\"special\":true},{\"id\":262,\"content\":\"<|end|>\"}]",
       "added_tokens lists \"<|end|>\" twice: a token has one id"},
      {"\"id\":261,", "", "the id of \"<|end|>\" is nothing: it must be a whole number from 0 to 4194303"},
      {"\"content\":\"<|end|>\"", "\"content\":\"\"",
       "added_tokens: content: found \"\"; supported: a string of at least one character"},
      {"\"content\":\"<|end|>\"", "\"content\":5",
       "added_tokens: content: found 5; supported: a string of at least one character"},
      {"\"content\":\"<|end|>\"", "\"content\":\"<\xFF>\"",
       "a token's string is not UTF-8 at its byte 1: JSON is UTF-8"},
      {"\"special\":true}]", "\"special\":true},3]",
       "added_tokens: content: found nothing; supported: a string of at least one character"},
      {"\"added_tokens\":[", "\"added_tokens\":7,\"was\":[", "added_tokens: found 7; supported: a list"},
      {"\"normalized\":false", "\"normalized\":0", "normalized: found 0; supported: true and false"},
      {"\"id\":261,\"content\":\"<|end|>\"",
       "\"id\":-5,\"content\":\"<|a very long and winding name with\\nline ends in it|>\"",
       "the id of \"<|a very long and winding name with?l...\" is -5: it must be a whole number from 0 to 4194303"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_refusal(cases[i][0], cases[i][1], cases[i][2]);
}

static void a_truncated_file_is_refused_wherever_it_ends(void **state) {
  (void)state;
  char *json = small_json(NULL, NULL);
  tok *t;
  dt_error err;
  for (size_t n = 0; n < strlen(json); n += n < 1200 || n > strlen(json) - 100 ? 1 : 37)
    assert_int_equal(open_bytes(json, n, &t, &err), DT_EINPUT);
  free(json);
}

static void a_file_that_is_not_json_is_refused(void **state) {
  (void)state;
  tok *t;
  dt_error err;
  static const char *const files[] = {"[]", "null", "{} {}", "{\"model\":", "\xFF\xFE", "tokenizer"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    assert_int_equal(open_bytes(files[i], strlen(files[i]), &t, &err), DT_EINPUT);
  assert_int_equal(open_bytes("{}\0{}", 5, &t, &err), DT_EINPUT);

  enum { DEEP = 200000 };
  char *bomb = malloc(6 * DEEP + 1), *at = bomb;
  memset(bomb, '[', DEEP);
  assert_int_equal(open_bytes(bomb, DEEP, &t, &err), DT_EINPUT);
  for (int i = 0; i < DEEP; i++) at = stpcpy(at, "{\"a\":");
  assert_int_equal(open_bytes(bomb, (size_t)(at - bomb), &t, &err), DT_EINPUT);
  free(bomb);
}

static void a_file_that_is_not_there_is_named(void **state) {
  (void)state;
  tok *t = NULL;
  dt_error err;
  assert_int_equal(tok_open("/nowhere/tokenizer.json", &t, &err), DT_EINPUT);
  assert_non_null(strstr(err.message, "/nowhere/tokenizer.json"));
  assert_null(t);
  tok_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_not_implemented_is_refused_by_name),
      cmocka_unit_test(patterns_that_are_read_in_two_ways_are_refused),
      cmocka_unit_test(what_changes_nothing_is_accepted),
      cmocka_unit_test(replacements_do_not_grow_without_end),
      cmocka_unit_test(a_vocabulary_does_not_grow_without_end),
      cmocka_unit_test(a_wrong_vocabulary_is_refused),
      cmocka_unit_test(wrong_merges_are_refused),
      cmocka_unit_test(wrong_added_tokens_are_refused),
      cmocka_unit_test(a_truncated_file_is_refused_wherever_it_ends),
      cmocka_unit_test(a_file_that_is_not_json_is_refused),
      cmocka_unit_test(a_file_that_is_not_there_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
