/* Rotations that options or the length of sessions decide. test_golden_logits compares their logits with transformers;
 * here it is tested which rotation a model gets. */
#include "dtrun.h"
#include "golden_logits.h"
#include "model/head.h"
#include "model/model.h"
#include "small_tokenizer.h"
#include "unit.h"

#include <math.h>

/* The checkpoint of a family in tests/golden/logits, with another `rope_scaling` (NULL: the same; "": none) and, if it
 * is not 0, another context. Its folder also has a tokenizer. */
static char *folder_of(const char *family, const char *scaling, int context) {
  size_t size;
  char path[256], *tokenizer = small_json(NULL, NULL), *folder = temp_folder();
  snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/logits/%s", family);
  char *text = golden_bytes(path, "golden.json", &size);
  cJSON *files = cJSON_Parse(text), *config = cJSON_GetObjectItem(files, "config");
  if (scaling) cJSON_DeleteItemFromObject(config, "rope_scaling");
  if (scaling && *scaling) cJSON_AddItemToObject(config, "rope_scaling", cJSON_Parse(scaling));
  if (context) cJSON_ReplaceItemInObject(config, "max_position_embeddings", cJSON_CreateNumber(context));
  formula_checkpoint(folder, files);
  temp_write(folder, "tokenizer.json", tokenizer, strlen(tokenizer));
  cJSON_Delete(files);
  free(text), free(tokenizer);
  return folder;
}

static model *opened(const char *path, dt_rope rope) {
  model *m = NULL;
  ok(model_open_turned(path, &rope, &m, &err));
  return m;
}

static void expect_equal(const model *a, const model *b) {
  const dt_model_desc *x = model_desc(a), *y = model_desc(b);
  assert_int_equal(x->shape.rotary_dims, y->shape.rotary_dims);
  assert_int_equal(x->shape.context, y->shape.context);
  assert_memory_equal(&x->shape.turn_scale, &y->shape.turn_scale, sizeof x->shape.turn_scale);
  assert_memory_equal(x->inv_freq, y->inv_freq, (size_t)x->shape.rotary_dims / 2 * sizeof *x->inv_freq);
}

#define YARN(factor) "{\"rope_type\":\"yarn\",\"factor\":" factor ",\"original_max_position_embeddings\":32}"

typedef struct {
  const char *family, *scaling; /* the model with the option, and its own scaling */
  int context;                  /* its own context; 0: the family's */
  dt_rope option;
  const char *same; /* the scaling of the same model that needs no option */
  int same_context;
} pair_of_models;

static const pair_of_models replaced[] = {
    {"qwen2_yarn", "", 0, {.scaling = "yarn", .scale = 4, .original = 32}, YARN("4"), 0},
    {"qwen2_yarn", "", 32, {.scaling = "yarn", .scale = 4}, YARN("4"), 32},
    {"qwen2_yarn", YARN("2"), 64, {.scaling = "yarn", .scale = 4}, YARN("4"), 64},
    {"qwen2_yarn", YARN("2"), 64, {.scaling = "none"}, "", 64},
    {"qwen2_yarn", YARN("2"), 64, {.scaling = "linear", .scale = 2}, "{\"type\":\"linear\",\"factor\":2}", 128},
    {"qwen3", NULL, 0, {.scaling = "none"}, "", 0},
    {"llama576", NULL, 0, {.scaling = "yarn", .scale = 3.5f, .original = 32}, YARN("3.5"), 0},
    {"phi3_long", NULL, 0, {.scaling = "none"}, "", 0},
    {"llama_dynamic", "", 0, {.scaling = "dynamic", .scale = 4, .context = 144}, NULL, 0},
    {"llama_dynamic", "", 0, {.scaling = "dynamic", .scale = 4, .context = 47}, NULL, 0},
    {"llama_dynamic", NULL, 0, {.scaling = "dynamic", .scale = 4}, NULL, 0},
};

static void an_option_scales_as_the_files_do(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
    const pair_of_models *c = &replaced[i];
    char *with = folder_of(c->family, c->scaling, c->context),
         *without = folder_of(c->family, c->same, c->same_context);
    model *a = opened(with, c->option), *b = opened(without, (dt_rope){.context = c->option.context});
    expect_equal(a, b);
    assert_int_equal(model_rope_context(a), model_rope_context(b));
    model_close(a), model_close(b);
    temp_remove(with), temp_remove(without);
  }
}

