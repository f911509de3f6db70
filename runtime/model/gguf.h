/* GGUF files, versions 2 and 3: metadata (key -> value), then tensors' names and places, checked before anything is
 * handed out. The header is read into memory; the tensors lie in a source, from which whoever wants them reads them.
 *
 *   gguf *g;
 *   if (gguf_open("model.gguf", &g, &err) != DT_OK) ...
 *   int64_t layers;
 *   if (!gguf_integer(gguf_find(g, "llama.block_count"), 0, &layers)) ... // absent, or not an integer
 *   const gguf_tensor *t = gguf_find_tensor(g, "token_embd.weight");   ...   gguf_close(g); */
#ifndef DT_GGUF_H
#define DT_GGUF_H

#include "model/source.h"
#include "model/types.h"

#include <stdbool.h>

typedef struct gguf gguf;

/* Numbered as in the file. */
typedef enum {
  GGUF_U8,
  GGUF_I8,
  GGUF_U16,
  GGUF_I16,
  GGUF_U32,
  GGUF_I32,
  GGUF_F32,
  GGUF_BOOL,
  GGUF_STRING,
  GGUF_ARRAY,
  GGUF_U64,
  GGUF_I64,
  GGUF_F64,
  GGUF_TYPES
} gguf_type;

/* A value of the metadata, owned by its gguf. */
typedef struct {
  const char *key; /* not terminated */
  size_t key_len;
  bool array;     /* else one value, and count is 1 */
  gguf_type type; /* of every element; never GGUF_ARRAY */
  uint64_t count;
  const uint8_t *data; /* the elements as they lie in the file */
  const uint32_t
      *start; /* of a string's bytes in data, each with its length (u64) before it; NULL: they are no strings */
} gguf_value;

typedef struct {
  char name[64];
  const char *type; /* its type's name: */
  dt_dtype dtype;   /* DT_TYPES: whole numbers, "I32" or "I64", and no weights */
  int rank;         /* 1 to 4 */
  uint64_t ne[4];   /* the first is the length of a row, contiguous; 1 from rank on */
  const dt_source *source;
  uint64_t offset; /* in the source */
  uint64_t size;   /* bytes, all of them inside the source when it was opened */
} gguf_tensor;

/* Opens a file, or all parts of a model in several files (gguf_name.h), of which any is named. Errors name file, key or
 * tensor, what was found and what was expected. Free with gguf_close. */
dt_status gguf_open(const char *path, gguf **out, dt_error *err);

/* The same from a file's bytes, which the caller keeps until gguf_close; `name` stands for the path in messages. */
dt_status gguf_open_bytes(const char *name, const void *bytes, size_t size, gguf **out, dt_error *err);

void gguf_close(gguf *g); /* NULL is allowed; values and tensors are gone afterwards */

const char *gguf_path(const gguf *g);

const gguf_value *gguf_find(const gguf *g, const char *key); /* NULL: absent */
size_t gguf_count(const gguf *g);                            /* of the keys, and: */
const gguf_value *gguf_at(const gguf *g, size_t i);          /* they are sorted */

/* Element i of a value (0 for what is no array). False, or NULL, where there is no value (v may be NULL), no such
 * element, or it is of another type; any integer type is an integer if it fits, and any integer or float type a
 * number. */
bool gguf_integer(const gguf_value *v, uint64_t i, int64_t *out);
bool gguf_number(const gguf_value *v, uint64_t i, double *out);
bool gguf_bool(const gguf_value *v, uint64_t i, bool *out);
const char *gguf_string(const gguf_value *v, uint64_t i, size_t *len); /* any bytes, not terminated */

const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name); /* NULL: there is none */
/* The name of the one that has this byte of a file; NULL. */
const char *gguf_tensor_at(const gguf *g, const char *file, uint64_t offset);

#endif
