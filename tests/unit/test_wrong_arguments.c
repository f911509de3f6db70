/* Sessions, their primitives and trees with every wrong argument and in every wrong state: each call is refused in one
 * line and changes nothing. test_wrong_pairs.c tests pairs. */
#include "wrong_arguments.h"

#include "dtrun.h"
#include "dtrun_fake.h"

#include <limits.h>
#include <math.h>

enum { VOCAB = 100, CONTEXT = 600, SEQUENCES = 3, RUNNING = 0, OTHER = 1, NEVER = 2, TOKENS = 40, NODES = 6 };

static const int32_t PROMPT[] = {3, 1, 4, 1, 5};
static const int NO_SEQUENCE[] = {INT_MIN, -1, SEQUENCES, SEQUENCES + 1, INT_MAX};

static dt_pair *pair;
static dt_session *session;
static dt_tree *tree; /* RUNNING's tree: drafted from, NODES nodes, not verified */

/* The state that a refused call must not change. */
typedef struct {
  int length[SEQUENCES], left[SEQUENCES], finish[SEQUENCES];
  size_t text_len[SEQUENCES];
  dt_stats stats[SEQUENCES];
  dt_tree_phase phase;
  int nodes, limit, max_depth, n_kept, n_drafts;
  dt_tree_calibration calibration;
  int32_t token[NODES + 1];
  uint8_t kept[NODES + 1];
} state;

static state look(void) {
  state now;
  memset(&now, 0, sizeof now);
  for (int i = 0; i < SEQUENCES; i++) {
    now.length[i] = dt_seq_length(session, i);
    now.left[i] = dt_seq_left(session, i);
    now.finish[i] = (int)dt_seq_finish(session, i);
    dt_seq_text(session, i, &now.text_len[i]);
    dt_seq_stats(session, i, &now.stats[i]);
  }
  now.phase = tree->phase, now.nodes = tree->nodes, now.limit = tree->limit, now.max_depth = tree->max_depth;
  now.n_kept = tree->n_kept, now.n_drafts = tree->n_drafts, now.calibration = tree->calibration;
  memcpy(now.token, tree->token, sizeof now.token);
  memcpy(now.kept, tree->kept, sizeof now.kept);
  return now;
}

#define REFUSED(call, wanted, part)                                                                                    \
  do {                                                                                                                 \
    state before_ = look(), after_;                                                                                    \
    ANSWERS(call, wanted, part);                                                                                       \
    after_ = look();                                                                                                   \
    if (memcmp(&before_, &after_, sizeof before_))                                                                     \
      fail_msg("%d: %s: the refused call changed something", __LINE__, #call);                                         \
  } while (0)

#define NULL_REFUSED(call) REFUSED(call, DT_EINPUT, "is NULL")

/* ---- a sequence in each state ------------------------------------------------------------------------------------ */

static void start(int seq, int tokens) {
  ok(dt_seq_start(session, seq, PROMPT, 5, &(dt_seq_options){.max_tokens = tokens, .candidates = 2}, &err));
}

static void grow(int seq) {
  int first, last;
  dt_tree *t = dt_seq_tree(session, seq);
  ok(dt_draft_step(session, &(dt_node_ref){.seq = seq, .node = 0}, 1, &err));
  ok(dt_tree_branch(t, 0, NODES, &first, &last, &err));
  assert_int_equal(dt_tree_size(t), NODES);
}

static void verify(int seq) {
  dt_verdict v;
  ok(dt_verify_tree(session, &seq, 1, &v, &err));
}

static void commit(int seq) {
  dt_committed c;
  ok(dt_commit(session, &seq, 1, 0, &c, &err));
}

static int set_up(void **unused) {
  (void)unused;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = VOCAB, .context = CONTEXT, .eos = -1}, &pair, &err));
  ok(dt_session_open(pair, &(dt_session_options){.sequences = SEQUENCES, .use_draft = true}, &session, &err));
  start(RUNNING, TOKENS);
  start(OTHER, 1);
  tree = dt_seq_tree(session, RUNNING);
  grow(RUNNING);
  return 0;
}

static void run_to_the_end(int seq) {
  while (dt_seq_finish(session, seq) == DT_RUNNING) {
    verify(seq), commit(seq);
    if (dt_seq_finish(session, seq) == DT_RUNNING) {
      ok(dt_rollback(session, seq, &err));
      grow(seq);
    }
  }
}

/* After all refused calls the text is the same as without them. */
static int tear_down(void **unused) {
  (void)unused;
  int32_t text[5 + TOKENS];
  if (tree->phase != TREE_OPEN) {
    ok(dt_rollback(session, RUNNING, &err));
    grow(RUNNING);
  }
  run_to_the_end(RUNNING);
  assert_int_equal(dt_seq_length(session, RUNNING), 5 + TOKENS);
  memcpy(text, dt_seq_tokens(session, RUNNING), sizeof text);
  dt_session_close(session);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = SEQUENCES, .use_draft = true}, &session, &err));
  start(RUNNING, TOKENS);
  for (int seq = RUNNING; dt_seq_finish(session, seq) == DT_RUNNING;) {
    verify(seq), commit(seq);
    if (dt_seq_finish(session, seq) == DT_RUNNING) ok(dt_rollback(session, seq, &err));
  }
  assert_memory_equal(dt_seq_tokens(session, RUNNING), text, sizeof text);
  dt_session_close(session);
  dt_pair_close(pair);
  return 0;
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

