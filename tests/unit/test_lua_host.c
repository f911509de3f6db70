/* The host's C side: opening policies and setting their parameters, the generation loop, the result, drivers. */
#include "temp_files.h"
#include "unit.h"

#include "dtrun_fake.h"
#include "host.h"
#include "system/paths.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "local policy = require 'dt.policy'\nlocal P = policy.define "
#define PROMPT " 1 2 3"

/* Runs one sequence. If it fails, the run fails. */
static bool generate(dt_pair *pair, dtl_policy *policy, const dtl_request *request, dtl_result *result, dt_error *err) {
  if (dtl_generate(pair, policy, request, result, err)) return false;
  if (result->failed) *err = result->failure;
  return !result->failed;
}

static dt_pair *fake_pair(void) {
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 50, .context = 400, .eos = -1}, &pair, NULL));
  return pair;
}

static dtl_policy_options from(const char *source) {
  return (dtl_policy_options){.policy = "test.lua", .source = source, .source_len = strlen(source)};
}

static dtl_policy *opened(const dtl_policy_options *options) {
  dtl_policy *policy = NULL;
  dt_error err = {0};
  if (dtl_policy_open(options, &policy, &err)) fail_msg("%s", err.message);
  return policy;
}

static void refused(const dtl_policy_options *options, dt_status kind, const char *message) {
  dtl_policy *policy;
  dt_error err = {0};
  if (!dtl_policy_open(options, &policy, &err)) fail_msg("the policy opened, expected: %s", message);
  assert_string_equal(err.message, message);
  assert_int_equal(err.status, kind);
}

static void refuses_source(const char *source, dt_status kind, const char *message) {
  dtl_policy_options options = from(source);
  refused(&options, kind, message);
}

/* Generates 20 tokens with this policy source. */
static bool generated(dt_pair *pair, const char *source, dtl_result *result, dt_error *err) {
  dtl_policy_options options = from(source);
  dtl_policy *policy = opened(&options);
  dtl_request request = {
      .prompts = &(dtl_prompt){.text = PROMPT, .len = strlen(PROMPT)}, .n = 1, .seq = {.max_tokens = 20}};
  bool good = generate(pair, policy, &request, result, err);
  dtl_policy_close(policy);
  return good;
}

#define KNOBS                                                                                                          \
  HEAD                                                                                                                 \
      "{name = 'knobs', doc = 'd', params = {{'n', 3, min = 1, max = 5, doc = 'count'}, {'x', 0.5, min = 0, max = 1}," \
      "{'on', true}, {'mode', 'a', one_of = {'a', 'b'}}, {'maybe', nil, type = 'integer'}},"                           \
      "presets = {two = {n = 2, x = 1}}, check = function(p) if p.n == 5 and p.on then return 'not 5' end end}\n"      \
      "return P"

static void a_policy_describes_itself(void **state) {
  (void)state;
  dtl_policy_options options = from(KNOBS);
  dtl_policy *policy = opened(&options);
  const dtl_policy_info *info = dtl_policy_describe(policy);
  assert_string_equal(info->name, "knobs");
  assert_string_equal(info->doc, "d");
  assert_string_equal(info->path, "test.lua");
  assert_int_equal(info->draft, DTL_NEEDS_DRAFT);
  assert_int_equal(info->n_presets, 1);
  assert_string_equal(info->presets[0], "two");
  assert_int_equal(info->n_params, 5);
  static const struct {
    const char *name, *doc, *type, *value, *range;
    int n_one_of, n_tune;
  } expected[] = {{"n", "count", "integer", "3", "1..5", 0, 2},
                  {"x", "", "number", "0.5", "0..1", 0, 2},
                  {"on", "", "boolean", "true", "", 0, 2},
                  {"mode", "", "string", "a", "one of a, b", 2, 2},
                  {"maybe", "", "integer", NULL, "", 0, 0}};
  for (int i = 0; i < 5; i++) {
    assert_string_equal(info->params[i].name, expected[i].name);
    assert_string_equal(info->params[i].doc, expected[i].doc);
    assert_string_equal(info->params[i].type, expected[i].type);
    assert_string_equal(info->params[i].range, expected[i].range);
    if (expected[i].value)
      assert_string_equal(info->params[i].value, expected[i].value);
    else
      assert_null(info->params[i].value);
    assert_int_equal(info->params[i].n_one_of, expected[i].n_one_of);
    assert_int_equal(info->params[i].n_tune, expected[i].n_tune);
  }
  assert_string_equal(info->params[0].min, "1");
  assert_string_equal(info->params[0].max, "5");
  assert_string_equal(info->params[0].tune[1], "5");
  assert_null(info->params[2].max);
  assert_string_equal(info->params[3].one_of[1], "b");
  dtl_policy_close(policy);
}

