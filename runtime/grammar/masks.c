/* The automaton of a grammar, and its masks: see masks.h. */
#include "grammar/masks.h"
#include "grammar/gbnf.h"
#include "grammar/uniform.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, UNKNOWN = -2, FREE = -3 };
enum { LATER, FIRST, SPACED, MASKS }; /* masks of a state; SPACED: after the space of tokens that begin with a space */
enum { BEGUN_LEAST = 4, BEGUN_DEEP = 8 }; /* items left of a repetition, frames of a stack: see begun */
static const size_t MOST = 128u << 20;    /* bytes of states; above half of it they are dropped */

/* The top of a stack: a node, and the frame below it (NONE: none). Equal stacks are one frame. */
typedef struct {
  int32_t node, below;
} frame;

typedef struct {
  size_t first; /* index of its frames in `list` */
  int n;
  bool ends;
  uint64_t *mask[MASKS]; /* NULL: not computed yet */
} state;

typedef struct {
  int32_t *slot; /* [size] of a hash table; NONE: free */
  int size, used;
} table;

/* Everything that is computed; it is dropped as a whole. */
typedef struct {
  frame *frame;  /* [frames] */
  int32_t *mark; /* [frames] the last round that reached it */
  int frames, frame_room, round;
  state *state; /* [states] */
  int32_t *to;  /* [states][classes] */
  int states, state_room;
  int32_t *list; /* [listed] */
  size_t listed, list_room;
  int32_t *todo, *found; /* [frames] while a state is made */
  table frame_index, state_index;
  size_t bytes;
  bool full; /* there was no room for the last state */
} store;

struct masks {
  rules rules;
  const vocabulary *vocabulary;
  char *grammar;
  int users;
  store s;
  uint64_t *nothing; /* a mask without bits */
  int32_t *path;     /* [deepest + 1] states on the way to a node of the vocabulary */
  int32_t *live;     /* [places]; FREE */
  int places;
  size_t most;   /* maximum size of a store in bytes */
  bool too_many; /* a text had more than MASKS_STACKS */
  dt_error failure;
};

int masks_ids(const masks *m) { return m->vocabulary->ids; }
static size_t words(const masks *m) { return vocabulary_words(m->vocabulary); }

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool grow(masks *m, void *list, size_t n, size_t size) {
  void *old, *grown;
  memcpy(&old, list, sizeof old);
  m->s.full = m->s.full || m->s.bytes > m->most;
  if (m->s.full) return false;
  grown = realloc(old, n * size);
  if (grown)
    memcpy(list, &grown, sizeof grown);
  else
    dt_fail_memory(&m->failure, "the states of a grammar", n * size);
  return grown != NULL;
}

static void close_store(store *s) {
  for (int i = 0; i < s->states; i++)
    for (int of = 0; of < MASKS; of++) free(s->state[i].mask[of]);
  free(s->frame), free(s->mark), free(s->state), free(s->to), free(s->list), free(s->todo), free(s->found);
  free(s->frame_index.slot), free(s->state_index.slot);
  *s = (store){0};
}

static uint32_t mix(uint32_t h, int32_t x) {
  h = (h ^ (uint32_t)x) * 0x9E3779B1u;
  return h ^ h >> 15;
}

/* Makes room in a table for one more. hash_of gives the hash of what is there already. */
static bool index_room(masks *m, table *t, uint32_t (*hash_of)(const store *, int32_t)) {
  if (2 * (t->used + 1) < t->size) return true;
  int size = t->size ? 2 * t->size : 256;
  int32_t *slot = NULL;
  if (!grow(m, &slot, (size_t)size, sizeof *slot)) return false;
  memset(slot, 0xff, (size_t)size * sizeof *slot);
  for (int i = 0; i < t->used; i++) { /* the first `used` numbers are in it */
    uint32_t at = hash_of(&m->s, i) & (uint32_t)(size - 1);
    while (slot[at] != NONE) at = (at + 1) & (uint32_t)(size - 1);
    slot[at] = i;
  }
  free(t->slot);
  t->slot = slot, t->size = size;
  m->s.bytes += (size_t)size * sizeof *slot / 2;
  return true;
}

