/* Strings with marks: see string.h. */
#include "template/string.h"

#include "system/os.h"

#include <string.h>
#include <utf8proc.h>

/* ---- making ------------------------------------------------------------------------------------------------------ */

const tpl_string *tpl_string_of(tpl_job *job, const char *bytes, size_t len) {
  tpl_string *s = tpl_allocate(job, sizeof *s);
  s->bytes = bytes;
  s->len = len;
  return s;
}

const tpl_string *tpl_text(tpl_job *job, const char *text) { return tpl_string_of(job, text, strlen(text)); }

/* The first range that ends after `at`; n_marked: none. */
static size_t range_after(const tpl_string *s, size_t at) {
  size_t low = 0, high = s->n_marked;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (s->marked[middle].end > at)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

bool tpl_is_marked(const tpl_string *s, size_t at) {
  size_t i = range_after(s, at);
  return i < s->n_marked && s->marked[i].begin <= at;
}

static void mark(tpl_builder *b, size_t begin, size_t end) {
  bool continues = b->n_marked > b->n_fixed && b->marked[b->n_marked - 1].end == begin;
  if (continues) {
    b->marked[b->n_marked - 1].end = end;
    return;
  }
  if (b->n_marked == b->marked_capacity) {
    size_t wanted = b->marked_capacity ? 2 * b->marked_capacity : 4;
    b->marked = tpl_grow(b->job, b->marked, b->marked_capacity, wanted, sizeof *b->marked);
    b->marked_capacity = wanted;
  }
  b->marked[b->n_marked++] = (dt_range){begin, end};
}

static void reserve(tpl_builder *b, size_t n) {
  if (b->limit && n > b->limit - b->len) tpl_fail(b->job, "more than %zu MiB of output", b->limit >> 20);
  if (n <= b->capacity - b->len) return;
  size_t wanted = b->len + n + (b->capacity ? b->capacity : 16);
  if (b->limit && wanted > b->limit) wanted = b->limit;
  b->bytes = tpl_grow(b->job, b->bytes, b->capacity, wanted, 1);
  b->capacity = wanted;
}

void tpl_add(tpl_builder *b, const char *bytes, size_t n, bool marked) {
  if (n == 0) return;
  reserve(b, n);
  memcpy(b->bytes + b->len, bytes, n);
  if (marked) mark(b, b->len, b->len + n);
  b->len += n;
}

void tpl_add_text(tpl_builder *b, const char *text) { tpl_add(b, text, strlen(text), false); }

void tpl_add_part(tpl_builder *b, const tpl_string *s, size_t from, size_t to) {
  size_t base = b->len;
  tpl_add(b, s->bytes + from, to - from, false);
  for (size_t i = range_after(s, from); i < s->n_marked && s->marked[i].begin < to; i++) {
    size_t begin = s->marked[i].begin > from ? s->marked[i].begin : from;
    size_t end = s->marked[i].end < to ? s->marked[i].end : to;
    mark(b, base + begin - from, base + end - from);
  }
}

void tpl_add_string(tpl_builder *b, const tpl_string *s) { tpl_add_part(b, s, 0, s->len); }

void tpl_add_escaped(tpl_builder *b, const tpl_string *s) {
  static const char special[] = "&<>\"'", *const names[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
  size_t from = 0;
  tpl_charge_characters(b->job, s->len);
  for (size_t i = 0; i < s->len; i++) {
    const char *found = memchr(special, s->bytes[i], sizeof special - 1);
    if (!found) continue;
    tpl_add_part(b, s, from, i);
    tpl_add(b, names[found - special], strlen(names[found - special]), tpl_is_marked(s, i));
    from = i + 1;
  }
  tpl_add_part(b, s, from, s->len);
}

/* used: bytes; SIZE_MAX while a string is being built there. */
struct tpl_room {
  size_t used, capacity, marked_capacity;
};

enum { LEAST_ROOM = 512 }; /* shorter strings are copied */

void tpl_continue(tpl_builder *b, const tpl_string *s) {
  if (!s->room || s->room->used != s->len) {
    tpl_add_string(b, s);
    return;
  }
  b->bytes = (char *)s->bytes; /* the bytes from s->len on belong to nobody */
  b->len = s->len;
  b->capacity = s->room->capacity;
  b->marked = (dt_range *)s->marked;
  b->n_marked = b->n_fixed = s->n_marked;
  b->marked_capacity = s->room->marked_capacity;
  s->room->used = SIZE_MAX;
}

const tpl_string *tpl_built(tpl_builder *b) {
  tpl_string *s = tpl_allocate(b->job, sizeof *s);
  *s = (tpl_string){b->bytes ? b->bytes : "", b->len, b->marked, b->n_marked, b->safe, NULL};
  if (b->len < LEAST_ROOM || b->job->is_shared) return s;
  s->room = tpl_allocate(b->job, sizeof *s->room);
  *s->room = (tpl_room){b->len, b->capacity, b->marked_capacity};
  return s;
}

/* Its bytes are those of s. */
const tpl_string *tpl_string_part(tpl_job *job, const tpl_string *s, size_t from, size_t to) {
  if (from == 0 && to == s->len) return s;
  tpl_string *part = tpl_allocate(job, sizeof *part);
  tpl_builder b = {.job = job};
  for (size_t i = range_after(s, from); i < s->n_marked && s->marked[i].begin < to; i++) {
    size_t begin = s->marked[i].begin > from ? s->marked[i].begin : from;
    mark(&b, begin - from, (s->marked[i].end < to ? s->marked[i].end : to) - from);
  }
  *part = (tpl_string){s->bytes + from, to - from, b.marked, b.n_marked, s->safe, NULL};
  return part;
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

bool tpl_string_is(const tpl_string *s, const char *text) {
  return s->len == strlen(text) && memcmp(s->bytes, text, s->len) == 0;
}

bool tpl_string_equal(const tpl_string *a, const tpl_string *b) {
  return a->len == b->len && (a->bytes == b->bytes || memcmp(a->bytes, b->bytes, a->len) == 0);
}

int tpl_string_order(const tpl_string *a, const tpl_string *b) {
  size_t n = a->len < b->len ? a->len : b->len;
  int order = memcmp(a->bytes, b->bytes, n);
  return order ? (order > 0) - (order < 0) : (a->len > b->len) - (a->len < b->len);
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

static bool begins_character(char c) { return ((unsigned char)c & 0xC0) != 0x80; }

/* How many of 8 bytes continue a character: 10xxxxxx. */
static size_t count_continued(const char *bytes) {
  uint64_t x;
  memcpy(&x, bytes, sizeof x);
  return (((x >> 7) & ~(x >> 6)) & 0x0101010101010101u) * 0x0101010101010101u >> 56;
}

size_t tpl_length(tpl_job *job, const tpl_string *s) {
  size_t n = 0, i = 0;
  for (; i + 8 <= s->len; i += 8) n += 8 - count_continued(s->bytes + i);
  for (; i < s->len; i++) n += begins_character(s->bytes[i]);
  tpl_charge_bytes(job, s->len);
  return n;
}

size_t tpl_offset(tpl_job *job, const tpl_string *s, size_t index) {
  size_t at = 0;
  for (; at < s->len; at++)
    if (begins_character(s->bytes[at]) && index-- == 0) break;
  tpl_charge_bytes(job, at);
  return at;
}

int32_t tpl_character(const tpl_string *s, size_t at, size_t *len) {
  utf8proc_int32_t c;
  *len = 1;
  if ((unsigned char)s->bytes[at] < 0x80) return s->bytes[at];
  size_t left = s->len - at;
  utf8proc_ssize_t n =
      utf8proc_iterate((const utf8proc_uint8_t *)s->bytes + at, left < 4 ? (utf8proc_ssize_t)left : 4, &c);
  if (n <= 0) return 0xFFFD;
  *len = (size_t)n;
  return c;
}

size_t tpl_before(const tpl_string *s, size_t at) {
  do at--;
  while (at > 0 && !begins_character(s->bytes[at]));
  return at;
}

size_t tpl_after(const tpl_string *s, size_t at) {
  do at++;
  while (at < s->len && !begins_character(s->bytes[at]));
  return at;
}

bool tpl_is_space(int32_t c) {
  if (c < 0x80) return (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= ' ');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t tpl_encode(int32_t c, char out[4]) { return (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)out); }

size_t tpl_find(tpl_job *job, const tpl_string *s, const tpl_string *part, size_t from, size_t to) {
  if (from > to || part->len > to - from) return SIZE_MAX;
  if (part->len == 0) return from;
  const char *found = part->len == 1 ? memchr(s->bytes + from, part->bytes[0], to - from)
                                     : os_find(s->bytes + from, to - from, part->bytes, part->len);
  tpl_charge_bytes(job, (found ? (size_t)(found - s->bytes) : to) - from);
  return found ? (size_t)(found - s->bytes) : SIZE_MAX;
}

static bool is_stripped(const tpl_string *s, size_t at, size_t *len, const tpl_string *set) {
  int32_t c = tpl_character(s, at, len);
  if (!set) return tpl_is_space(c);
  return os_find(set->bytes, set->len, s->bytes + at, *len) != NULL;
}

const tpl_string *tpl_strip(tpl_job *job, const tpl_string *s, const tpl_string *set, bool left, bool right) {
  size_t from = 0, to = s->len, len;
  while (left && from < to && is_stripped(s, from, &len, set)) from += len;
  while (right && to > from && is_stripped(s, tpl_before(s, to), &len, set)) to = tpl_before(s, to);
  tpl_charge_characters(job, (s->len - (to - from)) * (set ? set->len + 1 : 1));
  return tpl_string_part(job, s, from, to);
}