static void a_call_may_have_less_time_than_usual(void **state) {
  (void)state;
  dt_pair *pair = fake_pair();
  static const char *const slow[] = {HEAD "{name = 'slow', doc = 'd', uses = {draft = false}}\n"
                                          "function P:draft() while true do end end\nreturn P",
                                     HEAD "{name = 'slow', doc = 'd', uses = {draft = false}}\n"
                                          "function P:init() while true do end end\nreturn P"};
  dtl_request request = {
      .prompts = &(dtl_prompt){.text = PROMPT, .len = strlen(PROMPT)}, .n = 1, .seq = {.max_tokens = 20}};
  dtl_result result;
  dt_error err;
  for (int i = 0; i < 2; i++) {
    dtl_policy_options options = from(slow[i]);
    options.call_seconds = 0.02;
    dtl_policy *policy = opened(&options);
    assert_false(generate(pair, policy, &request, &result, &err));
    assert_non_null(strstr(err.message, "policy ran longer than 0.02 s"));
    dtl_result_free(&result);
    dtl_policy_close(policy);
  }
  dt_pair_close(pair);
}

static void settings_override_the_preset_and_the_preset_the_defaults(void **state) {
  (void)state;
  dtl_setting settings[] = {{"n", "4"}, {"maybe", "0x10"}, {"on", "false"}, {"mode", "b"}};
  dtl_policy_options options = from(KNOBS);
  options.preset = "two";
  options.settings = settings;
  options.n_settings = 4;
  dtl_policy *policy = opened(&options);
  const dtl_param *params = dtl_policy_describe(policy)->params;
  assert_string_equal(params[0].value, "4");
  assert_string_equal(params[1].value, "1");
  assert_string_equal(params[2].value, "false");
  assert_string_equal(params[3].value, "b");
  assert_string_equal(params[4].value, "16");
  dtl_policy_close(policy);
}

static void a_bad_setting_is_bad_usage_and_says_what_is_right(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"n", "6", "knobs: n = 6 is out of range: 1..5"},
      {"n", "1.5", "knobs: n = 1.5 is not an integer"},
      {"n", "many", "knobs: n = many is not an integer"},
      {"x", "-0.1", "knobs: x = -0.1 is out of range: 0..1"},
      {"x", "1e999", "knobs: x = inf is not a number"},
      {"on", "yes", "knobs: on = yes is not true or false"},
      {"mode", "c", "knobs: mode = c is not one of a, b"},
      {"n", "5", "knobs: not 5"},
      {"none", "1", "knobs: no parameter 'none' (it has: n, x, on, mode, maybe)"},
  };
  dtl_policy_options options = from(KNOBS);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dtl_setting setting = {cases[i][0], cases[i][1]};
    options.settings = &setting;
    options.n_settings = 1;
    refused(&options, DT_EINPUT, cases[i][2]);
  }
  options.n_settings = 0;
  options.preset = "three";
  refused(&options, DT_EINPUT, "knobs: no preset 'three' (it has: two)");
}

