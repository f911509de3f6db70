/* The states of a grammar: see states.h. */
#include "grammar/states.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, UNKNOWN = -2 };
enum { BEGUN_LEAST = 4, BEGUN_DEEP = 8 }; /* items left of a repetition, frames of a stack: see states_begun */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

bool states_grow(states *a, void *list, size_t n, size_t size) {
  void *old, *grown;
  memcpy(&old, list, sizeof old);
  a->s.full = a->s.full || a->s.bytes > a->most;
  if (a->s.full) return false;
  grown = realloc(old, n * size);
  if (grown)
    memcpy(list, &grown, sizeof grown);
  else
    dt_fail_memory(&a->failure, "the states of a grammar", n * size);
  return grown != NULL;
}

void states_close(states_store *s) {
  for (int i = 0; i < s->states; i++)
    for (int of = 0; of < MASKS; of++) free(s->state[i].mask[of]);
  free(s->frame), free(s->mark), free(s->state), free(s->to), free(s->list), free(s->todo), free(s->found);
  free(s->frame_index.slot), free(s->state_index.slot);
  *s = (states_store){0};
}

static uint32_t mix(uint32_t h, int32_t x) {
  h = (h ^ (uint32_t)x) * 0x9E3779B1u;
  return h ^ h >> 15;
}

/* Makes room in a table for one more. hash_of gives the hash of what is there already. */
static bool index_room(states *a, states_table *t, uint32_t (*hash_of)(const states_store *, int32_t)) {
  if (2 * (t->used + 1) < t->size) return true;
  int size = t->size ? 2 * t->size : 256;
  int32_t *slot = NULL;
  if (!states_grow(a, &slot, (size_t)size, sizeof *slot)) return false;
  memset(slot, 0xff, (size_t)size * sizeof *slot);
  for (int i = 0; i < t->used; i++) { /* the first `used` numbers are in it */
    uint32_t at = hash_of(&a->s, i) & (uint32_t)(size - 1);
    while (slot[at] != NONE) at = (at + 1) & (uint32_t)(size - 1);
    slot[at] = i;
  }
  free(t->slot);
  t->slot = slot, t->size = size;
  a->s.bytes += (size_t)size * sizeof *slot / 2;
  return true;
}

/* ---- frames and states ------------------------------------------------------------------------------------------- */

static uint32_t hash_frame(const states_store *s, int32_t i) {
  return mix(mix(7, s->frame[i].node), s->frame[i].below);
}

/* The number of a frame; NONE: no room. */
static int32_t frame_of(states *a, states_frame f) {
  states_store *s = &a->s;
  if (!index_room(a, &s->frame_index, hash_frame)) return NONE;
  uint32_t mask = (uint32_t)s->frame_index.size - 1, at = mix(mix(7, f.node), f.below) & mask;
  for (int32_t is; s->frames && (is = s->frame_index.slot[at]) != NONE; at = (at + 1) & mask)
    if (s->frame[is].node == f.node && s->frame[is].below == f.below) return is;
  if (s->frames == s->frame_room) {
    size_t room = s->frame_room ? 2 * (size_t)s->frame_room : 256;
    if (!states_grow(a, &s->frame, room, sizeof *s->frame) || !states_grow(a, &s->mark, room, sizeof *s->mark) ||
        !states_grow(a, &s->todo, room, sizeof *s->todo) || !states_grow(a, &s->found, room, sizeof *s->found))
      return NONE;
    s->frame_room = (int)room;
    s->bytes += room / 2 * (sizeof *s->frame + 3 * sizeof *s->mark);
  }
  s->frame[s->frames] = f;
  s->mark[s->frames] = 0;
  s->frame_index.used++;
  return s->frame_index.slot[at] = s->frames++;
}

static void push(states *a, int32_t node, int32_t below, int *n_todo) {
  int32_t f = frame_of(a, (states_frame){node, below});
  if (f == NONE || a->s.mark[f] == a->s.round) return;
  a->s.mark[f] = a->s.round;
  a->s.todo[(*n_todo)++] = f;
}

/* Adds to `found` all stacks that can be reached from a node (above the frames below it) before the next byte. It stops
 * early if there are more than a state may have. */
