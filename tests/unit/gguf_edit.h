/* Changes one thing in a GGUF file: a key, or a property of a tensor. */
#ifndef GGUF_EDIT_H
#define GGUF_EDIT_H

#include "gguf_file.h"

#include <stdbool.h>
#include <stdio.h>

enum { GGUF_KEYS_BEGIN = 24, GGUF_COUNT_AT = 16, GGUF_ALIGNMENT = 32 };

/* Where a text that is preceded by its length begins, after the text itself; NULL if it does not occur. */
static inline unsigned char *edit_find(gguf_file *f, const char *text) {
  gguf_file wanted = {0};
  file_string(&wanted, text);
  unsigned char *at = memmem(f->bytes, f->size, wanted.bytes, wanted.size);
  free(wanted.bytes);
  return at ? at + 8 + strlen(text) : NULL;
}

/* Writes the number at the beginning of a text in the type with this name: "u32", "i32", "f32", "bool". */
static inline void edit_number(gguf_file *f, const char *type, const char *text) {
  if (*type == 'f')
    file_put(f, &(float){strtof(text, NULL)}, 4);
  else
    file_put(f, &(uint32_t){(uint32_t)strtol(text, NULL, 10)}, *type == 'b' ? 1 : 4); /* little endian */
}

static inline gguf_type edit_type(const char *type) {
  return *type == 'b' ? GGUF_BOOL : *type == 'f' ? GGUF_F32 : *type == 'i' ? GGUF_I32 : GGUF_U32;
}

/* Writes a value: "u32 7", "i32 -1", "f32 nan", "bool 1", "str text"; for lists "u32s 1,2,3", "bools 1,0" and so on,
 * "strs text". */
static inline void edit_value(gguf_file *f, const char *key, const char *value) {
  const char *text = strchr(value, ' ') + 1;
  bool list = text[-2] == 's';
  if (!strncmp(value, "str", 3)) {
    if (list)
      file_key_strings(f, key, &text, 1);
    else
      file_key_string(f, key, text);
  } else if (list) {
    uint64_t n = 1;
    for (const char *at = text; (at = strchr(at, ',')); at++) n++;
    file_key(f, key, GGUF_ARRAY), file_u32(f, edit_type(value)), file_u64(f, n);
    for (uint64_t i = 0; i < n; i++, text += strcspn(text, ",") + 1) edit_number(f, value, text);
  } else {
    file_key(f, key, edit_type(value));
    edit_number(f, value, text);
  }
}

/* Gives the key this value, or removes the key if value is "-". The key need not exist before. */
static inline void edit_key(gguf_file *f, const char *key, const char *value) {
  unsigned char *old = edit_find(f, key);
  if (old) old[-1] = '~'; /* renames it */
  gguf_file added = {0};
  if (*value != '-') edit_value(&added, key, value);
  size_t filled = added.size + 8 + 1 + 4 + 8; /* another key fills the space, so that tensors stay aligned */
  char rest[GGUF_ALIGNMENT + 1] = "";
  memset(rest, ' ', (GGUF_ALIGNMENT - filled % GGUF_ALIGNMENT) % GGUF_ALIGNMENT);
  file_key_string(&added, "~", rest);
  f->bytes = realloc(f->bytes, f->size + added.size);
  memmove(f->bytes + GGUF_KEYS_BEGIN + added.size, f->bytes + GGUF_KEYS_BEGIN, f->size - GGUF_KEYS_BEGIN);
  memcpy(f->bytes + GGUF_KEYS_BEGIN, added.bytes, added.size);
  f->size += added.size;
  f->bytes[GGUF_COUNT_AT] = (unsigned char)(f->bytes[GGUF_COUNT_AT] + (*value != '-') + 1);
  free(added.bytes);
}

/* Changes a tensor. "-": gives it another name; "swap": exchanges its two sizes; "type 7": gives it this type; "rank
 * 3": gives it this number of sizes. */
static inline bool edit_tensor(gguf_file *f, const char *name, const char *what) {
  unsigned char *info = edit_find(f, name), size[8];
  if (!info) return false;
  uint32_t number = (uint32_t)strtoul(what + strcspn(what, " "), NULL, 10), rank = info[0];
  if (*what == '-') info[-1] = '~';
  if (!strncmp(what, "rank", 4)) memcpy(info, &number, 4);
  if (!strncmp(what, "type", 4)) memcpy(info + 4 + 8 * rank, &number, 4);
  if (!strcmp(what, "swap")) memcpy(size, info + 4, 8), memmove(info + 4, info + 12, 8), memcpy(info + 12, size, 8);
  return true;
}

/* Sets the first number of the tensor's data, which is in 32 bits, as in "f32 7". */
static inline bool edit_data(gguf_file *f, const char *name, const char *what) {
  dt_error err;
  gguf *g = NULL;
  if (gguf_open_bytes("edited", f->bytes, f->size, &g, &err)) return false;
  const gguf_tensor *t = gguf_find_tensor(g, name);
  if (t) memcpy(f->bytes + t->offset, &(float){strtof(what + 4, NULL)}, 4);
  gguf_close(g);
  return t != NULL;
}

#endif
