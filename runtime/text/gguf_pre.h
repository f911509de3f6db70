/* The pre-tokenizers that tokenizer.ggml.pre of a GGUF file names. */
#ifndef DT_GGUF_PRE_H
#define DT_GGUF_PRE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  const char *name;
  const char *const
      *patterns; /* NULL-terminated: each splits a text into its matches and the texts between them, in this order */
  bool nfc;      /* the model's tokenizer.json normalizes to NFC, which the file does not say */
  bool whole;    /* a word that is a token is that token, whatever the merges say */
  bool begin;    /* bos goes before every text, unless the file says otherwise */
} gguf_pre;

/* NULL: not known. */
const gguf_pre *gguf_pre_find(const char *name, size_t len);

#endif
