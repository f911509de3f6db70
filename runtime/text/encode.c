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

/* A part of the text that is not empty, and which of its bytes must not be part of added tokens. */
typedef struct {
  added_text text;
  bool first; /* it is the text's beginning */
} stretch;

typedef dt_status (*encode_stretch)(encoder *e, const stretch *part);

/* Encodes normalized text between added tokens. */
static dt_status encode_plain(encoder *e, const stretch *part) {
  return split_text(&e->split, part->text.bytes, part->text.n, part->first);
}

/* The plain ranges of bytes [from, to) of a stretch, relative to `from`: malloc'd; *n: how many. */
static dt_range *cut_ranges(const added_text *text, size_t from, size_t to, size_t *n) {
  size_t begin = 0, end;
  while (begin < text->n_plain && text->plain[begin].end <= from) begin++;
  for (end = begin; end < text->n_plain && text->plain[end].begin < to; end++) {}
  dt_range *ranges = malloc((end - begin + 1) * sizeof *ranges);
  *n = end - begin;
  for (size_t i = 0; ranges && i < *n; i++) {
    const dt_range *r = &text->plain[begin + i];
    ranges[i].begin = r->begin > from ? r->begin - from : 0;
    ranges[i].end = (r->end < to ? r->end : to) - from;
  }
  return ranges;
}

static dt_status encode_part(encoder *e, const stretch *of, size_t from, size_t to, encode_stretch encode) {
  stretch part = {{of->text.bytes + from, to - from, NULL, 0}, of->first && from == 0};
  if (of->text.n_plain == 0) return encode(e, &part);
  dt_range *ranges = cut_ranges(&of->text, from, to, &part.text.n_plain);
  if (!ranges) return dt_fail_memory(e->err, "the parts of a text", of->text.n_plain * sizeof *ranges);
  part.text.plain = ranges;
  dt_status status = encode(e, &part);
  free(ranges);
  return status;
}

/* Cuts the set's tokens out of a stretch, and gives each part between them to `rest`. */
static dt_status cut_out(encoder *e, const added_tokens *set, const stretch *of, encode_stretch rest) {
  size_t done = 0;
  dt_status status = DT_OK;
  for (added_match m = {0}; !status && added_next(set, &of->text, &m); done = m.to) {
    if (m.from > done) status = encode_part(e, of, done, m.from, rest);
    if (!status) status = reserve_ids(e, 1);
    if (!status) e->ids[e->n++] = m.id;
  }
  if (status || done == of->text.n) return status;
  return done == 0 ? rest(e, of) : encode_part(e, of, done, of->text.n, rest);
}

/* Where a place of a stretch is after normalization: as far as the text before it becomes long. */
static dt_status normalized_place(encoder *e, const stretch *part, size_t at, size_t *out) {
  char *changed;
  dt_status status = normalize_text(e->t->normalize, e->t->n_normalize, part->text.bytes, at, &changed, out, e->err);
  free(changed);
  return status;
}

/* Moves plain ranges to where their bytes are after normalization. `to`: [part->text.n_plain]. */
static dt_status normalize_ranges(encoder *e, const stretch *part, size_t len, dt_range *to) {
  dt_status status = DT_OK;
  for (size_t i = 0; i < part->text.n_plain && !status; i++) {
    status = normalized_place(e, part, part->text.plain[i].begin, &to[i].begin);
    if (!status) status = normalized_place(e, part, part->text.plain[i].end, &to[i].end);
    if (to[i].end > len) to[i].end = len;
  }
  return status;
}

/* Encodes text between raw added tokens, before normalization. */
static dt_status encode_raw(encoder *e, const stretch *part) {
  char *changed;
  stretch after = *part;
  dt_range *moved = NULL;
  added_match any = {0};
  dt_status status = normalize_text(e->t->normalize, e->t->n_normalize, part->text.bytes, part->text.n, &changed,
                                    &after.text.n, e->err);
  if (status != DT_OK) return status;
  if (changed) after.text.bytes = changed;
  /* Only where a token may have to be left out must the ranges be known. */
  after.text.n_plain = 0;
  if (changed && part->text.n_plain && added_next(&e->t->normalized, &after.text, &any)) {
    moved = malloc(part->text.n_plain * sizeof *moved);
    status = moved ? normalize_ranges(e, part, after.text.n, moved)
                   : dt_fail_memory(e->err, "the parts of a text", part->text.n_plain * sizeof *moved);
    after.text.plain = moved;
  }
  if (moved || !changed) after.text.n_plain = part->text.n_plain;
  if (!status) status = cut_out(e, &e->t->normalized, &after, encode_plain);
  free(moved);
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

/* Encodes a text, which is valid UTF-8. */
static dt_status encode_text(const tok *t, const added_text *text, bool begin, int32_t **ids, int *n, dt_error *err) {
  encoder e = {.t = t, .err = err};
  dt_status status = open_encoder(&e, text->n);
  if (status == DT_OK && text->n > 0) status = cut_out(&e, &t->raw, &(stretch){*text, true}, encode_raw);
  if (status == DT_OK && begin) status = add_beginning(&e);
  if (status == DT_OK && e.n > INT32_MAX)
    status = dt_fail(err, DT_EINPUT, "the text has %zu tokens: at most %d can be encoded at once", e.n, INT32_MAX);
  close_encoder(&e);
  if (status != DT_OK) {
    free(e.ids);
    return status;
  }
  *ids = e.ids;
  *n = (int)e.n;
  return DT_OK;
}

static dt_status check_length(size_t len, dt_error *err) {
  if (len <= MOST_TEXT) return DT_OK;
  return dt_fail(err, DT_EINPUT, "the text has %zu bytes: at most %zu can be encoded at once", len, MOST_TEXT);
}

dt_status tok_encode(const tok *t, const char *text, size_t len, bool begin, int32_t **ids, int *n, dt_error *err) {
  dt_status status = check_length(len, err);
  if (status) return status;
  if (utf8_valid_prefix(text, len) == len) return encode_text(t, &(added_text){text, len, NULL, 0}, begin, ids, n, err);
  char *repaired = text_to_utf8(text, len, &len);
  if (!repaired) return dt_fail_memory(err, "the text", len);
  status = encode_text(t, &(added_text){repaired, len, NULL, 0}, begin, ids, n, err);
  free(repaired);
  return status;
}

dt_status tok_encode_plain(const tok *t, const char *text, size_t len, const dt_range *plain, size_t n_plain,
                           int32_t **ids, int *n, dt_error *err) {
  if (n_plain == 0) return tok_encode(t, text, len, false, ids, n, err);
  dt_status status = check_length(len, err);
  if (!status && utf8_valid_prefix(text, len) < len)
    status = dt_fail(err, DT_EINPUT, "the text is not valid UTF-8: byte %zu", utf8_valid_prefix(text, len) + 1);
  return status ? status : encode_text(t, &(added_text){text, len, plain, n_plain}, false, ids, n, err);
}
