/* A vocabulary: see vocab.h. */
#include "text/vocab.h"

#include <stdlib.h>
#include <string.h>

dt_status vocab_init(vocab *v, int size, size_t n, size_t n_bytes, dt_error *err) {
  size_t places = 16;
  while (places < 2 * n) places *= 2;
  *v = (vocab){.size = size, .mask = places - 1};
  v->entry = calloc((size_t)size + 1, sizeof *v->entry);
  v->bytes = malloc(n_bytes + 1);
  v->place = malloc(places * sizeof *v->place);
  if (!v->entry || !v->bytes || !v->place) {
    vocab_free(v);
    return dt_fail_memory(err, "the vocabulary", (size_t)size * sizeof *v->entry + n_bytes + places * sizeof *v->place);
  }
  memset(v->place, 0xFF, places * sizeof *v->place);
  return DT_OK;
}

void vocab_free(vocab *v) {
  free(v->entry);
  free(v->bytes);
  free(v->place);
  *v = (vocab){0};
}

static uint64_t hash_bytes(uint64_t h, const char *s, size_t n) { /* FNV-1a */
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001B3);
  return h;
}

/* The place of the string a followed by b: its own, or the empty place where it belongs. */
static size_t place_of(const vocab *v, const char *a, size_t a_len, const char *b, size_t b_len) {
  uint64_t h = hash_bytes(hash_bytes(UINT64_C(0xCBF29CE484222325), a, a_len), b, b_len);
  for (size_t i = (h ^ h >> 32) & v->mask;; i = (i + 1) & v->mask) {
    if (v->place[i] < 0) return i;
    const vocab_entry *e = &v->entry[v->place[i]];
    if (e->len == a_len + b_len && memcmp(v->bytes + e->at, a, a_len) == 0 &&
        memcmp(v->bytes + e->at + a_len, b, b_len) == 0)
      return i;
  }
}

void vocab_put(vocab *v, int32_t id, const char *string, size_t len, int of) {
  v->place[place_of(v, string, len, "", 0)] = id;
  v->entry[id] = (vocab_entry){.at = v->n_bytes, .len = len, .of = of};
  memcpy(v->bytes + v->n_bytes, string, len);
  v->n_bytes += len;
}

int32_t vocab_find(const vocab *v, const char *a, size_t a_len, const char *b, size_t b_len) {
  return v->place[place_of(v, a, a_len, b, b_len)];
}

int32_t vocab_model_id(const vocab *v, const char *string, size_t len) {
  int32_t id = vocab_find(v, string, len, "", 0);
  return id >= 0 && v->entry[id].of & VOCAB_MODEL ? id : -1;
}

const char *vocab_string(const vocab *v, int32_t id, size_t *len) {
  *len = v->entry[id].len;
  return v->bytes + v->entry[id].at;
}
