/* Logit adjustments: compared with other programs' processors (tests/golden/make_adjustments.py); for paths, compared
 * with the text that a path makes; and what a pass of the CPU makes of them, in every variant. */
#include "golden_logits.h"
#include "rig.h"

#include "cpu.h"
#include "draft/adjustments.h"
#include "kernels.h"
#include "random_model.h"
#include "sample_definition.h"

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

static dt_adjustment entry_of(const dt_row_adjustments *r, int32_t id) {
  dt_adjustment found = {.id = id, .repeat = 1};
  for (int i = 0; i < r->n_text; i++)
    if (r->text[i].id == id) found = r->text[i];
  for (int i = 0; i < r->n_path; i++)
    if (r->path[i].id == id) found = r->path[i];
  return found;
}

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

enum { ROWS = 9, TOP = 5 };

typedef struct {
  int32_t argmax[ROWS], id[ROWS][TOP];
  float logp[ROWS], top[ROWS][TOP];
} told;

static int token_of(const dt_sampling *s, const float *logits, int n) {
  int allowed, best = 0;
  for (int v = 1; v < n; v++) best = logits[v] > logits[best] ? v : best;
  return s->temp > 0 ? definition_sampled(s, 0, logits, n, &allowed) : best;
}

/* Each row has its own adjustments, except for the first one, which has none. Its results show these adjustments and
 * nothing else. */
