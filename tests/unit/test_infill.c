/* Tokens of fill-in-the-middle: those that a file names, and known spellings of added tokens. */
#include "dtrun.h"
#include "gguf_file.h"
#include "small_tokenizer.h"
#include "text/load_gguf.h"

enum { FIRST = 262 }; /* id of the first token that a test adds */

/* Opens the small tokenizer with more added tokens, [n] ids from FIRST on. */
static tok *open_with(const char *const *spelled, int n) {
  char list[2048], *at = list;
  at = stpcpy(at, "\"added_tokens\":[");
  for (int i = 0; i < n; i++)
    at += sprintf(at,
                  "{\"id\":%d,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                  "\"normalized\":false,\"special\":true},",
                  FIRST + i, spelled[i]);
  return open_small("\"added_tokens\":[", list);
}

static bool ends(const tok *t, int32_t id) {
  int n;
  const int32_t *list = tok_ends(t, &n);
  for (int i = 0; i < n; i++)
    if (list[i] == id) return true;
  return false;
}

static void every_spelling_is_found(void **state) {
  (void)state;
  static const char *const spelled[][3] = {
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
      {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
      {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
      {"<\uFF5Cfim\u2581begin\uFF5C>", "<\uFF5Cfim\u2581hole\uFF5C>", "<\uFF5Cfim\u2581end\uFF5C>"},
      {"<PRE>", "<SUF>", "<MID>"},
      {"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"},
      {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
      {"<|prefix|>", "<|suffix|>", "<|middle|>"}};
  for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
    tok *t = open_with(spelled[i], 3);
    dt_infill marks;
    assert_true(tok_infill(t, &marks));
    assert_int_equal(marks.prefix, FIRST);
    assert_int_equal(marks.suffix, FIRST + 1);
    assert_int_equal(marks.middle, FIRST + 2);
    assert_int_equal(marks.repo, -1);
    assert_int_equal(marks.file, -1);
    assert_false(ends(t, FIRST) || ends(t, FIRST + 1) || ends(t, FIRST + 2));
    tok_close(t);
  }
}

static void what_begins_another_text_ends_this_one(void **state) {
  (void)state;
  static const char *const spelled[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>",
                                        "<|fim_pad|>",    "<|repo_name|>",  "<|file_sep|>"};
  tok *t = open_with(spelled, 6);
  dt_infill marks;
  assert_true(tok_infill(t, &marks));
  assert_int_equal(marks.pad, FIRST + 3);
  assert_int_equal(marks.repo, FIRST + 4);
  assert_int_equal(marks.file, FIRST + 5);
  assert_true(ends(t, FIRST + 3) && ends(t, FIRST + 4) && ends(t, FIRST + 5));
  tok_close(t);
}

static void without_all_three_there_is_no_fill_in_the_middle(void **state) {
  (void)state;
  static const char *const spelled[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|repo_name|>", "<|file_sep|>"};
  dt_infill marks;
  tok *t = open_with(spelled, 4);
  assert_false(tok_infill(t, &marks));
  assert_int_equal(marks.suffix, FIRST + 1);
  assert_int_equal(marks.middle, -1);
  assert_false(ends(t, FIRST + 2) || ends(t, FIRST + 3)); /* as in SmolLM2, these are ordinary control tokens */
  tok_close(t);
  t = open_small("\"bc\":260", "\"bc\":260,\"<PRE>\":262,\"<SUF>\":263,\"<MID>\":264");
  assert_false(tok_infill(t, &marks)); /* ordinary tokens, whose spelling is a coincidence */
  tok_close(t);
}

/* ---- GGUF -------------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *key;
  uint32_t id;
} named_id;

/* Opens a vocabulary of <unk> and "a" to "g", of which keys name some. */
static dt_status open_named(const named_id *named, int n, tok **t, dt_error *err) {
  static const char *const strings[] = {"<unk>", "a", "b", "c", "d", "e", "f", "g"};
  enum { N = sizeof strings / sizeof *strings };
  gguf_file body = {0}, f = {0};
  gguf *g;
  file_key_string(&body, "tokenizer.ggml.model", "llama");
  file_key_strings(&body, "tokenizer.ggml.tokens", (const char **)strings, N);
  file_key(&body, "tokenizer.ggml.token_type", GGUF_ARRAY), file_u32(&body, GGUF_I32), file_u64(&body, N);
  for (int i = 0; i < N; i++) file_u32(&body, i ? 1 : 2);
  file_key(&body, "tokenizer.ggml.scores", GGUF_ARRAY), file_u32(&body, GGUF_F32), file_u64(&body, N);
  for (int i = 0; i < N; i++) file_put(&body, &(float){-(float)i}, 4);
  file_key(&body, "tokenizer.ggml.add_bos_token", GGUF_BOOL), file_put(&body, "\0", 1);
  for (int i = 0; i < n; i++) file_key_u32(&body, named[i].key, named[i].id);
  file_head(&f, 3, 0, 5 + (uint64_t)n);
  file_put(&f, body.bytes, body.size);
  assert_int_equal(gguf_open_bytes("model.gguf", f.bytes, f.size, &g, err), DT_OK);
  dt_status status = tok_open_gguf(g, t, err);
  gguf_close(g);
  free(body.bytes), free(f.bytes);
  return status;
}

static void a_file_names_tokens_of_any_kind(void **state) {
  (void)state;
  static const named_id named[] = {{"tokenizer.ggml.fim_pre_token_id", 1}, {"tokenizer.ggml.fim_suf_token_id", 2},
                                   {"tokenizer.ggml.fim_mid_token_id", 3}, {"tokenizer.ggml.fim_pad_token_id", 4},
                                   {"tokenizer.ggml.fim_rep_token_id", 5}, {"tokenizer.ggml.fim_sep_token_id", 6}};
  static const named_id older[] = {{"tokenizer.ggml.prefix_token_id", 7},
                                   {"tokenizer.ggml.suffix_token_id", 2},
                                   {"tokenizer.ggml.middle_token_id", 3},
                                   {"tokenizer.ggml.fim_pre_token_id", 1}};
  tok *t;
  dt_error err;
  dt_infill marks;
  if (open_named(named, 6, &t, &err)) fail_msg("%s", err.message);
  assert_true(tok_infill(t, &marks));
  assert_memory_equal(&marks, (&(dt_infill){1, 2, 3, 4, 5, 6}), sizeof marks);
  assert_true(ends(t, 4) && ends(t, 5) && ends(t, 6) && !ends(t, 3));
  tok_close(t);
  if (open_named(older, 4, &t, &err)) fail_msg("%s", err.message);
  assert_true(tok_infill(t, &marks));
  assert_memory_equal(&marks, (&(dt_infill){1, 2, 3, -1, -1, -1}), sizeof marks); /* the newer name counts */
  tok_close(t);
  assert_int_equal(open_named((named_id[]){{"tokenizer.ggml.fim_mid_token_id", 8}}, 1, &t, &err), DT_EINPUT);
  assert_string_equal(err.message, "model.gguf: tokenizer.ggml.fim_mid_token_id: expected the id of a token");
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static void a_pair_without_such_tokens_has_none(void **state) {
  (void)state;
  dt_pair *pair;
  dt_error err;
  dt_infill marks = {7, 7, 7, 7, 7, 7};
  const dt_infill none = {-1, -1, -1, -1, -1, -1};
  assert_false(dt_pair_infill(NULL, &marks));
  assert_memory_equal(&marks, &none, sizeof marks);
  if (dt_pair_open(&(dt_pair_options){.target = SOURCE_DIR "/models/mini-target", .backend = "cpu"}, &pair, &err))
    fail_msg("%s", err.message);
  marks.prefix = 7;
  assert_false(dt_pair_infill(pair, &marks));
  assert_memory_equal(&marks, &none, sizeof marks);
  assert_false(dt_pair_infill(pair, NULL));
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_spelling_is_found),
      cmocka_unit_test(what_begins_another_text_ends_this_one),
      cmocka_unit_test(without_all_three_there_is_no_fill_in_the_middle),
      cmocka_unit_test(a_file_names_tokens_of_any_kind),
      cmocka_unit_test(a_pair_without_such_tokens_has_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
