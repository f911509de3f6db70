/* Shows whole words: see whole_words.h. */
#include "cli/whole_words.h"

#include "text/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether a word may end after this character. */
static bool ends_word(int32_t c) {
  if (c < 0x80) return !isalnum((int)c) && c != '\'' && c != '-' && c != '_';
  if (c >= 0x2000 && c <= 0x206F) /* blanks, dashes and quotes, but no hyphens, apostrophes or joiners, which connect */
    return c != 0x2010 && c != 0x2011 && c != 0x2019 && c != 0x200C && c != 0x200D && c != 0x2060;
  return c >= 0x2E80 && !(c >= 0xAC00 && c <= 0xD7FF); /* Korean separates words by blanks */
}

/* Returns how many of the n bytes may be shown. */
static size_t whole(const char *s, size_t n) {
  size_t end = 0, at = 0, len;
  int waiting = 0; /* number of characters after `end` */
  while (at < n) {
    utf8_kind kind = utf8_next(s + at, n - at, &len);
    if (kind == UTF8_CUT) break;
    at += len;
    bool ends = kind == UTF8_BAD || ends_word(utf8_code_point(s + at - len, len));
    if (ends || ++waiting > WORDS_MOST) end = at, waiting = 0;
  }
  return end;
}

static bool reserve(words *w, size_t n) {
  if (n <= w->room) return true;
  char *grown = realloc(w->held, 2 * n);
  if (grown) w->held = grown, w->room = 2 * n;
  return grown;
}

bool words_text(void *user, const char *bytes, size_t len) {
  words *w = user;
  if (len == 0) return !w->out.lost;
  if (!reserve(w, w->n + len)) { /* there is no memory for holding back text */
    size_t n = w->n;
    w->n = 0;
    return shown_text(&w->out, w->held, n) && shown_text(&w->out, bytes, len);
  }
  memcpy(w->held + w->n, bytes, len);
  w->n += len;
  size_t now = whole(w->held, w->n);
  bool more = shown_text(&w->out, w->held, now);
  memmove(w->held, w->held + now, w->n -= now);
  return more;
}

bool words_end(words *w) {
  bool more = shown_text(&w->out, w->held, w->n);
  free(w->held);
  w->held = NULL, w->n = w->room = 0;
  return more;
}
