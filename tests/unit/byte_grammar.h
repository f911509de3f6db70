/* Grammars over single bytes, and the questions that tests ask of them. */
#ifndef BYTE_GRAMMAR_H
#define BYTE_GRAMMAR_H

#include "rig.h"

#include "grammar/masks.h"

enum { END = 256 }; /* ids below are bytes */

static inline const char *byte_of(const void *of, int32_t id, bool first, char buffer[16], size_t *len) {
  (void)of, (void)first;
  *len = id != END;
  buffer[0] = (char)id;
  return buffer;
}

static inline vocabulary *bytes(void) {
  vocabulary *v;
  ok(vocabulary_open(END + 1, byte_of, NULL, &(int32_t){END}, 1, &v, &err));
  return v;
}

static inline masks *read_grammar(const vocabulary *v, const char *gbnf) {
  masks *m;
  ok(masks_open(v, gbnf, &m, &err));
  return m;
}

/* Whether the grammar accepts the whole text. */
static inline bool takes(masks *m, const char *text) {
  int place = masks_enter(m);
  int32_t at = masks_state(m, place);
  for (; *text; text++) at = masks_step(m, at, (uint8_t)*text, false);
  masks_leave(m, place);
  return masks_allow(m, at, END, false);
}

/* head, n times middle, tail */
static inline char *repeated(const char *head, const char *middle, int n, const char *tail) {
  size_t each = strlen(middle);
  char *text = malloc(strlen(head) + each * (size_t)n + strlen(tail) + 1);
  assert_non_null(text);
  char *at = stpcpy(text, head);
  for (int i = 0; i < n; i++) at = stpcpy(at, middle);
  strcpy(at, tail);
  return text;
}

#endif