static void accessors_answer_for_sequences_that_are_not_there(void **unused) {
  (void)unused;
  dt_stats stats, zeros = {0};
  for (int i = 0; i <= (int)(sizeof NO_SEQUENCE / sizeof *NO_SEQUENCE); i++) {
    bool none = i == sizeof NO_SEQUENCE / sizeof *NO_SEQUENCE;
    dt_session *s = none ? NULL : session;
    int seq = none ? 0 : NO_SEQUENCE[i];
    size_t len = 9;
    assert_null(dt_seq_tree(s, seq));
    assert_int_equal(dt_seq_length(s, seq), 0);
    assert_null(dt_seq_tokens(s, seq));
    assert_int_equal(dt_seq_left(s, seq), 0);
    assert_int_equal(dt_seq_unread(s, seq), 0);
    assert_false(dt_seq_is_coupled(s, seq));
    assert_int_equal(dt_seq_finish(s, seq), DT_NO_SEQUENCE);
    assert_null(dt_seq_text(s, seq, &len));
    assert_int_equal(len, 0);
    assert_null(dt_seq_text(s, seq, NULL));
    assert_null(dt_seq_text_ends(s, seq));
    memset(&stats, 1, sizeof stats);
    dt_seq_stats(s, seq, &stats);
    assert_memory_equal(&stats, &zeros, sizeof stats);
    dt_seq_stats(s, seq, NULL);
  }
  dt_seq_stats(session, RUNNING, NULL);
  for (int seq = 0; seq < SEQUENCES; seq++) assert_non_null(dt_seq_tree(session, seq));
  assert_int_equal(dt_seq_finish(session, NEVER), DT_RUNNING);
  assert_int_equal(dt_seq_length(session, NEVER), 0);
  assert_null(dt_seq_text(session, NEVER, NULL));
}

