/* Two tokens sampled after a text have the probabilities that Hugging Face transformers gives
 * (tests/golden/make_sampling.py), and no id that transformers forbids ever occurs. It uses the bundled pair and the
 * whole engine, with a tree of coupled guesses.
 *   test_golden_sampling [SEEDS (1000) [BACKEND (auto)]]
 *
 * For each text and setting there is a chi-square test at level 0.001 of the first token and, after each of the two
 * likeliest first tokens, of the second. Ids that are expected less than 5 times are counted together. With 60
 * outcomes, the power is 99 % against frequencies that are off by 30 % (root mean square, relative) at 1000 seeds, or
 * by 7 % at 20000. Seeds are fixed, so a run's result is always the same. */
#include "chi_square.h"
#include "golden_logits.h"
#include "unit.h"

#include "dtrun.h"

enum { PLACES = 32, TOKENS = 2, GUESSES = 2, LISTED = 64, FEW = 5 };

#if defined(__SANITIZE_ADDRESS__)
static int seeds = 100;
#else
static int seeds = 1000;
#endif
static const char *backend = "auto";

/* Which tokens may come next, and the probabilities of the first `listed` ids. */
typedef struct {
  int32_t token; /* the token before; -1: the text itself */
  int listed;
  int32_t *ids;
  double p[LISTED];
  bool *may_come; /* [vocab] */
  long count[LISTED], rest;
} law;

static law law_read(const cJSON *json, int vocab) {
  const cJSON *token = cJSON_GetObjectItem(json, "tokens")->child, *others = cJSON_GetObjectItem(json, "others");
  law l = {.token = token ? token->valueint : -1, .may_come = malloc((size_t)vocab * sizeof(bool))};
  l.ids = golden_ints(cJSON_GetObjectItem(json, "ids"), &l.listed);
  int i = 0;
  for (const cJSON *p = cJSON_GetObjectItem(json, "p")->child; p; p = p->next) l.p[i++] = p->valuedouble;
  for (i = 0; i < vocab; i++) l.may_come[i] = !others;
  for (i = 0; i < l.listed; i++) l.may_come[l.ids[i]] = true;
  for (const cJSON *id = others ? others->child : NULL; id; id = id->next) l.may_come[id->valueint] = true;
  return l;
}

static void law_count(law *l, int32_t id, const char *name) {
  if (!l->may_come[id]) fail_msg("%s: token %d after %d is impossible", name, id, l->token);
  int i = 0;
  while (i < l->listed && l->ids[i] != id) i++;
  if (i < l->listed)
    l->count[i]++;
  else
    l->rest++;
}

static void check_law(law *l, const char *name) {
  chi_square x = {0};
  long sampled = l->rest, rest = l->rest; /* rest: for ids that are too rare for a bin of their own */
  for (int i = 0; i < l->listed; i++) sampled += l->count[i];
  double rare = (double)sampled;
  for (int i = 0; i < l->listed; i++) {
    double expected = l->p[i] * (double)sampled;
    if (expected < FEW) {
      rest += l->count[i];
      continue;
    }
    chi_square_add(&x, (double)l->count[i], expected);
    rare -= expected;
  }
  if (rare >= FEW) chi_square_add(&x, (double)rest, rare);
  if (x.bins > 1) {
    double critical = chi_square_critical(&x);
    printf("%s, after %d: chi-square %.1f of %d outcomes, critical %.1f\n", name, l->token, x.sum, x.bins, critical);
    if (x.sum > critical) fail_msg("%s, after %d: not the target's distribution", name, l->token);
  }
  free(l->ids), free(l->may_come);
}

/* Runs sequences 0..n-1, which have begun, to their ends. */
static void run(dt_session *s, int n, long *accepted) {
  int alive[PLACES], count;
  dt_verdict verdicts[PLACES];
  dt_committed blocks[PLACES];
  dt_node_ref roots[PLACES];
  for (;;) {
    count = 0;
    for (int i = 0; i < n; i++)
      if (dt_seq_finish(s, i) == DT_RUNNING) roots[count] = (dt_node_ref){.seq = i, .node = 0}, alive[count++] = i;
    if (!count) return;
    for (int i = 0; i < count; i++) ok(dt_rollback(s, alive[i], &err));
    ok(dt_draft_step(s, roots, count, &err));
    for (int i = 0, first, last; i < count; i++)
      if (dt_tree_depth_room(dt_seq_tree(s, alive[i])) > 0)
        ok(dt_tree_branch(dt_seq_tree(s, alive[i]), 0, GUESSES, &first, &last, &err));
    ok(dt_verify_tree(s, alive, count, verdicts, &err));
    ok(dt_commit(s, alive, count, 0, blocks, &err));
    for (int i = 0; i < count; i++) *accepted += verdicts[i].accepted;
  }
}

static float number(const cJSON *json, const char *name) {
  const cJSON *item = cJSON_GetObjectItem(json, name);
  return item ? (float)item->valuedouble : 0.0f;
}

