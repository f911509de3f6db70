/* Levels that are drafted ahead (dt_node_ref.ahead) are the levels of as many steps: their candidates to the bit, the trees, the
 * verdicts, the texts and the numbers of passes. On a draft model, and on heads.
 *
 *   test_ahead         on the CPU, which has no chains: no level is ahead
 *   test_ahead cuda    on the GPU, or (tests/CMakeLists.txt) on an emulated one */
#include "dtrun.h"
#include "formula_checkpoint.h"
#include "golden_logits.h"
#include "small_tokenizer.h"
#include "unit.h"

enum { CONTEXT = 90, SEQUENCES = 2, MOST = 1 << 20 };

static const char *backend = "cpu";
static bool chains;
static cJSON *cases;

/* All that a run says, byte by byte. */
typedef struct {
  size_t n;
  char bytes[MOST];
} record;

static void put(record *to, const void *from, size_t n) {
  assert_true(to->n + n <= MOST);
  memcpy(to->bytes + to->n, from, n);
  to->n += n;
}

/* A step from a node, with so many levels ahead; says what the draft says. */
static void step(dt_session *s, int seq, int node, int ahead, record *to) {
  ok(dt_draft_step(s, &(dt_node_ref){.seq = seq, .node = node, .ahead = ahead}, 1, &err));
  const dt_tree_draft *said = dt_tree_draft_of(dt_seq_tree(s, seq), node);
  assert_non_null(said);
  put(to, &said->count, sizeof said->count);
  size_t n = (size_t)said->count;
  put(to, said->token, n * sizeof *said->token), put(to, said->logp, n * sizeof *said->logp);
  put(to, said->own, n * sizeof *said->own);
  put(to, &said->confidence, sizeof said->confidence), put(to, &said->entropy, sizeof said->entropy);
}

static long passes_of(const dt_session *s, int seq) {
  dt_stats stats;
  dt_seq_stats(s, seq, &stats);
  return stats.draft_passes;
}

/* What comes between levels 1 and 2: the path goes on with the second candidate, or another sequence drafts. */
typedef enum { NOTHING, ANOTHER_PATH, ANOTHER_SEQUENCE } between;

/* A chain of sequence 0, of so many nodes or as many as there is room for. Whoever drafts ahead does so in the first step, and again
 * where something came between. */
static void chain(dt_session *s, int levels, between what, bool ahead, record *to) {
  dt_tree *tree = dt_seq_tree(s, 0);
  if (levels > dt_tree_depth_room(tree)) levels = dt_tree_depth_room(tree);
  for (int i = 0, u = 0, first, last; i < levels; i++, u = last) {
    long before = passes_of(s, 0);
    int left = levels - 1 - i;
    step(s, 0, u, ahead ? left : -left, to); /* below 1: none */
    if (ahead && chains) assert_int_equal(passes_of(s, 0) - before, i == 0 || (i == 2 && what) ? 1 + left : 0);
    if (i == 1 && what == ANOTHER_SEQUENCE) step(s, 1, 0, 0, to);
    ok(dt_tree_branch(tree, u, i == 1 && what == ANOTHER_PATH ? 2 : 1, &first, &last, &err));
  }
}

static void verify_and_commit(dt_session *s, int seq, record *to) {
  dt_verdict verdict;
  dt_committed block;
  ok(dt_verify_tree(s, &seq, 1, &verdict, &err));
  put(to, &verdict.accepted, sizeof verdict.accepted), put(to, &verdict.bonus, sizeof verdict.bonus);
  ok(dt_commit(s, &seq, 1, 0, &block, &err));
}

/* The longest is as long as the context allows, and more passes than are on their way at once (some 17). */
enum { ITERATIONS = 6, WASTED = 6 };
static const struct {
  int levels;
  between what;
} iterations[ITERATIONS] = {{1, NOTHING},      {2, NOTHING},          {3, NOTHING},
                            {4, ANOTHER_PATH}, {4, ANOTHER_SEQUENCE}, {CONTEXT, NOTHING}};

/* Levels ahead belong to a tree: another one over a longer text has a node with the same number and token. */
static void begin_another_tree(dt_session *s, bool ahead, record *to) {
  ok(dt_rollback(s, 0, &err));
  step(s, 0, 0, ahead ? 2 : 0, to);
  int32_t token = dt_tree_draft_of(dt_seq_tree(s, 0), 0)->token[0];
  int v;
  verify_and_commit(s, 0, to);
  ok(dt_rollback(s, 0, &err));
  ok(dt_tree_add(dt_seq_tree(s, 0), 0, token, 0, &v, &err));
  step(s, 0, v, 0, to);
  verify_and_commit(s, 0, to);
}

