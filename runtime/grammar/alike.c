/* Splits a vocabulary's tree: see alike.h. */
#include "grammar/alike.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64, MOST_BYTES = 64 << 20 }; /* of a list: entries, and their memory */

struct alike_list {
  alike *entry[MOST];
  int n;
  size_t bytes;
  uint64_t uses;
};

const alike_wide alike_wides[ALIKE_WIDE] = {
    {0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1}, {0xED, 0xED, 0x80, 0x9F, 1},
    {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2}, {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2}};

alike_set alike_json(void) {
  alike_set set = {.wide = true};
  for (int b = ' '; b < 0x7F; b++) set.has[b] = b != '"' && b != '\\';
  return set;
}

/* ---- parting a tree ---------------------------------------------------------------------------------------------- */

/* Where the text of a node is within its last character. */
typedef struct {
  uint8_t low, high; /* range of the next byte, if the character has more */
  uint8_t more;      /* number of bytes that the character still has */
  uint8_t length;    /* number of characters begun, and of bytes above the tree */
} spot;

/* Whether a node's byte continues the text above it with characters of the set; *to: where it then is. */
static bool continues(const alike_set *set, const vocabulary_node *n, const spot *above, spot *to) {
  if (n->depth > VOCABULARY_SHORT) return false;
  *to = (spot){.length = above->length, .low = 0x80, .high = 0xBF};
  if (above->more) {
    to->more = above->more - 1;
    return above->low <= n->byte && n->byte <= above->high;
  }
  to->length++;
  if (n->byte < ALIKE_BYTES) return set->has[n->byte];
  for (int i = 0; i < ALIKE_WIDE && set->wide; i++) {
    const alike_wide *w = &alike_wides[i];
    if (n->byte < w->low || n->byte > w->high) continue;
    to->low = w->second_low, to->high = w->second_high, to->more = w->more + 1;
    return true;
  }
  return false;
}

static void set_length(const vocabulary *v, uint64_t *mask, int32_t id) {
  for (; id >= 0; id = v->later.twin[id]) mask[id / 64] |= UINT64_C(1) << id % 64;
}

/* A tree that is being parted: the way to the node, of which the nodes down to depth `copied` are in the rest. */
typedef struct {
  alike *a;
  const vocabulary *v;
  int32_t path[VOCABULARY_SHORT + 2]; /* nodes of the tree, or of the rest if they are in it */
  spot spot[VOCABULARY_SHORT + 2];
  int copied;
} parting;

/* Ends the nodes of the rest that are not above a depth. */
static void leave(parting *p, int depth) {
  for (; p->copied >= depth; p->copied--) p->a->rest.node[p->path[p->copied]].skip = p->a->rest.n;
}

static void copy_way(parting *p, int depth) {
  vocabulary_nodes *rest = &p->a->rest;
  while (p->copied < depth) {
    rest->node[rest->n] = p->a->of->node[p->path[++p->copied]];
    p->path[p->copied] = rest->n++;
  }
}

/* Copies a node and all below it. */
static void copy_below(parting *p, int i) {
  vocabulary_nodes *rest = &p->a->rest;
  const vocabulary_node *from = p->a->of->node;
  int end = from[i].skip, move = rest->n - i;
  for (; i < end; i++) {
    rest->node[rest->n] = from[i];
    rest->node[rest->n++].skip += move;
  }
}

/* Sets bits of tokens of each length, and copies the nodes of others and those on the way to them. */
static void part(parting *p) {
  alike *a = p->a;
  const vocabulary_nodes *of = a->of;
  p->copied = of->above;
  p->spot[of->above] = (spot){.length = (uint8_t)of->above};
  for (int i = 0; i < of->n;) {
    const vocabulary_node *n = &of->node[i];
    int depth = n->depth;
    leave(p, depth);
    if (!continues(&a->set, n, &p->spot[depth - 1], &p->spot[depth])) {
      copy_way(p, depth - 1);
      copy_below(p, i);
      i = n->skip;
      continue;
    }
    p->path[depth] = i++;
    if (n->token < 0) continue;
    const spot *at = &p->spot[depth];
    if (at->more) { /* it ends within a character */
      copy_way(p, depth);
      continue;
    }
    set_length(p->v, a->up_to + (size_t)at->length * vocabulary_words(p->v), n->token);
    if (at->length > a->longest) a->longest = at->length;
  }
  leave(p, of->above + 1);
}

