/* Converts text to token ids and back, as defined by a tokenizer.json of Hugging Face or by the keys of a GGUF file.
 *
 *   tok *t;
 *   if (tok_open("models/mini-target/tokenizer.json", &t, &err) != DT_OK) ...
 *   tok_encode(t, text, len, true, &ids, &n, &err);  ...  free(ids);
 *   tok_close(t);
 *
 * A tok does not change after tok_open, so any number of threads may use it at the same time. */
#ifndef DT_TOKENIZER_H
#define DT_TOKENIZER_H

#include "system/range.h"
#include "system/status.h"
#include "text/infill.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tok tok;

/* Reads a Hugging Face tokenizer.json. DT_EINPUT names the file, the key and what is supported. Free with tok_close. */
dt_status tok_open(const char *path, tok **out, dt_error *err);
void tok_close(tok *t); /* NULL is allowed */

/* Encodes len bytes (NUL allowed). Invalid UTF-8 is replaced by U+FFFD, as Hugging Face does when it reads a file with
 * errors="replace". Added tokens in the text are recognised, including special ones. `begin`: if the model wants a
 * token before every text (bos), it is added, unless the text begins with it. *ids is malloc'd (never NULL on success);
 * the caller frees it. */
dt_status tok_encode(const tok *t, const char *text, size_t len, bool begin, int32_t **ids, int *n, dt_error *err);

/* The same without `begin`, for a text with plain parts (plain[n_plain], in order, apart): an added token that would
 * include one of their bytes is not recognized, so that these parts become ordinary tokens. The text must be UTF-8 if
 * it has plain parts. */
dt_status tok_encode_plain(const tok *t, const char *text, size_t len, const dt_range *plain, size_t n_plain,
                           int32_t **ids, int *n, dt_error *err);

/* Returns the bytes of one token, as the first or as a later token of a text; the bytes of several tokens are
 * concatenated. They are owned by the tokenizer, not NUL-terminated, and may be only a part of a character. An id
 * without an entry (padding of the vocabulary) has no bytes: *len = 0. */
const char *tok_bytes(const tok *t, int32_t id, bool first, size_t *len);

int tok_size(const tok *t); /* 1 + the largest id that has an entry */

/* Returns the ids that end a text according to the tokenizer, which owns the array. */
const int32_t *tok_ends(const tok *t, int *n);

/* Returns the id of the added token with this text, such as "<|im_end|>"; -1: there is none. */
int32_t tok_added(const tok *t, const char *string);
/* Returns the id of the longest added token that the n bytes begin with, if it is a control token, and sets *len to its
 * length; -1: it is none. */
int32_t tok_control_at(const tok *t, const char *text, size_t n, size_t *len);

/* Returns whether the vocabulary has the three tokens of fill-in-the-middle: those that a GGUF file names, or added
 * tokens with a known spelling. *out gets their ids; -1 for those that are missing. */
bool tok_infill(const tok *t, dt_infill *out);

/* Returns a hash of the texts of all ids, which is equal if ids mean the same in two models. Otherwise it can be equal
 * only if somebody forged it. */
uint64_t tok_fingerprint(const tok *t);

#endif
