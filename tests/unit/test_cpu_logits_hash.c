/* One golden hash serves every machine: the logits for every position of real prompts, and for the tokens that follow
 * by plain decoding, have the same bits on every variant of the CPU backend. tests/golden/logits_hash.txt has the
 * hashes. Caches are f32; for the first prompts the other types are checked as well ("/f16", "/q8"). Quantized weights
 * are those of random models, with rows of x rounded to one digit ("/8") and to two ("/16"). The other families use the
 * golden models (tests/golden/logits).
 *
 *   test_cpu_logits_hash           4 prompts and 64 tokens; for scalar, which is slow, and for all variants under
 *                                  sanitizers: 1 prompt
 *   test_cpu_logits_hash all       all 40 prompts and 200 tokens; for scalar: 4 prompts and 64 tokens
 *   test_cpu_logits_hash quick [VARIANT..]
 *                                  only mini-draft of the bundled models, and 1 prompt; all variants except for scalar,
 *                                  unless some are given
 *   test_cpu_logits_hash print     prints what logits_hash.txt should contain */
#include "cpu.h"
#include "golden_logits.h"
#include "kernels.h"
#include "model/model.h"
#include "random_model.h"
#include "rig.h"
#include "text/tokenizer.h"

#include <stdio.h>

enum { PROMPTS = 40, FEW_PROMPTS = 4, CACHE_PROMPTS = 2, TOKENS = 200, FEW_TOKENS = 64, SLOTS = 1024 };
#define FNV_START 0xcbf29ce484222325u
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static const char *const model_names[] = {"mini-draft", "mini-target"}, *const all_activations[] = {"8", "16"};
static const char *const family_names[] = {"smollm3",
                                           "smollm3_biases",
                                           "granite",
                                           "olmo2",
                                           "olmo3",
                                           "phi3",
                                           "phi4",
                                           "gemma2",
                                           "gemma3",
                                           "gemma3_listed",
                                           "gguf_smollm3",
                                           "gguf_granite",
                                           "gguf_olmo2",
                                           "gguf_olmo3",
                                           "gguf_phi3",
                                           "gguf_gemma2",
                                           "gguf_gemma3",
                                           "gemma4",
                                           "gemma4_inputs",
                                           "gemma4_listed",
                                           "gguf_gemma4",
                                           "gguf_gemma4_inputs",
                                           "qwen3_moe",
                                           "qwen3_moe_one",
                                           "mixtral",
                                           "gguf_qwen3moe",
                                           "gguf_mixtral",
                                           "gpt_oss",
                                           "gpt_oss_plain",
                                           "gguf_gpt_oss",
                                           "glm4_moe",
                                           "glm4_moe_one",
                                           "gguf_glm4_moe",
                                           "gguf_glm4_moe_plain",
                                           "gemma4_experts",
                                           "gemma4_experts_one",
                                           "gguf_gemma4_experts",
                                           "qwen35",
                                           "qwen35_whole",
                                           "gguf_qwen35",
                                           "qwen35_moe",
                                           "qwen35_moe_whole",
                                           "gguf_qwen35moe"};
enum {
  FAMILY_NAMES = sizeof family_names / sizeof *family_names,
  FAMILY_PROMPT = 31,
  FAMILY_MOST = 170, /* for delta layers, too: bases change at 96, 128, 160 in the prompt, at 192, 224 after it */
};

/* FNV-1a 64 of the logits so far: after the prompt's positions, and after `few` and `many` more tokens. */
typedef struct {
  uint64_t prompt, few, many;
} hashes;

static uint64_t fnv1a(uint64_t hash, const void *data, size_t n) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

static char *prompt_name(int i) { /* alternates between both folders; a static buffer */
  static char name[32];
  snprintf(name, sizeof name, "%s/%02d", i % 2 ? "novels" : "wikitext2", i / 2 + 1);
  return name;
}

