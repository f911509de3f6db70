/* Draft heads of every layout against PyTorch (tests/golden/make_heads.py): what they say after each node of a tree, over
 * iterations with accepted and rejected rows; the trees that EAGLE-2 grows; that the target's numbers stay what they are. */
#include "dtrun.h"
#include "golden_logits.h"
#include "small_tokenizer.h"
#include "unit.h"

#include <math.h>

#define TOLERANCE 2e-3

static cJSON *cases;

static const cJSON *get(const cJSON *object, const char *name) {
  const cJSON *item = cJSON_GetObjectItem(object, name);
  if (!item) fail_msg("golden.json has no %s", name);
  return item;
}

static char *folder_of(const cJSON *model) {
  char *folder = temp_folder();
  formula_checkpoint(folder, model);
  return folder;
}

/* A case's target and head, opened. */
typedef struct {
  const cJSON *wanted;
  char *target, *head;
  dt_pair *pair;
} subject;

static const char *layers_of(const cJSON *wanted) {
  const cJSON *layers = cJSON_GetObjectItem(wanted, "layers");
  return layers ? layers->valuestring : NULL;
}

static subject open_subject(int i, const char *backend, const char *cache_dtype) {
  subject s = {.wanted = cJSON_GetArrayItem(cases, i)};
  s.target = folder_of(get(s.wanted, "target"));
  s.head = folder_of(get(s.wanted, "head"));
  char *tokenizer = small_json(NULL, NULL);
  temp_write(s.target, "tokenizer.json", tokenizer, strlen(tokenizer));
  free(tokenizer);
  ok(dt_pair_open(&(dt_pair_options){.target = s.target,
                                     .draft = s.head,
                                     .backend = backend,
                                     .threads = 2,
                                     .cache_dtype = cache_dtype,
                                     .head_layers = layers_of(s.wanted)},
                  &s.pair, &err));
  return s;
}

static void close_subject(subject *s) {
  dt_pair_close(s->pair);
  temp_remove(s->target), temp_remove(s->head);
}

static void start(dt_session *session, int seq, const cJSON *wanted, int tokens) {
  int n;
  int32_t *prompt = golden_ints(get(wanted, "prompt"), &n);
  ok(dt_seq_start(session, seq, prompt, n, &(dt_seq_options){.max_tokens = tokens, .ignore_eos = true}, &err));
  free(prompt);
}

/* What the head said after a node is what is expected: ids may change places where they are as likely as each other. */
static double compare_draft(const dt_tree *tree, const cJSON *draft, const char *name) {
  int node = get(draft, "node")->valueint, n;
  const tree_draft *said = tree_draft_of(tree, node);
  assert_non_null(said);
  int32_t *ids = golden_ints(get(draft, "ids"), &n);
  if (said->count != n) fail_msg("%s, node %d: %d candidates, expected %d", name, node, said->count, n);
  double worst = fabs((double)said->entropy - get(draft, "entropy")->valuedouble);
  const cJSON *logp = get(draft, "logp")->child;
  for (int i = 0; i < n; i++, logp = logp->next) {
    double off = fabs((double)said->logp[i] - logp->valuedouble);
    worst = off > worst ? off : worst;
    int at = 0;
    while (at < n && said->token[at] != ids[i]) at++;
    if (at == n && i < n - 1) fail_msg("%s, node %d: id %d is not among the candidates", name, node, ids[i]);
    if (at < n && at != i && fabs((double)said->logp[at] - logp->valuedouble) > TOLERANCE)
      fail_msg("%s, node %d: id %d is candidate %d, expected %d", name, node, ids[i], at, i);
  }
  free(ids);
  return worst;
}

/* Adds the tree's nodes; all of them are drafted from, in two steps: those below first, which pulls in those above. */
static void grow(dt_session *session, int seq, const cJSON *iteration) {
  dt_tree *tree = dt_seq_tree(session, seq);
  dt_node_ref refs[32];
  int n = 0, v;
  for (const cJSON *node = get(iteration, "nodes")->child; node; node = node->next) {
    ok(tree_add(tree, cJSON_GetArrayItem(node, 0)->valueint, cJSON_GetArrayItem(node, 1)->valueint, 0, &v, &err));
    assert_int_equal(v, ++n);
  }
  refs[0] = (dt_node_ref){seq, n};
  ok(dt_draft_step(session, refs, 1, &err));
  for (int i = 0; i <= n; i++) refs[i] = (dt_node_ref){seq, i};
  ok(dt_draft_step(session, refs, n + 1, &err));
}