static void close_entry(alike *a) {
  if (!a) return;
  free(a->up_to), free(a->rest.node);
  free(a);
}

/* Returns memory that is not needed. */
static void fit(alike *a, size_t words) {
  size_t masks = ((size_t)a->longest + 1) * words * sizeof *a->up_to;
  size_t nodes = ((size_t)a->rest.n + 1) * sizeof *a->rest.node;
  uint64_t *up_to = realloc(a->up_to, masks);
  vocabulary_node *node = realloc(a->rest.node, nodes);
  if (up_to) a->up_to = up_to;
  if (node) a->rest.node = node;
  a->bytes = sizeof *a + masks + nodes;
}

static alike *open_entry(const vocabulary *v, const vocabulary_nodes *of, const alike_set *set) {
  size_t words = vocabulary_words(v);
  alike *a = malloc(sizeof *a);
  if (!a) return NULL;
  *a = (alike){.of = of,
               .set = *set,
               .longest = of->above,
               .up_to = calloc((VOCABULARY_SHORT + 1) * words + 1, sizeof *a->up_to),
               .rest = {.node = malloc(((size_t)of->n + 1) * sizeof *of->node), .above = of->above}};
  if (!a->up_to || !a->rest.node) {
    close_entry(a);
    return NULL;
  }
  part(&(parting){.a = a, .v = v});
  vocabulary_set_deepest(&a->rest);
  for (size_t i = words; i < ((size_t)a->longest + 1) * words; i++) a->up_to[i] |= a->up_to[i - words];
  fit(a, words);
  return a;
}

/* ---- the list of a vocabulary ------------------------------------------------------------------------------------ */

static bool is_equal(const alike_set *a, const alike_set *b) {
  return a->wide == b->wide && !memcmp(a->has, b->has, sizeof a->has);
}

static void drop_oldest(alike_list *list) {
  int oldest = 0;
  for (int i = 1; i < list->n; i++)
    if (list->entry[i]->used < list->entry[oldest]->used) oldest = i;
  list->bytes -= list->entry[oldest]->bytes;
  close_entry(list->entry[oldest]);
  list->entry[oldest] = list->entry[--list->n];
}

static alike *find(alike_list *list, const vocabulary *v, const vocabulary_nodes *of, const alike_set *set) {
  for (int i = 0; i < list->n; i++)
    if (list->entry[i]->of == of && is_equal(&list->entry[i]->set, set)) return list->entry[i];
  alike *new = open_entry(v, of, set);
  if (!new) return NULL;
  while (list->n == MOST || (list->n && list->bytes + new->bytes > MOST_BYTES)) drop_oldest(list);
  list->bytes += new->bytes;
  return list->entry[list->n++] = new;
}

const alike *alike_of(const vocabulary *v, const vocabulary_nodes *of, const alike_set *set) {
  alike *a = find(v->alikes, v, of, set);
  if (a) a->used = ++v->alikes->uses;
  return a;
}

alike_list *alike_open(const vocabulary *v) {
  alike_list *list = calloc(1, sizeof *list);
  const alike_set json = alike_json();
  if (list && find(list, v, &v->later.nodes, &json) && find(list, v, &v->spaced, &json)) return list;
  alike_close(list);
  return NULL;
}

void alike_close(alike_list *list) {
  for (int i = 0; list && i < list->n; i++) close_entry(list->entry[i]);
  free(list);
}