static bool is_adjusted(const cJSON *setting) {
  return cJSON_GetObjectItem(setting, "repeat") || cJSON_GetObjectItem(setting, "presence");
}

static void check_setting(dt_session *s, const dt_prefix *prefix, const cJSON *setting, int vocab, const char *name) {
  dt_seq_options o = {.max_tokens = TOKENS, .ignore_eos = true};
  dt_sampling *p = &o.sampling;
  *p = (dt_sampling){0, number(setting, "temp"), (int)number(setting, "top_k"), number(setting, "top_p"),
                     number(setting, "min_p")};
  dt_bias bias[8];
  o.adjustments = (dt_adjustments){.repeat = number(setting, "repeat"),
                                   .presence = number(setting, "presence"),
                                   .frequency = number(setting, "frequency"),
                                   .bias = bias};
  const cJSON *list = cJSON_GetObjectItem(setting, "bias"); /* null: the id is banned */
  for (const cJSON *b = list ? list->child : NULL; b; b = b->next)
    bias[o.adjustments.n_bias++] =
        (dt_bias){cJSON_GetArrayItem(b, 0)->valueint,
                  cJSON_IsNull(cJSON_GetArrayItem(b, 1)) ? -INFINITY : (float)cJSON_GetArrayItem(b, 1)->valuedouble};
  char label[160];
  snprintf(label, sizeof label, "%s, temp %g, top_k %d, top_p %g, min_p %g, repeat %g, presence %g, %d biases", name,
           (double)p->temp, p->top_k, (double)p->top_p, (double)p->min_p, (double)o.adjustments.repeat,
           (double)o.adjustments.presence, o.adjustments.n_bias);
  law laws[3];
  int n = 0, length;
  long accepted = 0;
  for (const cJSON *json = cJSON_GetObjectItem(setting, "after")->child; json; json = json->next)
    laws[n++] = law_read(json, vocab);
  dt_prefix_tokens(prefix, &length);
  for (int seed = 0; seed < seeds; seed += PLACES) {
    int places = seeds - seed < PLACES ? seeds - seed : PLACES;
    for (int i = 0; i < places; i++) {
      p->seed = (uint64_t)(seed + i);
      ok(dt_seq_start_from(s, i, prefix, &o, &err));
    }
    run(s, places, &accepted);
    for (int i = 0; i < places; i++) {
      const int32_t *text = dt_seq_tokens(s, i) + length;
      law_count(&laws[0], text[0], label);
      for (int j = 1; j < n; j++)
        if (text[0] == laws[j].token) law_count(&laws[j], text[1], label);
    }
  }
  for (int j = 0; j < n; j++) check_law(&laws[j], label);
  printf("%s: %.2f accepted per text\n", label, (double)accepted / (double)seeds);
}

static dt_pair *open_or_skip(void) {
  dt_pair *pair = NULL;
  dt_pair_options o = {.target = SOURCE_DIR "/models/mini-target",
                       .draft = SOURCE_DIR "/models/mini-draft",
                       .backend = backend,
                       .threads = 1};
  dt_error failure = {0};
  dt_status status = dt_pair_open(&o, &pair, &failure);
  if (status == DT_EDEVICE) printf("skipped: %s\n", failure.message), exit(77);
  if (status != DT_OK) fail_msg("%s", failure.message);
  return pair;
}

static void the_bundled_pair_samples_as_transformers_does(void **state) {
  (void)state;
  size_t size;
  char *text = golden_bytes("mini-target", "sampling.json", &size);
  cJSON *json = cJSON_Parse(text);
  free(text);
  assert_non_null(json);
  dt_pair *pair = open_or_skip();
  dt_session *s;
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = PLACES, .context = 128, .use_draft = true}, &s, &err));
  for (const cJSON *c = cJSON_GetObjectItem(json, "cases")->child; c; c = c->next) {
    int n;
    int32_t *ids = golden_ints(cJSON_GetObjectItem(c, "ids"), &n);
    dt_prefix *prefix;
    ok(dt_seq_start(s, 0, ids, n, &(dt_seq_options){.max_tokens = TOKENS}, &err));
    ok(dt_prefix_take(s, 0, &prefix, &err));
    for (const cJSON *setting = cJSON_GetObjectItem(c, "settings")->child; setting; setting = setting->next)
      if (strncmp(info.backend, "cuda", 4) || !is_adjusted(setting)) /* CUDA refuses adjustments */
        check_setting(s, prefix, setting, info.target.vocab, cJSON_GetObjectItem(c, "name")->valuestring);
    dt_prefix_free(prefix);
    free(ids);
  }
  dt_session_close(s);
  dt_pair_close(pair);
  cJSON_Delete(json);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_bundled_pair_samples_as_transformers_does)};
  if (argc > 1) seeds = atoi(argv[1]);
  if (argc > 2) backend = argv[2];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
