/* Converts one word to tokens: see words.h. */
#include "text/words.h"

#include "text/alphabet.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>

void words_find_bytes(word_model *m, const vocab *v) {
  for (int b = 0; b < 256; b++) {
    char byte = (char)b, string[8];
    size_t n = m->bytes ? alphabet_write(&byte, 1, string) : (size_t)sprintf(string, "<0x%02X>", (unsigned)b);
    m->byte_id[b] = m->bytes || m->fallback ? vocab_model_id(v, string, n) : -1;
  }
}

void word_scratch_free(word_scratch *scratch) {
  bpe_scratch_free(&scratch->merging);
  free(scratch->written);
  *scratch = (word_scratch){0};
}

/* Finds the token that is the whole word; -1: none. */
static dt_status find_whole(const word_model *m, const vocab *v, word_scratch *scratch, const char *word, size_t n,
                            int32_t *id, dt_error *err) {
  if (m->bytes) {
    if (2 * n > scratch->capacity) {
      free(scratch->written);
      scratch->capacity = 3 * n + 64;
      scratch->written = malloc(scratch->capacity);
      if (!scratch->written) {
        scratch->capacity = 0;
        return dt_fail_memory(err, "a word", 3 * n + 64);
      }
    }
    n = alphabet_write(word, n, scratch->written);
    word = scratch->written;
  }
  *id = vocab_model_id(v, word, n);
  return DT_OK;
}

/* Finds the ids of a character's bytes; 0: some byte has none. */
static size_t by_bytes(const word_model *m, const char *s, size_t n, int32_t *ids) {
  for (size_t i = 0; i < n; i++) {
    ids[i] = m->byte_id[(unsigned char)s[i]];
    if (ids[i] < 0) return 0;
  }
  return n;
}

/* The next symbol and its id; -1: it is not a token. */
static int32_t next_symbol(const word_model *m, const vocab *v, const char *s, size_t n, size_t *len) {
  if (m->bytes) {
    *len = 1;
    return m->byte_id[(unsigned char)*s];
  }
  utf8_next(s, n, len);
  return vocab_model_id(v, s, *len);
}

/* As in Hugging Face: an unknown symbol waits for the next known one, and byte tokens may come before it. */
static size_t find_symbols(const word_model *m, const vocab *v, const char *word, size_t n, int32_t *ids) {
  size_t count = 0, len;
  bool waiting = false;
  for (size_t i = 0; i < n; i += len) {
    int32_t id = next_symbol(m, v, word + i, n - i, &len);
    if (id >= 0) {
      if (waiting) ids[count++] = m->unknown;
      waiting = false;
      ids[count++] = id;
      continue;
    }
    size_t bytes = m->bytes ? 0 : by_bytes(m, word + i, len, ids + count);
    count += bytes;
    if (bytes > 0 || m->unknown < 0) continue;
    if (waiting && !m->fuse_unknown) ids[count++] = m->unknown;
    waiting = true;
  }
  if (waiting) ids[count++] = m->unknown;
  return count;
}

dt_status word_encode(const word_model *m, const vocab *v, word_scratch *scratch, const char *word, size_t n,
                      int32_t *ids, size_t *n_ids, dt_error *err) {
  if (m->whole) {
    int32_t id = -1;
    dt_status status = find_whole(m, v, scratch, word, n, &id, err);
    if (status) return status;
    if (id >= 0) {
      ids[0] = id;
      *n_ids = 1;
      return DT_OK;
    }
  }
  *n_ids = find_symbols(m, v, word, n, ids);
  return *n_ids > 0 ? bpe_encode(&m->merges, &scratch->merging, ids, n_ids, err) : DT_OK;
}
