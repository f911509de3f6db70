/* The parts of a tokenizer. Private to encode.c, tokenizer.c and the files that load one. */
#ifndef DT_TOKENIZER_PARTS_H
#define DT_TOKENIZER_PARTS_H

#include "text/added_tokens.h"
#include "text/decode.h"
#include "text/normalize.h"
#include "text/split.h"
#include "text/tokenizer.h"
#include "text/words.h"

/* The tokens of t->infill, as in dt_infill. */
enum { INFILL_PREFIX, INFILL_SUFFIX, INFILL_MIDDLE, INFILL_PAD, INFILL_REPO, INFILL_FILE, INFILL_MARKS };

struct tok { /* in the order of encoding */
  vocab strings;
  added_tokens raw; /* tokens that are cut out of the text as given */
  normalize_step *normalize;
  int n_normalize;
  added_tokens normalized; /* tokens that are cut out after normalization */
  split_step *split;
  int n_split;
  word_model words;
  int32_t *before; /* the tokens before every text */
  int n_before;
  decode_step *decode;
  int n_decode;
  token_text later, first; /* the texts of tokens; first.end is NULL if first tokens have the same text as later ones */
  int32_t *ends;
  int n_ends;
  int32_t infill[INFILL_MARKS]; /* ids of the tokens of fill-in-the-middle; -1: none */
  uint64_t fingerprint;
};

/* Completes a tokenizer that has its strings and steps: fills in byte_id, later, first and the fingerprint. Every
 * loader calls it at the end. */
dt_status tok_complete(tok *t, dt_error *err);

#endif
