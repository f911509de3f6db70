/* Scripted pairs. Their models read their text back from cache slots, so a wrong slot, prefix, path or move changes the
 * output. */
#ifndef SCRIPTED_H
#define SCRIPTED_H

#include "unit.h"

#include "dtrun.h"
#include "dtrun_fake.h"

#include <stdlib.h>

enum { VOCAB = 50 };

static inline dt_pair *fake(dt_fake_options o) {
  dt_pair *pair;
  if (!o.vocab) o.vocab = VOCAB;
  if (!o.context) o.context = 300;
  if (!o.eos) o.eos = -1;
  ok(dt_pair_open_fake(&o, &pair, &err));
  return pair;
}

static inline dt_session *session(dt_pair *pair, int sequences, bool draft) {
  dt_session *s;
  ok(dt_session_open(pair, &(dt_session_options){.sequences = sequences, .use_draft = draft}, &s, &err));
  return s;
}

static const int32_t PROMPT[] = {3, 1, 4, 1, 5, 9, 2, 6};

static inline void start(dt_session *s, int seq, int tokens) {
  ok(dt_seq_start(s, seq, PROMPT, 8, &(dt_seq_options){.max_tokens = tokens}, &err));
}

/* Runs one iteration without a tree. */
static inline void plain_iteration(dt_session *s, int seq) {
  dt_verdict v;
  dt_committed c;
  ok(dt_rollback(s, seq, &err));
  ok(dt_verify_tree(s, &seq, 1, &v, &err));
  ok(dt_commit(s, &seq, 1, 0, &c, &err));
  assert_int_equal(c.n, 1);
}

/* The tokens of plain decoding, including the prompt; malloc'd. */
static inline int32_t *plain(dt_pair *pair, int tokens, int *n) {
  dt_session *s = session(pair, 1, false);
  start(s, 0, tokens);
  while (dt_seq_finish(s, 0) == DT_RUNNING) plain_iteration(s, 0);
  *n = dt_seq_length(s, 0);
  int32_t *all = malloc((size_t)*n * sizeof *all);
  memcpy(all, dt_seq_tokens(s, 0), (size_t)*n * sizeof *all);
  dt_session_close(s);
  return all;
}

#endif
