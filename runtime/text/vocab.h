/* Maps the strings of a vocabulary to their ids, and ids to strings. */
#ifndef DT_VOCAB_H
#define DT_VOCAB_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VOCAB_MODEL = 1, VOCAB_ADDED = 2 }; /* the token's origin; 0: the id has no entry */

typedef struct {
  size_t at, len; /* of the string in `bytes` */
  int of;
} vocab_entry;

typedef struct {
  int size;           /* 1 + the largest id */
  vocab_entry *entry; /* [size] */
  char *bytes;
  size_t n_bytes;
  int32_t *place; /* string -> id: open addressing, at most half full; -1: empty */
  size_t mask;
} vocab;

/* Allocates room for ids below `size` and for n strings of n_bytes bytes in total. */
dt_status vocab_init(vocab *v, int size, size_t n, size_t n_bytes, dt_error *err);
void vocab_free(vocab *v);

/* Adds a string that is not in the vocabulary yet, for an id without an entry. There must be room. */
void vocab_put(vocab *v, int32_t id, const char *string, size_t len, int of);

/* Returns the id of the string a followed by b; -1: there is none. */
int32_t vocab_find(const vocab *v, const char *a, size_t a_len, const char *b, size_t b_len);

/* The same, only among the model's own tokens. */
int32_t vocab_model_id(const vocab *v, const char *string, size_t len);

/* Returns the string of an id, 0 <= id < size; not NUL-terminated. */
const char *vocab_string(const vocab *v, int32_t id, size_t *len);

#endif
