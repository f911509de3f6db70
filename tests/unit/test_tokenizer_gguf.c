/* Tokenizers in GGUF files: they equal the tokenizer.json with the same tables; and which ones are refused. */
#include "gguf_file.h"
#include "text/load_gguf.h"
#include "tokenizer_golden.h"

enum { MOST = 1100, MOST_MERGES = 2048, PADDING = 3 };

typedef struct {
  const char *string;
  float score;
  int32_t type;
} token;

/* The keys of a tokenizer; NULL leaves a key out. */
typedef struct {
  const char *architecture, *model, *pre, **merges;
  const token *tokens;
  int n_tokens, n_types, n_scores, n_merges;
  int64_t bos, eos, unknown; /* -1: the key is left out */
  const char *flag;          /* a key whose value is true, or false with `flag_off` */
  bool flag_off;
} keys;

static void put_list(gguf_file *f, const char *key, gguf_type type, int n) {
  file_key(f, key, GGUF_ARRAY);
  file_u32(f, type);
  file_u64(f, (uint64_t)n);
}

static void put_id(gguf_file *f, const char *key, int64_t id, uint64_t *n) {
  if (id < 0) return;
  file_key_u32(f, key, (uint32_t)id);
  ++*n;
}

static dt_status open_keys(const keys *k, tok **t, dt_error *err) {
  gguf_file body = {0}, f = {0};
  uint64_t n = 0;
  if (k->architecture) file_key_string(&body, "general.architecture", k->architecture), n++;
  if (k->model) file_key_string(&body, "tokenizer.ggml.model", k->model), n++;
  if (k->pre) file_key_string(&body, "tokenizer.ggml.pre", k->pre), n++;
  if (k->n_tokens >= 0) {
    put_list(&body, "tokenizer.ggml.tokens", GGUF_STRING, k->n_tokens), n++;
    for (int i = 0; i < k->n_tokens; i++) file_string(&body, k->tokens[i].string);
  }
  if (k->n_types >= 0) {
    put_list(&body, "tokenizer.ggml.token_type", GGUF_I32, k->n_types), n++;
    for (int i = 0; i < k->n_types; i++) file_u32(&body, (uint32_t)k->tokens[i].type);
  }
  if (k->n_scores >= 0) {
    put_list(&body, "tokenizer.ggml.scores", GGUF_F32, k->n_scores), n++;
    for (int i = 0; i < k->n_scores; i++) file_put(&body, &k->tokens[i].score, 4);
  }
  if (k->merges) file_key_strings(&body, "tokenizer.ggml.merges", k->merges, (uint64_t)k->n_merges), n++;
  put_id(&body, "tokenizer.ggml.bos_token_id", k->bos, &n);
  put_id(&body, "tokenizer.ggml.eos_token_id", k->eos, &n);
  put_id(&body, "tokenizer.ggml.unknown_token_id", k->unknown, &n);
  if (k->flag) {
    file_key(&body, k->flag, GGUF_BOOL), n++;
    file_put(&body, k->flag_off ? "\0" : "\1", 1);
  }
  file_head(&f, 3, 0, n);
  file_put(&f, body.bytes, body.size);
  gguf *g;
  assert_int_equal(gguf_open_bytes("model.gguf", f.bytes, f.size, &g, err), DT_OK);
  dt_status status = tok_open_gguf(g, t, err);
  gguf_close(g);
  free(body.bytes);
  free(f.bytes);
  return status;
}

/* ---- the tables of a tokenizer.json as a GGUF file ---- */

typedef struct {
  token tokens[MOST];
  const char *merges[MOST_MERGES];
  char text[1 << 17];
} tables;

/* Writes a run of marks as spaces, as converters do. Other strings stay as they are. Returns the end of its output. */
static char *as_in_a_file(const char **string, char *to) {
  const char *at = *string;
  char *begin = to;
  for (; strncmp(at, "\xE2\x96\x81", 3) == 0; at += 3) *to++ = ' ';
  *to++ = '\0';
  if (*at || at == *string) return begin;
  *string = begin;
  return to;
}