static void check_pass(rig *r, row_list *l) {
  dt_adjustment text[ROWS][4], path[ROWS][2];
  size_t words = (size_t)(r->vocab + 63) / 64;
  uint64_t *allowed = malloc(ROWS * words * sizeof *allowed), bits = 5;
  dt_row_adjustments row_has[ROWS];
  dt_sampling sampling[ROWS];
  int32_t index[ROWS], given[ROWS];
  float *plain = rig_run(r, l, true), *adjusted = malloc(sizeof *adjusted * (size_t)ROWS * (size_t)r->vocab);
  dt_rows rows = rows_of(l);
  told quiet, moved, of_given;
  int different = 0;
  for (int j = 0; j < ROWS; j++) {
    const float *logits = plain + (size_t)j * (size_t)r->vocab;
    int best = 0;
    for (int v = 1; v < r->vocab; v++) best = logits[v] > logits[best] ? v : best;
    int32_t third = r->vocab - 1 - j;
    for (int k = 0; k < 4; k++)
      text[j][k] =
          (dt_adjustment){.id = 3 * k + j % 2, .bias = k == 2 ? -INFINITY : (float)k, .repeat = 1.3f, .minus = 0.5f};
    if (best > 12 && best < third) { /* the path bans the likeliest one, which overrides the text's adjustment of it */
      text[j][3] = (dt_adjustment){.id = best, .bias = 50, .repeat = 1};
      path[j][0] = (dt_adjustment){.id = best, .bias = -INFINITY, .repeat = 1};
    } else {
      path[j][0] = (dt_adjustment){.id = 20, .bias = 1, .repeat = 0.5f};
    }
    path[j][1] = (dt_adjustment){.id = third, .bias = 1.5f, .repeat = 1.1f};
    for (size_t k = 0; k < words; k++) /* also words with all bits equal, of each kind */
      allowed[(size_t)j * words + k] = k % 3 == 1   ? UINT64_MAX
                                       : k % 3 == 2 ? 0
                                                    : (uint64_t)random_next(&bits) << 32 | 1;
    row_has[j] =
        j ? (dt_row_adjustments){text[j], path[j], 4, j % 4 ? 2 : 0, j % 3 ? NULL : allowed + (size_t)j * words}
          : (dt_row_adjustments){0};
    sampling[j] = (dt_sampling){(uint64_t)j, 0.5f * (float)(j % 3), j % 2 ? 7 : 0, 0, 0};
    index[j] = j, given[j] = (7 * j + 1) % r->vocab;
  }
  dt_out out = {.want = DT_WANT_LOGITS, .n = ROWS, .row = index, .adjustments = row_has, .logits = adjusted};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  for (int j = 0; j < ROWS; j++)
    for (int32_t v = 0; v < r->vocab; v++) {
      dt_adjustment s = entry_of(&row_has[j], v);
      bool named = s.bias != 0 || s.repeat != 1 || s.minus != 0;
      float is = adjusted[j * r->vocab + v], was = plain[j * r->vocab + v];
      assert_true(is == (!adjustment_allows(&row_has[j], v) ? -INFINITY : named ? adjust_logit(&s, was) : was));
      different += is != was;
    }
  assert_true(different > 3 * (ROWS - 1));
  out = (dt_out){.want = DT_WANT_BOTH,
                 .n = ROWS,
                 .row = index,
                 .sampling = sampling,
                 .k = TOP,
                 .argmax = quiet.argmax,
                 .logp = quiet.logp,
                 .top_id = quiet.id[0],
                 .top_logp = quiet.top[0]};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  out.adjustments = row_has, out.argmax = moved.argmax, out.logp = moved.logp, out.top_id = moved.id[0],
  out.top_logp = moved.top[0];
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  assert_memory_equal(quiet.id, moved.id, sizeof quiet.id);
  assert_memory_equal(quiet.top, moved.top, sizeof quiet.top);
  out.given = given, out.argmax = NULL, out.logp = of_given.logp, out.top_id = of_given.id[0],
  out.top_logp = of_given.top[0];
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  assert_memory_equal(quiet.id, of_given.id, sizeof quiet.id);
  int32_t alone[ROWS];
  out = (dt_out){
      .want = DT_WANT_ARGMAX, .n = ROWS, .row = index, .sampling = sampling, .adjustments = row_has, .argmax = alone};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  assert_memory_equal(alone, moved.argmax, sizeof alone);
  for (int j = 0; j < ROWS; j++) {
    const float *logits = plain + (size_t)j * (size_t)r->vocab;
    float *mine = adjusted + (size_t)j * (size_t)r->vocab;
    double sum = 0;
    for (int v = 0; v < r->vocab; v++) sum += exp((double)logits[v]);
    assert_int_equal(moved.argmax[j], token_of(&sampling[j], mine, r->vocab));
    assert_true(fabs((double)moved.logp[j] - (double)logits[moved.argmax[j]] + log(sum)) < 1e-5);
    assert_true(fabs((double)of_given.logp[j] - (double)logits[given[j]] + log(sum)) < 1e-5);
    for (int k = 0; k < TOP; k++)
      if (moved.id[j][k] == moved.argmax[j]) assert_true(moved.logp[j] == moved.top[j][k]);
  }
  assert_int_equal(moved.argmax[0], quiet.argmax[0]);
  given[2] = r->vocab;
  out = (dt_out){.want = DT_WANT_BOTH,
                 .n = ROWS,
                 .row = index,
                 .k = 1,
                 .given = given,
                 .logp = quiet.logp,
                 .top_id = quiet.id[0],
                 .top_logp = quiet.top[0]};
  fails(r->ops->forward(r->weights, r->cache, &rows, &out, &err), DT_EINPUT, "result 2 is wanted of id");
  free(plain), free(allowed), free(adjusted);
}

static void a_pass_adjusts_what_it_takes_and_not_what_it_reports(void **state) {
  (void)state;
  const cpu_kernels *k;
  for (int shape = 0; shape < 3; shape++) {
    random_model *m = random_model_new(&random_shapes[shape], 5);
    for (int variant = 0; (k = cpu_variant(variant)); variant++) {
      rig r = rig_open(&dt_cpu_ops, k->name, 2, &m->desc, ROWS, 4);
      row_list l = {0};
      for (int i = 0; i < ROWS; i++) row_add_plain(&l, i, 31 * i % r.vocab, 0);
      check_pass(&r, &l);
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
