/* Reads GGUF files, versions 2 and 3: the metadata (key -> value), and the names and offsets of the tensors. Everything
 * is checked when the file is opened. The header is read into memory; the data of the tensors stays in a source, from
 * which the caller reads it.
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
  bool array;     /* false: one value, and count is 1 */
  gguf_type type; /* of every element; never GGUF_ARRAY */
  uint64_t count;
  const uint8_t *data; /* the elements as they lie in the file */
  /* Where each string's bytes begin in data, with the length (u64) before them; NULL: the elements are not strings. */
  const uint32_t *start;
} gguf_value;

typedef struct {
  char name[64];
  const char *type; /* the name of its type */
  dt_dtype dtype;   /* DT_TYPES: integers, "I32" or "I64", which are not weights */
  int rank;         /* 1 to 4 */
  uint64_t ne[4];   /* ne[0] is the length of a row, which is contiguous; 1 from rank on */
  const dt_source *source;
  uint64_t offset; /* in the source */
  uint64_t size;   /* bytes, all of them inside the source when it was opened */
} gguf_tensor;

/* Opens a file; if it is a part of a model in several files (gguf_name.h), opens all parts. Errors name the file, the
 * key or tensor, what was found and what was expected. Free with gguf_close. */
dt_status gguf_open(const char *path, gguf **out, dt_error *err);

/* The same from a file's bytes, which the caller keeps until gguf_close; `name` stands for the path in messages. */
dt_status gguf_open_bytes(const char *name, const void *bytes, size_t size, gguf **out, dt_error *err);

void gguf_close(gguf *g); /* NULL is allowed; values and tensors are gone afterwards */

const char *gguf_path(const gguf *g);

const gguf_value *gguf_find(const gguf *g, const char *key); /* NULL: absent */
size_t gguf_count(const gguf *g);                            /* the number of keys */
const gguf_value *gguf_at(const gguf *g, size_t i);          /* key i; they are sorted by name */

/* Reads element i of a value (i = 0 if it is not an array). False or NULL: there is no value (v may be NULL), no such
 * element, or it has another type. gguf_integer accepts any integer type if the value fits; gguf_number accepts any
 * integer or float type. */
bool gguf_integer(const gguf_value *v, uint64_t i, int64_t *out);
bool gguf_number(const gguf_value *v, uint64_t i, double *out);
bool gguf_bool(const gguf_value *v, uint64_t i, bool *out);
const char *gguf_string(const gguf_value *v, uint64_t i, size_t *len); /* any bytes, not terminated */

const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name); /* NULL: there is none */
/* Returns the name of the tensor that contains this byte of a file; NULL: there is none. */
const char *gguf_tensor_at(const gguf *g, const char *file, uint64_t offset);

#endif
