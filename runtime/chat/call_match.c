/* Where the texts of a format stand in an answer: see call_format.h. */
#include "chat/call_format.h"

#include <string.h>

enum { MOST_NAME = 128, MOST_KEY = 256 }; /* bytes */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool is_id(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; }

static bool is_name(char c) { return is_id(c) || c == '.'; }

/* A key is any text without the characters that the formats have around keys. */
static bool is_key(char c) { return (unsigned char)c > ' ' && !strchr("<>()[]{}\"'=,:/", c); }

/* Takes bytes of one kind, at least one and at most `most`. At the end of the text, more of them may come. */
static call_match take_run(bool (*is)(char), size_t most, const char *text, size_t n, size_t *used, call_span *run) {
  size_t at = *used;
  while (at < n && at - *used <= most && is(text[at])) at++;
  if (at - *used > most) return CALL_NO;
  if (at == n) return CALL_MAYBE;
  if (at == *used) return CALL_NO;
  *run = (call_span){text + *used, at - *used};
  *used = at;
  return CALL_YES;
}

static call_match take_bytes(call_span wanted, const char *text, size_t n, size_t *used) {
  size_t left = n - *used;
  if (memcmp(text + *used, wanted.bytes, left < wanted.n ? left : wanted.n) != 0) return CALL_NO;
  if (left < wanted.n) return CALL_MAYBE;
  *used += wanted.n;
  return CALL_YES;
}

/* Matches one byte of a format's text. */
static call_match take(const char *part, const char *text, size_t n, call_found *found) {
  call_span ignored;
  switch (*part) {
  case CALL_INDEX_0:
  case CALL_INDEX_1: return take_run(is_digit, MOST_NAME, text, n, &found->used, &ignored);
  case CALL_ID: return take_run(is_id, MOST_NAME, text, n, &found->used, &ignored);
  case CALL_TYPE:
  case CALL_IS_STRING: return take_run(is_letter, MOST_NAME, text, n, &found->used, &found->type);
  case CALL_NAME: return take_bytes(found->name, text, n, &found->used);
  case CALL_KEY: return take_bytes(found->key, text, n, &found->used);
  default: return take_bytes((call_span){part, 1}, text, n, &found->used);
  }
}

static void skip_space(const char *text, size_t n, size_t *used) {
  while (*used < n && chat_is_space(text[*used])) ++*used;
}

call_match call_match_part(const char *part, const char *text, size_t n, call_space space, call_found *found) {
  size_t core = strlen(part), i = 0;
  const bool exact = space == CALL_SPACE_EXACT;
  while (core > 0 && chat_is_space(part[core - 1])) core--;
  while (i < core && chat_is_space(part[i])) i++;
  for (; i < core; i++) {
    if (chat_is_space(part[i]) && !exact) continue;
    if (!exact) skip_space(text, n, &found->used);
    if (found->used == n) return CALL_MAYBE;
    call_match match = take(part + i, text, n, found);
    if (match != CALL_YES) return match;
  }
  for (const char *at = part + core; space == CALL_SPACE_BEFORE && *at; at++) {
    if (found->used == n) return CALL_MAYBE;
    if (text[found->used] != *at) break;
    found->used++;
  }
  return CALL_YES;
}

call_match call_match_head(const dt_call_format *f, const char *begin, const char *text, size_t n, call_found *found) {
  call_match match = call_match_part(begin, text, n, CALL_SPACE_ANY, found);
  if (match == CALL_YES) skip_space(text, n, &found->used);
  if (match == CALL_YES) match = take_run(is_name, MOST_NAME, text, n, &found->used, &found->name);
  if (match == CALL_YES) match = call_match_part(f->middle, text, n, CALL_SPACE_ANY, found);
  if (match != CALL_YES || f->tags) return match;
  skip_space(text, n, &found->used);
  if (found->used == n) return CALL_MAYBE;
  return text[found->used] == '{' ? CALL_YES : CALL_NO;
}

call_match call_match_key(const dt_call_format *f, const char *begin, const char *text, size_t n, call_found *found) {
  call_match match = call_match_part(begin, text, n, CALL_SPACE_ANY, found);
  if (match != CALL_YES) return match;
  skip_space(text, n, &found->used);
  match = take_run(is_key, MOST_KEY, text, n, &found->used, &found->key);
  return match == CALL_YES ? call_match_part(f->key_end, text, n, *f->quote ? CALL_SPACE_ANY : CALL_SPACE_BEFORE, found)
                           : match;
}