static void a_wrong_definition_is_the_policys_error_at_its_line(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"{name = 'p', param = {}}",
       "test.lua:2: policy.define: p: unknown key 'param' (known: check, doc, name, params, "
       "presets, scope, uses)"},
      {"{}", "test.lua:2: policy.define: name is missing"},
      {"{name = 'p', scope = 'all'}", "test.lua:2: policy.define: p: scope is \"all\", not \"sequence\" or \"batch\""},
      {"{name = 'p', uses = {cost = true}}", "test.lua:2: policy.define: p: uses: unknown key 'cost' (known: "
                                             "calibrate, corpus, costs, draft, memory, target)"},
      {"{name = 'p', uses = {costs = 1}}", "test.lua:2: policy.define: p: uses.costs is not true or false"},
      {"{name = 'p', params = {{'costs', 3}}}", "test.lua:2: policy.define: p: a parameter cannot be named costs"},
      {"{name = 'p', params = {{'n', 3, max = 2}}}", "test.lua:2: policy.define: p: n = 3 is out of range: ..2"},
      {"{name = 'p', params = {{'n', nil}}}", "test.lua:2: policy.define: p: n: a nil default needs type="},
      {"{name = 'p', params = {{'n', 3, maximum = 2}}}",
       "test.lua:2: policy.define: p: n: unknown key 'maximum' (known: "
       "doc, max, min, one_of, tune, type)"},
      {"{name = 'p', params = {{'n', 3}, {'n', 4}}}", "test.lua:2: policy.define: p: two parameters named n"},
      {"{name = 'p', params = {{'draft', 3}}}", "test.lua:2: policy.define: p: a parameter cannot be named draft"},
      {"{name = 'p', presets = {q = {m = 1}}}",
       "test.lua:2: policy.define: p: preset q: no parameter 'm' (it has none)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char source[300];
    snprintf(source, sizeof source, HEAD "%s\nreturn P", cases[i][0]);
    refuses_source(source, DT_EPOLICY, cases[i][1]);
  }
}

static void a_policy_error_names_file_and_line(void **state) {
  (void)state;
  dtl_policy_options options = from("\n\nlocal x = nil .. 'y'");
  dtl_policy *policy;
  dt_error err;
  assert_int_not_equal(dtl_policy_open(&options, &policy, &err), DT_OK);
  assert_string_equal(err.message, "test.lua:3: attempt to concatenate a nil value");
  assert_string_equal(err.file, "test.lua");
  assert_int_equal(err.line, 3);
  /* a long name is shortened by Lua, not by us; an error object that has no position gets one */
  options.policy = "/a/path/that/is/a/good/deal/longer/than/the/sixty/bytes/that/Lua/leaves/for/it/policy.lua";
  options.source = "\nerror({})";
  options.source_len = strlen(options.source);
  assert_int_not_equal(dtl_policy_open(&options, &policy, &err), DT_OK);
  assert_string_equal(err.file, options.policy);
  assert_int_equal(err.line, 2);
  assert_non_null(strstr(err.message, "policy.lua:2: error object is a table value"));
}

static void a_missing_policy_lists_those_installed(void **state) {
  (void)state;
  dtl_policy *policy;
  dt_error err;
  assert_int_not_equal(dtl_policy_open(&(dtl_policy_options){.policy = "nothing"}, &policy, &err), DT_OK);
  assert_int_equal(err.status, DT_EINPUT);
  assert_non_null(strstr(err.message, "no policy 'nothing'; installed: ar, caddtree, "));
}

static int place_of(char **names, int n, const char *name) {
  int i = 0;
  while (i < n && strcmp(names[i], name)) i++;
  return i;
}

static void policies_of_papers_are_found_by_name_and_listed_last(void **state) {
  (void)state;
  char *home = temp_folder(), path[512], *found, **names;
  int n;
  snprintf(path, sizeof path, "%s/policies", home);
  mkdir(path, 0700);
  strcat(path, "/papers");
  mkdir(path, 0700);
  temp_write(home, "policies/zz_short.lua", "", 0);
  temp_write(path, "aa_paper.lua", "", 0);
  setenv("DTRUN_HOME", home, 1);
  ok(dt_find("policies/aa_paper.lua", &found, NULL));
  assert_non_null(found);
  free(found);
  ok(dtl_installed("policies", &names, &n, NULL));
  unsetenv("DTRUN_HOME");
  assert_true(place_of(names, n, "ar") < place_of(names, n, "zz_short"));
  assert_true(place_of(names, n, "zz_short") < place_of(names, n, "aa_paper"));
  assert_true(place_of(names, n, "aa_paper") < place_of(names, n, "echo") && place_of(names, n, "echo") < n);
  for (int i = 0; i < n; i++) free(names[i]);
  free(names);
  temp_remove(home);
}

static void a_text_may_begin_with_an_interpreter_line(void **state) {
  (void)state;
  dtl_policy_options options =
      from("#!/usr/bin/dtrun\nlocal policy = require 'dt.policy'\nreturn policy.define {name = 'p'}");
  dtl_policy_close(opened(&options));
}

