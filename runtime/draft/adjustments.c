/* The logit adjustments that follow from a text: see adjustments.h. */
#include "draft/adjustments.h"

#include "pair/pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool repeats(const dt_adjustments *a) { return a->repeat != 0 && a->repeat != 1; }

bool dt_adjustments_wanted(const dt_adjustments *a) {
  return a && (repeats(a) || a->presence != 0 || a->frequency != 0 || a->n_bias > 0 || a->min_tokens > 0 ||
               a->grammar || reasoning_limit_wanted(&a->reasoning));
}

static bool is_end(const int32_t *ends, int n_ends, int32_t id) {
  for (int i = 0; i < n_ends; i++)
    if (ends[i] == id) return true;
  return false;
}

/* Some id must be left. */
static dt_status check_bans(const dt_adjustments *a, int vocab, const int32_t *ends, int n_ends, dt_error *err) {
  int banned = a->min_tokens > 0 ? n_ends : 0;
  for (int i = 0; i < a->n_bias; i++)
    banned += isinf(a->bias[i].bias) && !is_end(ends, banned ? n_ends : 0, a->bias[i].id);
  return banned < vocab ? DT_OK : dt_fail(err, DT_EINPUT, "logit_bias: every token is banned: leave at least one");
}

dt_status adjustments_check_ids(const dt_adjustments *a, int vocab, const int32_t *ends, int n_ends, dt_error *err) {
  for (int i = 0; i < a->n_bias; i++)
    if (a->bias[i].id < 0 || a->bias[i].id >= vocab)
      return dt_fail(err, DT_EINPUT, "logit_bias: token %d is out of range 0..%d", a->bias[i].id, vocab - 1);
  return check_bans(a, vocab, ends, n_ends, err);
}

