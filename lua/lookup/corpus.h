/* Texts that policies look things up in: files, and what a policy's earlier runs gave. */
#ifndef DTL_CORPUS_H
#define DTL_CORPUS_H

#include "files/fail.h"
#include "lookup/suffixes.h"
#include "system/digest.h"

struct dtl_corpus {
  suffixes index;
  char hash[DIGEST_TEXT]; /* of the ids */
};

#define CORPUS_PARTS 24
#define CORPUS_OUTPUTS (8u << 20) /* tokens of earlier outputs, at most: 64 MB */

/* Outputs in the order in which they came, in parts that are indexed apart: each is larger than the next, so every output is
 * indexed anew as often as its part doubles. Zeros: none. */
typedef struct {
  suffixes part[CORPUS_PARTS];
  int n;
  size_t tokens;
} corpus_outputs;

/* Adds an output, unless there is no room, or memory, for it. */
void corpus_add(corpus_outputs *outputs, const int32_t *token, int n);
void corpus_forget(corpus_outputs *outputs);

#endif