static void the_same_seed_gives_the_same_random_numbers(void **state) {
  (void)state;
  static const char source[] = HEAD "{name = 'p'}\nfunction P:init() error('r' .. math.random(0)) end\nreturn P";
  dt_pair *pair = fake_pair();
  char said[3][512];
  for (int i = 0; i < 3; i++) {
    dtl_policy_options options = from(source);
    dtl_policy *policy = opened(&options);
    dtl_result result;
    dt_error err;
    dtl_request request = {
        .prompts = &(dtl_prompt){.text = PROMPT, .len = strlen(PROMPT)}, .n = 1, .seq = {.max_tokens = 20}};
    request.seq.sampling.seed = i == 2 ? 8 : 7;
    assert_false(generate(pair, policy, &request, &result, &err));
    strcpy(said[i], err.message);
    dtl_result_free(&result);
    dtl_policy_close(policy);
  }
  assert_string_equal(said[0], said[1]);
  assert_string_not_equal(said[0], said[2]);
  dt_pair_close(pair);
}

static void a_policy_that_drafts_needs_a_draft_model(void **state) {
  (void)state;
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 9, .context = 99, .eos = -1, .no_draft = true}, &pair, NULL));
  dtl_result result;
  dt_error err;
  assert_false(generated(pair, HEAD "{name = 'hungry'}\nreturn P", &result, &err));
  assert_string_equal(err.message, "hungry needs a draft model: give --draft DIR");
  assert_int_equal(err.status, DT_EINPUT);
  dtl_result_free(&result);
  assert_true(generated(pair, HEAD "{name = 'modest', uses = {draft = false}}\nreturn P", &result, &err));
  assert_null(result.draft);
  dtl_result_free(&result);
  dt_pair_close(pair);
}

static void an_engine_failure_cannot_be_caught(void **state) {
  (void)state;
  static const char *const sources[] = {
      HEAD "{name = 'p'}\nfunction P:step(seq) while true do pcall(seq.verify_tree, seq) end end\nreturn P",
      HEAD "{name = 'p'}\nfunction P:step(seq)\nlocal t = {2, 1}\n"
           "pcall(table.sort, t, function() pcall(seq.verify_tree, seq) while true do end end)\nend\nreturn P"};
  dt_fake_rule nan = {.token = (int32_t[]){1}, .p = (float[]){NAN}, .count = 1};
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 9, .context = 99, .eos = -1, .target = &nan, .n_target = 1}, &pair,
                       NULL));
  for (int i = 0; i < 2; i++) {
    dtl_result result;
    dt_error err;
    assert_false(generated(pair, sources[i], &result, &err));
    assert_int_equal(err.status, DT_EDEVICE);
    assert_non_null(strstr(err.message, "NaN"));
    assert_string_equal(result.finish_reason, "error");
    dtl_result_free(&result);
  }
  dt_pair_close(pair);
}

static volatile sig_atomic_t pressed;

static bool press(void *user, const char *bytes, size_t len) {
  (void)bytes, (void)len;
  if (++*(int *)user == 3) pressed = 1;
  return true;
}

static void an_interrupt_ends_the_run_between_iterations(void **state) {
  (void)state;
  dt_pair *pair = fake_pair();
  dtl_policy *policy = opened(&(dtl_policy_options){.policy = "ar"});
  int calls = 0;
  dtl_request request = {.prompts = &(dtl_prompt){.text = PROMPT, .len = strlen(PROMPT)},
                         .n = 1,
                         .seq = {.max_tokens = 20},
                         .on_text = press,
                         .user = &calls,
                         .interrupt = &pressed};
  dtl_result result;
  dt_error err;
  pressed = 0;
  assert_true(generate(pair, policy, &request, &result, &err));
  assert_string_equal(result.finish_reason, "interrupted");
  assert_int_equal(result.n_tokens, 3);
  dtl_result_free(&result);
  dtl_policy_close(policy);
  dt_pair_close(pair);
}

static bool gather(void *user, const char *bytes, size_t len) {
  strncat(user, bytes, len);
  return true;
}

