/* Trees over delta layers: random trees of up to 256 nodes, after texts that cross the positions where the layers'
 * bases change, with rollbacks, rebuilds, batches and windows. Tokens and the bits of their log-probabilities are those
 * of plain decoding.
 *
 *   test_delta_trees          on the CPU
 *   test_delta_trees cuda     on a GPU or, with fewer and smaller trees, on the emulated device */
#include "unit.h"

#include "dtrun.h"

#include <stdlib.h>

#if defined(CUDA_EMU)
enum { LENGTH = 200, NODES = 48, EACH = 5 }; /* EACH: every fifth text */
#else
enum { LENGTH = 330, NODES = 256, EACH = 1 };
#endif
enum { SEQUENCES = 2, BYTES = 256 };

typedef struct {
  int32_t token[LENGTH];
  float logp[LENGTH];
} text;

static dt_session *open_session(dt_pair *pair, int sequences, dt_window window) {
  dt_session *s;
  ok(dt_session_open(pair, &(dt_session_options){.sequences = sequences, .context = LENGTH + 70, .window = window}, &s,
                     &err));
  return s;
}

static void start(dt_session *s, int seq, const text *t, int prompt) {
  const dt_seq_options options = {.max_tokens = LENGTH - prompt, .ignore_eos = true, .logprobs = {.wanted = true}};
  ok(dt_seq_start(s, seq, t->token, prompt, &options, &err));
}

static void read_text(const dt_session *s, int seq, int prompt, text *out) {
  const int32_t *token;
  const float *top;
  int n;
  assert_int_equal(dt_seq_length(s, seq), LENGTH);
  memcpy(out->token, dt_seq_tokens(s, seq), sizeof out->token);
  for (int i = prompt; i < LENGTH; i++) ok(dt_seq_logprobs(s, seq, i, &out->logp[i], &token, &top, &n, &err));
}

/* A prompt of random bytes, and its continuation by plain decoding. */
static text plain(dt_pair *pair, dt_window window, int prompt, uint64_t seed) {
  text t = {{0}, {0}};
  int seq = 0;
  dt_session *s = open_session(pair, 1, window);
  for (int i = 0; i < prompt; i++) t.token[i] = (int32_t)(random_next(&seed) % BYTES);
  start(s, 0, &t, prompt);
  while (dt_seq_finish(s, 0) == DT_RUNNING) {
    dt_verdict v;
    dt_committed c;
    ok(dt_rollback(s, 0, &err));
    ok(dt_verify_tree(s, &seq, 1, &v, &err));
    ok(dt_commit(s, &seq, 1, 0, &c, &err));
  }
  read_text(s, 0, prompt, &t);
  dt_session_close(s);
  return t;
}

/* Adds up to `nodes` nodes: a chain of the text's own tokens, each among nodes with random tokens. */
static void grow(dt_session *s, int seq, const text *t, int nodes, uint64_t *seed) {
  dt_tree *tree = dt_seq_tree(s, seq);
  int at = dt_seq_length(s, seq), chain = 0, deepest = (int)(random_next(seed) % 65), v;
  for (int tries = 2 * nodes; tries && dt_tree_size(tree) < nodes; tries--) {
    bool own = deepest && at < LENGTH && random_next(seed) % 2;
    int under = own ? chain : (int)(random_next(seed) % (uint32_t)(dt_tree_size(tree) + 1));
    int32_t token = own ? t->token[at] : (int32_t)(random_next(seed) % BYTES);
    ok(dt_tree_add(tree, under, token, -1, &v, &err));
    if (own && v < 0) deepest = 0;
    if (own && v >= 0) chain = v, at++, deepest--;
  }
}

typedef struct {
  int largest, longest; /* the largest tree, and the longest accepted path */
} seen;

/* Runs one iteration of the sequences that are running. */
static void iterate(dt_session *s, int n, const text *texts, uint64_t *seed, seen *all) {
  int seqs[SEQUENCES], running = 0;
  dt_verdict v[SEQUENCES];
  dt_committed c[SEQUENCES];
  for (int i = 0; i < n; i++) {
    if (dt_seq_finish(s, i) != DT_RUNNING) continue;
    seqs[running++] = i;
    ok(dt_rollback(s, i, &err));
    grow(s, i, &texts[i], random_next(seed) % 3 ? (int)(random_next(seed) % (NODES + 1)) : NODES, seed);
  }
  ok(dt_verify_tree(s, seqs, running, v, &err));
  for (int i = 0; i < running; i++) {
    if (v[i].drafted > all->largest) all->largest = v[i].drafted;
    if (v[i].accepted > all->longest) all->longest = v[i].accepted;
  }
  if (random_next(seed) % 4 == 0) return; /* drops the tree after it has been verified */
  ok(dt_commit(s, seqs, running, random_next(seed) % 3 ? 0 : DT_COMMIT_REBUILD, c, &err));
}

/* Runs several texts at once. One of them begins near a position where a base changes. */
static void expect_plain(dt_pair *pair, dt_window window, int n, int prompt, uint64_t seed, seen *all) {
  static text texts[SEQUENCES], found;
  const int prompts[] = {prompt, 1 + (int)(seed % 90)};
  for (int i = 0; i < n; i++) texts[i] = plain(pair, window, prompts[i], seed + (uint64_t)i);
  dt_session *s = open_session(pair, n, window);
  for (int i = 0; i < n; i++) start(s, i, &texts[i], prompts[i]);
  for (bool runs = true; runs;) {
    iterate(s, n, texts, &seed, all);
    runs = false;
    for (int i = 0; i < n; i++) runs |= dt_seq_finish(s, i) == DT_RUNNING;
  }
  for (int i = 0; i < n; i++) {
    size_t of = (size_t)prompts[i];
    read_text(s, i, prompts[i], &found);
    assert_memory_equal(found.token, texts[i].token, sizeof found.token);
    assert_memory_equal(found.logp + of, texts[i].logp + of, (LENGTH - of) * sizeof *found.logp);
  }
  dt_session_close(s);
}

static const char *backend = "cpu";

static void random_trees_give_plain_decoding(void **state) {
  static const int beside[] = {1, 63, 95, 96, 97, 127, 128, 129, 160};
  static const dt_window windows[] = {{0, 0}, {0, 0}, {40, 4}};
  seen all = {0};
  dt_pair *pair;
  ok(dt_pair_open(&(dt_pair_options){.target = *state, .backend = backend}, &pair, &err));
  for (int i = 0; i < (int)(sizeof beside / sizeof *beside); i += EACH)
    expect_plain(pair, windows[i % 3], 1 + i % 2, beside[i], (uint64_t)i + 11, &all);
  assert_int_equal(all.largest, NODES);
  if (NODES == 256) assert_in_range(all.longest, 60, 64);
  dt_pair_close(pair);
}

#define IN(file)                                                                                                       \
  {                                                                                                                    \
    "random_trees_give_plain_decoding: " file, random_trees_give_plain_decoding, NULL, NULL,                           \
        SOURCE_DIR "/tests/golden/" file                                                                               \
  }

int main(int argc, char **argv) {
  if (argc > 1) backend = argv[1];
  const struct CMUnitTest tests[] = {IN("logits/gguf_qwen35/model.gguf"), IN("logits/gguf_qwen35moe/model.gguf")};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