static int32_t *read_prompt(const tok *t, const char *name, int *n) {
  char path[512], text[4096];
  snprintf(path, sizeof path, SOURCE_DIR "/scripts/prompts/%s.txt", name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t len = fread(text, 1, sizeof text, file);
  assert_true(len > 0 && len < sizeof text);
  fclose(file);
  int32_t *ids = NULL;
  ok(tok_encode(t, text, len, false, &ids, n, &err));
  return ids;
}

/* Runs the prompt in passes of many rows, then `tokens` passes of one row. */
static hashes run(rig *r, const int32_t *ids, int n, int tokens) {
  uint64_t hash = FNV_START;
  hashes found = {0};
  int32_t token = 0;
  for (int at = 0; at < n + tokens;) {
    row_list l = {0};
    if (at < n)
      for (int p = at; p < n && l.n < MAX_ROWS; p++) row_add_plain(&l, 0, ids[p], p);
    else
      row_add_plain(&l, 0, token, at);
    float *logits = rig_run(r, &l, true);
    size_t vocab = (size_t)r->vocab, count = (size_t)l.n * vocab;
    const float *last = logits + count - vocab;
    hash = fnv1a(hash, logits, count * sizeof *logits);
    token = 0;
    for (int v = 1; v < r->vocab; v++)
      if (last[v] > last[token]) token = v;
    free(logits);
    at += l.n;
    if (at == n) found.prompt = hash;
    if (at == n + FEW_TOKENS) found.few = hash;
    if (at == n + TOKENS) found.many = hash;
  }
  return found;
}

static hashes golden_of(const char *model_name, const char *prompt) {
  char line[256], m[64], p[64];
  FILE *file = fopen(SOURCE_DIR "/tests/golden/logits_hash.txt", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    unsigned long long part[3];
    if (sscanf(line, "%63s %63s %llx %llx %llx", m, p, &part[0], &part[1], &part[2]) != 5) continue;
    if (strcmp(m, model_name) || strcmp(p, prompt)) continue;
    fclose(file);
    return (hashes){part[0], part[1], part[2]};
  }
  fail_msg("logits_hash.txt has no line for %s %s", model_name, prompt);
  return (hashes){0};
}

/* What is done with each result: it is compared with the golden one, or printed. */
typedef void result_fn(const char *variant, const char *model_name, const char *prompt, int tokens, hashes found);

static void compare(const char *variant, const char *model_name, const char *prompt, int tokens, hashes found) {
  hashes expected = golden_of(model_name, prompt);
  if (found.prompt != expected.prompt)
    fail_msg("%s, %s, %s: the logits of the prompt differ", variant, model_name, prompt);
  if (tokens >= FEW_TOKENS && found.few != expected.few)
    fail_msg("%s, %s, %s: the logits of %d tokens differ", variant, model_name, prompt, FEW_TOKENS);
  if (tokens >= TOKENS && found.many != expected.many)
    fail_msg("%s, %s, %s: the logits of %d tokens differ", variant, model_name, prompt, TOKENS);
}

static void print(const char *variant, const char *model_name, const char *prompt, int tokens, hashes found) {
  (void)variant, (void)tokens;
  printf("%s %s %016llx %016llx %016llx\n", model_name, prompt, (unsigned long long)found.prompt,
         (unsigned long long)found.few, (unsigned long long)found.many);
}

static void run_model(const char *variant, const char *model_name, const char *caches, int threads, int prompts,
                      int tokens, result_fn *result) {
  char folder[512], path[600], name[64];
  model *m = NULL;
  tok *t = NULL;
  snprintf(folder, sizeof folder, SOURCE_DIR "/models/%s", model_name);
  snprintf(path, sizeof path, "%s/tokenizer.json", folder);
  ok(model_open(folder, &m, &err));
  ok(tok_open(path, &t, &err));
  dt_backend_options options = {.variant = variant, .threads = threads, .cache_dtype = caches};
  bool other = strcmp(caches, "f32") != 0;
  snprintf(name, sizeof name, "%s%s%s", model_name, other ? "/" : "", other ? caches : "");
  rig r = rig_open_with(&dt_cpu_ops, options, model_desc(m), 1, SLOTS);
  for (int i = 0; i < prompts; i++) {
    int n;
    int32_t *ids = read_prompt(t, prompt_name(i), &n);
    result(variant, name, prompt_name(i), tokens, run(&r, ids, n, tokens));
    free(ids);
  }
  rig_close(&r);
  tok_close(t);
  model_close(m);
}

static void run_random_models(const char *variant, int threads, result_fn *result) {
  for (int s = PLAIN_SHAPES; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 3);
    int32_t ids[37];
    for (int i = 0; i < 37; i++) ids[i] = i * 31 % m->desc.shape.vocab;
    for (int a = 0; a < 2; a++) {
      char name[32];
      snprintf(name, sizeof name, "random-%d/%s", s - PLAIN_SHAPES + 1, all_activations[a]);
      dt_backend_options options = {.variant = variant, .threads = threads, .cache_dtype = "f32"};
      rig r =
          rig_open_rounded(&dt_cpu_ops, options, &m->desc, (dt_holding){.activations = all_activations[a]}, 1, SLOTS);
      result(variant, name, "numbers", FEW_TOKENS, run(&r, ids, 37, FEW_TOKENS));
      rig_close(&r);
    }
    random_model_free(m);
  }
}