static keys tables_of(const cJSON *json, const char *model, const char *pre, tables *out) {
  const cJSON *inner = cJSON_GetObjectItem(json, "model"), *v;
  char *at = out->text;
  keys k = {
      .model = model, .pre = pre, .tokens = out->tokens, .merges = out->merges, .bos = -1, .eos = -1, .unknown = -1};
  cJSON_ArrayForEach(v, cJSON_GetObjectItem(inner, "vocab")) {
    assert_true(v->valueint < MOST - PADDING);
    out->tokens[v->valueint] = (token){.string = v->string, .score = -(float)v->valueint, .type = 1};
    if (v->valueint >= k.n_tokens) k.n_tokens = v->valueint + 1;
  }
  cJSON_ArrayForEach(v, cJSON_GetObjectItem(json, "added_tokens")) {
    int id = cJSON_GetObjectItem(v, "id")->valueint;
    bool special = cJSON_IsTrue(cJSON_GetObjectItem(v, "special"));
    out->tokens[id] =
        (token){.string = cJSON_GetObjectItem(v, "content")->valuestring, .score = -(float)id, .type = special ? 3 : 4};
    if (!special) at = as_in_a_file(&out->tokens[id].string, at);
    if (id >= k.n_tokens) k.n_tokens = id + 1;
  }
  for (int i = 0; i < PADDING; i++) {
    out->tokens[k.n_tokens] = (token){.string = at, .type = 5 - i % 2};
    at += sprintf(at, "[PAD%d]", k.n_tokens++) + 1;
  }
  cJSON_ArrayForEach(v, cJSON_GetObjectItem(inner, "merges")) {
    assert_true(k.n_merges < MOST_MERGES);
    out->merges[k.n_merges++] = at;
    at += sprintf(at, "%s %s", v->child->valuestring, v->child->next->valuestring) + 1;
  }
  k.n_types = k.n_scores = k.n_tokens;
  return k;
}

static void the_two_formats_of_a_tokenizer_are_one(void **state) {
  (void)state;
  static const struct {
    const char *kind, *model, *pre, *bos, *eos;
  } cases[] = {{"llama3", "gpt2", "llama-bpe", "<|begin_of_text|>", "<|eot_id|>"},
               {"smollm", "gpt2", "smollm", NULL, "<|im_end|>"},
               {"smollm", "gpt2", "refact", NULL, "<|im_end|>"},
               {"tekken", "gpt2", "tekken", "<s>", "</s>"},
               {"o200k", "gpt2", "gpt-4o", NULL, "<|return|>"},
               {"cl100k", "gpt2", "dbrx", NULL, "<|im_end|>"},
               {"cl100k", "gpt2", "chatglm-bpe", NULL, "<|im_end|>"},
               {"llama3", "gpt2", "glm4", "<|begin_of_text|>", "<|eot_id|>"},
               {"spm", "llama", NULL, "<s>", "</s>"},
               {"phi3", "llama", "phi3", NULL, "<|endoftext|>"},
               {"gemma", "llama", "gemma", "<bos>", "<eos>"},
               {"gemma", "gemma4", "gemma", "<bos>", "<eos>"}};
  cJSON *golden = read_golden("kinds");
  static tables space;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[64];
    snprintf(name, sizeof name, "kinds/%s", cases[i].kind);
    cJSON *json = read_golden(name);
    memset(&space, 0, sizeof space);
    keys k = tables_of(json, cases[i].model, cases[i].pre, &space);
    if (strcmp(cases[i].model, "gpt2") != 0) k.architecture = cases[i].pre;
    if (k.pre && strcmp(k.pre, "glm4") == 0)
      k.flag = "tokenizer.ggml.add_bos_token"; /* by default it adds none, unlike llama-bpe */
    if (!cases[i].bos) k.flag = "tokenizer.ggml.add_bos_token", k.flag_off = true;
    if (strcmp(cases[i].kind, "gemma") == 0) k.flag = "tokenizer.ggml.add_space_prefix", k.flag_off = true;
    for (int id = 0; id < k.n_tokens; id++) {
      if (cases[i].bos && strcmp(space.tokens[id].string, cases[i].bos) == 0) k.bos = id;
      if (strcmp(space.tokens[id].string, cases[i].eos) == 0) k.eos = id;
      if (strcmp(space.tokens[id].string, "<unk>") == 0) k.unknown = id;
    }
    tok *t, *other = open_kind(cases[i].kind);
    dt_error err;
    if (open_keys(&k, &t, &err)) fail_msg("%s: %s", cases[i].kind, err.message);
    expect_golden_ids(t, golden, cases[i].kind);
    assert_true(tok_fingerprint(t) == tok_fingerprint(other));
    assert_int_equal(tok_size(t), k.n_tokens - PADDING);
    assert_int_equal(tok_size(t), tok_size(other));
    int n;
    assert_int_equal(tok_ends(t, &n)[0], k.eos);
    tok_close(t);
    tok_close(other);
    cJSON_Delete(json);
  }
  cJSON_Delete(golden);
}