static void held_back_text_is_shown_when_a_run_fails(void **state) {
  (void)state;
  /* " 4" might begin the stop string " 4 5", so it is held back when the policy fails */
  dt_fake_rule four = {.token = (int32_t[]){4}, .p = (float[]){1}, .count = 1};
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 9, .context = 99, .eos = -1, .target = &four, .n_target = 1}, &pair,
                       NULL));
  dtl_policy_options options =
      from(HEAD "{name = 'p'}\nfunction P:draft() if self.n then error 'x' end self.n = 1 end\nreturn P");
  dtl_policy *policy = opened(&options);
  char shown[100] = "";
  const char *stop = " 4 5";
  dtl_request request = {.prompts = &(dtl_prompt){.text = PROMPT, .len = strlen(PROMPT)},
                         .n = 1,
                         .seq = {.max_tokens = 20, .stop = &stop, .n_stop = 1},
                         .on_text = gather,
                         .user = shown};
  dtl_result result;
  dt_error err;
  assert_false(generate(pair, policy, &request, &result, &err));
  assert_string_equal(shown, " 4");
  assert_string_equal(result.text, " 4");
  dtl_result_free(&result);
  dtl_policy_close(policy);
  dt_pair_close(pair);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* Generates the same text again, each time with a new object, whatever happened to its files. */
static void a_policy_serves_any_number_of_runs_as_it_was_written(void **state) {
  (void)state;
  dt_pair *pair = fake_pair();
  char *folder = temp_folder(), path[200], module[200], said[2][512];
  snprintf(path, sizeof path, "%s/p.lua", folder);
  snprintf(module, sizeof module, "%s/words.lua", folder);
  write_file(path, HEAD "{name = 'p'}\nlocal words, n = require 'words', 0\n"
                        "function P:init() n = n + 1 error(words .. n) end\nreturn P");
  write_file(module, "return 'as written '");
  dtl_policy *policy = opened(&(dtl_policy_options){.policy = path});
  write_file(path, "return 1");
  write_file(module, "return 'changed '");
  for (int i = 0; i < 2; i++) {
    dtl_request request = {
        .prompts = &(dtl_prompt){.text = PROMPT, .len = strlen(PROMPT)}, .n = 1, .seq = {.max_tokens = 2}};
    dtl_result result;
    dt_error err;
    assert_false(generate(pair, policy, &request, &result, &err));
    assert_string_equal(result.source, dtl_policy_describe(policy)->source);
    strcpy(said[i], err.message);
    dtl_result_free(&result);
  }
  assert_non_null(strstr(said[0], "as written 1"));
  assert_string_equal(said[0], said[1]);
  dtl_policy_close(policy);
  temp_remove(folder);
  dt_pair_close(pair);
}

static void the_prompt_must_hold_a_token_and_fit(void **state) {
  (void)state;
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 9, .context = 4, .eos = -1}, &pair, NULL));
  static const char *const prompts[] = {"", " 1 2 3 4 5"};
  static const dt_status kinds[] = {DT_EINPUT, DT_ECONTEXT};
  for (int i = 0; i < 2; i++) {
    dtl_policy *policy = opened(&(dtl_policy_options){.policy = "ar"});
    dtl_request request = {
        .prompts = &(dtl_prompt){.text = prompts[i], .len = strlen(prompts[i])}, .n = 1, .seq = {.max_tokens = 2}};
    dtl_result result;
    dt_error err;
    assert_false(generate(pair, policy, &request, &result, &err));
    assert_int_equal(err.status, kinds[i]);
    dtl_result_free(&result);
    dtl_policy_close(policy);
  }
  dt_pair_close(pair);
}

static const cJSON *field(const cJSON *object, const char *name) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
  if (!item) fail_msg("the result has no %s", name);
  return item;
}

