/* Texts for policies to search in: files, and outputs of a policy's earlier runs. */
#ifndef DTL_CORPUS_H
#define DTL_CORPUS_H

#include "files/fail.h"
#include "lookup/suffixes.h"
#include "system/digest.h"

struct dtl_corpus {
  suffixes index;
  char hash[DIGEST_TEXT]; /* digest of the token ids */
};

#define CORPUS_PARTS 24
#define CORPUS_OUTPUTS (8u << 20) /* tokens of earlier outputs, at most: 64 MB */

/* Earlier outputs in their order, in parts that each have an index. Each part is larger than the next, so an output is
 * indexed again only when its part doubles. All zeros: no outputs. */
typedef struct {
  suffixes part[CORPUS_PARTS];
  int n;
  size_t tokens;
} corpus_outputs;

/* Adds an output of n tokens, if there is room and memory for it. */
void corpus_add(corpus_outputs *outputs, const int32_t *token, int n);
void corpus_forget(corpus_outputs *outputs);

#endif