static void starts_refuse_wrong_options(void **unused) {
  (void)unused;
  static const char *const stop[] = {"a", NULL}, *const empty[] = {""};
  const struct {
    dt_seq_options options;
    const char *part;
  } wrong[] = {
      {{.max_tokens = 0}, "tokens: 0"},
      {{.max_tokens = -2}, "tokens: -2"},
      {{.max_tokens = INT_MIN}, "tokens: -2147483648"},
      {{.max_tokens = 1, .n_stop = -1}, "-1 stop"},
      {{.max_tokens = 1, .n_stop = INT_MIN, .stop = stop}, "stop"},
      {{.max_tokens = 1, .n_stop = 1}, "stop is NULL"},
      {{.max_tokens = 1, .n_stop = 2, .stop = stop}, "stop string 2 is NULL"},
      {{.max_tokens = 1, .n_stop = 1, .stop = empty}, "stop string 1 is empty"},
      {{.max_tokens = 1, .candidates = -1}, "candidates: -1"},
      {{.max_tokens = 1, .candidates = DT_TARGET_CANDIDATES + 1}, "candidates: 33"},
      {{.max_tokens = 1, .candidates = INT_MIN}, "candidates"},
      {{.max_tokens = 1, .candidates = INT_MAX}, "candidates"},
      {{.max_tokens = 1, .piece = -1}, "piece: -1"},
      {{.max_tokens = 1, .piece = INT_MIN}, "piece"},
      {{.max_tokens = 1, .sampling = {.temp = NAN}}, "temp"},
      {{.max_tokens = 1, .sampling = {.temp = -1}}, "temp"},
      {{.max_tokens = 1, .sampling = {.temp = INFINITY}}, "temp"},
      {{.max_tokens = 1, .sampling = {.top_k = -1}}, "top_k"},
      {{.max_tokens = 1, .sampling = {.top_k = INT_MIN}}, "top_k"},
      {{.max_tokens = 1, .sampling = {.top_p = NAN}}, "top_p"},
      {{.max_tokens = 1, .sampling = {.top_p = -0.1f}}, "top_p"},
      {{.max_tokens = 1, .sampling = {.top_p = 1.1f}}, "top_p"},
      {{.max_tokens = 1, .sampling = {.min_p = NAN}}, "min_p"},
      {{.max_tokens = 1, .sampling = {.min_p = 1.1f}}, "min_p"},
      {{.max_tokens = 1, .adjustments.reasoning = {.tokens = -2}}, "think_tokens: -2"},
      {{.max_tokens = 1, .adjustments.reasoning = {.end = "1", .tokens = INT_MIN}}, "think_tokens: -2147483648"},
      {{.max_tokens = 1, .adjustments.reasoning = {.end = ""}}, "the mark that ends the reasoning is empty"},
      {{.max_tokens = 1, .adjustments.reasoning = {.end = " \n"}}, "the mark that ends the reasoning is empty"},
      {{.max_tokens = 1, .adjustments.reasoning = {.begin = "\t", .end = "1"}}, "begins the reasoning is empty"},
  };
  const dt_seq_options fine = {.max_tokens = 1};
  dt_prefix *prefix;
  ok(dt_prefix_take(session, OTHER, &prefix, &err));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    REFUSED(dt_seq_start(session, RUNNING, PROMPT, 5, &wrong[i].options, &err), DT_EINPUT, wrong[i].part);
    if (!strstr(wrong[i].part, "stop string"))
      REFUSED(dt_check_options(&wrong[i].options, &err), DT_EINPUT, wrong[i].part);
    REFUSED(dt_seq_continue(session, RUNNING, PROMPT, 5, &wrong[i].options, &err), DT_EINPUT, wrong[i].part);
    REFUSED(dt_seq_start_from(session, RUNNING, prefix, &wrong[i].options, &err), DT_EINPUT, wrong[i].part);
    if (strstr("temp top_k top_p min_p", wrong[i].part))
      REFUSED(dt_seq_start_blank(session, RUNNING, 5, &wrong[i].options.sampling, &err), DT_EINPUT, wrong[i].part);
  }
  const dt_seq_options unreadable = {.max_tokens = 1, .adjustments.reasoning = {.end = "x"}};
  ok(dt_check_options(&unreadable, &err)); /* without a tokenizer */
  REFUSED(dt_seq_start(session, RUNNING, PROMPT, 5, &unreadable, &err), DT_EINPUT, "reads ids 0..99, not 'x'");
  REFUSED(dt_seq_start_from(session, RUNNING, prefix, &unreadable, &err), DT_EINPUT, "reads ids 0..99, not 'x'");
  for (int turn = 0; turn < 2; turn++) {
    dt_status (*begin)(dt_session *, int, const int32_t *, int, const dt_seq_options *, dt_error *) =
        turn ? dt_seq_continue : dt_seq_start;
    NULL_REFUSED(begin(NULL, RUNNING, PROMPT, 5, &fine, &err));
    NULL_REFUSED(begin(session, RUNNING, NULL, 5, &fine, &err));
    NULL_REFUSED(begin(session, RUNNING, PROMPT, 5, NULL, &err));
    for
      EACH(n, NEGATIVE) REFUSED(begin(session, RUNNING, PROMPT, *n, &fine, &err), DT_EINPUT, "prompt");
    REFUSED(begin(session, RUNNING, PROMPT, 0, &fine, &err), DT_EINPUT, "empty");
    REFUSED(begin(session, RUNNING, PROMPT, CONTEXT, &fine, &err), DT_ECONTEXT, "context");
    REFUSED(begin(session, RUNNING, PROMPT, INT_MAX, &fine, &err), DT_ECONTEXT, "context");
    for
      EACH(seq, NO_SEQUENCE) REFUSED(begin(session, *seq, PROMPT, 5, &fine, &err), DT_ESTATE, "no sequence");
    static const int32_t IDS[] = {INT32_MIN, -1, VOCAB, INT32_MAX};
    for (int i = 0; i < 4; i++)
      REFUSED(begin(session, RUNNING, &IDS[i], 1, &fine, &err), DT_EINPUT, "out of range: 0..99");
    assert_int_equal(begin(session, RUNNING, NULL, 5, &fine, NULL), DT_EINPUT); /* no *err */
  }
  NULL_REFUSED(dt_seq_start_from(NULL, RUNNING, prefix, &fine, &err));
  NULL_REFUSED(dt_seq_start_from(session, RUNNING, NULL, &fine, &err));
  NULL_REFUSED(dt_seq_start_from(session, RUNNING, prefix, NULL, &err));
  for
    EACH(seq, NO_SEQUENCE) REFUSED(dt_seq_start_from(session, *seq, prefix, &fine, &err), DT_ESTATE, "no sequence");
  int left;
  NULL_REFUSED(dt_seq_prompt(NULL, RUNNING, 1, &left, &err));
  NULL_REFUSED(dt_seq_prompt(session, RUNNING, 1, NULL, &err));
  for
    EACH(seq, NO_SEQUENCE) REFUSED(dt_seq_prompt(session, *seq, 1, &left, &err), DT_ESTATE, "no sequence");
  for
    EACH(n, NEGATIVE) REFUSED(dt_seq_prompt(session, RUNNING, *n, &left, &err), DT_EINPUT, "at least 0");
  NULL_REFUSED(dt_seq_start_blank(NULL, RUNNING, 5, NULL, &err));
  for
    EACH(seq, NO_SEQUENCE) REFUSED(dt_seq_start_blank(session, *seq, 5, NULL, &err), DT_ESTATE, "no sequence");
  for
    EACH(n, NEGATIVE) REFUSED(dt_seq_start_blank(session, RUNNING, *n, NULL, &err), DT_EINPUT, "empty");
  REFUSED(dt_seq_start_blank(session, RUNNING, 0, NULL, &err), DT_EINPUT, "empty");
  REFUSED(dt_seq_start_blank(session, RUNNING, CONTEXT, NULL, &err), DT_ECONTEXT, "context");
  REFUSED(dt_seq_start_blank(session, RUNNING, INT_MAX, NULL, &err), DT_ECONTEXT, "context");
  NULL_REFUSED(dt_prefix_take(NULL, OTHER, &prefix, &err));
  NULL_REFUSED(dt_prefix_take(session, OTHER, NULL, &err));
  for
    EACH(seq, NO_SEQUENCE) REFUSED(dt_prefix_take(session, *seq, &prefix, &err), DT_ESTATE, "no sequence");
  dt_prefix *saved;
  NULL_REFUSED(dt_prefix_save(NULL, OTHER, 1, &saved, &err));
  NULL_REFUSED(dt_prefix_save(session, OTHER, 1, NULL, &err));
  REFUSED(dt_prefix_save(session, OTHER, 0, &saved, &err), DT_EINPUT, "at least 1");
  for
    EACH(n, NEGATIVE) REFUSED(dt_prefix_save(session, OTHER, *n, &saved, &err), DT_EINPUT, "at least 1");
  for
    EACH(seq, NO_SEQUENCE) REFUSED(dt_prefix_save(session, *seq, 1, &saved, &err), DT_ESTATE, "no rows");
  NULL_REFUSED(dt_seq_adopt(NULL, OTHER, prefix, &err));
  NULL_REFUSED(dt_seq_adopt(session, OTHER, NULL, &err));
  for
    EACH(seq, NO_SEQUENCE) REFUSED(dt_seq_adopt(session, *seq, prefix, &err), DT_ESTATE, "no sequence");
  for
    EACH(seq, NO_SEQUENCE) assert_int_equal(dt_seq_rows(session, *seq), 0);
  assert_int_equal(dt_seq_rows(NULL, 0), 0);
  for
    EACH(seq, NO_SEQUENCE) assert_int_equal(dt_seq_reusable(session, *seq, (int32_t[]){1, 2}, 2), 0);
  assert_int_equal(dt_seq_reusable(NULL, 0, (int32_t[]){1, 2}, 2), 0);
  assert_int_equal(dt_seq_reusable(session, 0, NULL, 2), 0);
  assert_int_equal(dt_prefix_reusable(NULL, (int32_t[]){1, 2}, 2), 0);
  assert_int_equal(dt_prefix_reusable(prefix, NULL, 2), 0);
  assert_int_equal(dt_prefix_bytes(NULL), 0);
  assert_int_equal(dt_rows_bytes(NULL, 5), 0);
  for
    EACH(n, NEGATIVE) assert_int_equal(dt_rows_bytes(session, *n), 0);
  int n = 9;
  assert_null(dt_prefix_tokens(NULL, &n));
  assert_int_equal(n, 0);
  assert_null(dt_prefix_tokens(NULL, NULL));
  assert_non_null(dt_prefix_tokens(prefix, NULL));
  assert_true(dt_prefix_ms(NULL) == 0);
  dt_prefix_free(prefix);
  dt_prefix_free(NULL);
}

