/* Masks of a grammar: see masks.h. */
#include "grammar/masks.h"
#include "grammar/gbnf.h"
#include "grammar/uniform.h"

#include <stdlib.h>
#include <string.h>

enum { FREE = -3 };
static const size_t MOST = 128u << 20; /* bytes of states; above half of it they are dropped */

struct masks {
  states a;
  int32_t *token; /* [a.rules.tokens] ids */
  const vocabulary *vocabulary;
  char *grammar;
  int users;
  uint64_t *nothing; /* a mask without bits */
  int32_t *path;     /* [deepest + 1] states on the way to a node of the vocabulary */
  int32_t *live;     /* [places]; FREE */
  int places;
};

int masks_ids(const masks *m) { return m->vocabulary->ids; }
static size_t words(const masks *m) { return vocabulary_words(m->vocabulary); }

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* A byte of a token's text. */
static int32_t step_text(masks *m, int32_t from, uint8_t byte) {
  return byte == RULES_TOKEN ? MASKS_NOWHERE : states_step(&m->a, from, byte);
}

/* The state after a token that the grammar demands by its index. */
static int32_t step_demanded(masks *m, int32_t from, int index) {
  from = states_step(&m->a, from, RULES_TOKEN);
  if (from != MASKS_NOWHERE) from = states_step(&m->a, from, (uint8_t)(0x80 | index >> 7));
  return states_step(&m->a, from, (uint8_t)(0x80 | (index & 0x7F)));
}

int32_t masks_step(masks *m, int32_t from, int32_t token, bool first) {
  const vocabulary_tree *t = vocabulary_of(m->vocabulary, first);
  const size_t begin = t->offset[token], end = t->offset[token + 1];
  int32_t text = begin == end ? MASKS_NOWHERE : from;
  m->a.s.full = false;
  for (size_t i = begin; i < end; i++) text = step_text(m, text, (uint8_t)t->bytes[i]);
  for (int i = 0; i < m->a.rules.tokens; i++)
    if (m->token[i] == token) text = states_either(&m->a, text, step_demanded(m, from, i));
  return text;
}

bool masks_allow(masks *m, int32_t from, int32_t token, bool first) {
  if (from == MASKS_NOWHERE) return false;
  return m->vocabulary->is_end[token] ? m->a.s.state[from].ends : masks_step(m, from, token, first) != MASKS_NOWHERE;
}

/* Returns the token that the grammar demands after a state, and makes *from the state after it; -1: it demands none, or
 * one of several. */
static int32_t only_token(masks *m, int32_t *from) {
  int index = 0, byte;
  int32_t at = *from;
  for (int i = 0; i < 3; i++) {
    if (at == MASKS_NOWHERE || (byte = states_only_byte(&m->a, at)) < 0 || (i == 0 && byte != RULES_TOKEN)) return -1;
    if (i) index = index << 7 | (byte & 0x7F);
    at = states_step(&m->a, at, (uint8_t)byte);
  }
  *from = at;
  return m->token[index];
}

int masks_forced(masks *m, int32_t from, int32_t *token, char *bytes, int most) {
  int n = 0;
  m->a.s.full = false;
  *token = only_token(m, &from);
  for (int byte;
       n < most && from != MASKS_NOWHERE && (byte = states_only_byte(&m->a, from)) >= 0 && byte != RULES_TOKEN; n++) {
    bytes[n] = (char)byte;
    from = states_step(&m->a, from, (uint8_t)byte);
  }
  return n;
}

static void set(uint64_t *mask, int32_t id) { mask[id / 64] |= UINT64_C(1) << id % 64; }

/* Whether a repetition goes on from a state to one like it, with any character of a set: then it allows all short
 * tokens of the set. */
static bool goes_on(masks *m, int32_t from, int32_t to) {
  int most;
  return to != MASKS_NOWHERE && states_begun(&m->a, to, &most) == from && most >= VOCABULARY_SHORT;
}

/* Finds tokens of a set such that exactly those up to length *length are allowed after a state. NULL: there are
 * none. */
