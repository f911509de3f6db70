/* Writes a GGUF file piece by piece, so that a test can make a mistake in any piece. */
#ifndef GGUF_FILE_H
#define GGUF_FILE_H

#include "model/gguf.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned char *bytes; /* grown piece by piece */
  size_t size;
} gguf_file;

static inline void file_put(gguf_file *f, const void *bytes, size_t n) {
  f->bytes = realloc(f->bytes, f->size + n + 1);
  if (n) memcpy(f->bytes + f->size, bytes, n);
  f->size += n;
}

static inline void file_u32(gguf_file *f, uint32_t value) { file_put(f, &value, 4); }
static inline void file_u64(gguf_file *f, uint64_t value) { file_put(f, &value, 8); }

static inline void file_string(gguf_file *f, const char *text) {
  file_u64(f, strlen(text));
  file_put(f, text, strlen(text));
}

static inline void file_head(gguf_file *f, uint32_t version, uint64_t tensors, uint64_t keys) {
  file_put(f, "GGUF", 4);
  file_u32(f, version);
  file_u64(f, tensors);
  file_u64(f, keys);
}

/* Writes a key and its type. The value must follow. */
static inline void file_key(gguf_file *f, const char *key, gguf_type type) {
  file_string(f, key);
  file_u32(f, type);
}

static inline void file_key_u32(gguf_file *f, const char *key, uint32_t value) {
  file_key(f, key, GGUF_U32);
  file_u32(f, value);
}

static inline void file_key_f32(gguf_file *f, const char *key, float value) {
  file_key(f, key, GGUF_F32);
  file_put(f, &value, 4);
}

static inline void file_key_string(gguf_file *f, const char *key, const char *value) {
  file_key(f, key, GGUF_STRING);
  file_string(f, value);
}

static inline void file_key_strings(gguf_file *f, const char *key, const char *const *value, uint64_t n) {
  file_key(f, key, GGUF_ARRAY);
  file_u32(f, GGUF_STRING);
  file_u64(f, n);
  for (uint64_t i = 0; i < n; i++) file_string(f, value[i]);
}

/* Writes the info of a tensor of ne0 x ne1 numbers; with ne1 = 0 it has one dimension. */
static inline void file_tensor(gguf_file *f, const char *name, uint32_t ggml, uint64_t ne0, uint64_t ne1,
                               uint64_t offset) {
  file_string(f, name);
  file_u32(f, ne1 ? 2 : 1);
  file_u64(f, ne0);
  if (ne1) file_u64(f, ne1);
  file_u32(f, ggml);
  file_u64(f, offset);
}

/* Writes zeros up to a multiple of the alignment, and then n more. */
static inline void file_data(gguf_file *f, size_t alignment, size_t n) {
  size_t begin = (f->size + alignment - 1) / alignment * alignment;
  f->bytes = realloc(f->bytes, begin + n);
  memset(f->bytes + f->size, 0, begin + n - f->size);
  f->size = begin + n;
}

#endif