static void the_result_is_json_in_the_schema(void **state) {
  (void)state;
  dt_pair *pair = fake_pair();
  dtl_policy *policy = opened(&(dtl_policy_options){.policy = "linear"});
  dtl_request request = {.prompts = &(dtl_prompt){.text = PROMPT, .len = strlen(PROMPT)},
                         .n = 1,
                         .seq = {.max_tokens = 20, .sampling = {.seed = UINT64_MAX}}};
  dtl_result result;
  dt_error err;
  assert_true(generate(pair, policy, &request, &result, &err));
  char *text = dtl_result_json(&result, false);
  assert_int_equal(text[strlen(text) - 1], '\n');
  cJSON *root = cJSON_Parse(text);
  assert_non_null(root);
  assert_string_equal(field(root, "schema")->valuestring, "dtrun.result/1");
  assert_string_equal(field(root, "seed")->valuestring, "18446744073709551615");
  assert_string_equal(field(root, "finish_reason")->valuestring, "length");
  assert_int_equal(field(field(root, "params"), "K")->valueint, 8);
  assert_int_equal(cJSON_GetArraySize(field(root, "tokens")), 20);
  assert_int_equal(cJSON_GetArraySize(field(root, "prompt_ids")), 3);
  assert_int_equal(field(root, "prompt_tokens")->valueint, 3);
  for (const char *const *name =
           (const char *const[]){"text", "policy", "backend", "threads", "target", "draft", "target_dtype",
                                 "draft_dtype", "draft_vocab", "cache_dtype", "version", 0};
       *name; name++)
    field(root, *name);
  const cJSON *stats = field(root, "stats");
  for (const char *const *name =
           (const char *const[]){"tokens_per_second", "ttft_ms", "tpot_ms", "iterations", "tokens_per_iteration",
                                 "path_length", "drafted", "accepted", "acceptance_rate", "tree_nodes_mean",
                                 "tree_depth_mean", "shared_prefix", 0};
       *name; name++)
    field(stats, *name);
  const cJSON *first = cJSON_GetArrayItem(field(stats, "accepted_by_depth"), 0);
  assert_int_equal(field(first, "depth")->valueint, 1);
  assert_true(field(first, "verified")->valueint >= field(first, "accepted")->valueint);
  double sum = 0;
  for (const char *const *name = (const char *const[]){"prompt", "draft", "verify", "commit", "policy", "other", 0};
       *name; name++)
    sum += field(field(stats, "time_ms"), *name)->valuedouble;
  assert_true(sum >= result.stats.total_ms * 0.99);
  const cJSON *memory = field(stats, "peak_memory_bytes");
  assert_true(field(memory, "host")->valuedouble > 0);
  assert_true(cJSON_IsNull(field(memory, "device")));
  assert_int_equal(strlen(field(stats, "output_hash")->valuestring), 16);
  cJSON_Delete(root);
  free(text);
  dtl_result_free(&result);
  dtl_policy_close(policy);
  dt_pair_close(pair);
}

static void nothing_drafted_has_no_acceptance_rate(void **state) {
  (void)state;
  dtl_result result = {.finish_reason = "policy", .text = "a\0b\xff\"\x1b", .text_len = 6};
  char *text = dtl_result_json(&result, false);
  assert_non_null(strstr(text, "\"acceptance_rate\":\tnull"));
  assert_non_null(strstr(text, "\"a\\u0000b\xEF\xBF\xBD\\\"\\u001b\""));
  cJSON *root = cJSON_Parse(text);
  assert_non_null(root);
  cJSON_Delete(root);
  free(text);
}