/* ---- frames and states ------------------------------------------------------------------------------------------- */

static uint32_t hash_frame(const store *s, int32_t i) { return mix(mix(7, s->frame[i].node), s->frame[i].below); }

/* The number of a frame; NONE: no room. */
static int32_t frame_of(masks *m, frame f) {
  store *s = &m->s;
  if (!index_room(m, &s->frame_index, hash_frame)) return NONE;
  uint32_t mask = (uint32_t)s->frame_index.size - 1, at = mix(mix(7, f.node), f.below) & mask;
  for (int32_t is; s->frames && (is = s->frame_index.slot[at]) != NONE; at = (at + 1) & mask)
    if (s->frame[is].node == f.node && s->frame[is].below == f.below) return is;
  if (s->frames == s->frame_room) {
    size_t room = s->frame_room ? 2 * (size_t)s->frame_room : 256;
    if (!grow(m, &s->frame, room, sizeof *s->frame) || !grow(m, &s->mark, room, sizeof *s->mark) ||
        !grow(m, &s->todo, room, sizeof *s->todo) || !grow(m, &s->found, room, sizeof *s->found))
      return NONE;
    s->frame_room = (int)room;
    s->bytes += room / 2 * (sizeof *s->frame + 3 * sizeof *s->mark);
  }
  s->frame[s->frames] = f;
  s->mark[s->frames] = 0;
  s->frame_index.used++;
  return s->frame_index.slot[at] = s->frames++;
}

static void push(masks *m, int32_t node, int32_t below, int *n_todo) {
  int32_t f = frame_of(m, (frame){node, below});
  if (f == NONE || m->s.mark[f] == m->s.round) return;
  m->s.mark[f] = m->s.round;
  m->s.todo[(*n_todo)++] = f;
}

/* Adds to `found` all stacks that can be reached from a node (above the frames below it) before the next byte. It stops
 * early if there are more than a state may have. */
static int reach(masks *m, int32_t node, int32_t below, int n_found) {
  int n_todo = 0;
  push(m, node, below, &n_todo);
  while (n_todo && n_found <= MASKS_STACKS) {
    int32_t at = m->s.todo[--n_todo];
    frame f = m->s.frame[at];
    const rules_node *n = &m->rules.node[f.node];
    switch ((node_kind)n->kind) {
    case NODE_END:
    case NODE_BYTES: m->s.found[n_found++] = at; break;
    case NODE_EMPTY: break; /* none is left: rules_finish */
    case NODE_SPLIT:
      push(m, n->next, f.below, &n_todo);
      push(m, n->other, f.below, &n_todo);
      break;
    case NODE_CALL: {
      int32_t back = n->next == RULES_TAIL ? f.below : frame_of(m, (frame){n->next, f.below});
      if (n->next == RULES_TAIL || back != NONE) push(m, n->other, back, &n_todo);
      break;
    }
    case NODE_RETURN:
      if (f.below == NONE)
        push(m, 0, NONE, &n_todo);
      else
        push(m, m->s.frame[f.below].node, m->s.frame[f.below].below, &n_todo);
      break;
    }
  }
  return n_found;
}

static uint32_t hash_list(const int32_t *list, int n) {
  uint32_t h = 11;
  for (int i = 0; i < n; i++) h = mix(h, list[i]);
  return h;
}

static uint32_t hash_state(const store *s, int32_t i) { return hash_list(s->list + s->state[i].first, s->state[i].n); }