static void commit_expected(dt_session *session, int seq, const cJSON *iteration) {
  dt_verdict verdict;
  dt_committed block;
  int n;
  int32_t *tokens = golden_ints(get(iteration, "committed"), &n);
  ok(dt_verify_tree(session, &seq, 1, &verdict, &err));
  ok(dt_commit(session, &seq, 1, 0, &block, &err));
  assert_int_equal(block.n, n);
  assert_memory_equal(block.tokens, tokens, (size_t)n * sizeof *tokens);
  free(tokens);
}

/* EAGLE-2's tree: top_k 3, depth 3, the best 7 of all. */
static void grow_eagle2(dt_session *session, int seq) {
  dt_tree *tree = dt_seq_tree(session, seq);
  int32_t frontier[64] = {0};
  ok(tree_limit(tree, 256, &err));
  for (int level = 0, n = 1; level < 3; level++) {
    dt_node_ref refs[8];
    int begin = tree->nodes, first, last;
    for (int i = 0; i < n; i++) refs[i] = (dt_node_ref){seq, frontier[i]};
    ok(dt_draft_step(session, refs, n, &err));
    for (int i = 0; i < n; i++) ok(tree_branch(tree, frontier[i], 3, &first, &last, &err));
    n = tree_best(tree, 3, begin, tree->nodes - 1, frontier);
  }
  ok(tree_keep_best(tree, 7, &err));
}

/* The way from the root to a node as text. */
static void path_of(const dt_tree *tree, int u, char *out) {
  if (u == 0) return;
  path_of(tree, tree->parent[u], out);
  sprintf(out + strlen(out), "/%d", tree->token[u]);
}

static void expect_tree(const dt_tree *tree, const cJSON *expected, const char *name) {
  char wanted[16][64] = {""};
  int n = 0;
  for (const cJSON *node = expected->child; node; node = node->next) {
    n++;
    snprintf(wanted[n], sizeof wanted[n], "%.40s/%d", wanted[cJSON_GetArrayItem(node, 0)->valueint],
             cJSON_GetArrayItem(node, 1)->valueint);
  }
  assert_int_equal(tree->n_kept, n);
  for (int i = 0; i < n; i++) {
    char path[64] = "";
    int at = 1;
    path_of(tree, tree->kept_node[i], path);
    while (at <= n && strcmp(wanted[at], path)) at++;
    if (at > n) fail_msg("%s: node %s is not in EAGLE-2's tree", name, path);
  }
}

static void run_case(int i, const char *backend) {
  subject s = open_subject(i, backend, NULL);
  const char *name = get(s.wanted, "name")->valuestring;
  dt_pair_info info;
  dt_pair_describe(s.pair, &info);
  assert_string_equal(info.head_layers, get(s.wanted, "read")->valuestring);
  assert_memory_equal(info.draft_head, name, strlen(info.draft_head));
  dt_session *session;
  ok(dt_session_open(s.pair, &(dt_session_options){.sequences = 3, .context = 90, .use_draft = true}, &session, &err));
  start(session, 1, s.wanted, -1);
  double worst = 0;
  for (const cJSON *it = get(s.wanted, "iterations")->child; it; it = it->next) {
    ok(dt_rollback(session, 1, &err));
    if (get(it, "eagle2")->child) {
      grow_eagle2(session, 1);
      expect_tree(dt_seq_tree(session, 1), get(it, "eagle2"), name);
      ok(dt_rollback(session, 1, &err));
    }
    grow(session, 1, it);
    for (const cJSON *draft = get(it, "drafts")->child; draft; draft = draft->next)
      worst = fmax(worst, compare_draft(dt_seq_tree(session, 1), draft, name));
    commit_expected(session, 1, it);
  }
  print_message("%s on %s: largest difference of a log-probability %.2g\n", name, info.backend, worst);
  assert_true(worst < TOLERANCE);
  dt_session_close(session);
  close_subject(&s);
}

static void heads_say_what_pytorch_computes(void **state) {
  (void)state;
  for (int i = 0; i < cJSON_GetArraySize(cases); i++) run_case(i, "cpu"), run_case(i, "cpu:scalar");
}

int main(void) {
  size_t size;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden/heads", "golden.json", &size);
  cases = cJSON_Parse(text);
  free(text);
  const struct CMUnitTest tests[] = {cmocka_unit_test(heads_say_what_pytorch_computes)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cJSON_Delete(cases);
  return failed;
}