static const alike *alike_behind(masks *m, int32_t from, const vocabulary_nodes *of, int *length) {
  alike_set set;
  if (!uniform_set(&m->a, from, &set) || m->a.s.full) return NULL;
  const alike *a = alike_of(m->vocabulary, of, &set);
  if (!a) {
    dt_fail_memory(&m->a.failure, "the masks of a grammar", words(m) * VOCABULARY_SHORT * sizeof(uint64_t));
    return NULL;
  }
  *length = of->above;
  for (int32_t at = from, to; *length < a->longest; ++*length, at = to) {
    if (!uniform_leads(&m->a, at, &set, &to)) return NULL;
    if (to == MASKS_NOWHERE) break;
    if (to == at || (at == from && goes_on(m, from, to))) {
      *length = a->longest;
      break;
    }
  }
  return a;
}

/* Adds the bits of the tokens of a tree that are longer than `least`, and possibly of others. False: no room for a
 * state. */
static bool walk(masks *m, int32_t from, const vocabulary_nodes *of, const int32_t *twin, int least, uint64_t *mask) {
  m->path[of->above] = from;
  for (int i = 0; i < of->n;) {
    const vocabulary_node *n = &of->node[i];
    if (n->deepest <= least) {
      i = n->skip;
      continue;
    }
    int32_t to = m->path[n->depth] = step_text(m, m->path[n->depth - 1], n->byte);
    if (to == MASKS_NOWHERE) {
      if (m->a.s.full || m->a.failure.status) return false;
      i = n->skip;
      continue;
    }
    for (int32_t id = n->token; id >= 0; id = twin[id]) set(mask, id);
    i++;
  }
  return true;
}

static const uint64_t *mask_of(masks *m, int32_t of, int which);

/* Keeps only the bits of `among`; NULL: keeps all. */
static void add_mask(const masks *m, const uint64_t *other, const uint64_t *among, uint64_t *mask) {
  for (size_t i = 0; i < words(m); i++) mask[i] |= among ? other[i] & among[i] : other[i];
}

/* Adds the tokens of one of the vocabulary's trees. false: no room for a state, as below. */
static bool add_tree(masks *m, int32_t from, int which, uint64_t *mask) {
  const vocabulary *v = m->vocabulary;
  const vocabulary_nodes *of = which == SPACED ? &v->spaced : &v->later.nodes;
  int known = 0, most, length = 0; /* tokens up to length `known` are those of the other state */
  int32_t like = states_begun(&m->a, from, &most);
  if (like != MASKS_NOWHERE && like != from) {
    known = most + of->above < VOCABULARY_SHORT ? most + of->above : VOCABULARY_SHORT;
    add_mask(m, mask_of(m, like, which), v->up_to + (size_t)known * words(m), mask);
  }
  const alike *a = known < VOCABULARY_SHORT && !m->a.s.full ? alike_behind(m, from, of, &length) : NULL;
  if (m->a.s.full || m->a.failure.status) return false;
  if (!a) return walk(m, from, of, v->later.twin, known, mask);
  add_mask(m, a->up_to + (size_t)length * words(m), NULL, mask);
  return walk(m, from, &a->rest, v->later.twin, known, mask);
}

static bool add_spaced(masks *m, int32_t from, uint64_t *mask) {
  int32_t spaced = m->vocabulary->spaced.n ? states_step(&m->a, from, ' ') : MASKS_NOWHERE;
  add_mask(m, mask_of(m, spaced, SPACED), NULL, mask);
  return !m->a.s.full && !m->a.failure.status;
}

static void add_ends(const masks *m, uint64_t *mask) {
  const uint8_t *is_end = m->vocabulary->is_end, *all = is_end + m->vocabulary->ids;
  for (const uint8_t *at = is_end; (at = memchr(at, 1, (size_t)(all - at))); at++) set(mask, (int32_t)(at - is_end));
}

/* Adds the tokens that the grammar demands as such. */
static void add_demanded(masks *m, int32_t from, uint64_t *mask) {
  for (int i = 0; i < m->a.rules.tokens; i++)
    if (step_demanded(m, from, i) != MASKS_NOWHERE) set(mask, m->token[i]);
}

