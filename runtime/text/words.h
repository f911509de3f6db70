/* Converts one word to tokens: cuts it into symbols, which are bytes or characters, and merges them. */
#ifndef DT_WORDS_H
#define DT_WORDS_H

#include "text/bpe.h"
#include "text/vocab.h"

#include <stdbool.h>

typedef struct {
  bpe merges;
  bool bytes;           /* symbols are bytes, and the vocabulary uses GPT-2's alphabet; false: symbols are characters */
  bool fallback;        /* a character without a token becomes the <0xNN> of its bytes, if all of these are tokens */
  int32_t byte_id[256]; /* the symbol or the token <0xNN> of each byte; -1: none */
  bool whole;           /* a word that is a token is that token, whatever the merges say */
  int32_t unknown;      /* the token for a symbol without a token; -1: such symbols are left out */
  bool fuse_unknown;    /* a run of such symbols becomes one token */
} word_model;

/* Fills in byte_id according to m's bytes and fallback. */
void words_find_bytes(word_model *m, const vocab *v);

/* Memory that calls reuse, one for each thread. Zero it first. */
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
