/* Decoding: converts the strings of a vocabulary to bytes of text. The bytes of a token do not depend on its
 * neighbours, except that the first token of a text may lose a space that the encoder added. */
#ifndef DT_DECODE_H
#define DT_DECODE_H

#include "system/status.h"
#include "text/vocab.h"

typedef enum {
  DECODE_ALPHABET, /* GPT-2's alphabet; added tokens stand for themselves */
  DECODE_BYTE,     /* <0xNN> is a byte, which only a later DECODE_STRIP can change */
  DECODE_REPLACE,  /* every `from` becomes `to` (in the first token: `to_first`) */
  DECODE_STRIP     /* the first token loses one `from` at its beginning */
} decode_kind;

typedef struct {
  decode_kind kind;
  char *from, *to, *to_first; /* owned by the step, NUL-terminated; NULL if the kind does not use it */
} decode_step;

void decode_free(decode_step *steps, int n_steps);

typedef struct {
  char *bytes; /* of all tokens, one after another */
  size_t *end; /* [size] token i is bytes[end[i-1]..end[i]) */
} token_text;

/* Decodes all tokens of v, as the first or as later tokens of a text. Free with token_text_free. */
dt_status decode_tokens(const decode_step *steps, int n_steps, const vocab *v, bool first, token_text *out,
                        dt_error *err);
void token_text_free(token_text *t);

#endif
