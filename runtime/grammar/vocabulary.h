/* The texts of a vocabulary's tokens as a tree of bytes, so that tokens with the same beginning are examined
 * together. */
#ifndef DT_VOCABULARY_H
#define DT_VOCABULARY_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VOCABULARY_SHORT 32 /* maximum length of a short token in bytes */

/* A node of the tree, in preorder: all nodes below it come before node `skip`. */
typedef struct {
  int32_t skip, token; /* token: the first token with this text, or -1 */
  uint16_t depth;      /* length of the text in bytes */
  uint16_t deepest;    /* the largest depth of this node and those below it */
  uint8_t byte;        /* the last byte of the text */
} vocabulary_node;

typedef struct {
  vocabulary_node *node; /* [n] */
  int n, above;          /* above: the depth of the node above the first ones */
} vocabulary_nodes;

typedef struct {
  vocabulary_nodes nodes;
  int deepest;
  int32_t *twin;  /* [ids] the next token with the same text, or -1 */
  char *bytes;    /* the texts of all tokens */
  size_t *offset; /* [ids + 1] */
} vocabulary_tree;

/* The tokenizer may remove a space from the first token of a text, so there is a tree for first tokens and one for
 * later ones. The nodes below the space are in `spaced` instead of `later`, since after a space a grammar often
 * continues in the same way wherever the space is. */
typedef struct {
  int ids;
  vocabulary_tree later, first;
  vocabulary_nodes spaced;
  bool differ;               /* the trees differ; otherwise `first` is not used */
  uint64_t *up_to;           /* [VOCABULARY_SHORT + 1][words] [i]: bits of the ids whose later text has 1 to i bytes */
  uint8_t *is_end;           /* [ids] the token ends a text, so it has no text here */
  struct alike_list *alikes; /* parts of the trees, found for one grammar and kept for all: alike.h */
} vocabulary;

/* The number of 64-bit words with one bit for each id. */
static inline size_t vocabulary_words(const vocabulary *v) { return ((size_t)v->ids + 63) / 64; }

/* Returns the text of a token; it may be written to `buffer`. */
typedef const char *vocabulary_text(const void *of, int32_t id, bool first, char buffer[16], size_t *len);

dt_status vocabulary_open(int ids, vocabulary_text *text, const void *of, const int32_t *ends, int n_ends,
                          vocabulary **out, dt_error *err);
void vocabulary_close(vocabulary *v); /* NULL is allowed */

static inline void vocabulary_set_deepest(vocabulary_nodes *of) {
  vocabulary_node *node = of->node;
  for (int i = of->n - 1; i >= 0; i--) {
    node[i].deepest = node[i].depth;
    for (int below = i + 1; below < node[i].skip; below = node[below].skip)
      if (node[below].deepest > node[i].deepest) node[i].deepest = node[below].deepest;
  }
}

static inline const vocabulary_tree *vocabulary_of(const vocabulary *v, bool first) {
  return first && v->differ ? &v->first : &v->later;
}

#endif
