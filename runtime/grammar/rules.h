/* The rules of a grammar over bytes, as nodes of a graph. A rule begins at a node; a way through it takes bytes, calls
 * other rules and ends at a node that returns. Built by a reader (gbnf.h), then fixed.
 *
 *   NODE_END     the text may end here; node 0 only
 *   NODE_EMPTY   goes on at `next`
 *   NODE_SPLIT   goes on at `next` or at `other`
 *   NODE_BYTES   takes a byte from `low` to `high`, then goes on at `next`
 *   NODE_CALL    goes through the rule that begins at `other`, then on at `next`; RULES_TAIL: the caller returns then
 *   NODE_RETURN  goes on behind the call
 *
 * The nodes before the items of a repetition differ in the number of items only that must follow, or may: each has the
 * first of those like itself, and how many items are left from it on. */
#ifndef DT_RULES_H
#define DT_RULES_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_NODES (1 << 18) /* at most, node 0 not counted: 4 MiB */
#define RULES_TAIL (-1)

typedef enum { NODE_END, NODE_EMPTY, NODE_SPLIT, NODE_BYTES, NODE_CALL, NODE_RETURN } node_kind;

typedef struct {
  uint8_t kind, low, high;
  uint8_t left;        /* items of a repetition; 255: so many or more */
  int32_t next, other; /* 0: not known yet */
  int32_t first;       /* of a repetition's nodes; 0: it is none of them */
} rules_node;

typedef struct {
  rules_node *node; /* [n] */
  int n, capacity;
  bool full, no_memory; /* a node had no place: RULES_NODES are there, or memory has ended */
  int32_t root;
  int classes;                         /* of bytes that no node tells apart */
  uint8_t class_of[256], byte_of[256]; /* byte_of: one of each class */
} rules;

/* A way from a node to a node whose `next` is not known yet. */
typedef struct {
  int32_t first, last;
} rules_way;

typedef struct {
  int32_t low, high; /* code points, both included */
} rules_range;

static inline bool rules_have_room(const rules *r) { return !r->full && !r->no_memory; }
/* A new node; 0: there is no room for it. Node 0 may then be changed: rules_finish gives the failure. */
int32_t rules_add(rules *r, rules_node node);
void rules_free(rules *r); /* zeros are allowed */

/* One character of n ranges; sorts them and joins those that touch. `others`: one of all others. last 0: there is none.
 * Surrogates are no characters. */
rules_way rules_character(rules *r, rules_range *range, int n, bool others);
rules_way rules_text(rules *r, const char *bytes, size_t len);
rules_way rules_join(rules *r, rules_way a, rules_way b);   /* a, then b */
rules_way rules_either(rules *r, rules_way a, rules_way b); /* a or b */
/* From `least` to `most` times; -1: without end. */
rules_way rules_repeat(rules *r, rules_way a, int least, int most);

/* Fixes the rules. `name` gives the name of the rule that begins at a node, or NULL. DT_EINPUT: too many nodes, or a
 * rule that begins with itself, which no reader from left to right can follow. */
dt_status rules_finish(rules *r, const char *(*name)(const void *of, int32_t node), const void *of, dt_error *err);

#endif