static bool fill(masks *m, int32_t from, int which, uint64_t *mask) {
  const vocabulary_tree *first = &m->vocabulary->first;
  if (which != SPACED && m->a.s.state[from].ends) add_ends(m, mask);
  if (which != SPACED) add_demanded(m, from, mask);
  if (which == FIRST) return walk(m, from, &first->nodes, first->twin, 0, mask);
  return add_tree(m, from, which, mask) && (which == SPACED || add_spaced(m, from, mask));
}

/* A mask of a state, computed when it is first needed. It is empty if no token is allowed or there is no room for
 * it. */
static const uint64_t *mask_of(masks *m, int32_t of, int which) {
  if (of == MASKS_NOWHERE) return m->nothing;
  uint64_t *mask = m->a.s.state[of].mask[which];
  if (mask) return mask;
  if (!states_grow(&m->a, &mask, words(m), sizeof *mask)) return m->nothing;
  memset(mask, 0, words(m) * sizeof *mask);
  if (!fill(m, of, which, mask)) {
    free(mask);
    return m->nothing;
  }
  m->a.s.bytes += words(m) * sizeof *mask;
  return m->a.s.state[of].mask[which] = mask;
}

static int kind_of(const masks *m, bool first) { return first && m->vocabulary->differ ? FIRST : LATER; }

const uint64_t *masks_of(masks *m, int32_t of, bool first) {
  m->a.s.full = false;
  return mask_of(m, of, kind_of(m, first));
}

dt_status masks_failure(const masks *m, dt_error *err) {
  return m->a.failure.status ? dt_fail(err, m->a.failure.status, "%s", m->a.failure.message) : DT_OK;
}

dt_status masks_are_stuck(const masks *m, dt_error *err) {
  if (m->a.failure.status) return masks_failure(m, err);
  if (m->a.too_many)
    return dt_fail(err, DT_EINPUT,
                   "grammar: a text can be read in more than %d ways: let fewer rules match the same text",
                   MASKS_STACKS);
  return dt_fail(
      err, DT_EINPUT,
      "grammar: no token can follow the text: none in the vocabulary matches, or logit_bias bans every one that "
      "does");
}

/* ---- from store to store ----------------------------------------------------------------------------------------- */

/* Returns the store with all states, and begins a new one that has only one of them. The memory that a text needs is
 * therefore measured in the same way, whatever was computed before. */
static states_store set_aside(masks *m, int32_t *but) {
  states_store all = m->a.s;
  m->a.s = (states_store){0};
  states_bring(&m->a, &all, but, 1);
  return all;
}

static void take_back(masks *m, states_store all, int32_t *of) {
  states_store alone = m->a.s;
  if (alone.full)
    dt_fail(&m->a.failure, DT_EINPUT, "grammar: its states need more than %zu MiB: let fewer rules match the same text",
            m->a.most >> 20);
  m->a.s = all;
  states_bring(&m->a, &alone, of, 1);
  states_close(&alone);
}

