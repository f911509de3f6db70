/* Whether a grammar accepts a text, byte by byte: for programs that check_*.py ask. */
#ifndef DT_TEST_BYTE_TEXT_H
#define DT_TEST_BYTE_TEXT_H

#include "grammar/masks.h"

enum { BYTE_END = 256 }; /* the id that ends a text; ids below are bytes */

static inline const char *byte_of(const void *of, int32_t id, bool first, char buffer[16], size_t *len) {
  (void)of, (void)first;
  *len = id != BYTE_END;
  buffer[0] = (char)id;
  return buffer;
}

static inline dt_status open_bytes(vocabulary **v, dt_error *err) {
  return vocabulary_open(BYTE_END + 1, byte_of, NULL, &(int32_t){BYTE_END}, 1, v, err);
}

/* How many bytes are the beginning of a text that the grammar accepts. *whole: the grammar accepts the text. */
static inline size_t bytes_accepted(masks *m, const char *text, size_t len, bool *whole) {
  int place = masks_enter(m);
  size_t n = 0;
  *whole = false;
  if (place < 0) return 0; /* out of memory */
  for (; n < len && masks_state(m, place) != MASKS_NOWHERE; n++) masks_take(m, place, (uint8_t)text[n], false);
  int32_t end = masks_state(m, place);
  if (n && end == MASKS_NOWHERE) n--;
  *whole = end != MASKS_NOWHERE && masks_allow(m, end, BYTE_END, false);
  masks_leave(m, place);
  return n;
}

#endif