static int reach(states *a, int32_t node, int32_t below, int n_found) {
  int n_todo = 0;
  push(a, node, below, &n_todo);
  while (n_todo && n_found <= STATES_STACKS) {
    int32_t at = a->s.todo[--n_todo];
    states_frame f = a->s.frame[at];
    const rules_node *n = &a->rules.node[f.node];
    switch ((node_kind)n->kind) {
    case NODE_END:
    case NODE_BYTES: a->s.found[n_found++] = at; break;
    case NODE_EMPTY: break; /* none is left: rules_finish */
    case NODE_SPLIT:
      push(a, n->next, f.below, &n_todo);
      push(a, n->other, f.below, &n_todo);
      break;
    case NODE_CALL: {
      int32_t back = n->next == RULES_TAIL ? f.below : frame_of(a, (states_frame){n->next, f.below});
      if (n->next == RULES_TAIL || back != NONE) push(a, n->other, back, &n_todo);
      break;
    }
    case NODE_RETURN:
      if (f.below == NONE)
        push(a, 0, NONE, &n_todo);
      else
        push(a, a->s.frame[f.below].node, a->s.frame[f.below].below, &n_todo);
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

static uint32_t hash_state(const states_store *s, int32_t i) {
  return hash_list(s->list + s->state[i].first, s->state[i].n);
}

static int by_number(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static bool room_for_state(states *a, int n) {
  states_store *s = &a->s;
  size_t classes = (size_t)a->rules.classes;
  if (s->states == s->state_room) {
    size_t room = s->state_room ? 2 * (size_t)s->state_room : 64;
    if (!states_grow(a, &s->state, room, sizeof *s->state) || !states_grow(a, &s->to, room * classes, sizeof *s->to))
      return false;
    s->state_room = (int)room;
    s->bytes += room / 2 * (sizeof *s->state + classes * sizeof *s->to);
  }
  if (s->listed + (size_t)n > s->list_room) {
    size_t room = 2 * (s->listed + (size_t)n);
    if (!states_grow(a, &s->list, room, sizeof *s->list)) return false;
    s->bytes += (room - s->list_room) * sizeof *s->list;
    s->list_room = room;
  }
  return true;
}

/* The state of the n stacks in `found`. */
static int32_t state_of(states *a, int n) {
  states_store *s = &a->s;
  if (!n || s->full || a->failure.status) return STATES_NOWHERE;
  if (n > STATES_STACKS) {
    a->too_many = true;
    return STATES_NOWHERE;
  }
  qsort(s->found, (size_t)n, sizeof *s->found, by_number);
  if (!index_room(a, &s->state_index, hash_state) || !room_for_state(a, n)) return STATES_NOWHERE;
  uint32_t mask = (uint32_t)s->state_index.size - 1, at = hash_list(s->found, n) & mask;
  for (int32_t is; (is = s->state_index.slot[at]) != NONE; at = (at + 1) & mask)
    if (s->state[is].n == n && !memcmp(s->list + s->state[is].first, s->found, (size_t)n * sizeof *s->found)) return is;
  states_one *new = &s->state[s->states];
  *new = (states_one){.first = s->listed, .n = n};
  for (int i = 0; i < n; i++) new->ends |= s->frame[s->found[i]].node == 0;
  memcpy(s->list + s->listed, s->found, (size_t)n * sizeof *s->found);
  s->listed += (size_t)n;
  int32_t *to = s->to + (size_t)s->states * (size_t)a->rules.classes;
  for (int c = 0; c < a->rules.classes; c++) to[c] = UNKNOWN;
  s->state_index.used++;
  return s->state_index.slot[at] = s->states++;
}

int32_t states_begin(states *a) {
  a->s.round++;
  return state_of(a, reach(a, a->rules.root, NONE, 0));
}

int32_t states_step(states *a, int32_t from, uint8_t byte) {
  states_store *s = &a->s;
  if (from == STATES_NOWHERE) return from;
  size_t at = (size_t)from * (size_t)a->rules.classes + a->rules.class_of[byte];
  if (s->to[at] != UNKNOWN) return s->to[at];
  int n = 0, low = 0, high = 255; /* range of bytes that the same nodes take */
  s->round++;
  for (int i = 0; i < s->state[from].n; i++) {
    states_frame f = s->frame[s->list[s->state[from].first + (size_t)i]];
    const rules_node *node = &a->rules.node[f.node];
    if (node->kind != NODE_BYTES) continue;
    bool takes = node->low <= byte && byte <= node->high;
    int from_here = takes ? node->low : node->high < byte ? node->high + 1 : 0;
    int to_here = takes ? node->high : node->low > byte ? node->low - 1 : 255;
    if (from_here > low) low = from_here;
    if (to_here < high) high = to_here;
    if (takes) n = reach(a, node->next, f.below, n);
  }
  int32_t to = state_of(a, n);
  size_t first = at - a->rules.class_of[byte] + a->rules.class_of[low];
  for (int c = a->rules.class_of[low]; c <= a->rules.class_of[high] && !s->full; c++) s->to[first++] = to;
  return to;
}

int32_t states_either(states *a, int32_t one, int32_t other) {
  const int32_t both[] = {one, other};
  int n = 0;
  if (one == STATES_NOWHERE || one == other) return other;
  if (other == STATES_NOWHERE) return one;
  a->s.round++;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < a->s.state[both[k]].n && n <= STATES_STACKS; i++) {
      const int32_t f = a->s.list[a->s.state[both[k]].first + (size_t)i];
      if (a->s.mark[f] == a->s.round) continue;
      a->s.mark[f] = a->s.round;
      a->s.found[n++] = f;
    }
  return state_of(a, n);
}

int states_only_byte(const states *a, int32_t of) {
  const states_one *s = &a->s.state[of];
  int byte = -1;
  for (int i = 0; i < s->n; i++) {
    const rules_node *node = &a->rules.node[a->s.frame[a->s.list[s->first + (size_t)i]].node];
    if (node->kind != NODE_BYTES || node->low != node->high || (byte >= 0 && byte != node->low)) return -1;
    byte = node->low;
  }
  return byte;
}

/* The stack with the repetitions in its upper frames, if enough of their items are left, reset to their first items.
 * Lowers *left to the smallest number of remaining items. */
static int32_t begun_stack(states *a, int32_t f, int *left) {
  states_frame up[BEGUN_DEEP];
  int n = 0;
  while (n < BEGUN_DEEP && f != NONE) up[n++] = a->s.frame[f], f = up[n - 1].below;
  while (n-- > 0) {
    const rules_node *node = &a->rules.node[up[n].node];
    if (node->first && node->first != up[n].node && node->left >= BEGUN_LEAST) {
      if (node->left < *left) *left = node->left;
      up[n].node = node->first;
    }
    f = frame_of(a, (states_frame){up[n].node, f});
    if (f == NONE) break;
  }
  return f;
}

int32_t states_begun(states *a, int32_t from, int *most) {
  int n = 0, left = UINT8_MAX;
  a->s.round++;
  for (int i = 0; i < a->s.state[from].n; i++) {
    int32_t f = begun_stack(a, a->s.list[a->s.state[from].first + (size_t)i], &left);
    if (f == NONE) return STATES_NOWHERE;
    if (a->s.mark[f] == a->s.round) continue;
    a->s.mark[f] = a->s.round;
    a->s.found[n++] = f;
  }
  *most = left + 1;
  return state_of(a, n);
}

/* ---- from store to store ----------------------------------------------------------------------------------------- */

void states_bring(states *a, const states_store *old, int32_t *of, int n) {
  int32_t *brought = calloc((size_t)old->frames + 1, sizeof *brought); /* whether a frame is wanted; then its number */
  size_t most = a->most;
  if (!brought) dt_fail_memory(&a->failure, "the states of a grammar", (size_t)old->frames * sizeof *brought);
  a->most = SIZE_MAX, a->s.full = false;
  for (int k = 0; k < n && brought; k++)
    for (int i = 0; of[k] >= 0 && i < old->state[of[k]].n; i++)
      brought[old->list[old->state[of[k]].first + (size_t)i]] = 1;
  for (int32_t i = old->frames - 1; i >= 0 && brought; i--)
    if (brought[i] && old->frame[i].below != NONE) brought[old->frame[i].below] = 1;
  for (int32_t i = 0; i < old->frames && brought; i++) { /* a frame comes after the one below it */
    states_frame f = old->frame[i];
    if (brought[i]) brought[i] = frame_of(a, (states_frame){f.node, f.below == NONE ? NONE : brought[f.below]});
  }
  for (int k = 0; k < n; k++) {
    if (of[k] < 0) continue;
    const states_one *was = &old->state[of[k]];
    int found = 0; /* all, unless memory has ended */
    for (; found < was->n && a->s.found && !a->failure.status; found++)
      a->s.found[found] = brought[old->list[was->first + (size_t)found]];
    of[k] = state_of(a, found);
  }
  a->most = most;
  free(brought);
}