static void sessions_refuse_wrong_options(void **unused) {
  (void)unused;
  static const int SIZES[] = {INT_MIN, -1, 0, 4097, INT_MAX}, CONTEXTS[] = {INT_MIN, -1, 1, CONTEXT + 1, INT_MAX};
  dt_session *s;
  const dt_session_options fine = {.sequences = 1};
  NULL_REFUSED(dt_session_open(NULL, &fine, &s, &err));
  NULL_REFUSED(dt_session_open(pair, NULL, &s, &err));
  NULL_REFUSED(dt_session_open(pair, &fine, NULL, &err));
  for
    EACH(n, SIZES)
  REFUSED(dt_session_open(pair, &(dt_session_options){.sequences = *n}, &s, &err), DT_EINPUT, "sequences");
  for
    EACH(n, CONTEXTS)
  REFUSED(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = *n}, &s, &err), DT_EINPUT, "context");
  for
    EACH(n, NEGATIVE) {
      dt_session_options last = {.sequences = 1, .window = {.last = *n}}, sinks = {.sequences = 1, .window = {3, *n}};
      REFUSED(dt_session_open(pair, &last, &s, &err), DT_EINPUT, "window");
      REFUSED(dt_session_open(pair, &sinks, &s, &err), DT_EINPUT, "sinks");
    }
  dt_session_close(NULL);
  assert_null(dt_session_pair(NULL));
}

/* ---- the primitives ---------------------------------------------------------------------------------------------- */

