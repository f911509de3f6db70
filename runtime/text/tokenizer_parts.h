/* The parts of a tokenizer. Private to encode.c, tokenizer.c and the files that load one. */
#ifndef DT_TOKENIZER_PARTS_H
#define DT_TOKENIZER_PARTS_H

#include "text/added_tokens.h"
#include "text/decode.h"
#include "text/normalize.h"
#include "text/split.h"
#include "text/tokenizer.h"
#include "text/words.h"

struct tok { /* in the order of encoding */
  vocab strings;
  added_tokens raw; /* cut out of the text as given */
  normalize_step *normalize;
  int n_normalize;
  added_tokens normalized; /* cut out after normalization */
  split_step *split;
  int n_split;
  word_model words;
  int32_t *before; /* the tokens before every text */
  int n_before;
  decode_step *decode;
  int n_decode;
  token_text later, first; /* the tokens' texts; first.end is NULL if a text's first token has the same as others */
  int32_t *ends;
  int n_ends;
  uint64_t fingerprint;
};

/* Every loader calls this after it has the strings and the steps: it fills in the rest (byte_id, later and first, the
 * fingerprint). */
dt_status tok_complete(tok *t, dt_error *err);

#endif