/* ---- small files ---- */

static const token SPM[] = {{"<unk>", 0, 2},
                            {"<s>", 0, 3},
                            {"</s>", 0, 3},
                            {"<0x61>", 0, 6},
                            {"\xE2\x96\x81", -1, 1},
                            {"b", -2, 1},
                            {"c", -3, 1},
                            {"bc", -7, 1},
                            {"cb", -7, 1},
                            {"\xE2\x96\x81"
                             "b",
                             -9, 1},
                            {"<x y>", 0, 4},
                            {"bcb", -8, 1},
                            {"[PAD12]", 0, 5}};
#define SPM_KEYS                                                                                                       \
  .model = "llama", .tokens = SPM, .n_tokens = 13, .n_types = 13, .n_scores = 13, .bos = 1, .eos = 2, .unknown = 0

static tok *open_good(const keys *k) {
  tok *t;
  dt_error err;
  if (open_keys(k, &t, &err)) fail_msg("%s", err.message);
  return t;
}

static void tokens_are_merged_by_score_and_equal_ones_from_the_left(void **state) {
  (void)state;
  tok *t = open_good(&(keys){SPM_KEYS});
  EXPECT_IDS(t, "bcb", 4, 11);
  EXPECT_IDS(t, "cbc", 4, 8, 6); /* cb and bc have the same score */
  EXPECT_IDS(t, "b", 9);
  EXPECT_IDS(t, "a", 4, 3);
  EXPECT_IDS(t, "dd", 4, 0);
  EXPECT_IDS(t, "b<x y>b", 9, 10, 9);
  assert_int_equal(tok_size(t), 12);
  tok_close(t);
}

static void a_space_and_what_begins_a_text_are_added_unless_the_file_says_not(void **state) {
  (void)state;
  static const int32_t with[] = {1, 9}, without[] = {9}, bare[] = {1, 5};
  tok *t = open_good(&(keys){SPM_KEYS});
  assert_true(same_ids(t, "b", 1, true, with, 2));
  assert_true(same_ids(t, "", 0, true, with, 1));
  tok_close(t);
  t = open_good(&(keys){SPM_KEYS, .flag = "tokenizer.ggml.add_bos_token", .flag_off = true});
  assert_true(same_ids(t, "b", 1, true, without, 1));
  tok_close(t);
  t = open_good(&(keys){SPM_KEYS, .flag = "tokenizer.ggml.add_space_prefix", .flag_off = true});
  size_t len;
  assert_true(same_ids(t, "b", 1, true, bare, 2));
  assert_memory_equal(tok_bytes(t, 9, true, &len), " b", 2);
  tok_close(t);
}

