/* Text in whole words: what is written to standard output, piece by piece. */
#include "cli/whole_words.h"
#include "unit.h"

#include <string.h>

static char pieces[1000]; /* each followed by '|' */

static ssize_t keep(void *cookie, const char *bytes, size_t n) {
  (void)cookie;
  strncat(pieces, bytes, n);
  strcat(pieces, "|");
  return (ssize_t)n;
}

/* Collects standard output while the texts come one by one, up to NULL. */
static void show(const char *const *texts) {
  FILE *before = stdout;
  words w = {0};
  pieces[0] = '\0';
  stdout = fopencookie(NULL, "w", (cookie_io_functions_t){.write = keep});
  setvbuf(stdout, NULL, _IOFBF, 4096);
  for (; *texts; texts++) assert_true(words_text(&w, *texts, strlen(*texts)));
  assert_true(words_end(&w));
  fclose(stdout);
  stdout = before;
}

#define SHOWS(expected, ...)                                                                                           \
  show((const char *const[]){__VA_ARGS__, NULL});                                                                      \
  assert_string_equal(pieces, expected)

static void it_shows_whole_words(void **state) {
  (void)state;
  SHOWS("The |Mountaine |ends.|", "The", " Mount", "aine ", "en",
        "ds."); /* at once: nothing is held back after a full stop */
  SHOWS("one two |three|", "one two thr", "ee");
  SHOWS("\n|a\n|b|", "\n", "a\n", "b");
  SHOWS("it's |well-known |snake_case|", "it", "'s ", "well", "-known ", "snake", "_case");
  SHOWS("x|", "x");
  SHOWS("", "", "");
}

static void it_shows_long_words_in_pieces(void **state) {
  (void)state;
  static const char forty[] = "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd";
  _Static_assert(sizeof forty - 1 == WORDS_MOST, "");
  SHOWS("aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd|", forty);
  SHOWS("aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd |", forty, " ");
  SHOWS("aaaaaaaaaabbbbbbbbbbccccccccccdddddddddde|f|", forty, "e", "f");
  SHOWS("aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd\xC3\xA9|", forty, "\xC3", "\xA9"); /* 41 characters, not 41 bytes */
}

static void it_never_ends_within_a_character(void **state) {
  (void)state;
  SHOWS("\xC3\xA9t\xC3\xA9 |", "\xC3", "\xA9t", "\xC3", "\xA9 ");
  SHOWS("\xE4\xBD\xA0|\xE5\xA5\xBD|", "\xE4\xBD", "\xA0\xE5", "\xA5\xBD");       /* each a word */
  SHOWS("don\xE2\x80\x99t |", "don", "\xE2\x80\x99", "t ");                      /* an apostrophe */
  SHOWS("\xE2\x80\x9C|so\xE2\x80\x9D|", "\xE2\x80", "\x9C", "so\xE2\x80\x9D");   /* quotes */
  SHOWS("\xED\x95\x9C\xEA\xB5\xAD |\xED|", "\xED\x95\x9C", "\xEA\xB5\xAD \xED"); /* Korean, cut off at the end */
  SHOWS("ab\xFF|c|", "ab\xFF", "c");                                             /* not UTF-8: not held back */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(it_shows_whole_words),
                                     cmocka_unit_test(it_shows_long_words_in_pieces),
                                     cmocka_unit_test(it_never_ends_within_a_character)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