static void generate(const dt_pair *pair, dt_sampling sampling, const int32_t *prompt, int n, bool ahead, record *to,
                     dt_stats *stats) {
  dt_session *s;
  to->n = 0;
  ok(dt_session_open((dt_pair *)pair,
                     &(dt_session_options){.sequences = SEQUENCES, .context = CONTEXT, .use_draft = true}, &s, &err));
  for (int seq = 0; seq < SEQUENCES; seq++)
    ok(dt_seq_start(s, seq, prompt, n, &(dt_seq_options){.max_tokens = -1, .ignore_eos = true, .sampling = sampling},
                    &err));
  for (int i = 0; i < ITERATIONS; i++) {
    ok(dt_rollback(s, 0, &err));
    ok(dt_rollback(s, 1, &err));
    chain(s, iterations[i].levels, iterations[i].what, ahead, to);
    verify_and_commit(s, 0, to);
    if (i == 0) begin_another_tree(s, ahead, to);
  }
  dt_seq_stats(s, 0, stats);
  put(to, dt_seq_tokens(s, 0), (size_t)dt_seq_length(s, 0) * sizeof(int32_t));
  dt_session_close(s);
}

static void check_pair(const dt_pair *pair, const char *name, const int32_t *prompt, int n) {
  static record by_level, at_once;
  const dt_sampling how[] = {{0}, {.temp = 0.8f, .seed = 3}};
  for (int i = 0; i < 2; i++) {
    dt_stats plain, ahead;
    generate(pair, how[i], prompt, n, false, &by_level, &plain);
    generate(pair, how[i], prompt, n, true, &at_once, &ahead);
    if (at_once.n != by_level.n || memcmp(at_once.bytes, by_level.bytes, by_level.n))
      fail_msg("%s: levels ahead differ from those of steps", name);
    long wasted = chains ? WASTED : 0; /* two levels behind what came between, and two of a tree */
    assert_int_equal(ahead.draft_passes, plain.draft_passes + wasted);
    assert_int_equal(ahead.draft_rows, plain.draft_rows + wasted);
    assert_int_equal(ahead.accepted, plain.accepted);
    print_message("%s, T = %g: %ld of %ld guesses accepted\n", name, (double)how[i].temp, ahead.accepted,
                  ahead.drafted);
  }
}

/* With a model that is the target itself, all of whose guesses are accepted, and with an EAGLE-3 and an EAGLE head. */
static void levels_ahead_are_those_of_steps(void **state) {
  (void)state;
  static const int heads[] = {-1, 2, 5};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    const cJSON *of = cJSON_GetArrayItem(cases, heads[i] < 0 ? 2 : heads[i]);
    char *target = formula_folder(cJSON_GetObjectItem(of, "target"), "F16");
    char *head = heads[i] < 0 ? NULL : formula_folder(cJSON_GetObjectItem(of, "head"), NULL),
         *tokenizer = small_json(NULL, NULL);
    temp_write(target, "tokenizer.json", tokenizer, strlen(tokenizer));
    const cJSON *layers = cJSON_GetObjectItem(of, "layers");
    dt_pair *pair;
    ok(dt_pair_open(&(dt_pair_options){.target = target,
                                       .draft = head ? head : target,
                                       .backend = backend,
                                       .threads = 2,
                                       .head_layers = layers ? layers->valuestring : NULL},
                    &pair, &err));
    int n;
    int32_t *prompt = golden_ints(cJSON_GetObjectItem(of, "prompt"), &n);
    check_pair(pair, head ? cJSON_GetObjectItem(of, "name")->valuestring : "a model", prompt, n);
    dt_pair_close(pair);
    temp_remove(target);
    if (head) temp_remove(head);
    free(tokenizer), free(prompt);
  }
}

int main(int argc, char **argv) {
  size_t size;
  if (argc > 1) backend = argv[1], chains = true;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden/heads", "golden.json", &size);
  cases = cJSON_Parse(text);
  free(text);
  const struct CMUnitTest tests[] = {cmocka_unit_test(levels_ahead_are_those_of_steps)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cJSON_Delete(cases);
  return failed;
}
