/* From one word to its tokens: the word's symbols, which are bytes or characters, and their merging. */
#ifndef DT_WORDS_H
#define DT_WORDS_H

#include "text/bpe.h"
#include "text/vocab.h"

#include <stdbool.h>

typedef struct {
  bpe merges;
  bool bytes;    /* symbols are bytes, and the vocabulary is written in GPT-2's alphabet; else they are characters */
  bool fallback; /* characters: one that is no token becomes its bytes' <0xNN>, where all of them are tokens */
  int32_t byte_id[256]; /* the symbol or the <0xNN> of each byte; -1: none */
  bool whole;           /* a word that is a token is that token, whatever the merges say */
  int32_t unknown;      /* a symbol that nothing stands for; -1: it is left out */
  bool fuse_unknown;    /* a run of them is one token */
} word_model;

/* Fills in byte_id according to m's bytes and fallback. */
void words_find_bytes(word_model *m, const vocab *v);

/* Memory that calls share; zero it first. One per thread. */
typedef struct {
  bpe_scratch merging;
  char *written; /* a word in the alphabet */
  size_t capacity;
} word_scratch;
void word_scratch_free(word_scratch *scratch);

/* Encodes a word of n bytes of valid UTF-8, 1 <= n < 2^31. ids has room for n; *n_ids may be 0. */
dt_status word_encode(const word_model *m, const vocab *v, word_scratch *scratch, const char *word, size_t n,
                      int32_t *ids, size_t *n_ids, dt_error *err);

#endif
