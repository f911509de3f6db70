/* What a tokenizer is made of. Private to tokenizer.c (encoding) and tokenizer_load.c (reading tokenizer.json). */
#ifndef DT_TOKENIZER_PARTS_H
#define DT_TOKENIZER_PARTS_H

#include "added_tokens.h"
#include "bpe.h"
#include "tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>

struct tok {
  int size;         /* 1 + the largest id that has an entry */
  char *text;       /* the bytes of all tokens, one after another */
  size_t *text_end; /* [size] token i is text[text_end[i-1]..text_end[i]) */
  bpe merges;
  added_tokens raw, normalized; /* cut out of the text as given; cut out after normalization */
  bool nfc, prefix_space;
  pcre2_code *split; /* NULL: the text is one word */
  uint64_t fingerprint;
};

#endif
