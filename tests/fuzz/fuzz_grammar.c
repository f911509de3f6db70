/* The parser of grammars, and the masks of a small vocabulary along a text. Bytes before a NUL are the grammar, those
 * after it the text. States have little memory, so that no grammar takes long. */
#include "fuzz.h"

#include "grammar/masks.h"

#include <stdlib.h>
#include <string.h>

static const char *const words[] = {"",
                                    "a",
                                    "b",
                                    "ab",
                                    " ",
                                    "\"",
                                    "{",
                                    "}",
                                    "0",
                                    "1",
                                    "\n",
                                    "\xc3",
                                    "\xa9",
                                    "x",
                                    ",",
                                    "(",
                                    ")",
                                    "\xc3\xa9",
                                    "\xe6\x97",
                                    "\x97\xa5",
                                    "\xe6\x97\xa5",
                                    "\xed\xa0",
                                    " a",
                                    " \xc3\xa9",
                                    "ababababab\xc3\xa9",
                                    "a\xe6\x97",
                                    "b\"",
                                    "xxxxxxxxx"};
enum { WORDS = sizeof words / sizeof *words, STEPS = 32, LIMIT = 1 << 15 };

static const char *word_of(const void *of, int32_t id, bool first, char buffer[16], size_t *len) {
  (void)of, (void)first, (void)buffer;
  *len = strlen(words[id]);
  return words[id];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static vocabulary *v;
  masks *m;
  if (!v && vocabulary_open(WORDS, word_of, NULL, &(int32_t){0}, 1, &v, NULL)) abort();
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  size_t n = strlen(text);
  if (!masks_open(v, text, &m, NULL)) {
    masks_limit(m, LIMIT);
    int place = masks_enter(m);
    for (size_t i = n + 1; i < size && i - n <= STEPS && masks_state(m, place) != MASKS_NOWHERE; i++) {
      int32_t id = data[i] % WORDS;
      bool in_mask = masks_of_text(m, place, false)[0] >> id & 1;
      if (masks_failure(m, NULL)) break;
      bool allowed = masks_allow(m, masks_state(m, place), id, false); /* also false if memory does not suffice */
      if (allowed && !in_mask) abort();
      if (!id) continue;
      masks_take(m, place, id, false);
      if (masks_failure(m, NULL)) break;
      if (in_mask != (masks_state(m, place) != MASKS_NOWHERE)) abort();
    }
    masks_release(m);
  }
  free(text);
  return 0;
}
