/* The texts of a vocabulary's tokens as a tree of bytes, so that tokens which begin alike are looked at together. */
#ifndef DT_VOCABULARY_H
#define DT_VOCABULARY_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VOCABULARY_SHORT 32 /* bytes of a short text, at most */

/* A node of the tree, in preorder: all nodes below it come before node `skip`. */
typedef struct {
  int32_t skip, token; /* token: the first with this text, -1: none */
  uint16_t depth;      /* bytes of the text */
  uint16_t deepest;    /* of this node and those below it */
  uint8_t byte;        /* the last of them */
} vocabulary_node;

typedef struct {
  vocabulary_node *node; /* [n] */
  int n, above;          /* above: the depth of what the first nodes are below */
} vocabulary_nodes;

typedef struct {
  vocabulary_nodes nodes;
  int deepest;
  int32_t *twin;  /* [ids] the next token with the same text, or -1 */
  char *bytes;    /* of all tokens */
  size_t *offset; /* [ids + 1] */
} vocabulary_tree;

/* Of the first token of a text the tokenizer may leave out a space. The nodes below the space are not in `later` but in
 * `spaced`, since a grammar often goes on alike after a space wherever it comes. */
typedef struct {
  int ids;
  vocabulary_tree later, first;
  vocabulary_nodes spaced;
  bool differ;     /* `first` is not used unless they do */
  uint64_t *up_to; /* [VOCABULARY_SHORT + 1][words] bits of the ids whose later text has 1 to so many bytes */
  uint8_t *is_end; /* [ids] the token ends a text: it has no text here */
} vocabulary;

/* Words that hold a bit for each id. */
static inline size_t vocabulary_words(const vocabulary *v) { return ((size_t)v->ids + 63) / 64; }

/* The text of a token, which may be in `buffer`. */
typedef const char *vocabulary_text(const void *of, int32_t id, bool first, char buffer[16], size_t *len);

dt_status vocabulary_open(int ids, vocabulary_text *text, const void *of, const int32_t *ends, int n_ends,
                          vocabulary **out, dt_error *err);
void vocabulary_close(vocabulary *v); /* NULL is allowed */

void vocabulary_set_deepest(vocabulary_nodes *of);

static inline const vocabulary_tree *vocabulary_of(const vocabulary *v, bool first) {
  return first && v->differ ? &v->first : &v->later;
}

#endif