static const token BPE[] = {{"a", 0, 1}, {"b", 0, 1}, {"ab", 0, 1}, {"<end>", 0, 3}, {"\xC4\xA0", 0, 1}};
static const char *BPE_MERGES[] = {"a b"};
#define BPE_KEYS                                                                                                       \
  .model = "gpt2", .pre = "gpt-2", .tokens = BPE, .n_tokens = 5, .n_types = 5, .n_scores = -1, .merges = BPE_MERGES,   \
  .n_merges = 1, .bos = -1, .eos = 3, .unknown = -1

static void a_normalization_that_the_file_does_not_say_goes_by_its_pre(void **state) {
  (void)state;
  static const token accents[] = {
      {"e", 0, 1}, {"\xC3\x83", 0, 1}, {"\xC2\xA9", 0, 1}, {"\xC3\x8C", 0, 1}, {"\xC4\xA3", 0, 1}};
  keys k = {BPE_KEYS};
  k.tokens = accents;
  k.eos = -1;
  k.n_merges = 0;
  tok *t = open_good(&k); /* U+0301 is CC 81, written U+00CC U+0123 */
  EXPECT_IDS(t, "e\xCC\x81", 0, 3, 4);
  tok_close(t);
  k.pre = "qwen2";
  t = open_good(&k);
  EXPECT_IDS(t, "e\xCC\x81", 1, 2);
  tok_close(t);
}

static const token GEMMA[] = {{"<bos>", 0, 3},
                              {"<eos>", 0, 3},
                              {"<unk>", 0, 3},
                              {"</s>", 0, 4},
                              {"<turn|>", 0, 3},
                              {"\xE2\x96\x81", 0, 1},
                              {"  ", -1000, 4},
                              {"a", 0, 1},
                              {"\xE2\x96\x81"
                               "a",
                               0, 1},
                              {" x", 0, 4}};
#define GEMMA_KEYS                                                                                                     \
  .model = "gemma4", .tokens = GEMMA, .n_tokens = 10, .n_types = 10, .n_scores = -1, .merges = GEMMA_MERGES,           \
  .n_merges = 1, .bos = 0, .eos = 1, .unknown = 2
static const char *GEMMA_MERGES[] = {"\xE2\x96\x81 a"};

static void a_run_of_spaces_is_a_run_of_marks(void **state) {
  (void)state;
  tok *t = open_good(&(keys){GEMMA_KEYS});
  size_t len;
  EXPECT_IDS(t, "a  a", 7, 6, 7);
  EXPECT_IDS(t, "a   a", 7, 6, 8);
  EXPECT_IDS(t, "\xE2\x96\x81\xE2\x96\x81", 6);
  EXPECT_IDS(t, " \xE2\x96\x81", 6);
  EXPECT_IDS(t, " x", 9); /* not a run */
  assert_memory_equal(tok_bytes(t, 6, true, &len), "  ", 2);
  assert_int_equal(len, 2);
  int n;
  const int32_t *ends = tok_ends(t, &n); /* here </s> is an HTML tag */
  assert_int_equal(n, 2);
  assert_int_equal(ends[0], 1);
  assert_int_equal(ends[1], 4);
  tok_close(t);
}

static void phi3_takes_the_white_space_behind_its_tokens(void **state) {
  (void)state;
  tok *t = open_good(&(keys){SPM_KEYS});
  EXPECT_IDS(t, "b<x y> \n b", 9, 10, 4, 4, 0, 9);
  tok_close(t);
  t = open_good(&(keys){SPM_KEYS, .architecture = "phi3"});
  EXPECT_IDS(t, "b<x y> \n b", 9, 10, 9);
  EXPECT_IDS(t, "b<s> b", 9, 1, 4, 9);
  tok_close(t);
}

