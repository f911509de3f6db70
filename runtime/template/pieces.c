/* Strings in pieces: see pieces.h. */
#include "template/pieces.h"

#include <string.h>

enum { WIDEST = 1 << 20 };

static void add_piece(tpl_job *job, tpl_value list, const tpl_string *s, size_t from, size_t to) {
  tpl_charge(job, 1);
  tpl_append(job, list, tpl_string_value(tpl_string_part(job, s, from, to)));
}

static bool is_allowed(int64_t count, size_t done) { return count < 0 || done < (size_t)count; }

/* `to` between all characters and at both ends. */
static void replace_nothing(tpl_builder *b, const tpl_string *s, const tpl_string *to, int64_t count) {
  size_t done = 0, at = 0;
  while (at < s->len && is_allowed(count, done)) {
    size_t end = tpl_after(s, at);
    tpl_add_string(b, to);
    tpl_add_part(b, s, at, end);
    tpl_charge(b->job, 1);
    at = end;
    done++;
  }
  if (is_allowed(count, done)) tpl_add_string(b, to);
  tpl_add_part(b, s, at, s->len);
}

const tpl_string *tpl_replace(tpl_job *job, const tpl_string *s, const tpl_string *from, const tpl_string *to,
                              int64_t count) {
  tpl_builder b = {.job = job, .safe = s->safe};
  size_t at = 0;
  if (from->len == 0) {
    replace_nothing(&b, s, to, count);
  } else {
    for (size_t done = 0, found; is_allowed(count, done); done++) {
      found = tpl_find(job, s, from, at, s->len);
      if (found == SIZE_MAX) break;
      if (done % 16 == 0) tpl_charge(job, 1);
      tpl_add_part(&b, s, at, found);
      tpl_add_string(&b, to);
      at = found + from->len;
    }
    if (at == 0) return s;
    tpl_add_part(&b, s, at, s->len);
  }
  return tpl_built(&b);
}

/* ---- split ------------------------------------------------------------------------------------------------------- */

static size_t skip(const tpl_string *s, size_t at, bool spaces) {
  size_t len;
  while (at < s->len && tpl_is_space(tpl_character(s, at, &len)) == spaces) at += len;
  return at;
}

static size_t skip_back(const tpl_string *s, size_t at, bool spaces) {
  size_t len;
  while (at > 0 && tpl_is_space(tpl_character(s, tpl_before(s, at), &len)) == spaces) at = tpl_before(s, at);
  return at;
}

static tpl_value split_spaces(tpl_job *job, const tpl_string *s, int64_t count) {
  tpl_value list = tpl_list_new(job, TPL_LIST, 0);
  size_t at = skip(s, 0, true);
  tpl_charge_characters(job, s->len);
  while (at < s->len && is_allowed(count, list.list->n)) {
    size_t end = skip(s, at, false);
    add_piece(job, list, s, at, end);
    at = skip(s, end, true);
  }
  if (at < s->len) add_piece(job, list, s, at, s->len);
  return list;
}

static void check_separator(tpl_job *job, const tpl_string *by) {
  if (by->len == 0) tpl_fail(job, "empty separator");
}

tpl_value tpl_split(tpl_job *job, const tpl_string *s, const tpl_string *by, int64_t count) {
  if (!by) return split_spaces(job, s, count);
  check_separator(job, by);
  tpl_value list = tpl_list_new(job, TPL_LIST, 0);
  size_t at = 0;
  while (is_allowed(count, list.list->n)) {
    size_t found = tpl_find(job, s, by, at, s->len);
    if (found == SIZE_MAX) break;
    add_piece(job, list, s, at, found);
    at = found + by->len;
  }
  add_piece(job, list, s, at, s->len);
  return list;
}

static tpl_value split_spaces_right(tpl_job *job, const tpl_string *s, int64_t count) {
  tpl_value list = tpl_list_new(job, TPL_LIST, 0);
  size_t end = skip_back(s, s->len, true);
  tpl_charge_characters(job, s->len);
  while (end > 0 && is_allowed(count, list.list->n)) {
    size_t at = skip_back(s, end, false);
    add_piece(job, list, s, at, end);
    end = skip_back(s, at, true);
  }
  if (end > 0) add_piece(job, list, s, 0, end);
  return tpl_reverse(list.list), list;
}

tpl_value tpl_split_right(tpl_job *job, const tpl_string *s, const tpl_string *by, int64_t count) {
  if (!by) return split_spaces_right(job, s, count);
  check_separator(job, by);
  tpl_value list = tpl_list_new(job, TPL_LIST, 0);
  size_t end = s->len, at = s->len;
  tpl_charge_characters(job, s->len);
  while (at >= by->len && is_allowed(count, list.list->n)) {
    if (memcmp(s->bytes + at - by->len, by->bytes, by->len) != 0) {
      at--;
      continue;
    }
    add_piece(job, list, s, at, end);
    end = at = at - by->len;
  }
  add_piece(job, list, s, 0, end);
  return tpl_reverse(list.list), list;
}

/* The length of the end of a line at `at`, 0: there is none. */
static size_t line_end(const tpl_string *s, size_t at) {
  size_t len;
  int32_t c = tpl_character(s, at, &len);
  if (c == '\r') return at + 1 < s->len && s->bytes[at + 1] == '\n' ? 2 : 1;
  bool ends = (c >= '\n' && c <= '\f') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  return ends ? len : 0;
}

tpl_value tpl_split_lines(tpl_job *job, const tpl_string *s, bool keep_ends) {
  tpl_value list = tpl_list_new(job, TPL_LIST, 0);
  size_t from = 0, len;
  tpl_charge_characters(job, s->len);
  for (size_t at = 0; at < s->len; at += len) {
    size_t end = line_end(s, at);
    len = end ? end : 1;
    if (!end) continue;
    add_piece(job, list, s, from, keep_ends ? at + end : at);
    from = at + end;
  }
  if (from < s->len) add_piece(job, list, s, from, s->len);
  return list;
}

/* ---- padding ----------------------------------------------------------------------------------------------------- */

const tpl_string *tpl_pad(tpl_job *job, const tpl_string *s, int64_t width, const tpl_string *fill, int side) {
  int64_t gap = width - (int64_t)tpl_length(job, s);
  if (gap <= 0) return s;
  if (gap > WIDEST) tpl_fail(job, "a text wider than %d characters", WIDEST);
  int64_t left = side < 0 ? 0 : side > 0 ? gap : gap / 2 + (gap & width & 1);
  tpl_builder b = {.job = job};
  for (int64_t i = 0; i < left; i++) tpl_add_string(&b, fill);
  tpl_add_string(&b, s);
  for (int64_t i = left; i < gap; i++) tpl_add_string(&b, fill);
  tpl_charge(job, (size_t)gap >> 4);
  return tpl_built(&b);
}