static void tidy(masks *m) {
  if (m->a.s.bytes < m->a.most / 2) return;
  states_store old = m->a.s;
  m->a.s = (states_store){0};
  states_bring(&m->a, &old, m->live, m->places);
  states_close(&old);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

int masks_enter(masks *m) {
  int place = 0;
  while (place < m->places && m->live[place] != FREE) place++;
  if (place == m->places) {
    int32_t *grown = realloc(m->live, ((size_t)m->places + 1) * sizeof *grown);
    if (!grown) return -1;
    m->live = grown;
    m->live[m->places++] = FREE;
  }
  tidy(m);
  m->a.s.full = false;
  m->live[place] = states_begin(&m->a);
  if (m->a.s.full) {
    int32_t none = MASKS_NOWHERE;
    states_store all = set_aside(m, &none);
    m->live[place] = states_begin(&m->a);
    take_back(m, all, &m->live[place]);
  }
  return place;
}

void masks_leave(masks *m, int place) { m->live[place] = FREE; }
int32_t masks_state(const masks *m, int place) { return m->live[place]; }

void masks_take(masks *m, int place, int32_t token, bool first) {
  int32_t from = m->live[place];
  m->live[place] = masks_step(m, from, token, first);
  if (m->a.s.full) {
    states_store all = set_aside(m, &from);
    m->live[place] = masks_step(m, from, token, first);
    take_back(m, all, &m->live[place]);
  }
  tidy(m);
}

const uint64_t *masks_of_text(masks *m, int place, bool first) {
  const uint64_t *mask = masks_of(m, m->live[place], first);
  if (!m->a.s.full) return mask;
  int32_t at = m->live[place], none = MASKS_NOWHERE;
  int which = kind_of(m, first);
  states_store all = set_aside(m, &at);
  if (at >= 0) masks_of(m, at, first);
  uint64_t **alone = at >= 0 ? &m->a.s.state[at].mask[which] : NULL, *kept = alone ? *alone : NULL;
  if (alone) *alone = NULL;
  take_back(m, all, &none);
  if (!kept) return m->nothing;
  m->a.s.bytes += words(m) * sizeof *kept;
  return m->a.s.state[m->live[place]].mask[which] = kept;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The first token with a text, other than those that end a text; -1: there is none. */
static int32_t token_with(const vocabulary *v, const char *text) {
  const vocabulary_tree *t = &v->later;
  const size_t n = strlen(text);
  for (int32_t id = 0; id < v->ids; id++)
    if (t->offset[id + 1] - t->offset[id] == n && !memcmp(t->bytes + t->offset[id], text, n)) return id;
  return -1;
}

/* Finds the ids of the tokens that the grammar demands. */
static dt_status find_tokens(masks *m, dt_error *err) {
  const int n = m->a.rules.tokens;
  m->token = malloc(((size_t)n + 1) * sizeof *m->token);
  if (!m->token) return dt_fail_memory(err, "a grammar", (size_t)n * sizeof *m->token);
  for (int i = 0; i < n; i++) {
    const rules_named *named = &m->a.rules.token[i];
    m->token[i] = named->text ? token_with(m->vocabulary, named->text) : named->id;
    const bool fine = m->token[i] >= 0 && m->token[i] < m->vocabulary->ids && !m->vocabulary->is_end[m->token[i]];
    if (!fine && named->text)
      return dt_fail(err, DT_EINPUT, "grammar: the vocabulary has no token %.60s, or the token ends the text",
                     named->text);
    if (!fine)
      return dt_fail(err, DT_EINPUT, "grammar: token <[%d]> is out of range 0..%d, or the token ends the text",
                     named->id, m->vocabulary->ids - 1);
  }
  return DT_OK;
}

dt_status masks_open(const vocabulary *v, const char *gbnf, masks **out, dt_error *err) {
  masks *m = calloc(1, sizeof *m);
  if (!m) return dt_fail_memory(err, "a grammar", sizeof *m);
  m->users = 1;
  m->vocabulary = v;
  m->a.most = MOST;
  int deepest = v->first.deepest > v->later.deepest ? v->first.deepest : v->later.deepest;
  m->nothing = calloc(words(m) + 1, sizeof *m->nothing);
  m->path = malloc(((size_t)deepest + 1) * sizeof *m->path);
  m->grammar = strdup(gbnf);
  dt_status status = m->nothing && m->path && m->grammar ? gbnf_read(gbnf, strlen(gbnf), &m->a.rules, err)
                                                         : dt_fail_memory(err, "a grammar", words(m) * 8);
  if (!status) status = find_tokens(m, err);
  if (status) {
    masks_release(m);
    return status;
  }
  *out = m;
  return DT_OK;
}

masks *masks_hold(masks *m) {
  m->users++;
  return m;
}

void masks_release(masks *m) {
  if (!m || --m->users) return;
  states_close(&m->a.s);
  rules_free(&m->a.rules);
  free(m->token), free(m->grammar), free(m->nothing), free(m->path), free(m->live);
  free(m);
}

void masks_limit(masks *m, size_t most) { m->a.most = most; }
const char *masks_grammar(const masks *m) { return m->grammar; }

size_t masks_bytes(const masks *m) {
  return m->a.s.bytes + (size_t)m->a.rules.capacity * sizeof *m->a.rules.node + strlen(m->grammar);
}
