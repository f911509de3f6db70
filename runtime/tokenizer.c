/* Encoding: cut out raw added tokens, normalize what lies between, cut out the normalized added tokens, split the rest into
 * words, and encode each word by BPE. See tokenizer.h. */
#include "tokenizer.h"

#include "nfc.h"
#include "text.h"
#include "tokenizer_parts.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

#define MOST_TEXT                                                                                                      \
  ((size_t)1 << 28) /* bytes: repaired and normalized text is at most 3 times as long, and ids are ints */

/* Words met before in this text. A place is taken by whichever word came last. */
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
  bpe_scratch scratch;
  pcre2_match_data *match;
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

static dt_status encode_word(encoder *e, const char *word, size_t n) {
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
  status = bpe_encode(&e->t->merges, &e->scratch, word, n, e->ids + e->n, &count, e->err);
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

static dt_status encode_words(encoder *e, const char *s, size_t n) {
  if (!e->t->split) return encode_word(e, s, n);
  for (size_t at = 0; at < n;) {
    int rc = pcre2_match(e->t->split, (PCRE2_SPTR)s, n, at, PCRE2_NO_UTF_CHECK, e->match, NULL);
    if (rc < 0) {
      PCRE2_UCHAR why[128];
      pcre2_get_error_message(rc, why, sizeof why);
      return dt_fail(e->err, rc == PCRE2_ERROR_NOMEMORY ? DT_ENOMEM : DT_EDEVICE,
                     "splitting the text into words failed at byte %zu: %s", at, (const char *)why);
    }
    size_t end = pcre2_get_ovector_pointer(e->match)[1];
    dt_status status = encode_word(e, s + at, end - at);
    if (status != DT_OK) return status;
    at = end;
  }
  return DT_OK;
}

/* Text between added tokens, normalized. */
static dt_status encode_plain(encoder *e, const char *s, size_t n) {
  if (!e->t->prefix_space || s[0] == ' ') return encode_words(e, s, n);
  char *spaced = malloc(n + 1);
  if (!spaced) return dt_fail_memory(e->err, "the text", n + 1);
  spaced[0] = ' ';
  memcpy(spaced + 1, s, n);
  dt_status status = encode_words(e, spaced, n + 1);
  free(spaced);
  return status;
}

/* Cuts the set's tokens out of s and gives each stretch between them, which is never empty, to `rest`. */
static dt_status cut_out(encoder *e, const added_tokens *set, const char *s, size_t n,
                         dt_status (*rest)(encoder *, const char *, size_t)) {
  for (size_t from = 0; from < n;) {
    size_t at = n, len = 0;
    int32_t id = 0;
    bool found = added_find(set, s, n, from, &at, &len, &id);
    dt_status status = at > from ? rest(e, s + from, at - from) : DT_OK;
    if (status == DT_OK && found) status = reserve_ids(e, 1);
    if (status != DT_OK) return status;
    if (found) e->ids[e->n++] = id;
    from = at + len;
  }
  return DT_OK;
}

/* Text between raw added tokens, as given. */
static dt_status encode_raw(encoder *e, const char *s, size_t n) {
  char *changed = NULL;
  if (e->t->nfc) {
    size_t changed_n = 0;
    dt_status status = nfc(s, n, &changed, &changed_n, e->err);
    if (status != DT_OK) return status;
    if (changed) {
      s = changed;
      n = changed_n;
    }
  }
  dt_status status = cut_out(e, &e->t->normalized, s, n, encode_plain);
  free(changed);
  return status;
}

static dt_status open_encoder(encoder *e, size_t len) {
  dt_status status = reserve_ids(e, len / 3 + 1);
  if (status != DT_OK) return status;
  if (e->t->split && !(e->match = pcre2_match_data_create(1, NULL)))
    return dt_fail_memory(e->err, "splitting the text", sizeof(size_t) * 2);
  uint32_t places = 1;
  while (places < MOST_CACHED && places < len / 8) places *= 2;
  e->cache_mask = places - 1;
  if (places > 16) e->cache = calloc(places, sizeof *e->cache); /* without it, it is only slower */
  return DT_OK;
}

dt_status tok_encode(const tok *t, const char *text, size_t len, int32_t **ids, int *n, dt_error *err) {
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
  if (status == DT_OK) status = cut_out(&e, &t->raw, text, len, encode_raw);
  bpe_scratch_free(&e.scratch);
  pcre2_match_data_free(e.match);
  free(e.cache);
  free(repaired);
  if (status != DT_OK) {
    free(e.ids);
    return status;
  }
  *ids = e.ids;
  *n = (int)e.n;
  return DT_OK;
}

const char *tok_bytes(const tok *t, int32_t id, size_t *len) {
  *len = 0;
  if (id < 0 || id >= t->size) return "";
  size_t start = id > 0 ? t->text_end[id - 1] : 0;
  *len = t->text_end[id] - start;
  return t->text + start;
}

int tok_size(const tok *t) { return t->size; }

uint64_t tok_fingerprint(const tok *t) { return t->fingerprint; }

void tok_close(tok *t) {
  if (!t) return;
  bpe_free(&t->merges);
  added_free(&t->raw);
  added_free(&t->normalized);
  pcre2_code_free(t->split);
  free(t->text);
  free(t->text_end);
  free(t);
}
