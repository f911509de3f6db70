/* The cases of tests/golden/heads: targets with heads, and the iterations to run with them. */
#ifndef HEAD_CASES_H
#define HEAD_CASES_H

#include "dtrun.h"
#include "golden_logits.h"
#include "pair/pair.h"
#include "rig.h"
#include "small_tokenizer.h"

static cJSON *cases;

static inline const cJSON *get(const cJSON *object, const char *name) {
  const cJSON *item = cJSON_GetObjectItem(object, name);
  if (!item) fail_msg("golden.json has no %s", name);
  return item;
}

/* A case's target and head, after they have been opened. */
typedef struct {
  const cJSON *wanted;
  char *folder, *head;
  char target[256]; /* the folder, or this file of it that holds the target */
  dt_pair *pair;
} subject;

static inline const char *layers_of(const cJSON *wanted) {
  const cJSON *layers = cJSON_GetObjectItem(wanted, "layers");
  return layers ? layers->valuestring : NULL;
}

/* dtype: the type of its numbers; NULL: as the case lists them. how: all options but target, draft and threads. */
static inline subject open_as(int i, const char *dtype, dt_pair_options how) {
  subject s = {.wanted = cJSON_GetArrayItem(cases, i)};
  const cJSON *file = cJSON_GetObjectItem(s.wanted, "file");
  bool own = cJSON_HasObjectItem(s.wanted, "own"); /* the head is in the target's files */
  s.folder = own && file ? temp_folder() : formula_folder(get(s.wanted, "target"), dtype);
  s.head = file || own ? temp_folder() : formula_folder(get(s.wanted, "head"), NULL);
  char path[256];
  snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/heads/%s", file ? file->valuestring : "");
  char *tokenizer = small_json(NULL, NULL);
  temp_write(s.folder, "tokenizer.json", tokenizer, strlen(tokenizer));
  free(tokenizer);
  snprintf(s.target, sizeof s.target, "%s", own && file ? path : s.folder);
  how.target = s.target, how.threads = 2;
  how.draft = own ? "mtp" : file ? path : s.head;
  ok(dt_pair_open(&how, &s.pair, &err));
  return s;
}

static inline bool is_block(const subject *s) { return s->pair->draft.info.block > 0; }

/* The context of a session: beyond a base of delta layers if the target has such layers, and beyond the longest prompts
 * of block heads. */
static inline int context_of(const subject *s) {
  return cJSON_HasObjectItem(s->wanted, "own") ? 140 : is_block(s) ? 128 : 90;
}

static inline void close_subject(subject *s) {
  dt_pair_close(s->pair);
  temp_remove(s->folder), temp_remove(s->head);
}

static inline void start(dt_session *session, int seq, const cJSON *wanted, int tokens) {
  int n;
  int32_t *prompt = golden_ints(get(wanted, "prompt"), &n);
  ok(dt_seq_start(session, seq, prompt, n, &(dt_seq_options){.max_tokens = tokens, .ignore_eos = true}, &err));
  free(prompt);
}

/* Adds the tree's nodes. All of them are drafted from, in two steps: first those below, which need those above. */
static inline void grow(dt_session *session, int seq, const cJSON *iteration) {
  dt_tree *tree = dt_seq_tree(session, seq);
  dt_node_ref refs[32];
  int n = 0, v;
  for (const cJSON *node = get(iteration, "nodes")->child; node; node = node->next) {
    ok(dt_tree_add(tree, cJSON_GetArrayItem(node, 0)->valueint, cJSON_GetArrayItem(node, 1)->valueint, 0, &v, &err));
    assert_int_equal(v, ++n);
  }
  refs[0] = (dt_node_ref){.seq = seq, .node = n};
  ok(dt_draft_step(session, refs, 1, &err));
  for (int i = 0; i <= n; i++) refs[i] = (dt_node_ref){.seq = seq, .node = i};
  ok(dt_draft_step(session, refs, n + 1, &err));
}

static inline void commit_expected(dt_session *session, int seq, const cJSON *iteration) {
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

/* Whether the case runs on a GPU, too: not block heads with convolutions, or of which only some layers look backward.
 */
static inline bool is_for_gpus(const cJSON *of) {
  const char *name = get(of, "name")->valuestring;
  if (strstr(name, "mtp")) return true;
  return !strstr(get(of, "read")->valuestring, "dflash2") && strcmp(name, "dflash, windows that are seen backward") &&
         strcmp(name, "dflash, speculators' export");
}

static inline void add_cases(const char *file, bool on_gpu) {
  size_t size;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden/heads", file, &size);
  cJSON *more = cJSON_Parse(text);
  free(text);
  while (cJSON_GetArraySize(more)) {
    cJSON *one = cJSON_DetachItemFromArray(more, 0);
    if (on_gpu && !is_for_gpus(one))
      cJSON_Delete(one);
    else
      cJSON_AddItemToArray(cases, one);
  }
  cJSON_Delete(more);
}

static inline void read_cases(bool on_gpu) {
  size_t size;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden/heads", "golden.json", &size);
  cases = cJSON_Parse(text);
  free(text);
  add_cases("cross_attention.json", false);
  add_cases("mtp.json", on_gpu);
  add_cases("blocks.json", on_gpu);
}

#endif
