/* What a grammar or a limit on reasoning allows and forces after nodes of a tree: see dtrun.h. */
#include "session/session.h"
#include "system/need.h"

#include <stdlib.h>
#include <string.h>

/* Returns the first token of a text that continues another text. It is encoded after the end of a line, since
 * tokenizers begin a new token there. *len is the number of its bytes; -1: its bytes differ from the text. */
static int32_t usual_token(const dt_pair *p, const char *text, int n, bool first, size_t *len) {
  char line[1 + DT_FORCED] = "\n", buffer[16];
  int32_t *ids, token = -1;
  int count;
  size_t at = p->tokenizer ? 0 : 1; /* a scripted pair has no token for it */
  memcpy(line + 1, text, (size_t)n);
  if (dt_encode_whole(p, line, (size_t)n + 1, &ids, &count, NULL)) return -1;
  for (int i = 0; i < count && at < 2 && token < 0; at += *len, i++) {
    if (at == 1) token = ids[i];
    pair_token_bytes(p, ids[i], i == 0, buffer, len);
  }
  free(ids);
  const char *bytes = token >= 0 ? pair_token_bytes(p, token, first, buffer, len) : NULL;
  return bytes && *len > 0 && *len <= (size_t)n && !memcmp(bytes, text, *len) ? token : -1;
}

/* Fails unless the tree of the sequence is over its last token and has the node. */
static dt_status check_node(const dt_session *s, int seq, int node, const char *what, dt_error *err) {
  dt_status status = session_check(s, seq, err);
  if (status) return status;
  if (s->seq[seq].tree->phase == TREE_FROZEN)
    return dt_fail(err, DT_ESTATE, "%s: the iteration is committed; the next draft starts an empty tree", what);
  return dt_tree_check(s->seq[seq].tree, node, what, err);
}

bool dt_seq_has_grammar(const dt_session *s, int seq) {
  return s && !session_check(s, seq, NULL) && s->seq[seq].adjusted && s->seq[seq].adjustments.masks;
}

dt_status dt_seq_allowed(const dt_session *s, int seq, int node, int32_t token, bool *allowed, dt_error *err) {
  NEED(s, "session");
  NEED(allowed, "allowed");
  dt_status status = check_node(s, seq, node, "allowed", err);
  int vocab = s->pair->target_info.vocab;
  if (!status && (token < 0 || token >= vocab))
    status = dt_fail(err, DT_ESTATE, "token: %d is out of range: 0..%d", token, vocab - 1);
  if (status) return status;
  const sequence *q = &s->seq[seq];
  *allowed = !q->adjusted || adjustments_allow(&q->adjustments, q->tree, node, token);
  return DT_OK;
}

dt_status dt_seq_forced(const dt_session *s, int seq, int node, int32_t *token, int *left, dt_error *err) {
  NEED(s, "session");
  NEED(token, "token");
  NEED(left, "left");
  dt_status status = check_node(s, seq, node, "forced", err);
  if (status) return status;
  const sequence *q = &s->seq[seq];
  if (q->adjusted && (*token = adjustments_forced_id(&q->adjustments, q->tree, node, left)) >= 0) return DT_OK;
  char text[DT_FORCED];
  bool first;
  size_t len = 0;
  *token = -1;
  int n = q->adjusted ? adjustments_forced(&q->adjustments, q->tree, node, token, text, DT_FORCED, &first) : 0;
  if (*token < 0 && n) *token = usual_token(s->pair, text, n, first, &len);
  *left = *token >= 0 ? n - (int)len : 0;
  return DT_OK;
}
