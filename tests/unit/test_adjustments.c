/* Logit adjustments: compared with other programs' processors (tests/golden/make_adjustments.py); for paths, compared
 * with the text that a path makes; and what a pass of the CPU makes of them, in every variant. */
#include "adjustment_case.h"
#include "golden_logits.h"

#include "cpu.h"
#include "draft/adjustments.h"
#include "kernels.h"
#include "random_model.h"

static float number_of(const cJSON *object, const char *key) {
  const cJSON *x = cJSON_GetObjectItem(object, key);
  return x ? (float)x->valuedouble : 0;
}

/* null is -inf */
static float shown(const cJSON *x) { return cJSON_IsNull(x) ? -INFINITY : (float)x->valuedouble; }

static dt_row_adjustments of_text(const adjustments *s) {
  return (dt_row_adjustments){.text = s->text, .n_text = s->n};
}

static void adjustments_are_those_of_transformers_and_llama_cpp(void **state) {
  (void)state;
  enum { MOST = 64 };
  size_t size;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden", "adjustments.json", &size);
  cJSON *json = cJSON_Parse(text);
  int cases = 0, moved = 0, by_transformers = 0;
  assert_non_null(json);
  for (const cJSON *c = cJSON_GetObjectItem(json, "cases")->child; c; c = c->next, cases++) {
    const cJSON *how = cJSON_GetObjectItem(c, "setting"), *list = cJSON_GetObjectItem(how, "bias"),
                *ends = cJSON_GetObjectItem(how, "ends");
    int n_prompt, n_generated, n_ends = 0;
    int32_t *prompt = golden_ints(cJSON_GetObjectItem(c, "prompt"), &n_prompt),
            *generated = golden_ints(cJSON_GetObjectItem(c, "generated"), &n_generated),
            *end = ends ? golden_ints(ends, &n_ends) : NULL;
    dt_bias bias[MOST];
    dt_adjustments asked = {.repeat = number_of(how, "repeat"),
                            .presence = number_of(how, "presence"),
                            .frequency = number_of(how, "frequency"),
                            .bias = bias,
                            .min_tokens = (int)number_of(how, "min_tokens")};
    for (const cJSON *b = list ? list->child : NULL; b; b = b->next)
      bias[asked.n_bias++] = (dt_bias){cJSON_GetArrayItem(b, 0)->valueint, shown(cJSON_GetArrayItem(b, 1))};
    adjustments s;
    ok(adjustments_open(&s, &asked, NULL, n_prompt + n_generated, end, n_ends, &err));
    adjustments_prompt(&s, prompt, n_prompt);
    for (int i = 0; i < n_generated; i++) adjustments_token(&s, generated[i]);
    dt_row_adjustments row = of_text(&s);
    float logits[MOST];
    int n = 0, at = 0;
    for (const cJSON *x = cJSON_GetObjectItem(c, "before")->child; x; x = x->next) logits[n++] = shown(x);
    for (int i = 0; i < row.n_text; i++) logits[row.text[i].id] = adjust_logit(&row.text[i], logits[row.text[i].id]);
    const cJSON *before = cJSON_GetObjectItem(c, "before")->child;
    for (const cJSON *x = cJSON_GetObjectItem(c, "after")->child; x; x = x->next, before = before->next, at++) {
      float should = shown(x);
      moved += should != shown(before);
      if (!(logits[at] == should || fabsf(logits[at] - should) <= 1e-6f * (1 + fabsf(should))))
        fail_msg("case %d, by %s: id %d has %.9g, not %.9g", cases, cJSON_GetObjectItem(c, "by")->valuestring, at,
                 (double)logits[at], (double)should);
    }
    by_transformers += strcmp(cJSON_GetObjectItem(c, "by")->valuestring, "transformers") == 0;
    adjustments_close(&s);
    free(prompt), free(generated), free(end);
  }
  assert_true(cases >= 20 && by_transformers >= cases / 3 && by_transformers < cases && moved > 5 * cases);
  cJSON_Delete(json);
  free(text);
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

enum { IDS = 30, CONTEXT = 80 };

static bool rises(const dt_adjustment *list, int n) {
  for (int i = 1; i < n; i++)
    if (list[i].id <= list[i - 1].id) return false;
  return true;
}

/* In a random tree of 40 nodes, each row's adjustments are those of the text with the row's path appended. */
static void a_path_is_adjusted_as_the_text_that_it_makes(void **state) {
  (void)state;
  enum { NODES = 40 };
  static const int32_t ends[] = {3, 17};
  row_adjustments rows;
  dt_tree *tree;
  int unlike = 0;
  ok(row_adjustments_open(&rows, NODES, NODES * NODES, &err));
  ok(dt_tree_open(&tree, &err));
  for (uint64_t seed = 1; seed <= 300; seed++) {
    uint64_t r = seed;
    const dt_bias bias[] = {{5, 1.5f}, {(int32_t)(random_next(&r) % IDS), -INFINITY}, {5, 0.25f}};
    dt_adjustments asked = {.repeat = random_next(&r) % 2 ? 1.3f : 0,
                            .presence = random_next(&r) % 2 ? 0.5f : 0,
                            .frequency = random_next(&r) % 2 ? -0.25f : 0,
                            .bias = bias,
                            .n_bias = (int)(random_next(&r) % 4),
                            .min_tokens = (int)(random_next(&r) % 12)};
    int32_t text[CONTEXT];
    int prompt = 1 + (int)(random_next(&r) % 10), length = prompt + (int)(random_next(&r) % 10);
    for (int i = 0; i < length; i++) text[i] = (int32_t)(random_next(&r) % IDS);
    adjustments s;
    ok(adjustments_open(&s, &asked, NULL, CONTEXT, ends, 2, &err));
    adjustments_prompt(&s, text, prompt);
    for (int i = prompt; i < length; i++) adjustments_token(&s, text[i]);
    dt_tree_reset(tree, text[length - 1], NODES, IDS);
    row_adjustments_begin(&rows);
    for (int v = 0, node; v < NODES; v++) {
      int parent = v && seed % 3 ? (int)(random_next(&r) % (uint32_t)v) : v - 1;
      while (tree->nodes <= v) /* its parent may already have that child */
        ok(dt_tree_add(tree, parent, (int32_t)(random_next(&r) % IDS), -1, &node, &err));
      row_adjustments_put(&rows, v, &s, tree, v);
      assert_true(rises(rows.row[v].text, rows.row[v].n_text) && rises(rows.row[v].path, rows.row[v].n_path));
      assert_true(rows.row[v].n_path <= tree->depth[v] + 2);
    }
    for (int v = 0; v < tree->nodes; v++) {
      adjustments alone;
      int32_t path[NODES];
      ok(adjustments_open(&alone, &asked, NULL, CONTEXT, ends, 2, &err));
      adjustments_prompt(&alone, text, prompt);
      for (int i = prompt; i < length; i++) adjustments_token(&alone, text[i]);
      for (int u = v; u > 0; u = tree->parent[u]) path[tree->depth[u] - 1] = tree->token[u];
      for (int d = 0; d < tree->depth[v]; d++) adjustments_token(&alone, path[d]);
      dt_row_adjustments should = of_text(&alone);
      for (int32_t id = 0; id < IDS; id++) {
        dt_adjustment is = entry_of(&rows.row[v], id), expected = entry_of(&should, id),
                      root = entry_of(&rows.row[0], id);
        assert_true(is.bias == expected.bias && is.repeat == expected.repeat && is.minus == expected.minus);
        unlike += is.bias != root.bias || is.repeat != root.repeat || is.minus != root.minus;
      }
      adjustments_close(&alone);
    }
    adjustments_close(&s);
  }
  assert_true(unlike > 20000);
  row_adjustments_close(&rows);
  dt_tree_close(tree);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

/* Checks adjustments for a vocabulary of four ids, one of which ends a text. */
static dt_status check(const dt_adjustments *asked, const dt_seq_options *o, const int32_t *ends, dt_error *err) {
  dt_status status = adjustments_check(asked, o, err);
  return status ? status : adjustments_check_ids(asked, 4, ends, 1, err);
}

static void bounds_are_those_that_are_told(void **state) {
  (void)state;
  static const int32_t ends[] = {1};
  const dt_seq_options o = {.max_tokens = 10}, endless = {.max_tokens = 10, .ignore_eos = true};
  const dt_bias high = {4, 0}, low = {-1, 0}, last = {3, 1000}, much = {3, 1000.5f},
                all[] = {{0, -INFINITY}, {2, -INFINITY}, {3, -INFINITY}};
  const dt_bias never = {3, -INFINITY}, always = {3, INFINITY}, unknown = {3, NAN};
#define CHECK(...) check(&(dt_adjustments){__VA_ARGS__}, &o, ends, &err)
  ok(CHECK(.repeat = 0.01f, .presence = 100, .frequency = -100, .bias = &last, .n_bias = 1, .min_tokens = 10));
  ok(CHECK(.repeat = 100, .presence = -100, .frequency = 100, .bias = &never, .n_bias = 1));
  fails(CHECK(.repeat = 0.009f), DT_EINPUT, "repeat_penalty: 0.009 is out of range: 0.01 to 100");
  fails(CHECK(.repeat = 100.5f), DT_EINPUT, "repeat_penalty");
  fails(CHECK(.repeat = -1), DT_EINPUT, "repeat_penalty");
  fails(CHECK(.repeat = NAN), DT_EINPUT, "repeat_penalty");
  fails(CHECK(.presence = 100.5f), DT_EINPUT, "presence_penalty: 100.5 is out of range");
  fails(CHECK(.frequency = -100.5f), DT_EINPUT, "frequency_penalty: -100.5 is out of range");
  fails(CHECK(.bias = &high, .n_bias = 1), DT_EINPUT, "token 4 is out of range 0..3");
  fails(CHECK(.bias = &low, .n_bias = 1), DT_EINPUT, "token -1 is out of range 0..3");
  fails(CHECK(.bias = &much, .n_bias = 1), DT_EINPUT, "1000.5 for token 3 is out of range");
  fails(CHECK(.bias = &always, .n_bias = 1), DT_EINPUT, "for token 3 is out of range");
  fails(CHECK(.bias = &unknown, .n_bias = 1), DT_EINPUT, "for token 3 is out of range");
  ok(CHECK(.bias = all, .n_bias = 3));
  fails(CHECK(.bias = all, .n_bias = 3, .min_tokens = 1), DT_EINPUT, "every token is banned");
  fails(CHECK(.min_tokens = -1), DT_EINPUT, "min_tokens: -1 is out of range");
  fails(CHECK(.min_tokens = 11), DT_EINPUT, "min_tokens: 11 is more than the maximum number of tokens, 10");
  fails(check(&(dt_adjustments){.min_tokens = 1}, &endless, ends, &err), DT_EINPUT, "min_tokens with ignore_eos");
#undef CHECK
  assert_false(dt_adjustments_wanted(NULL) || dt_adjustments_wanted(&(dt_adjustments){.repeat = 1}));
  assert_true(dt_adjustments_wanted(&(dt_adjustments){.repeat = 1.5f}) &&
              dt_adjustments_wanted(&(dt_adjustments){.bias = &last, .n_bias = 1}));
}

/* ---- a pass ------------------------------------------------------------------------------------------------------ */

static void a_pass_adjusts_what_it_takes_and_not_what_it_reports(void **state) {
  (void)state;
  const cpu_kernels *k;
  for (int shape = 0; shape < 3; shape++) {
    random_model *m = random_model_new(&random_shapes[shape], 5);
    for (int variant = 0; (k = cpu_variant(variant)); variant++) {
      rig r = rig_open(&dt_cpu_ops, k->name, 2, &m->desc, ADJUSTED_ROWS, 4);
      row_list l = {0};
      for (int i = 0; i < ADJUSTED_ROWS; i++) row_add_plain(&l, i, 31 * i % r.vocab, 0);
      check_adjusted_pass(&r, &l);
      rig_close(&r);
    }
    random_model_free(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adjustments_are_those_of_transformers_and_llama_cpp),
      cmocka_unit_test(a_path_is_adjusted_as_the_text_that_it_makes),
      cmocka_unit_test(bounds_are_those_that_are_told),
      cmocka_unit_test(a_pass_adjusts_what_it_takes_and_not_what_it_reports),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
