/* What a limit on reasoning forces, by its definition: the whole text is searched again after each token. */
#ifndef REASONING_REFERENCE_H
#define REASONING_REFERENCE_H

#include "dtrun.h"

#include <string.h>

enum { REASONING_TEXT = 65536 };

static inline size_t reasoning_white(const char *text, size_t n) {
  size_t white = 0;
  while (white < n && strchr(" \n\t\r", text[white]) && text[white]) white++;
  return white;
}

static inline size_t reasoning_trimmed(const char *mark, const char **begin) {
  *begin = mark + reasoning_white(mark, strlen(mark));
  size_t n = strlen(*begin);
  while (n > 0 && reasoning_white(*begin + n - 1, 1)) n--;
  return n;
}

static inline bool reasoning_has(const char *text, size_t n, const char *mark, size_t n_mark) {
  for (size_t i = 0; i + n_mark <= n; i++)
    if (!memcmp(text + i, mark, n_mark)) return true;
  return false;
}

/* Returns after how many of the n generated tokens the first id is forced; -1: after none of them. */
static inline int reasoning_reached(const dt_pair *pair, const dt_reasoning_limit *limit, const int32_t *tokens,
                                    int n) {
  static char text[REASONING_TEXT];
  const char *begin, *end;
  size_t n_end = reasoning_trimmed(limit->end, &end), n_begin = reasoning_trimmed(limit->begin, &begin);
  size_t len = 0, from = 0;
  for (int i = 0, since = limit->open ? 0 : -1; i <= n; i++) {
    size_t white = reasoning_white(text, len), more;
    if (since < 0 && len >= white + n_begin && !memcmp(text + white, begin, n_begin)) since = i, from = white + n_begin;
    if (since >= 0 && reasoning_has(text + from, len - from, end, n_end)) return -1;
    if (since >= 0 && i - since >= limit->tokens) return i;
    if (i == n) break;
    char buffer[16];
    const char *bytes = dt_token_bytes(pair, tokens[i], i == 0, buffer, &more);
    if (len + more > sizeof text) return -1;
    memcpy(text + len, bytes, more);
    len += more;
  }
  return -1;
}

#endif
