/* The pre-tokenizers that tokenizer.ggml.pre of a GGUF file names. */
#ifndef DT_GGUF_PRE_H
#define DT_GGUF_PRE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  const char *name;
  /* NULL-terminated, applied in this order: each splits a text into its matches and the texts between them. */
  const char *const *patterns;
  bool nfc;   /* the model's tokenizer.json normalizes to NFC, which a GGUF file does not say */
  bool whole; /* a word that is a token is that token, whatever the merges say */
  bool begin; /* bos is put before every text, unless the file says otherwise */
} gguf_pre;

/* Finds a pre-tokenizer by name; NULL: it is unknown. */
const gguf_pre *gguf_pre_find(const char *name, size_t len);

#endif
