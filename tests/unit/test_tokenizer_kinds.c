/* Small tokenizers of every supported kind: they give the ids and texts of Hugging Face
 * (tests/golden/tokenizer/kinds.json), and a text can be read token by token. */
#include "text/text.h"
#include "tokenizer_golden.h"

/* The text of ids, as a stream puts it together. */
static void expect_text(const tok *t, const char *kind, const int32_t *ids, int n, const char *expected) {
  text_stream stream;
  dt_error err;
  assert_int_equal(text_init(&stream, NULL, 0, &err), DT_OK);
  for (int i = 0; i < n; i++) {
    size_t len;
    const char *bytes = tok_bytes(t, ids[i], i == 0, &len);
    assert_int_equal(text_push(&stream, bytes, len, &err), DT_OK);
  }
  if (stream.len != strlen(expected) || memcmp(stream.bytes ? stream.bytes : "", expected, stream.len) != 0)
    fail_msg("%s: \"%.*s\" instead of \"%s\"", kind, (int)stream.len, stream.bytes ? stream.bytes : "", expected);
  text_free(&stream);
}

static void ids_are_those_of_hugging_face(void **state) {
  (void)state;
  cJSON *golden = read_golden("kinds");
  const cJSON *kind;
  int count = 0;
  cJSON_ArrayForEach(kind, cJSON_GetObjectItem(golden, "kinds")) {
    const char *name = cJSON_GetObjectItem(kind, "name")->valuestring;
    tok *t = open_kind(name);
    expect_golden_ids(t, golden, name);
    tok_close(t);
    count++;
  }
  assert_int_equal(count, 16);
  cJSON_Delete(golden);
}

static void texts_are_those_of_hugging_face(void **state) {
  (void)state;
  cJSON *golden = read_golden("kinds");
  const cJSON *kind, *c;
  static int32_t ids[4096];
  int entry = 0;
  cJSON_ArrayForEach(kind, cJSON_GetObjectItem(golden, "kinds")) {
    const char *name = cJSON_GetObjectItem(kind, "name")->valuestring;
    tok *t = open_kind(name);
    entry++;
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(golden, "cases")) {
      const cJSON *expected = cJSON_GetArrayItem(c, entry), *other = cJSON_GetObjectItem(expected, "text");
      bool alike = cJSON_IsArray(expected);
      if (!alike && !other) continue;
      int n = golden_ids(alike ? expected : cJSON_GetObjectItem(expected, "ids"), ids);
      expect_text(t, name, ids, n, alike ? cJSON_GetArrayItem(c, 0)->valuestring : other->valuestring);
    }
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(golden, "decoded")) {
      if (strcmp(cJSON_GetArrayItem(c, 0)->valuestring, name) != 0) continue;
      int n = golden_ids(cJSON_GetArrayItem(c, 1), ids);
      expect_text(t, name, ids, n, cJSON_GetArrayItem(c, 2)->valuestring);
    }
    tok_close(t);
  }
  cJSON_Delete(golden);
}

static void byte_tokens_join_to_characters(void **state) {
  (void)state;
  tok *t = open_kind("llama2");
  int32_t *ids = NULL;
  int n;
  dt_error err;
  assert_int_equal(tok_encode(t, "\xF0\x9F\x90\xA2", 4, false, &ids, &n, &err), DT_OK);
  assert_int_equal(n, 5); /* the space that begins every text, and four bytes */
  for (int i = 1; i < 5; i++) {
    size_t len;
    assert_int_equal((unsigned char)*tok_bytes(t, ids[i], false, &len), (unsigned char)"\xF0\x9F\x90\xA2"[i - 1]);
    assert_int_equal(len, 1);
  }
  free(ids);
  tok_close(t);
}

static void the_first_token_shows_no_space_and_later_ones_do(void **state) {
  (void)state;
  tok *t = open_kind("llama2");
  int32_t *ids = NULL;
  int n;
  size_t len;
  dt_error err;
  assert_int_equal(tok_encode(t, "the", 3, false, &ids, &n, &err), DT_OK);
  assert_int_equal(n, 1);
  assert_memory_equal(tok_bytes(t, ids[0], true, &len), "the", 3);
  assert_int_equal(len, 3);
  assert_memory_equal(tok_bytes(t, ids[0], false, &len), " the", 4);
  assert_int_equal(len, 4);
  free(ids);
  tok_close(t);
}

static void texts_end_with_the_tokens_known_by_name(void **state) {
  (void)state;
  tok *t = open_kind("qwen2");
  int n;
  size_t len;
  const int32_t *ends = tok_ends(t, &n);
  assert_int_equal(n, 2);
  assert_memory_equal(tok_bytes(t, ends[0], false, &len), "<|im_end|>", 10);
  assert_memory_equal(tok_bytes(t, ends[1], false, &len), "<|endoftext|>", 13);
  tok_close(t);
}

/* Each text is a single word, or a few words. With quadratic time encoding would take minutes. */
static void long_words_are_quick(void **state) {
  (void)state;
  enum { N = 400000 };
  static const char *const units[] = {"a", " ", "the ", "\xE2\x96\x81\xF0\x9F\x98\x80"};
  static const char *const kinds[] = {"llama2", "metaspace_cut", "llama3"};
  char *text = malloc(N + 8);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    tok *t = open_kind(kinds[k]);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
      size_t n = 0;
      while (n < N) n += (size_t)(stpcpy(text + n, units[i]) - (text + n));
      expect_quick(t, text, n);
    }
    tok_close(t);
  }
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ids_are_those_of_hugging_face),
      cmocka_unit_test(texts_are_those_of_hugging_face),
      cmocka_unit_test(byte_tokens_join_to_characters),
      cmocka_unit_test(the_first_token_shows_no_space_and_later_ones_do),
      cmocka_unit_test(texts_end_with_the_tokens_known_by_name),
      cmocka_unit_test(long_words_are_quick),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