static void primitives_refuse_wrong_lists(void **unused) {
  (void)unused;
  const dt_node_ref node = {.seq = RUNNING};
  int seq = RUNNING, twice[] = {RUNNING, RUNNING};
  bool is;
  int32_t id;
  dt_verdict v[2];
  dt_committed c[2];
  const int32_t *token;
  const float *logp;
  int count;
  NULL_REFUSED(dt_draft_step(NULL, &node, 1, &err));
  NULL_REFUSED(dt_draft_step(session, NULL, 1, &err));
  NULL_REFUSED(dt_verify_tree(NULL, &seq, 1, v, &err));
  NULL_REFUSED(dt_verify_tree(session, NULL, 1, v, &err));
  NULL_REFUSED(dt_verify_tree(session, &seq, 1, NULL, &err));
  NULL_REFUSED(dt_rollback(NULL, RUNNING, &err));
  for
    EACH(n, NEGATIVE) {
      REFUSED(dt_draft_step(session, &node, *n, &err), DT_EINPUT, "nodes, expected 0 or more");
      REFUSED(dt_verify_tree(session, &seq, *n, v, &err), DT_EINPUT, "seqs, expected 0 or more");
      REFUSED(dt_commit(session, &seq, *n, 0, c, &err), DT_EINPUT, "seqs, expected 0 or more");
    }
  ok(dt_draft_step(session, NULL, 0, &err));
  ok(dt_verify_tree(session, NULL, 0, NULL, &err));
  ok(dt_commit(session, NULL, 0, 0, NULL, &err));
  static const int NO_NODE[] = {INT_MIN, -1, NODES + 1, NODES + 2, INT_MAX};
  for
    EACH(u, NO_NODE)
  REFUSED(dt_draft_step(session, &(dt_node_ref){.seq = RUNNING, .node = *u}, 1, &err), DT_ESTATE, "no node");
  for
    EACH(s, NO_SEQUENCE) {
      REFUSED(dt_draft_step(session, &(dt_node_ref){.seq = *s, .node = 0}, 1, &err), DT_ESTATE, "no sequence");
      REFUSED(dt_verify_tree(session, s, 1, v, &err), DT_ESTATE, "no sequence");
      REFUSED(dt_commit(session, s, 1, 0, c, &err), DT_ESTATE, "no sequence");
      REFUSED(dt_rollback(session, *s, &err), DT_ESTATE, "no sequence");
      REFUSED(dt_seq_candidates(session, *s, 0, &token, &logp, &count, &err), DT_ESTATE, "no sequence");
      REFUSED(dt_seq_experts(session, *s, 0, &token, &err), DT_ESTATE, "no sequence");
      REFUSED(dt_seq_allowed(session, *s, 0, 1, &is, &err), DT_ESTATE, "no sequence");
      REFUSED(dt_seq_forced(session, *s, 0, &id, &count, &err), DT_ESTATE, "no sequence");
      assert_false(dt_seq_has_grammar(session, *s));
    }
  REFUSED(dt_verify_tree(session, twice, 2, v, &err), DT_ESTATE, "named twice");
  NULL_REFUSED(dt_seq_allowed(NULL, RUNNING, 0, 1, &is, &err));
  NULL_REFUSED(dt_seq_allowed(session, RUNNING, 0, 1, NULL, &err));
  NULL_REFUSED(dt_seq_forced(NULL, RUNNING, 0, &id, &count, &err));
  NULL_REFUSED(dt_seq_forced(session, RUNNING, 0, NULL, &count, &err));
  NULL_REFUSED(dt_seq_forced(session, RUNNING, 0, &id, NULL, &err));
  for
    EACH(u, NO_NODE) {
      REFUSED(dt_seq_allowed(session, RUNNING, *u, 1, &is, &err), DT_ESTATE, "no node");
      REFUSED(dt_seq_forced(session, RUNNING, *u, &id, &count, &err), DT_ESTATE, "no node");
    }
  static const int32_t NO_TOKEN[] = {INT32_MIN, -1, VOCAB, INT32_MAX};
  for
    EACH(t, NO_TOKEN)
  REFUSED(dt_seq_allowed(session, RUNNING, 0, *t, &is, &err), DT_ESTATE, "token: ");
  assert_false(dt_seq_has_grammar(NULL, RUNNING) || dt_seq_has_grammar(session, RUNNING));
  ok(dt_seq_allowed(session, RUNNING, 0, 1, &is, &err));
  ok(dt_seq_forced(session, RUNNING, 0, &id, &count, &err));
  assert_true(is && id == -1 && count == 0);
  verify(RUNNING);
  NULL_REFUSED(dt_commit(NULL, &seq, 1, 0, c, &err));
  NULL_REFUSED(dt_commit(session, NULL, 1, 0, c, &err));
  NULL_REFUSED(dt_commit(session, &seq, 1, 0, NULL, &err));
  REFUSED(dt_commit(session, twice, 2, 0, c, &err), DT_ESTATE, "named twice");
  static const unsigned FLAGS[] = {2, 3, 1u << 31, UINT_MAX};
  for (int i = 0; i < 4; i++) REFUSED(dt_commit(session, &seq, 1, FLAGS[i], c, &err), DT_EINPUT, "flags");
  REFUSED(dt_seq_candidates(NULL, RUNNING, 0, &token, &logp, &count, &err), DT_EINPUT, "is NULL");
  float of;
  REFUSED(dt_seq_logprobs(NULL, RUNNING, 0, &of, &token, &logp, &count, &err), DT_EINPUT, "is NULL");
  REFUSED(dt_seq_logprobs(session, RUNNING, 0, NULL, &token, &logp, &count, &err), DT_EINPUT, "is NULL");
  REFUSED(dt_seq_logprobs(session, RUNNING, 0, &of, NULL, &logp, &count, &err), DT_EINPUT, "is NULL");
  REFUSED(dt_seq_logprobs(session, RUNNING, 0, &of, &token, NULL, &count, &err), DT_EINPUT, "is NULL");
  REFUSED(dt_seq_logprobs(session, RUNNING, 0, &of, &token, &logp, NULL, &err), DT_EINPUT, "is NULL");
  REFUSED(dt_seq_logprobs(session, RUNNING, 0, &of, &token, &logp, &count, &err), DT_ESTATE, "nothing is known");
  REFUSED(dt_seq_logprobs(session, -1, 0, &of, &token, &logp, &count, &err), DT_ESTATE, "no sequence");
  REFUSED(dt_seq_candidates(session, RUNNING, 0, NULL, &logp, &count, &err), DT_EINPUT, "is NULL");
  REFUSED(dt_seq_candidates(session, RUNNING, 0, &token, NULL, &count, &err), DT_EINPUT, "is NULL");
  REFUSED(dt_seq_candidates(session, RUNNING, 0, &token, &logp, NULL, &err), DT_EINPUT, "is NULL");
  for
    EACH(u, NO_NODE)
  REFUSED(dt_seq_candidates(session, RUNNING, *u, &token, &logp, &count, &err), DT_ESTATE, "no node");
  NULL_REFUSED(dt_seq_experts(NULL, RUNNING, 0, &token, &err));
  NULL_REFUSED(dt_seq_experts(session, RUNNING, 0, NULL, &err));
  for
    EACH(u, NO_NODE)
  REFUSED(dt_seq_experts(session, RUNNING, *u, &token, &err), DT_ESTATE, "no node");
  ok(dt_seq_experts(session, RUNNING, NODES, &token, &err));
  assert_null(token); /* the target has none */
  ok(dt_seq_candidates(session, RUNNING, NODES, &token, &logp, &count, &err));
  assert_int_equal(count, 2);
}

