/* The texts of a vocabulary's tokens as a tree of bytes, so that tokens which begin alike are looked at together. */
#ifndef DT_VOCABULARY_H
#define DT_VOCABULARY_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A node of the tree, in preorder: all nodes below it come before node `skip`. */
typedef struct {
  int32_t skip, token; /* token: the first with this text, -1: none */
  uint16_t depth;      /* bytes of the text */
  uint8_t byte;        /* the last of them */
} vocabulary_node;

typedef struct {
  vocabulary_node *node; /* [n] */
  int n, deepest;
  int32_t *twin;  /* [ids] the next token with the same text, or -1 */
  char *bytes;    /* of all tokens */
  size_t *offset; /* [ids + 1] */
} vocabulary_tree;

/* Of the first token of a text the tokenizer may leave out a space. */
typedef struct {
  int ids;
  vocabulary_tree later, first;
  bool differ;     /* `first` is not used unless they do */
  uint8_t *is_end; /* [ids] the token ends a text: it has no text here */
} vocabulary;

/* The text of a token, which may be in `buffer`. */
typedef const char *vocabulary_text(const void *of, int32_t id, bool first, char buffer[16], size_t *len);

dt_status vocabulary_open(int ids, vocabulary_text *text, const void *of, const int32_t *ends, int n_ends,
                          vocabulary **out, dt_error *err);
void vocabulary_close(vocabulary *v); /* NULL is allowed */

static inline const vocabulary_tree *vocabulary_of(const vocabulary *v, bool first) {
  return first && v->differ ? &v->first : &v->later;
}

#endif