static void run_families(const char *variant, int threads, result_fn *result) {
  for (int i = 0; i < FAMILY_NAMES; i++) {
    golden g = golden_read(family_names[i]);
    model *m = NULL;
    ok(model_open(g.model, &m, &err));
    int32_t ids[FAMILY_MOST];
    const dt_shape *s = &model_desc(m)->shape;
    for (int j = 0; j < FAMILY_MOST; j++) ids[j] = j * 31 % g.vocab;
    dt_backend_options options = {.variant = variant, .threads = threads, .cache_dtype = "f32"};
    rig r = rig_open_with(&dt_cpu_ops, options, model_desc(m), 1, SLOTS);
    result(variant, family_names[i], "numbers", FEW_TOKENS, run(&r, ids, FAMILY_PROMPT, FEW_TOKENS));
    if (s->delta_value_heads && s->context >= FAMILY_MOST + FEW_TOKENS)
      result(variant, family_names[i], "more_numbers", FEW_TOKENS, run(&r, ids, FAMILY_MOST, FEW_TOKENS));
    rig_close(&r);
    model_close(m);
    golden_free(&g);
  }
}

typedef struct {
  const char *variant;
  int models, prompts, tokens; /* models: how many of the bundled models */
} subject;

static void run_all(const subject *s, int threads, result_fn *result) {
  for (int i = 0; i < s->models; i++)
    for (int type = 0; dt_cpu_ops.cache_dtypes[type]; type++) {
      const char *caches = dt_cpu_ops.cache_dtypes[type];
      int prompts = strcmp(caches, "f32") && s->prompts > CACHE_PROMPTS ? CACHE_PROMPTS : s->prompts;
      run_model(s->variant, model_names[i], caches, i ? threads : 1, prompts, s->tokens, result);
    }
  run_random_models(s->variant, threads, result);
  run_families(s->variant, threads, result);
}

static void logits_have_the_golden_hash(void **state) { run_all(*state, 2, compare); }

static bool is_among(const char *name, char **names, int n) {
  for (int i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

/* Runs one test per variant; names those that this machine lacks. */
static int test_variants(bool all, bool quick, char **only, int n_only) {
  const char *const known[] = {"scalar", "avx2", "avx512", "avxvnni", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
  enum { KNOWN = sizeof known / sizeof *known };
  struct CMUnitTest tests[KNOWN];
  subject subjects[KNOWN];
  char names[KNOWN][64];
  size_t n = 0;
  for (int i = 0; i < KNOWN; i++) {
    bool has = false;
    for (int j = 0; cpu_variant(j); j++) has |= strcmp(cpu_variant(j)->name, known[i]) == 0;
    if (!has) print_message("not on this machine: cpu:%s\n", known[i]);
    if (!has || (n_only && !is_among(known[i], only, n_only))) continue;
    bool slow = i == 0;
    if (slow && quick && !n_only) continue;
    int few = slow || SANITIZED || quick ? 1 : FEW_PROMPTS, prompts = !all ? few : slow ? FEW_PROMPTS : PROMPTS;
    subjects[n] = (subject){known[i], quick ? 1 : 2, prompts, all && !slow ? TOKENS : FEW_TOKENS};
    snprintf(names[n], sizeof names[n], "logits_have_the_golden_hash: cpu:%s", known[i]);
    tests[n] = (struct CMUnitTest){names[n], logits_have_the_golden_hash, NULL, NULL, &subjects[n]};
    n++;
  }
  return _cmocka_run_group_tests("logits_hash", tests, n, NULL, NULL);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "print") == 0) {
    run_all(&(subject){NULL, 2, PROMPTS, TOKENS}, 1, print);
    return 0;
  }
  bool quick = argc >= 2 && strcmp(argv[1], "quick") == 0;
  return test_variants(argc == 2 && strcmp(argv[1], "all") == 0, quick, argv + 2, quick ? argc - 2 : 0);
}
