/* Decoding: from the strings of a vocabulary to bytes of text. Every token has its bytes by itself; only the first
 * of a text may differ, by a space that the encoder had put there. */
#ifndef DT_DECODE_H
#define DT_DECODE_H

#include "system/status.h"
#include "text/vocab.h"

typedef enum {
  DECODE_ALPHABET, /* GPT-2's; added tokens stand for themselves */
  DECODE_BYTE,     /* <0xNN> is a byte, which no later step but DECODE_STRIP looks at */
  DECODE_REPLACE,  /* every `from` becomes `to`, or in the first token `to_first` */
  DECODE_STRIP     /* the first token loses one `from` at its beginning */
} decode_kind;

typedef struct {
  decode_kind kind;
  char *from, *to, *to_first; /* the step's own, NUL-terminated; NULL where the kind has none */
} decode_step;

void decode_free(decode_step *steps, int n_steps);

typedef struct {
  char *bytes; /* of all tokens, one after another */
  size_t *end; /* [size] token i is bytes[end[i-1]..end[i]) */
} token_text;

/* The bytes of all tokens of v, as the first of a text or as a later one. Free with token_text_free. */
dt_status decode_tokens(const decode_step *steps, int n_steps, const vocab *v, bool first, token_text *out,
                        dt_error *err);
void token_text_free(token_text *t);

#endif