static int by_number(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static bool room_for_state(masks *m, int n) {
  store *s = &m->s;
  size_t classes = (size_t)m->rules.classes;
  if (s->states == s->state_room) {
    size_t room = s->state_room ? 2 * (size_t)s->state_room : 64;
    if (!grow(m, &s->state, room, sizeof *s->state) || !grow(m, &s->to, room * classes, sizeof *s->to)) return false;
    s->state_room = (int)room;
    s->bytes += room / 2 * (sizeof *s->state + classes * sizeof *s->to);
  }
  if (s->listed + (size_t)n > s->list_room) {
    size_t room = 2 * (s->listed + (size_t)n);
    if (!grow(m, &s->list, room, sizeof *s->list)) return false;
    s->bytes += (room - s->list_room) * sizeof *s->list;
    s->list_room = room;
  }
  return true;
}

/* The state of the n stacks in `found`. */
static int32_t state_of(masks *m, int n) {
  store *s = &m->s;
  if (!n || s->full || m->failure.status) return MASKS_NOWHERE;
  if (n > MASKS_STACKS) {
    m->too_many = true;
    return MASKS_NOWHERE;
  }
  qsort(s->found, (size_t)n, sizeof *s->found, by_number);
  if (!index_room(m, &s->state_index, hash_state) || !room_for_state(m, n)) return MASKS_NOWHERE;
  uint32_t mask = (uint32_t)s->state_index.size - 1, at = hash_list(s->found, n) & mask;
  for (int32_t is; (is = s->state_index.slot[at]) != NONE; at = (at + 1) & mask)
    if (s->state[is].n == n && !memcmp(s->list + s->state[is].first, s->found, (size_t)n * sizeof *s->found)) return is;
  state *new = &s->state[s->states];
  *new = (state){.first = s->listed, .n = n};
  for (int i = 0; i < n; i++) new->ends |= s->frame[s->found[i]].node == 0;
  memcpy(s->list + s->listed, s->found, (size_t)n * sizeof *s->found);
  s->listed += (size_t)n;
  int32_t *to = s->to + (size_t)s->states * (size_t)m->rules.classes;
  for (int c = 0; c < m->rules.classes; c++) to[c] = UNKNOWN;
  s->state_index.used++;
  return s->state_index.slot[at] = s->states++;
}

static int32_t begin_state(masks *m) {
  m->s.round++;
  return state_of(m, reach(m, m->rules.root, NONE, 0));
}

static int32_t step_byte(masks *m, int32_t from, uint8_t byte) {
  store *s = &m->s;
  if (from == MASKS_NOWHERE) return from;
  size_t at = (size_t)from * (size_t)m->rules.classes + m->rules.class_of[byte];
  if (s->to[at] != UNKNOWN) return s->to[at];
  int n = 0, low = 0, high = 255; /* range of bytes that the same nodes take */
  s->round++;
  for (int i = 0; i < s->state[from].n; i++) {
    frame f = s->frame[s->list[s->state[from].first + (size_t)i]];
    const rules_node *node = &m->rules.node[f.node];
    if (node->kind != NODE_BYTES) continue;
    bool takes = node->low <= byte && byte <= node->high;
    int from_here = takes ? node->low : node->high < byte ? node->high + 1 : 0;
    int to_here = takes ? node->high : node->low > byte ? node->low - 1 : 255;
    if (from_here > low) low = from_here;
    if (to_here < high) high = to_here;
    if (takes) n = reach(m, node->next, f.below, n);
  }
  int32_t to = state_of(m, n);
  size_t first = at - m->rules.class_of[byte] + m->rules.class_of[low];
  for (int c = m->rules.class_of[low]; c <= m->rules.class_of[high] && !s->full; c++) s->to[first++] = to;
  return to;
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

int32_t masks_step(masks *m, int32_t from, int32_t token, bool first) {
  const vocabulary_tree *t = vocabulary_of(m->vocabulary, first);
  size_t begin = t->offset[token], end = t->offset[token + 1];
  m->s.full = false;
  if (begin == end) return MASKS_NOWHERE;
  for (size_t i = begin; i < end; i++) from = step_byte(m, from, (uint8_t)t->bytes[i]);
  return from;
}

bool masks_allow(masks *m, int32_t from, int32_t token, bool first) {
  if (from == MASKS_NOWHERE) return false;
  return m->vocabulary->is_end[token] ? m->s.state[from].ends : masks_step(m, from, token, first) != MASKS_NOWHERE;
}

/* The byte that all stacks of a state take next; -1: they differ, or the text may end. */
static int only_byte(const masks *m, int32_t of) {
  const state *s = &m->s.state[of];
  int byte = -1;
  for (int i = 0; i < s->n; i++) {
    const rules_node *node = &m->rules.node[m->s.frame[m->s.list[s->first + (size_t)i]].node];
    if (node->kind != NODE_BYTES || node->low != node->high || (byte >= 0 && byte != node->low)) return -1;
    byte = node->low;
  }
  return byte;
}

int masks_forced(masks *m, int32_t from, char *bytes, int most) {
  int n = 0;
  m->s.full = false;
  for (int byte; n < most && from != MASKS_NOWHERE && (byte = only_byte(m, from)) >= 0; n++) {
    bytes[n] = (char)byte;
    from = step_byte(m, from, (uint8_t)byte);
  }
  return n;
}

static void set(uint64_t *mask, int32_t id) { mask[id / 64] |= UINT64_C(1) << id % 64; }

/* The stack with the repetitions in its upper frames, if enough of their items are left, reset to their first items.
 * Lowers *left to the smallest number of remaining items. */
static int32_t begun_stack(masks *m, int32_t f, int *left) {
  frame up[BEGUN_DEEP];
  int n = 0;
  while (n < BEGUN_DEEP && f != NONE) up[n++] = m->s.frame[f], f = up[n - 1].below;
  while (n-- > 0) {
    const rules_node *node = &m->rules.node[up[n].node];
    if (node->first && node->first != up[n].node && node->left >= BEGUN_LEAST) {
      if (node->left < *left) *left = node->left;
      up[n].node = node->first;
    }
    f = frame_of(m, (frame){up[n].node, f});
    if (f == NONE) break;
  }
  return f;
}

/* The state like this one in which repetitions are at their first items. A text of up to *most bytes is allowed after
 * both states or after neither, since the open item and each remaining item take at least one byte. (Items that may be
 * empty do not matter: a repetition of them can end at once.) The result depends only on this state, so a mask is the
 * same whatever was computed before. MASKS_NOWHERE: there is no room. */
static int32_t begun(masks *m, int32_t from, int *most) {
  int n = 0, left = UINT8_MAX;
  m->s.round++;
  for (int i = 0; i < m->s.state[from].n; i++) {
    int32_t f = begun_stack(m, m->s.list[m->s.state[from].first + (size_t)i], &left);
    if (f == NONE) return MASKS_NOWHERE;
    if (m->s.mark[f] == m->s.round) continue;
    m->s.mark[f] = m->s.round;
    m->s.found[n++] = f;
  }
  *most = left + 1;
  return state_of(m, n);
}

/* Whether a repetition goes on from a state to one like it, with any character of a set: then it allows all short
 * tokens of the set. */
static bool goes_on(masks *m, int32_t from, int32_t to) {
  int most;
  return to != MASKS_NOWHERE && begun(m, to, &most) == from && most >= VOCABULARY_SHORT;
}

/* Finds tokens of a set such that exactly those up to length *length are allowed after a state. NULL: there are
 * none. */
static const alike *alike_behind(masks *m, int32_t from, const vocabulary_nodes *of, int *length) {
  const uniform_states states = {m, step_byte, &m->rules};
  alike_set set;
  if (!uniform_set(&states, from, &set) || m->s.full) return NULL;
  const alike *a = alike_of(m->vocabulary, of, &set);
  if (!a) {
    dt_fail_memory(&m->failure, "the masks of a grammar", words(m) * VOCABULARY_SHORT * sizeof(uint64_t));
    return NULL;
  }
  *length = of->above;
  for (int32_t at = from, to; *length < a->longest; ++*length, at = to) {
    if (!uniform_leads(&states, at, &set, &to)) return NULL;
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
    int32_t to = m->path[n->depth] = step_byte(m, m->path[n->depth - 1], n->byte);
    if (to == MASKS_NOWHERE) {
      if (m->s.full || m->failure.status) return false;
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
  int32_t like = begun(m, from, &most);
  if (like != MASKS_NOWHERE && like != from) {
    known = most + of->above < VOCABULARY_SHORT ? most + of->above : VOCABULARY_SHORT;
    add_mask(m, mask_of(m, like, which), v->up_to + (size_t)known * words(m), mask);
  }
  const alike *a = known < VOCABULARY_SHORT && !m->s.full ? alike_behind(m, from, of, &length) : NULL;
  if (m->s.full || m->failure.status) return false;
  if (!a) return walk(m, from, of, v->later.twin, known, mask);
  add_mask(m, a->up_to + (size_t)length * words(m), NULL, mask);
  return walk(m, from, &a->rest, v->later.twin, known, mask);
}

static bool add_spaced(masks *m, int32_t from, uint64_t *mask) {
  int32_t spaced = m->vocabulary->spaced.n ? step_byte(m, from, ' ') : MASKS_NOWHERE;
  add_mask(m, mask_of(m, spaced, SPACED), NULL, mask);
  return !m->s.full && !m->failure.status;
}

static void add_ends(const masks *m, uint64_t *mask) {
  const uint8_t *is_end = m->vocabulary->is_end, *all = is_end + m->vocabulary->ids;
  for (const uint8_t *at = is_end; (at = memchr(at, 1, (size_t)(all - at))); at++) set(mask, (int32_t)(at - is_end));
}

static bool fill(masks *m, int32_t from, int which, uint64_t *mask) {
  const vocabulary_tree *first = &m->vocabulary->first;
  if (which != SPACED && m->s.state[from].ends) add_ends(m, mask);
  if (which == FIRST) return walk(m, from, &first->nodes, first->twin, 0, mask);
  return add_tree(m, from, which, mask) && (which == SPACED || add_spaced(m, from, mask));
}

/* A mask of a state, computed when it is first needed. It is empty if no token is allowed or there is no room for
 * it. */
static const uint64_t *mask_of(masks *m, int32_t of, int which) {
  if (of == MASKS_NOWHERE) return m->nothing;
  uint64_t *mask = m->s.state[of].mask[which];
  if (mask) return mask;
  if (!grow(m, &mask, words(m), sizeof *mask)) return m->nothing;
  memset(mask, 0, words(m) * sizeof *mask);
  if (!fill(m, of, which, mask)) {
    free(mask);
    return m->nothing;
  }
  m->s.bytes += words(m) * sizeof *mask;
  return m->s.state[of].mask[which] = mask;
}

static int kind_of(const masks *m, bool first) { return first && m->vocabulary->differ ? FIRST : LATER; }

const uint64_t *masks_of(masks *m, int32_t of, bool first) {
  m->s.full = false;
  return mask_of(m, of, kind_of(m, first));
}

dt_status masks_failure(const masks *m, dt_error *err) {
  return m->failure.status ? dt_fail(err, m->failure.status, "%s", m->failure.message) : DT_OK;
}

dt_status masks_are_stuck(const masks *m, dt_error *err) {
  if (m->failure.status) return masks_failure(m, err);
  if (m->too_many)
    return dt_fail(err, DT_EINPUT,
                   "grammar: a text can be read in more than %d ways: let fewer rules match the same text",
                   MASKS_STACKS);
  return dt_fail(
      err, DT_EINPUT,
      "grammar: no token can follow the text: none in the vocabulary matches, or logit_bias bans every one that "
      "does");
}

/* ---- from store to store ----------------------------------------------------------------------------------------- */

/* Copies n states of another store to the present one, whatever room they need. */
static void bring(masks *m, const store *old, int32_t *of, int n) {
  int32_t *brought = calloc((size_t)old->frames + 1, sizeof *brought); /* whether a frame is wanted; then its number */
  size_t most = m->most;
  if (!brought) dt_fail_memory(&m->failure, "the states of a grammar", (size_t)old->frames * sizeof *brought);
  m->most = SIZE_MAX, m->s.full = false;
  for (int k = 0; k < n && brought; k++)
    for (int i = 0; of[k] >= 0 && i < old->state[of[k]].n; i++)
      brought[old->list[old->state[of[k]].first + (size_t)i]] = 1;
  for (int32_t i = old->frames - 1; i >= 0 && brought; i--)
    if (brought[i] && old->frame[i].below != NONE) brought[old->frame[i].below] = 1;
  for (int32_t i = 0; i < old->frames && brought; i++) { /* a frame comes after the one below it */
    frame f = old->frame[i];
    if (brought[i]) brought[i] = frame_of(m, (frame){f.node, f.below == NONE ? NONE : brought[f.below]});
  }
  for (int k = 0; k < n; k++) {
    if (of[k] < 0) continue;
    const state *was = &old->state[of[k]];
    int found = 0; /* all, unless memory has ended */
    for (; found < was->n && m->s.found && !m->failure.status; found++)
      m->s.found[found] = brought[old->list[was->first + (size_t)found]];
    of[k] = state_of(m, found);
  }
  m->most = most;
  free(brought);
}

/* Returns the store with all states, and begins a new one that has only one of them. The memory that a text needs is
 * therefore measured in the same way, whatever was computed before. */
static store set_aside(masks *m, int32_t *but) {
  store all = m->s;
  m->s = (store){0};
  bring(m, &all, but, 1);
  return all;
}

static void take_back(masks *m, store all, int32_t *of) {
  store alone = m->s;
  if (alone.full)
    dt_fail(&m->failure, DT_EINPUT, "grammar: its states need more than %zu MiB: let fewer rules match the same text",
            m->most >> 20);
  m->s = all;
  bring(m, &alone, of, 1);
  close_store(&alone);
}

static void tidy(masks *m) {
  if (m->s.bytes < m->most / 2) return;
  store old = m->s;
  m->s = (store){0};
  bring(m, &old, m->live, m->places);
  close_store(&old);
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
  m->s.full = false;
  m->live[place] = begin_state(m);
  if (m->s.full) {
    int32_t none = MASKS_NOWHERE;
    store all = set_aside(m, &none);
    m->live[place] = begin_state(m);
    take_back(m, all, &m->live[place]);
  }
  return place;
}

void masks_leave(masks *m, int place) { m->live[place] = FREE; }
int32_t masks_state(const masks *m, int place) { return m->live[place]; }

void masks_take(masks *m, int place, int32_t token, bool first) {
  int32_t from = m->live[place];
  m->live[place] = masks_step(m, from, token, first);
  if (m->s.full) {
    store all = set_aside(m, &from);
    m->live[place] = masks_step(m, from, token, first);
    take_back(m, all, &m->live[place]);
  }
  tidy(m);
}

const uint64_t *masks_of_text(masks *m, int place, bool first) {
  const uint64_t *mask = masks_of(m, m->live[place], first);
  if (!m->s.full) return mask;
  int32_t at = m->live[place], none = MASKS_NOWHERE;
  int which = kind_of(m, first);
  store all = set_aside(m, &at);
  if (at >= 0) masks_of(m, at, first);
  uint64_t **alone = at >= 0 ? &m->s.state[at].mask[which] : NULL, *kept = alone ? *alone : NULL;
  if (alone) *alone = NULL;
  take_back(m, all, &none);
  if (!kept) return m->nothing;
  m->s.bytes += words(m) * sizeof *kept;
  return m->s.state[m->live[place]].mask[which] = kept;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

dt_status masks_open(const vocabulary *v, const char *gbnf, masks **out, dt_error *err) {
  masks *m = calloc(1, sizeof *m);
  if (!m) return dt_fail_memory(err, "a grammar", sizeof *m);
  m->users = 1;
  m->vocabulary = v;
  m->most = MOST;
  int deepest = v->first.deepest > v->later.deepest ? v->first.deepest : v->later.deepest;
  m->nothing = calloc(words(m) + 1, sizeof *m->nothing);
  m->path = malloc(((size_t)deepest + 1) * sizeof *m->path);
  m->grammar = strdup(gbnf);
  dt_status status = m->nothing && m->path && m->grammar ? gbnf_read(gbnf, strlen(gbnf), &m->rules, err)
                                                         : dt_fail_memory(err, "a grammar", words(m) * 8);
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
  close_store(&m->s);
  rules_free(&m->rules);
  free(m->grammar), free(m->nothing), free(m->path), free(m->live);
  free(m);
}

void masks_limit(masks *m, size_t most) { m->most = most; }
const char *masks_grammar(const masks *m) { return m->grammar; }

size_t masks_bytes(const masks *m) {
  return m->s.bytes + (size_t)m->rules.capacity * sizeof *m->rules.node + strlen(m->grammar);
}
