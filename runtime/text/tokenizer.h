/* Text -> token ids and back, as a tokenizer.json of Hugging Face says it, or the tokenizer's keys of a GGUF file.
 *
 *   tok *t;
 *   if (tok_open("models/mini-target/tokenizer.json", &t, &err) != DT_OK) ...
 *   tok_encode(t, text, len, true, &ids, &n, &err);  ...  free(ids);
 *   tok_close(t);
 *
 * A tok is immutable after tok_open: any number of threads may use one. */
#ifndef DT_TOKENIZER_H
#define DT_TOKENIZER_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tok tok;

/* Reads a Hugging Face tokenizer.json. DT_EINPUT names the file, the key and what is supported. Free with tok_close. */
dt_status tok_open(const char *path, tok **out, dt_error *err);
void tok_close(tok *t); /* NULL is allowed */

/* Encodes len bytes (NUL allowed). Invalid UTF-8 is replaced by U+FFFD, as Hugging Face does when it reads a file with
 * errors="replace". Added tokens in the text are recognised, special ones too. `begin`: a model that wants a token
 * before every text (bos) gets it, unless the text begins with it. *ids is malloc'd (never NULL on success) and the
 * caller's. */
dt_status tok_encode(const tok *t, const char *text, size_t len, bool begin, int32_t **ids, int *n, dt_error *err);

/* The bytes one token stands for, as the first of a text or as a later one: the text of many is theirs, one after
 * another. Owned by the tokenizer, not NUL-terminated, may be part of a character. An id without an entry (padding of
 * the vocabulary) has no bytes: *len = 0. */
const char *tok_bytes(const tok *t, int32_t id, bool first, size_t *len);

int tok_size(const tok *t); /* 1 + the largest id that has an entry */

/* The ids that end a text according to the tokenizer, which owns them. */
const int32_t *tok_ends(const tok *t, int *n);

/* The id of the added token with this text, such as "<|im_end|>"; -1: there is none. */
int32_t tok_added(const tok *t, const char *string);

/* A hash of all ids' texts: equal if ids mean the same in two models. Only a forged twin could be equal otherwise. */
uint64_t tok_fingerprint(const tok *t);

#endif