typedef enum { UNSTARTED, OPEN, SEALED, VERIFIED, FROZEN, FINISHED, STATES } sequence_state;

static void bring(sequence_state to) {
  start(RUNNING, to == FINISHED ? 1 : TOKENS);
  if (to != FINISHED) grow(RUNNING);
  if (to == SEALED) ok(dt_tree_keep_best(tree, 3, &err));
  if (to >= VERIFIED) verify(RUNNING);
  if (to >= FROZEN) commit(RUNNING);
}

/* Which calls are allowed in each state; the others fail with DT_ESTATE. */
static void calls_in_the_wrong_state_are_refused(void **unused) {
  (void)unused;
  static const bool TAKES[STATES][6] = {
      /* draft_step, verify_tree, commit, rollback, candidates, a change to the tree */
      [UNSTARTED] = {0, 0, 0, 0, 0, 0}, [OPEN] = {1, 1, 0, 1, 0, 1},   [SEALED] = {0, 1, 0, 1, 0, 0},
      [VERIFIED] = {0, 0, 1, 1, 1, 0},  [FROZEN] = {0, 0, 0, 1, 1, 0}, [FINISHED] = {0, 0, 0, 0, 1, 0}};
  const int32_t *token, one[] = {1};
  const float *logp;
  int count;
  dt_verdict v;
  dt_committed c;
  int first, last;
  dt_error why;
  for (sequence_state s = UNSTARTED; s < STATES; s++)
    for (int call = 0; call < 6; call++) {
      int seq = s == UNSTARTED ? NEVER : RUNNING;
      if (s != UNSTARTED) bring(s);
      if (s == UNSTARTED && call == 5) continue;
      dt_node_ref node = {.seq = seq};
      state before = look(), after;
      why = (dt_error){0};
      int status = call == 0   ? (int)dt_draft_step(session, &node, 1, &why)
                   : call == 1 ? (int)dt_verify_tree(session, &seq, 1, &v, &why)
                   : call == 2 ? (int)dt_commit(session, &seq, 1, 0, &c, &why)
                   : call == 3 ? (int)dt_rollback(session, seq, &why)
                   : call == 4 ? (int)dt_seq_candidates(session, seq, 0, &token, &logp, &count, &why)
                               : (int)dt_tree_add(tree, 0, 77, -1, &first, &why);
      if (status != (TAKES[s][call] ? DT_OK : DT_ESTATE))
        fail_msg("state %d, call %d: %d (%s)", (int)s, call, status, why.message);
      if (TAKES[s][call]) continue;
      after = look();
      assert_memory_equal(&before, &after, sizeof before);
      check_message(why.message, __LINE__, "a call", "");
      if (s == OPEN || s == UNSTARTED) continue;
      REFUSED(dt_tree_branch(tree, 0, 1, &first, &last, &err), DT_ESTATE, "");
      REFUSED(dt_tree_branch_best(tree, one, 1, 1, &first, &last, &err), DT_ESTATE, "");
      REFUSED(dt_tree_limit(tree, 9, &err), DT_ESTATE, "");
      REFUSED(dt_tree_keep(tree, one, 1, &err), DT_ESTATE, "");
      REFUSED(dt_tree_keep_best(tree, 1, &err), DT_ESTATE, "");
      REFUSED(dt_tree_calibrate(tree, (dt_tree_calibration){1, 0, 1, 0, 1}, &err), DT_ESTATE, "");
      if (s > SEALED) REFUSED(dt_tree_seal(tree, &err), DT_ESTATE, "");
    }
  bring(OPEN);
}

