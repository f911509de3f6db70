/* Limits on reasoning: see reasoning_limit.h. */
#include "draft/reasoning_limit.h"

#include "pair/pair.h"

#include <stdlib.h>
#include <string.h>

typedef enum {
  BEFORE,  /* nothing but white space and a part of the begin mark was generated */
  INSIDE,  /* the reasoning */
  FORCED,  /* the limit is reached, and the end mark is not complete */
  AFTER,   /* nothing is forced any more */
  REFUSED, /* a path has a token that may not follow, so the text never gets here */
} part;

/* The state after a text. */
typedef struct {
  part part;
  /* BEFORE, INSIDE: how many bytes of the mark the text ends in. FORCED: how many of the forced ids it ends in. */
  int matched;
  int tokens; /* INSIDE: the number of tokens of the reasoning so far */
} place;

/* A mark in a text, without white space around it. */
typedef struct {
  const char *text;
  size_t n;
} mark;

struct reasoning_limit {
  const dt_pair *pair;
  char *begin_text, *end_text;
  mark begin, end; /* in these texts */
  int *shorter;    /* [end.n] the longest shorter beginning of the mark with which its first i + 1 bytes end */
  int most;        /* tokens of the reasoning */
  int32_t *forced; /* [n_forced] the ids of end_text */
  int n_forced;
  uint64_t *masks; /* [n_forced + 1][words] each allows one forced id only, and the last one none */
  size_t words;
  bool yields;  /* see reasoning_limit.h */
  bool started; /* a token was generated */
  place *place; /* [n_known] after the nodes of the tree; the root's is that of the text */
  int n_known;
};

bool reasoning_limit_wanted(const dt_reasoning_limit *asked) { return asked->end && asked->tokens >= 0; }

