/* Encoding: cuts out raw added tokens, normalizes the text between them, cuts out normalized added tokens, splits the
 * rest into words, and encodes each word by BPE. See tokenizer.h. */
#include "text/text.h"
#include "text/tokenizer_parts.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

#define MOST_TEXT ((size_t)1 << 28) /* bytes: ids are ints, and repairing or normalizing lengthens a text */

/* Words seen before in this text. A place stores the most recent word. */
enum { CACHED_WORD = 27, MOST_CACHED = 1 << 14 };
typedef struct {
  uint32_t at; /* its ids are ids[at..at+count) of the encoder */
  uint8_t count;
  uint8_t len; /* 0: empty */
  char word[CACHED_WORD];
} cached_word;

typedef struct {
  const tok *t;
  int32_t *ids;
  size_t n, capacity;
  splitter split;
  word_scratch scratch;
  cached_word *cache; /* NULL: none */
  uint32_t cache_mask;
  dt_error *err;
} encoder;

static dt_status reserve_ids(encoder *e, size_t more) {
  if (more <= e->capacity - e->n) return DT_OK;
  size_t capacity = (e->n + more) + (e->n + more) / 2 + 16;
  int32_t *ids = realloc(e->ids, capacity * sizeof *ids);
  if (!ids) return dt_fail_memory(e->err, "token ids", capacity * sizeof *ids);
  e->ids = ids;
  e->capacity = capacity;
  return DT_OK;
}

static uint32_t hash_word(const char *word, size_t n) {
  uint64_t h = n;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)word[i]) * UINT64_C(0x100000001B3);
  return (uint32_t)(h ^ h >> 32);
}

static dt_status encode_word(void *user, const char *word, size_t n) {
  encoder *e = user;
  if (n > INT32_MAX) return dt_fail(e->err, DT_EINPUT, "a word of %zu bytes: at most %d can be encoded", n, INT32_MAX);
  dt_status status = reserve_ids(e, n);
  if (status != DT_OK) return status;
  cached_word *cached = NULL;
  if (e->cache && n <= CACHED_WORD) {
    cached = &e->cache[hash_word(word, n) & e->cache_mask];
    if (cached->len == n && memcmp(cached->word, word, n) == 0) {
      memcpy(e->ids + e->n, e->ids + cached->at, cached->count * sizeof *e->ids);
      e->n += cached->count;
      return DT_OK;
    }
  }
  size_t count;
  status = word_encode(&e->t->words, &e->t->strings, &e->scratch, word, n, e->ids + e->n, &count, e->err);
  if (status != DT_OK) return status;
  if (cached) {
    cached->at = (uint32_t)e->n;
    cached->count = (uint8_t)count;
    cached->len = (uint8_t)n;
    memcpy(cached->word, word, n);
  }
  e->n += count;
  return DT_OK;
}

/* Encodes a part of the text that is not empty; `first`: it is the text's beginning. */
typedef dt_status (*encode_stretch)(encoder *e, const char *s, size_t n, bool first);

/* Encodes normalized text between added tokens. */
static dt_status encode_plain(encoder *e, const char *s, size_t n, bool first) {
  return split_text(&e->split, s, n, first);
}

/* Cuts the set's tokens out of s, and gives each part between them to `rest`. */
static dt_status cut_out(encoder *e, const added_tokens *set, const char *s, size_t n, bool first,
                         encode_stretch rest) {
  size_t done = 0;
  dt_status status = DT_OK;
  for (added_match m = {0}; !status && added_next(set, s, n, &m); done = m.to) {
    if (m.from > done) status = rest(e, s + done, m.from - done, first && done == 0);
    if (!status) status = reserve_ids(e, 1);
    if (!status) e->ids[e->n++] = m.id;
  }
  return !status && done < n ? rest(e, s + done, n - done, first && done == 0) : status;
}

/* Encodes text between raw added tokens, before normalization. */
static dt_status encode_raw(encoder *e, const char *s, size_t n, bool first) {
  char *changed;
  dt_status status = normalize_text(e->t->normalize, e->t->n_normalize, s, n, &changed, &n, e->err);
  if (status != DT_OK) return status;
  status = cut_out(e, &e->t->normalized, changed ? changed : s, n, first, encode_plain);
  free(changed);
  return status;
}

static dt_status open_encoder(encoder *e, size_t len) {
  e->split = (splitter){.steps = e->t->split, .n_steps = e->t->n_split, .word = encode_word, .user = e, .err = e->err};
  dt_status status = split_open(&e->split);
  if (status == DT_OK) status = reserve_ids(e, len / 3 + 1);
  uint32_t places = 1;
  while (places < MOST_CACHED && places < len / 8) places *= 2;
  e->cache_mask = places - 1;
  if (places > 16) e->cache = calloc(places, sizeof *e->cache); /* without a cache it is only slower */
  return status;
}

static void close_encoder(encoder *e) {
  split_close(&e->split);
  word_scratch_free(&e->scratch);
  free(e->cache);
}

/* Puts the tokens that begin every text before the ids, unless they are already there. */
static dt_status add_beginning(encoder *e) {
  size_t n = (size_t)e->t->n_before, bytes = n * sizeof *e->ids;
  if (n == 0 || (e->n >= n && memcmp(e->ids, e->t->before, bytes) == 0)) return DT_OK;
  dt_status status = reserve_ids(e, n);
  if (status != DT_OK) return status;
  memmove(e->ids + n, e->ids, e->n * sizeof *e->ids);
  memcpy(e->ids, e->t->before, bytes);
  e->n += n;
  return DT_OK;
}

dt_status tok_encode(const tok *t, const char *text, size_t len, bool begin, int32_t **ids, int *n, dt_error *err) {
  if (len > MOST_TEXT)
    return dt_fail(err, DT_EINPUT, "the text has %zu bytes: at most %zu can be encoded at once", len, MOST_TEXT);
  char *repaired = NULL;
  if (utf8_valid_prefix(text, len) < len) {
    repaired = text_to_utf8(text, len, &len);
    if (!repaired) return dt_fail_memory(err, "the text", len);
    text = repaired;
  }
  encoder e = {.t = t, .err = err};
  dt_status status = open_encoder(&e, len);
  if (status == DT_OK) status = cut_out(&e, &t->raw, text, len, true, encode_raw);
  if (status == DT_OK && begin) status = add_beginning(&e);
  if (status == DT_OK && e.n > INT32_MAX)
    status = dt_fail(err, DT_EINPUT, "the text has %zu tokens: at most %d can be encoded at once", e.n, INT32_MAX);
  close_encoder(&e);
  free(repaired);
  if (status != DT_OK) {
    free(e.ids);
    return status;
  }
  *ids = e.ids;
  *n = (int)e.n;
  return DT_OK;
}