static void what_cannot_be_read_is_refused_by_key(void **state) {
  (void)state;
  static const char *three[] = {"a b", "a c"}, *one[] = {"ab"};
  static const token twice[] = {{"a", 0, 1}, {"b", 0, 1}, {"a", 0, 1}, {"d", 0, 1}, {"e", 0, 1}},
                     wrong[] = {{"a", 0, 1}, {"b", 0, 7}, {"ab", 0, 1}, {"d", 0, 1}, {"e", 0, 1}},
                     bad[] = {{"a", 0, 1}, {"\xFF", 0, 1}, {"ab", 0, 1}, {"d", 0, 1}, {"e", 0, 1}};
  token nan_score[13];
  memcpy(nan_score, SPM, sizeof nan_score);
  nan_score[5].score = 0.0f / 0.0f;
  token both[10];
  memcpy(both, GEMMA, sizeof both);
  both[9] = (token){"\xE2\x96\x81\xE2\x96\x81", 0, 1};
  const keys base = {BPE_KEYS}, spm = {SPM_KEYS}, gemma = {GEMMA_KEYS};
  keys k[21];
  for (size_t i = 0; i < sizeof k / sizeof *k; i++) k[i] = i < 12 ? base : i < 17 ? spm : gemma;
  static const char *const messages[] = {
      "model: found ''; supported: gpt2, llama and gemma4",
      "model: found 'bert'; supported: gpt2, llama and gemma4",
      "pre: missing, as in files made before May 2024: convert the model again",
      "pre: 'falcon' is not supported",
      "tokens: expected at most 4194304 strings",
      "token_type: expected a number for every token",
      "token_type: token 1: expected a number from 1 to 6",
      "tokens: tokens 0 and 2 are the same string: a token has one id",
      "tokens: token 1 is not UTF-8",
      "merges: expected a list of strings",
      "merges: merge 1 is not two tokens with a space between them that together make a third",
      "merges: merge 0 is not two tokens with a space between them that together make a third",
      "eos_token_id: expected the id of a token",
      "bos_token_id: missing, but every text begins with it",
      "scores: expected a number for every token",
      "scores: expected a number for every token",
      "add_eos_token: true is not supported: it would end every prompt",
      "merges: expected a list of strings",
      "merges: merge 0 is not two tokens with a space between them that together make a third",
      "bos_token_id: missing, but every text begins with it",
      "tokens: tokens 6 and 9 are the same string: a token has one id",
  };
  k[0].model = NULL;
  k[1].model = "bert";
  k[2].pre = NULL;
  k[3].pre = "falcon";
  k[4].n_tokens = -1;
  k[5].n_types = 4;
  k[6].tokens = wrong;
  k[7].tokens = twice;
  k[8].tokens = bad;
  k[9].merges = NULL;
  k[10].merges = three, k[10].n_merges = 2;
  k[11].merges = one;
  k[12].eos = 12; /* padding is not a token */
  k[13].bos = -1;
  k[14].n_scores = 12;
  k[15].tokens = nan_score;
  k[16].flag = "tokenizer.ggml.add_eos_token";
  k[17].merges = NULL;
  k[18].merges = one;
  k[19].bos = -1;
  k[20].tokens = both;
  for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
    tok *t;
    dt_error err;
    char message[256];
    snprintf(message, sizeof message, "model.gguf: tokenizer.ggml.%s", messages[i]);
    assert_int_equal(open_keys(&k[i], &t, &err), DT_EINPUT);
    assert_string_equal(err.message, message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_two_formats_of_a_tokenizer_are_one),
      cmocka_unit_test(tokens_are_merged_by_score_and_equal_ones_from_the_left),
      cmocka_unit_test(a_space_and_what_begins_a_text_are_added_unless_the_file_says_not),
      cmocka_unit_test(a_normalization_that_the_file_does_not_say_goes_by_its_pre),
      cmocka_unit_test(a_run_of_spaces_is_a_run_of_marks),
      cmocka_unit_test(phi3_takes_the_white_space_behind_its_tokens),
      cmocka_unit_test(what_cannot_be_read_is_refused_by_key),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