/* A program has reset a session's tree and filled it in its own way. The passes report what does not fit. */
static void a_tree_made_anew_by_hand_is_no_danger(void **unused) {
  (void)unused;
  static const int32_t ROOTS[] = {INT32_MIN, -1, 0, VOCAB, INT32_MAX};
  for (int i = 0; i < 5; i++)
    for (int depth = 0; depth < 2; depth++) {
      int v, u = 0, seq = RUNNING;
      dt_error why;
      dt_verdict verdict;
      dt_committed c;
      start(RUNNING, TOKENS);
      dt_tree_reset(tree, ROOTS[i], depth ? INT_MAX : -1, depth ? INT_MAX : -1);
      while (depth && dt_tree_size(tree) < DT_TREE_VERIFY && !dt_tree_add(tree, u, 1 + i * VOCAB, -1, &v, &why)) u = v;
      dt_draft_step(session, &(dt_node_ref){.seq = RUNNING, .node = u}, 1, &why);
      if (!dt_verify_tree(session, &seq, 1, &verdict, &why)) dt_commit(session, &seq, 1, 0, &c, &why);
      assert_true(dt_seq_length(session, RUNNING) <= 5 + TOKENS);
    }
  bring(OPEN);
}

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static void trees_refuse_wrong_nodes_and_numbers(void **unused) {
  (void)unused;
  static const int NO_NODE[] = {INT_MIN, -1, NODES + 1, NODES + 2, INT_MAX};
  static const int32_t NO_TOKEN[] = {INT32_MIN, -1, VOCAB, INT32_MAX};
  static const float NO_LOGP[] = {NAN, 0.1f, INFINITY};
  static const int NO_LIMIT[] = {INT_MIN, -1, 0, NODES - 1, DT_TREE_ENTRIES + 1, INT_MAX};
  static const int NO_KEEP[] = {INT_MIN, -1, DT_TREE_VERIFY + 1, INT_MAX};
  int32_t one[] = {0}, list[NODES + 1];
  int v, first, last;
  dt_tree *t;
  NULL_REFUSED(dt_tree_open(NULL, &err));
  NULL_REFUSED(dt_tree_add(NULL, 0, 1, -1, &v, &err));
  NULL_REFUSED(dt_tree_add(tree, 0, 1, -1, NULL, &err));
  NULL_REFUSED(dt_tree_branch(NULL, 0, 1, &first, &last, &err));
  NULL_REFUSED(dt_tree_branch(tree, 0, 1, NULL, &last, &err));
  NULL_REFUSED(dt_tree_branch(tree, 0, 1, &first, NULL, &err));
  NULL_REFUSED(dt_tree_branch_best(NULL, one, 1, 1, &first, &last, &err));
  NULL_REFUSED(dt_tree_branch_best(tree, NULL, 1, 1, &first, &last, &err));
  NULL_REFUSED(dt_tree_branch_best(tree, one, 1, 1, NULL, &last, &err));
  NULL_REFUSED(dt_tree_branch_best(tree, one, 1, 1, &first, NULL, &err));
  NULL_REFUSED(dt_tree_keep(NULL, one, 1, &err));
  NULL_REFUSED(dt_tree_keep(tree, NULL, 1, &err));
  NULL_REFUSED(dt_tree_keep_best(NULL, 1, &err));
  NULL_REFUSED(dt_tree_limit(NULL, 9, &err));
  NULL_REFUSED(dt_tree_seal(NULL, &err));
  NULL_REFUSED(dt_tree_check_seal(NULL, &err));
  NULL_REFUSED(dt_tree_check_open(NULL, &err));
  NULL_REFUSED(dt_tree_check(NULL, 0, "u", &err));
  for
    EACH(n, NEGATIVE) {
      REFUSED(dt_tree_keep(tree, one, *n, &err), DT_EINPUT, "ids");
      REFUSED(dt_tree_branch_best(tree, one, *n, 1, &first, &last, &err), DT_EINPUT, "ids");
      ok(dt_tree_branch(tree, 0, *n, &first, &last, &err)); /* none */
      assert_int_equal(last, first - 1);
      ok(dt_tree_branch_best(tree, one, 1, *n, &first, &last, &err));
      assert_int_equal(last, first - 1);
      assert_int_equal(dt_tree_best(tree, *n, 1, NODES, list), 0);
    }
  for
    EACH(u, NO_NODE) {
      one[0] = *u;
      REFUSED(dt_tree_check(tree, *u, "u", &err), DT_ESTATE, "u: there is no node");
      REFUSED(dt_tree_check(tree, *u, NULL, &err), DT_ESTATE, "there is no node");
      REFUSED(dt_tree_add(tree, *u, 1, -1, &v, &err), DT_ESTATE, "no node");
      REFUSED(dt_tree_branch(tree, *u, 1, &first, &last, &err), DT_ESTATE, "no node");
      REFUSED(dt_tree_branch_best(tree, one, 1, 1, &first, &last, &err), DT_ESTATE, "no node");
      REFUSED(dt_tree_keep(tree, one, 1, &err), DT_ESTATE, "no node");
      state before = look();
      assert_int_equal(dt_tree_best(tree, 2, *u, NODES, list), 0);
      assert_int_equal(dt_tree_best(tree, 2, 1, *u, list), 0);
      assert_null(dt_tree_draft_of(tree, *u));
      assert_null(dt_tree_new_draft(tree, *u));
      dt_tree_no_draft(tree, *u);
      assert_int_equal(dt_tree_child(tree, *u, 1), -1);
      assert_int_equal(dt_tree_row(tree, *u), -1);
      dt_tree_learner learner = dt_tree_learner_new(true), as_before = learner;
      dt_tree_learn(&learner, tree, *u, 1, true);
      assert_memory_equal(&learner, &as_before, sizeof learner);
      double numbers[DT_TREE_LEARNER_STATE]; /* with any values: test_learn.c */
      dt_tree_learner_state(&learner, numbers);
      assert_true(dt_tree_learner_resume(true, numbers).slope == learner.slope);
      state after = look();
      assert_memory_equal(&before, &after, sizeof before);
    }
  for (int i = 0; i < 4; i++) REFUSED(dt_tree_add(tree, 0, NO_TOKEN[i], -1, &v, &err), DT_ESTATE, "token");
  for (int i = 0; i < 3; i++) REFUSED(dt_tree_add(tree, 0, 1, NO_LOGP[i], &v, &err), DT_ESTATE, "logp");
  for
    EACH(n, NO_LIMIT) REFUSED(dt_tree_limit(tree, *n, &err), DT_ESTATE, "limit");
  for
    EACH(n, NO_KEEP) REFUSED(dt_tree_keep_best(tree, *n, &err), DT_ESTATE, "keep");
  for
    EACH(token, NO_NODE) assert_int_equal(dt_tree_child(tree, 0, *token == NODES + 1 ? VOCAB : *token), -1);
  state before = look();
  assert_int_equal(dt_tree_best(tree, 1, 1, NODES, NULL), 0);
  assert_int_equal(dt_tree_best(NULL, 1, 1, NODES, list), 0);
  assert_int_equal(dt_tree_best(tree, INT_MAX, 1, NODES, list), NODES);
  assert_null(dt_tree_new_draft(tree, 0)); /* the tree already has one */
  dt_tree_no_draft(tree, 0);
  assert_int_equal(dt_tree_row(tree, 0), -1); /* not sealed */
  assert_int_equal(dt_tree_size(NULL) + dt_tree_room(NULL) + dt_tree_depth_room(NULL) + dt_tree_draft_room(NULL), 0);
  assert_null(dt_tree_draft_of(NULL, 0));
  assert_null(dt_tree_new_draft(NULL, 0));
  assert_int_equal(dt_tree_child(NULL, 0, 1), -1);
  assert_int_equal(dt_tree_row(NULL, 0), -1);
  dt_tree_no_draft(NULL, 0), dt_tree_reset(NULL, 0, 0, 1), dt_tree_close(NULL);
  state after = look();
  assert_memory_equal(&before, &after, sizeof before);
  ok(dt_tree_keep(tree, (int32_t[]){2}, 1, &err));
  assert_int_equal(dt_tree_row(tree, 2), 1);
  for (int u = 1; u <= NODES; u++) assert_int_equal(dt_tree_row(tree, u), u == 2 ? 1 : -1); /* not kept */
  ok(dt_tree_open(&t, &err));
  dt_tree_reset(t, 5, INT_MIN, INT_MIN); /* no node is accepted */
  assert_int_equal(dt_tree_depth_room(t), 0);
  assert_int_equal(dt_tree_add(t, 0, 0, -1, &v, NULL), DT_ESTATE);
  dt_tree_close(t);
}