/* Also those parts of the scaling that GGUF files have as tensors and scales. */
static void an_option_replaces_the_scaling_in_gguf_files(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    const char *path = i ? SOURCE_DIR "/tests/golden/logits/gguf_phi3_long/model.gguf"
                         : SOURCE_DIR "/tests/golden/logits/gguf_llama/model.gguf";
    model *m = opened(path, (dt_rope){.scaling = "linear", .scale = 2}), *plain = opened(path, (dt_rope){0});
    const dt_model_desc *d = model_desc(m), *own = model_desc(plain);
    double base = pow((double)d->inv_freq[1] * 2, -(double)d->shape.rotary_dims / 2);
    for (int j = 0; j < d->shape.rotary_dims / 2; j++) {
      double expected = pow(base, -2.0 * j / d->shape.rotary_dims) / 2;
      assert_true(fabs((double)d->inv_freq[j] / expected - 1) < 1e-5);
    }
    assert_true(d->shape.turn_scale == 0 && (own->shape.turn_scale > 1) == (i == 1));
    assert_true(memcmp(d->inv_freq, own->inv_freq, (size_t)d->shape.rotary_dims / 2 * sizeof *d->inv_freq) != 0);
    assert_int_equal(d->shape.context, 2 * own->shape.context);
    model_close(m), model_close(plain);
  }
}

static void the_length_decides_once(void **state) {
  (void)state;
  static const struct {
    int asked, context;
    bool is_long;
  } lengths[] = {{1, 1, false}, {48, 48, false}, {49, 49, true}, {256, 256, true}, {5000, 256, true}, {0, 256, true}};
  char *folder = folder_of("phi3_long", NULL, 0);
  model *shortest = opened(folder, (dt_rope){.context = 1}), *longest = opened(folder, (dt_rope){0});
  const float *low = model_desc(shortest)->inv_freq, *high = model_desc(longest)->inv_freq;
  assert_true(low[0] == 1 && high[0] == 1 && high[11] < low[11] / 16);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    model *m = opened(folder, (dt_rope){.context = lengths[i].asked});
    const dt_model_desc *d = model_desc(m);
    assert_int_equal(d->shape.context, lengths[i].context);
    assert_int_equal(model_rope_context(m), lengths[i].context);
    assert_int_equal(d->shape.rotary_dims, 24);
    assert_memory_equal(d->inv_freq, lengths[i].is_long ? high : low, 12 * sizeof *low);
    assert_true(d->shape.turn_scale == (float)sqrt(1 + log(256 / 48.0) / log(48)));
    model_close(m);
  }
  model_close(shortest), model_close(longest);
  temp_remove(folder);
  model *m = opened(SOURCE_DIR "/models/mini-target", (dt_rope){.context = 100}); /* no other rotation depends on it */
  assert_int_equal(model_rope_context(m), 0);
  assert_true(model_desc(m)->shape.context > 100);
  model_close(m);
}

/* dynamic NTK: the base grows with the length that the model is opened for, beyond that of its training, up to
 * `factor` times as much. */
static void the_base_grows_with_the_length(void **state) {
  (void)state;
  static const struct {
    int asked, context;
    double growth;
  } lengths[] = {{30, 30, 1}, {48, 48, 1}, {49, 49, 4 * 49 / 48.0 - 3}, {192, 192, 13}, {193, 192, 13}, {0, 192, 13}};
  char *folder = folder_of("llama_dynamic", NULL, 0);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    model *m = opened(folder, (dt_rope){.context = lengths[i].asked});
    double base = 5000 * pow(lengths[i].growth, 16 / 14.0);
    assert_int_equal(model_desc(m)->shape.context, lengths[i].context);
    for (int j = 0; j < 8; j++) assert_true(fabs((double)model_desc(m)->inv_freq[j] * pow(base, j / 8.0) - 1) < 1e-6);
    model_close(m);
  }
  temp_remove(folder);
}