static void the_output_hash_is_fnv1a_over_little_endian_ids(void **state) {
  (void)state;
  assert_true(dtl_output_hash(NULL, 0) == 0xcbf29ce484222325u);
  uint64_t hash = 0xcbf29ce484222325u;
  static const unsigned char bytes[] = {1, 2, 0, 0, 255, 255, 255, 255};
  for (size_t i = 0; i < sizeof bytes; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  assert_true(dtl_output_hash((int32_t[]){0x201, -1}, 2) == hash);
}

static void check_models(const char *target_option, const char *draft_option, const char *target, const char *draft) {
  char *t, *d;
  dt_error err;
  dtl_need need = draft ? DTL_NEEDS_DRAFT : DTL_NO_DRAFT;
  if (dtl_resolve_models(target_option, draft_option, need, &t, &d, &err)) fail_msg("%s", err.message);
  assert_non_null(strstr(t, target));
  if (draft) assert_non_null(strstr(d, draft));
  assert_true(!draft == !d);
  free(t), free(d);
}

static void models_come_from_options_then_environment_then_the_bundle(void **state) {
  (void)state;
  unsetenv("DTRUN_TARGET"), unsetenv("DTRUN_DRAFT");
  check_models(NULL, NULL, "models/mini-target", "models/mini-draft");
  check_models(NULL, NULL, "models/mini-target", NULL); /* no draft needed: none loaded */
  check_models("./T", "./D", "./T", "./D");
  check_models(NULL, "./D", "models/mini-target", "./D");
  char *t, *d;
  dt_error err;
  check_models(SOURCE_DIR "/models/mini-target", NULL, "models/mini-target", "models/mini-head"); /* found */
  assert_int_not_equal(dtl_resolve_models(SOURCE_DIR "/models/mini-target", "none", DTL_NEEDS_DRAFT, &t, &d, &err),
                       DT_OK);
  assert_non_null(strstr(err.message, "needs a draft model: give --draft DIR"));
  assert_int_equal(dtl_resolve_models(SOURCE_DIR "/models/mini-target", "none", DTL_ANY_DRAFT, &t, &d, &err), DT_OK);
  assert_null(d);
  free(t);
  assert_int_not_equal(dtl_resolve_models("./T", NULL, DTL_NEEDS_DRAFT, &t, &d, &err),
                       DT_OK); /* the target comes first */
  assert_non_null(strstr(err.message, "./T"));
  assert_null(strstr(err.message, "draft"));
  assert_int_equal(dtl_resolve_models("./T", NULL, DTL_ANY_DRAFT, &t, &d, &err), DT_OK); /* and may be alone */
  assert_null(d);
  free(t);
  setenv("DTRUN_TARGET", "./ET", 1);
  assert_int_not_equal(dtl_resolve_models(NULL, NULL, DTL_NEEDS_DRAFT, &t, &d, &err), DT_OK);
  setenv("DTRUN_DRAFT", "./ED", 1);
  check_models(NULL, NULL, "./ET", "./ED");
  check_models("./T", NULL, "./T", "./ED");
  unsetenv("DTRUN_TARGET"), unsetenv("DTRUN_DRAFT");
}

/* The exit status of a driver with this source. */
static int driver_status(const char *text, const volatile sig_atomic_t *interrupt) {
  char path[] = "/tmp/dtrun_driver_XXXXXX.lua";
  int fd = mkstemps(path, 4);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  char *argv[] = {"one", NULL};
  int status = dtl_run_driver(path, 1, argv, interrupt);
  unlink(path);
  return status;
}

static void a_driver_has_full_lua_and_its_arguments(void **state) {
  (void)state;
  assert_int_equal(driver_status("assert(arg[1] == 'one' and ... == 'one' and io and os and debug)", NULL), 0);
  assert_int_equal(driver_status("error 'failed'", NULL), 1);
  assert_int_equal(driver_status("error({})", NULL), 1);
  assert_int_equal(driver_status("no lua", NULL), 1);
  assert_int_equal(dtl_run_driver("/no/such/file.lua", 0, NULL, NULL), 2);
}

static void ctrl_c_ends_a_driver_with_130(void **state) {
  (void)state;
  pressed = 1;
  assert_int_equal(driver_status("while true do end", &pressed), 130);
  assert_int_equal(driver_status("while true do pcall(function() while true do end end) end", &pressed), 130);
  assert_int_equal(driver_status("local dt = require 'dt'\n"
                                 "while true do pcall(function() dt.load():close() end) end",
                                 &pressed),
                   130);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_policy_describes_itself),
      cmocka_unit_test(a_call_may_have_less_time_than_usual),
      cmocka_unit_test(settings_override_the_preset_and_the_preset_the_defaults),
      cmocka_unit_test(a_bad_setting_is_bad_usage_and_says_what_is_right),
      cmocka_unit_test(a_wrong_definition_is_the_policys_error_at_its_line),
      cmocka_unit_test(a_policy_error_names_file_and_line),
      cmocka_unit_test(a_missing_policy_lists_those_installed),
      cmocka_unit_test(policies_of_papers_are_found_by_name_and_listed_last),
      cmocka_unit_test(a_text_may_begin_with_an_interpreter_line),
      cmocka_unit_test(the_same_seed_gives_the_same_random_numbers),
      cmocka_unit_test(a_policy_that_drafts_needs_a_draft_model),
      cmocka_unit_test(an_engine_failure_cannot_be_caught),
      cmocka_unit_test(an_interrupt_ends_the_run_between_iterations),
      cmocka_unit_test(held_back_text_is_shown_when_a_run_fails),
      cmocka_unit_test(a_policy_serves_any_number_of_runs_as_it_was_written),
      cmocka_unit_test(the_prompt_must_hold_a_token_and_fit),
      cmocka_unit_test(the_result_is_json_in_the_schema),
      cmocka_unit_test(nothing_drafted_has_no_acceptance_rate),
      cmocka_unit_test(the_output_hash_is_fnv1a_over_little_endian_ids),
      cmocka_unit_test(models_come_from_options_then_environment_then_the_bundle),
      cmocka_unit_test(a_driver_has_full_lua_and_its_arguments),
      cmocka_unit_test(ctrl_c_ends_a_driver_with_130),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