static bool is_white(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static mark trimmed(const char *text) {
  while (is_white(*text)) text++;
  size_t n = strlen(text);
  while (n > 0 && is_white(text[n - 1])) n--;
  return (mark){text, n};
}

dt_status reasoning_limit_check(const dt_reasoning_limit *asked, dt_error *err) {
  if (asked->tokens < -1)
    return dt_fail(err, DT_EINPUT, "think_tokens: %d is out of range: at least 0, or -1 for no limit", asked->tokens);
  if (!reasoning_limit_wanted(asked)) return DT_OK;
  if (asked->begin && !trimmed(asked->begin).n)
    return dt_fail(err, DT_EINPUT, "think_tokens: the mark that begins the reasoning is empty");
  if (!trimmed(asked->end).n) return dt_fail(err, DT_EINPUT, "think_tokens: the mark that ends the reasoning is empty");
  return DT_OK;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* The state in which ids are forced once the reasoning has as many tokens as it may have. */
static place at_limit(const reasoning_limit *l, place p) {
  return p.part == INSIDE && p.tokens >= l->most ? (place){.part = FORCED} : p;
}

static place after_byte(const reasoning_limit *l, place p, char c) {
  if (p.part == BEFORE && !(p.matched == 0 && is_white(c))) {
    if (c != l->begin.text[p.matched]) return (place){.part = AFTER};
    if (++p.matched == (int)l->begin.n) return (place){.part = INSIDE};
  } else if (p.part == INSIDE) {
    while (p.matched && c != l->end.text[p.matched]) p.matched = l->shorter[p.matched - 1];
    p.matched += c == l->end.text[p.matched];
    if (p.matched == (int)l->end.n) return (place){.part = AFTER};
  }
  return p;
}

static place after_forced(const reasoning_limit *l, place p, int32_t token) {
  if (token != l->forced[p.matched]) return (place){.part = l->yields ? AFTER : REFUSED};
  return ++p.matched == l->n_forced ? (place){.part = AFTER} : p;
}

/* The state after one more token. `first`: it is the first that is generated. */
static place after_token(const reasoning_limit *l, place p, int32_t token, bool first) {
  if (p.part == FORCED) return after_forced(l, p, token);
  if (p.part == AFTER || p.part == REFUSED) return p;
  char buffer[16];
  size_t n;
  const char *bytes = pair_token_bytes(l->pair, token, first, buffer, &n);
  p.tokens += p.part == INSIDE;
  for (size_t i = 0; i < n; i++) p = after_byte(l, p, bytes[i]);
  return at_limit(l, p);
}

static place place_after(reasoning_limit *l, const dt_tree *t, int node) {
  for (int v; (v = l->n_known) <= node; l->n_known++) /* a parent's id is lower than those of its children */
    l->place[v] = after_token(l, l->place[t->parent[v]], t->token[v], !l->started && t->parent[v] == 0);
  return l->place[node];
}

void reasoning_limit_begin_tree(reasoning_limit *l) { l->n_known = 1; }

void reasoning_limit_token(reasoning_limit *l, int32_t token) {
  l->place[0] = after_token(l, l->place[0], token, !l->started);
  l->started = true;
  reasoning_limit_begin_tree(l);
}

/* ---- what may follow --------------------------------------------------------------------------------------------- */

bool reasoning_limit_allow(reasoning_limit *l, const dt_tree *t, int node, int32_t token) {
  place p = place_after(l, t, node);
  return p.part != REFUSED && (p.part != FORCED || token == l->forced[p.matched]);
}

int32_t reasoning_limit_forced(reasoning_limit *l, const dt_tree *t, int node, int *left) {
  place p = place_after(l, t, node);
  char buffer[16];
  size_t n;
  *left = 0;
  if (p.part != FORCED) return -1;
  for (int i = p.matched + 1; i < l->n_forced; i++) {
    pair_token_bytes(l->pair, l->forced[i], false, buffer, &n);
    *left += (int)n;
  }
  return l->forced[p.matched];
}

const uint64_t *reasoning_limit_mask(reasoning_limit *l, const dt_tree *t, int node) {
  place p = place_after(l, t, node);
  if (p.part != FORCED && p.part != REFUSED) return NULL;
  return l->masks + (size_t)(p.part == FORCED ? p.matched : l->n_forced) * l->words;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void fill_shorter(reasoning_limit *l) {
  const char *text = l->end.text;
  for (int i = 1, k = 0; i < (int)l->end.n; i++) {
    while (k && text[i] != text[k]) k = l->shorter[k - 1];
    l->shorter[i] = k += text[i] == text[k];
  }
}

static void fill_masks(reasoning_limit *l) {
  for (int i = 0; i < l->n_forced; i++)
    l->masks[(size_t)i * l->words + (size_t)l->forced[i] / 64] = UINT64_C(1) << l->forced[i] % 64;
}

static dt_status take_texts(reasoning_limit *l, const dt_reasoning_limit *asked, dt_error *err) {
  l->begin_text = strdup(asked->begin ? asked->begin : "");
  l->end_text = strdup(asked->end);
  if (!l->begin_text || !l->end_text) return dt_fail_memory(err, "the marks of reasoning", strlen(asked->end) + 1);
  l->begin = trimmed(l->begin_text), l->end = trimmed(l->end_text);
  int32_t *ids;
  int n;
  dt_status status = dt_encode_whole(l->pair, l->end_text, strlen(l->end_text), &ids, &n, err);
  if (status) return status;
  l->forced = ids, l->n_forced = n;
  return n ? DT_OK : dt_fail(err, DT_EINPUT, "think_tokens: the mark that ends the reasoning has no tokens");
}

static dt_status take_room(reasoning_limit *l, dt_error *err) {
  size_t masks = (size_t)l->n_forced + 1;
  l->words = ((size_t)l->pair->target_info.vocab + 63) / 64;
  l->shorter = calloc(l->end.n, sizeof *l->shorter);
  l->masks = calloc(masks * l->words, sizeof *l->masks);
  l->place = malloc((1 + DT_TREE_ENTRIES) * sizeof *l->place);
  if (!l->shorter || !l->masks || !l->place)
    return dt_fail_memory(err, "a limit of reasoning", masks * l->words * sizeof *l->masks);
  fill_shorter(l);
  fill_masks(l);
  return DT_OK;
}

dt_status reasoning_limit_open(const dt_pair *pair, const dt_reasoning_limit *asked, bool yields, reasoning_limit **out,
                               dt_error *err) {
  reasoning_limit *l = calloc(1, sizeof *l);
  if (!l) return dt_fail_memory(err, "a limit of reasoning", sizeof *l);
  l->pair = pair, l->most = asked->tokens, l->yields = yields, l->n_known = 1;
  dt_status status = take_texts(l, asked, err);
  if (!status) status = take_room(l, err);
  if (status) {
    reasoning_limit_close(l);
    return status;
  }
  l->place[0] = at_limit(l, (place){.part = asked->open ? INSIDE : asked->begin ? BEFORE : AFTER});
  *out = l;
  return DT_OK;
}

void reasoning_limit_close(reasoning_limit *l) {
  if (!l) return;
  free(l->begin_text), free(l->end_text), free(l->shorter), free(l->forced), free(l->masks), free(l->place);
  free(l);
}