static void options_that_are_wrong_are_refused(void **state) {
  (void)state;
  static const struct {
    dt_rope option;
    const char *says;
  } wrong[] = {
      {{.scaling = "ntk"}, "rope_scaling: 'ntk' is not supported; supported: none, linear, dynamic, yarn"},
      {{.scaling = "longrope", .scale = 2}, "rope_scaling: 'longrope' is not supported"},
      {{.scaling = ""}, "rope_scaling: '' is not supported"},
      {{.scaling = "yarn"}, "rope_scaling: yarn needs rope_scale, such as 4"},
      {{.scaling = "linear"}, "rope_scaling: linear needs rope_scale"},
      {{.scaling = "yarn", .scale = 0.5f}, "rope_scale: 0.5 is out of range: 1 to 1e+06"},
      {{.scaling = "yarn", .scale = -4}, "rope_scale: -4 is out of range"},
      {{.scaling = "yarn", .scale = NAN}, "rope_scale: nan is out of range"},
      {{.scale = 4}, "rope_scale: 4 has no effect without rope_scaling linear, dynamic or yarn"},
      {{.scaling = "none", .scale = 4}, "rope_scale: 4 has no effect without"},
      {{.original = 32}, "yarn_orig_ctx: 32 has no effect without rope_scaling yarn"},
      {{.scaling = "linear", .scale = 4, .original = 32}, "yarn_orig_ctx: 32 has no effect without rope_scaling yarn"},
      {{.scaling = "yarn", .scale = 4, .original = -1}, "yarn_orig_ctx: -1 is out of range: 1 to 16777216"},
      {{.scaling = "yarn", .scale = 4, .original = 16777217}, "yarn_orig_ctx: 16777217 is out of range"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const dt_pair_options options = {.target = SOURCE_DIR "/models/mini-target", .rope = wrong[i].option};
    dt_pair *pair;
    fails(dt_pair_open(&options, &pair, &err), DT_EINPUT, wrong[i].says);
  }
  model *m;
  fails(model_open_turned(SOURCE_DIR "/tests/golden/logits/gguf_gemma4/model.gguf",
                          &(dt_rope){.scaling = "linear", .scale = 2}, &m, &err),
        DT_EINPUT, "rope_scaling: linear is not possible: this family's rotation cannot be replaced");
}

static void sessions_are_as_long_as_the_rotation_allows(void **state) {
  (void)state;
  dt_pair_options options = {.target = SOURCE_DIR "/tests/golden/logits/gguf_phi3_long/model.gguf", .threads = 1};
  dt_session *s;
  dt_pair *pair;
  dt_pair_info info;
  options.rope.context = 64;
  ok(dt_pair_open(&options, &pair, &err));
  dt_pair_describe(pair, &info);
  assert_int_equal(info.target.rope_context, 64);
  assert_int_equal(info.context, 64);
  assert_string_equal(info.rope_scaling, "64 positions");
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 30}, &s, &err));
  dt_session_close(s);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 64}, &s, &err));
  dt_session_close(s);
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 65}, &s, &err), DT_EINPUT,
        "context: 65 is out of range: 2..64");
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 65}, &s, &err), DT_EINPUT,
        "has 64 positions, for which its rotation was computed when it was loaded");
  dt_pair_close(pair);
}

static void a_pair_says_what_decided_its_rotation(void **state) {
  (void)state;
  static const struct {
    dt_rope option;
    const char *says;
  } cases[] = {{{0}, NULL},
               {{.context = 100}, NULL},
               {{.scaling = "none"}, "none"},
               {{.scaling = "linear", .scale = 2.5f}, "linear 2.5"},
               {{.scaling = "yarn", .scale = 4, .original = 512}, "yarn 4 of 512"},
               {{.scaling = "dynamic", .scale = 2, .context = 100}, "dynamic 2, 100 positions"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const dt_pair_options options = {.target = SOURCE_DIR "/models/mini-draft", .threads = 1, .rope = cases[i].option};
    dt_pair *pair;
    dt_pair_info info;
    ok(dt_pair_open(&options, &pair, &err));
    dt_pair_describe(pair, &info);
    if (cases[i].says)
      assert_string_equal(info.rope_scaling, cases[i].says);
    else
      assert_null(info.rope_scaling);
    dt_pair_close(pair);
  }
}

/* The layer for multi-token prediction is a part of the target; other heads and draft models are not. */
static void only_parts_of_the_target_follow_it(void **state) {
  (void)state;
  static const char path[] = SOURCE_DIR "/tests/golden/heads/mtp.gguf";
  const dt_rope rope = {.scaling = "linear", .scale = 2};
  model *m = opened(path, rope), *own = opened(path, (dt_rope){0});
  const dt_model_desc *d = model_desc(m);
  size_t bytes = (size_t)d->shape.rotary_dims / 2 * sizeof *d->inv_freq;
  head *h;
  ok(head_open_own(path, &rope, &d->shape, &h, &err));
  assert_memory_equal(head_desc(h)->model.inv_freq, d->inv_freq, bytes);
  assert_memory_not_equal(d->inv_freq, model_desc(own)->inv_freq, bytes);
  head_close(h);
  model_close(m), model_close(own);
  size_t size;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden/heads", "golden.json", &size);
  cJSON *cases = cJSON_Parse(text), *c = cJSON_GetArrayItem(cases, 0);
  char *target = formula_folder(cJSON_GetObjectItem(c, "target"), NULL),
       *folder = formula_folder(cJSON_GetObjectItem(c, "head"), NULL);
  m = opened(target, rope);
  for (int i = 0; i < 2; i++) {
    ok(head_open(folder, i ? &rope : &(dt_rope){0}, &model_desc(m)->shape, NULL, &h, &err));
    assert_true(head_desc(h)->model.inv_freq[0] == 1 && model_desc(m)->inv_freq[0] == 0.5f);
    head_close(h);
  }
  model_close(m);
  temp_remove(target), temp_remove(folder);
  cJSON_Delete(cases);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_option_scales_as_the_files_do),
      cmocka_unit_test(an_option_replaces_the_scaling_in_gguf_files),
      cmocka_unit_test(the_length_decides_once),
      cmocka_unit_test(the_base_grows_with_the_length),
      cmocka_unit_test(options_that_are_wrong_are_refused),
      cmocka_unit_test(sessions_are_as_long_as_the_rotation_allows),
      cmocka_unit_test(a_pair_says_what_decided_its_rotation),
      cmocka_unit_test(only_parts_of_the_target_follow_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