dt_status adjustments_check(const dt_adjustments *a, const dt_seq_options *o, dt_error *err) {
  if (!(a->repeat == 0 || (a->repeat >= 0.01f && a->repeat <= 100)))
    return dt_fail(err, DT_EINPUT, "repeat_penalty: %g is out of range: 0.01 to 100; 1 has no effect",
                   (double)a->repeat);
  if (!(fabsf(a->presence) <= 100))
    return dt_fail(err, DT_EINPUT, "presence_penalty: %g is out of range: -100 to 100", (double)a->presence);
  if (!(fabsf(a->frequency) <= 100))
    return dt_fail(err, DT_EINPUT, "frequency_penalty: %g is out of range: -100 to 100", (double)a->frequency);
  for (int i = 0; i < a->n_bias; i++)
    if (!(fabsf(a->bias[i].bias) <= 1000) && !(isinf(a->bias[i].bias) && a->bias[i].bias < 0))
      return dt_fail(err, DT_EINPUT,
                     "logit_bias: %g for token %d is out of range: -1000 to 1000, or -inf, which bans it",
                     (double)a->bias[i].bias, a->bias[i].id);
  if (a->min_tokens < 0) return dt_fail(err, DT_EINPUT, "min_tokens: %d is out of range: at least 0", a->min_tokens);
  if (a->min_tokens > 0 && o->ignore_eos)
    return dt_fail(err, DT_EINPUT,
                   "min_tokens with ignore_eos: end-of-text does not end the text: give only one of them");
  if (o->max_tokens > 0 && a->min_tokens > o->max_tokens)
    return dt_fail(err, DT_EINPUT, "min_tokens: %d is more than the maximum number of tokens, %d", a->min_tokens,
                   o->max_tokens);
  if (a->grammar && o->ignore_eos)
    return dt_fail(err, DT_EINPUT, "grammar with ignore_eos: end-of-text does not end the text: give only one of them");
  if (a->grammar && a->min_tokens)
    return dt_fail(err, DT_EINPUT,
                   "grammar with min_tokens: the grammar says where the text can end: give only one of them");
  return reasoning_limit_check(&a->reasoning, err);
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static bool ends_banned(const adjustments *s, int generated) { return generated < s->asked.min_tokens; }

/* The adjustment of an id, `more` times on a path with `generated` generated tokens. */
static dt_adjustment adjustment_of(const adjustments *s, int32_t id, const adjustments_known *k, int more,
                                   int generated) {
  const dt_adjustments *a = &s->asked;
  int count = k->count + more;
  return (dt_adjustment){.id = id,
                         .bias = k->ends && ends_banned(s, generated) ? -INFINITY : k->bias,
                         .repeat = (k->seen || more) && a->repeat != 0 ? a->repeat : 1,
                         .minus = count ? (float)((double)a->presence + (double)a->frequency * count) : 0};
}

static const adjustments_known *known_of(const adjustments *s, int32_t id) {
  static const adjustments_known nothing = {0};
  int at = adjustment_place(s->text, s->n, id);
  return at < s->n && s->text[at].id == id ? &s->known[at] : &nothing;
}

/* The same, to be changed; there is room for a new one. */
static int find(adjustments *s, int32_t id) {
  int at = adjustment_place(s->text, s->n, id);
  if (at < s->n && s->text[at].id == id) return at;
  size_t moved = (size_t)(s->n++ - at);
  memmove(s->text + at + 1, s->text + at, moved * sizeof *s->text);
  memmove(s->known + at + 1, s->known + at, moved * sizeof *s->known);
  s->known[at] = (adjustments_known){0};
  s->text[at].id = id;
  return at;
}

static void renew(adjustments *s, int at) {
  s->text[at] = adjustment_of(s, s->text[at].id, &s->known[at], 0, s->generated);
}

dt_status adjustments_open(adjustments *s, const dt_adjustments *asked, masks *of, int context, const int32_t *ends,
                           int n_ends, dt_error *err) {
  *s = (adjustments){.asked = *asked, .place = -1, .capacity = context + asked->n_bias + n_ends};
  s->asked.bias = NULL, s->asked.grammar = NULL, s->asked.reasoning = (dt_reasoning_limit){0};
  s->counts = repeats(asked) || asked->presence != 0 || asked->frequency != 0;
  s->text = calloc((size_t)s->capacity, sizeof *s->text);
  s->known = calloc((size_t)s->capacity, sizeof *s->known);
  if (of) s->masks = masks_hold(of), s->place = masks_enter(of);
  if (!s->text || !s->known || (of && s->place < 0)) {
    adjustments_close(s);
    return dt_fail_memory(err, "logit adjustments", (size_t)s->capacity * (sizeof *s->text + sizeof *s->known));
  }
  for (int i = 0; i < asked->n_bias; i++) s->known[find(s, asked->bias[i].id)].bias += asked->bias[i].bias;
  for (int i = 0; i < n_ends && asked->min_tokens > 0; i++) s->known[find(s, ends[i])].ends = true;
  for (int i = 0; i < s->n; i++) renew(s, i);
  return DT_OK;
}

dt_status adjustments_limit(adjustments *s, const dt_pair *pair, const dt_reasoning_limit *asked, dt_error *err) {
  return reasoning_limit_wanted(asked) ? reasoning_limit_open(pair, asked, s->masks != NULL, &s->limit, err) : DT_OK;
}

void adjustments_close(adjustments *s) {
  if (s->masks && s->place >= 0) masks_leave(s->masks, s->place);
  masks_release(s->masks);
  reasoning_limit_close(s->limit);
  free(s->text), free(s->known);
  *s = (adjustments){0};
}

void adjustments_prompt(adjustments *s, const int32_t *tokens, int n) {
  for (int i = 0; i < n && repeats(&s->asked); i++) {
    int at = find(s, tokens[i]);
    if (s->known[at].seen) continue;
    s->known[at].seen = true;
    renew(s, at);
  }
}

void adjustments_token(adjustments *s, int32_t token) {
  if (s->masks) masks_take(s->masks, s->place, token, !s->generated); /* no pass runs */
  if (s->limit) reasoning_limit_token(s->limit, token);
  bool were_banned = ends_banned(s, s->generated++);
  if (s->counts) {
    int at = find(s, token);
    s->known[at].seen = true;
    s->known[at].count++;
    renew(s, at);
  }
  for (int i = 0; i < s->n && were_banned && !ends_banned(s, s->generated); i++)
    if (s->known[i].ends) renew(s, i);
}

void adjustments_begin_tree(adjustments *s) {
  if (s->limit) reasoning_limit_begin_tree(s->limit);
}

bool adjustments_forbid(const adjustments *s) { return s->masks || s->limit; }

/* The grammar's state after a node of the tree. */
static int32_t state_behind(const adjustments *s, const dt_tree *t, int node) {
  int32_t path[DT_TREE_ENTRIES + 1], state = masks_state(s->masks, s->place);
  int n = 0;
  for (int u = node; u > 0; u = t->parent[u]) path[n++] = t->token[u];
  for (int i = n - 1; i >= 0; i--) state = masks_step(s->masks, state, path[i], !s->generated && i == n - 1);
  return state;
}

/* Whether a child of the node is the first generated token. */
static bool is_first(const adjustments *s, int node) { return !s->generated && node == 0; }

int32_t adjustments_forced_id(const adjustments *s, const dt_tree *t, int node, int *left) {
  const int32_t id = s->limit ? reasoning_limit_forced(s->limit, t, node, left) : -1;
  const bool allowed = id < 0 || !s->masks || masks_allow(s->masks, state_behind(s, t, node), id, is_first(s, node));
  return allowed ? id : -1;
}

bool adjustments_allow(const adjustments *s, const dt_tree *t, int node, int32_t token) {
  int left;
  if (s->limit && !s->masks) return reasoning_limit_allow(s->limit, t, node, token);
  const int32_t id = adjustments_forced_id(s, t, node, &left);
  if (id >= 0) return token == id;
  return !s->masks || masks_allow(s->masks, state_behind(s, t, node), token, is_first(s, node));
}

int adjustments_forced(const adjustments *s, const dt_tree *t, int node, int32_t *token, char *bytes, int most,
                       bool *first) {
  *first = is_first(s, node);
  *token = -1;
  return s->masks ? masks_forced(s->masks, state_behind(s, t, node), token, bytes, most) : 0;
}

static const uint64_t *mask_behind(const adjustments *s, const dt_tree *t, int node) {
  return node ? masks_of(s->masks, state_behind(s, t, node), false)
              : masks_of_text(s->masks, s->place, is_first(s, node));
}

bool adjustments_are_stuck(const adjustments *s) {
  if (!s->masks) return false;
  dt_row_adjustments row = {.allowed = masks_of_text(s->masks, s->place, !s->generated)};
  for (int32_t id = 0; id < masks_ids(s->masks); id++)
    if (adjustment_allows(&row, id) && !isinf(known_of(s, id)->bias)) return false;
  return true;
}

/* ---- rows of a pass ---------------------------------------------------------------------------------------------- */

dt_status row_adjustments_open(row_adjustments *r, int rows, size_t guesses, dt_error *err) {
  size_t entries = guesses + (size_t)rows * MODEL_MAX_EOS; /* each path may reach the point where the text may end */
  *r = (row_adjustments){.row = malloc((size_t)rows * sizeof *r->row),
                         .entry = malloc(entries * sizeof *r->entry),
                         .more = malloc(entries * sizeof *r->more)};
  if (r->row && r->entry && r->more) return DT_OK;
  row_adjustments_close(r);
  return dt_fail_memory(err, "the logit adjustments of a pass", entries * (sizeof *r->entry + sizeof *r->more));
}

void row_adjustments_close(row_adjustments *r) {
  free(r->row), free(r->entry), free(r->more);
  *r = (row_adjustments){0};
}

void row_adjustments_begin(row_adjustments *r) { r->n = 0; }

/* Adds `more` occurrences of the id to the path whose list begins at `first`. */
static void count_on_path(row_adjustments *r, int first, int32_t id, int more) {
  int at = first + adjustment_place(r->entry + first, r->n - first, id);
  if (at == r->n || r->entry[at].id != id) {
    size_t moved = (size_t)(r->n++ - at);
    memmove(r->entry + at + 1, r->entry + at, moved * sizeof *r->entry);
    memmove(r->more + at + 1, r->more + at, moved * sizeof *r->more);
    r->entry[at].id = id, r->more[at] = 0;
  }
  r->more[at] += more;
}

/* The mask of the limit after a node, unless the grammar does not allow what it forces; NULL: it forces nothing. */
static const uint64_t *limit_behind(const adjustments *s, const dt_tree *t, int node) {
  int left;
  if (!s->limit || (s->masks && adjustments_forced_id(s, t, node, &left) < 0)) return NULL;
  return reasoning_limit_mask(s->limit, t, node);
}

void row_adjustments_put(row_adjustments *r, int i, const adjustments *s, const dt_tree *t, int node) {
  r->row[i] = (dt_row_adjustments){0};
  if (!s) return;
  if ((r->row[i].allowed = limit_behind(s, t, node))) return; /* no bias must ban the id */
  int first = r->n, generated = s->generated + t->depth[node];
  for (int u = node; u > 0 && s->counts; u = t->parent[u]) count_on_path(r, first, t->token[u], 1);
  for (int k = 0; k < s->n && ends_banned(s, s->generated) && !ends_banned(s, generated); k++)
    if (s->known[k].ends) count_on_path(r, first, s->text[k].id, 0);
  for (int k = first; k < r->n; k++)
    r->entry[k] = adjustment_of(s, r->entry[k].id, known_of(s, r->entry[k].id), r->more[k], generated);
  r->row[i] = (dt_row_adjustments){.text = s->text, .path = r->entry + first, .n_text = s->n, .n_path = r->n - first};
  if (s->masks) r->row[i].allowed = mask_behind(s, t, node);
}
