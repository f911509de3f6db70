/* The rules of a grammar over bytes, as nodes of a graph. A rule begins at a node; a path through it takes bytes, calls
 * other rules and ends at a node that returns. A reader (gbnf.h) builds the rules; rules_finish makes them final.
 *
 *   NODE_END     the text may end here; node 0 only
 *   NODE_EMPTY   continues at `next`
 *   NODE_SPLIT   continues at `next` or at `other`
 *   NODE_BYTES   takes a byte from `low` to `high`, then continues at `next`
 *   NODE_CALL    runs the rule that begins at `other`, then continues at `next`; RULES_TAIL: the caller then returns
 *   NODE_RETURN  continues after the call
 *
 * A grammar can demand a token of the vocabulary, whatever its text is. Such a token is three bytes: RULES_TOKEN, which
 * no text contains, and its index in `token` as two bytes of 7 bits, with the upper bit set.
 *
 * The nodes before the items of a repetition differ only in how many items must or may still follow. Each of them names
 * the `first` node of its kind, and how many items are `left` from it on. */
#ifndef DT_RULES_H
#define DT_RULES_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_NODES (1 << 18) /* maximum number of nodes, without node 0: 4 MiB */
#define RULES_TAIL (-1)
#define RULES_TOKEN 0xFF
#define RULES_TOKENS (1 << 14) /* maximum number of different tokens */

typedef enum { NODE_END, NODE_EMPTY, NODE_SPLIT, NODE_BYTES, NODE_CALL, NODE_RETURN } node_kind;

typedef struct {
  uint8_t kind, low, high;
  uint8_t left;        /* remaining items of a repetition; 255: 255 or more */
  int32_t next, other; /* 0: not known yet */
  int32_t first;       /* in a repetition: its first node of this kind; 0: not in a repetition */
} rules_node;

/* A token by its id, or by its text if that is not NULL. */
typedef struct {
  int32_t id;
  char *text;
} rules_named;

typedef struct {
  rules_node *node; /* [n] */
  int n, capacity;
  bool full, no_memory; /* a node could not be added: there are RULES_NODES, or out of memory */
  rules_named *token;   /* [tokens] */
  int tokens;
  int32_t root;
  int classes;                         /* number of classes of bytes that no node distinguishes */
  uint8_t class_of[256], byte_of[256]; /* byte_of: one byte of each class */
} rules;

/* A path from a node to a node whose `next` is not known yet. */
typedef struct {
  int32_t first, last;
} rules_way;

typedef struct {
  int32_t low, high; /* code points, both included */
} rules_range;

static inline bool rules_have_room(const rules *r) { return !r->full && !r->no_memory; }
/* Adds a node and returns its number; 0: there is no room. The caller may then go on and change node 0, since
 * rules_finish reports the failure. */
int32_t rules_add(rules *r, rules_node node);
void rules_free(rules *r); /* zeros are allowed */

/* One character of n ranges, which it sorts and joins. others: one character outside of them. The result's `last` is 0
 * if there is no such character. Surrogates are not characters. */
rules_way rules_character(rules *r, rules_range *range, int n, bool others);
rules_way rules_text(rules *r, const char *bytes, size_t len);
/* The token with this id, or with this text unless it is NULL. */
rules_way rules_token(rules *r, int32_t id, const char *text, size_t len);
rules_way rules_join(rules *r, rules_way a, rules_way b);   /* a, then b */
rules_way rules_either(rules *r, rules_way a, rules_way b); /* a or b */
/* a, from `least` to `most` times; most = -1: without a limit. */
rules_way rules_repeat(rules *r, rules_way a, int least, int most);

/* Makes the rules final. name(of, node) returns the name of the rule that begins at a node, or NULL. DT_EINPUT: there
 * are too many nodes, or a rule is left-recursive (it begins with itself), which cannot be followed from left to
 * right. */
dt_status rules_finish(rules *r, const char *(*name)(const void *of, int32_t node), const void *of, dt_error *err);

#endif