static void calibration_refuses_wrong_numbers(void **unused) {
  (void)unused;
  static const double WRONG[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300};
  const dt_tree_calibration fine = {1, 0, 1, 0, 1};
  dt_tree_learner learner = dt_tree_learner_new(false);
  dt_tree_draft draft = {0};
  NULL_REFUSED(dt_tree_calibrate(NULL, fine, &err));
  NULL_REFUSED(dt_tree_calibrate_learned(NULL, tree, true, &err));
  NULL_REFUSED(dt_tree_calibrate_learned(&learner, NULL, true, &err));
  for (int field = 0; field < 5; field++)
    for (int i = 0; i < 5; i++) {
      dt_tree_calibration s = fine;
      ((double *)&s)[field] = WRONG[i];
      REFUSED(dt_tree_calibrate(tree, s, &err), DT_ESTATE, "out of range");
    }
  learner.lean = NAN;
  REFUSED(dt_tree_calibrate_learned(&learner, tree, true, &err), DT_ESTATE, "out of range");
  dt_tree_calibrate_draft(NULL, &draft);
  dt_tree_calibrate_draft(tree, NULL);
  dt_tree_learn(NULL, tree, 0, 1, true);
  learner = dt_tree_learner_new(true);
  dt_tree_learn(&learner, NULL, 0, 1, true);
  dt_tree_learn(&learner, tree, 0, INT32_MIN, true); /* a token that nobody guessed */
  dt_tree_learn(&learner, tree, 0, INT32_MAX, true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(accessors_answer_for_sequences_that_are_not_there),
      TEST(starts_refuse_wrong_options),
      TEST(sessions_refuse_wrong_options),
      TEST(primitives_refuse_wrong_lists),
      TEST(calls_in_the_wrong_state_are_refused),
      TEST(a_tree_made_anew_by_hand_is_no_danger),
      TEST(trees_refuse_wrong_nodes_and_numbers),
      TEST(calibration_refuses_wrong_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
