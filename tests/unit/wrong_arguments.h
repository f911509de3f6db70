/* Shared by the tests of wrong arguments; also checks that these tests cover every function of a header. */
#ifndef WRONG_ARGUMENTS_H
#define WRONG_ARGUMENTS_H

#include "unit.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const int NEGATIVE[] = {INT_MIN, -1};

#define EACH(value, list) (const int *value = list; value < list + sizeof list / sizeof *list; value++)

/* Checks the message of a refusal: one line that contains `part`. */
static inline void check_message(const char *message, int line, const char *call, const char *part) {
  size_t n = strlen(message);
  if (n < 10 || n > 400 || strpbrk(message, "\n\r\t")) fail_msg("%d: %s: '%s'", line, call, message);
  if (!strstr(message, part)) fail_msg("%d: %s: '%s' has no '%s'", line, call, message, part);
}

/* The call, which fills `err`, must return `wanted` and a one-line message that contains `part`. */
#define ANSWERS(call, wanted, part)                                                                                    \
  do {                                                                                                                 \
    dt_error err = {0};                                                                                                \
    int answer_ = (int)(call);                                                                                         \
    if (answer_ != (int)(wanted)) fail_msg("%d: %s: %d (%s)", __LINE__, #call, answer_, err.message);                  \
    check_message(err.message, __LINE__, #call, part);                                                                 \
  } while (0)

/* The same for a call of the host. It is made twice, with `err` and with NULL. */
#define HOST_REFUSES(call, wanted, part)                                                                               \
  do {                                                                                                                 \
    dt_error told_ = {.status = DT_OK}, *err = &told_;                                                                 \
    int answer_ = (int)(call);                                                                                         \
    if (answer_ != (int)(wanted)) fail_msg("%d: %s: %d (%s)", __LINE__, #call, answer_, told_.message);                \
    if (told_.status != (wanted)) fail_msg("%d: %s: the error has status %d", __LINE__, #call, (int)told_.status);     \
    check_message(told_.message, __LINE__, #call, part);                                                               \
    err = NULL;                                                                                                        \
    if ((int)(call) != answer_) fail_msg("%d: %s: without an error to fill the answer differs", __LINE__, #call);      \
  } while (0)

/* ---- what is declared -------------------------------------------------------------------------------------------- */

static inline char *read_source(const char *name) {
  enum { MOST = 1 << 20 };
  char path[512], *text = calloc(1, MOST);
  snprintf(path, sizeof path, SOURCE_DIR "/%s", name);
  FILE *file = fopen(path, "rb");
  size_t n = file ? fread(text, 1, MOST - 1, file) : 0;
  if (file) fclose(file);
  if (n == 0 || n == MOST - 1) fail_msg("%s is missing, empty or too long", path);
  return text;
}

static inline bool has_word(const char *text, const char *word) {
  size_t n = strlen(word);
  for (const char *at = text; (at = strstr(at, word)); at += n)
    if (!isalnum((unsigned char)at[-1]) && at[-1] != '_' && !isalnum((unsigned char)at[n]) && at[n] != '_') return true;
  return false;
}

/* Every function of the header whose name begins with `prefix` must be listed in one of the tests (lists that end with
 * NULL). Returns how many functions there are. */
static inline int check_tested(const char *header, const char *prefix, const char *const *tests) {
  char pattern[64], name[64], *text = read_source(header), *test[8] = {0};
  regex_t function;
  regmatch_t found[2];
  int count = 0;
  for (char *at = text, *end; (at = strstr(at, "/*")); at = end) { /* removes comments */
    assert_non_null(end = strstr(at, "*/"));
    memset(at, ' ', (size_t)(end - at) + 2);
  }
  for (int i = 0; tests[i]; i++) test[i] = read_source(tests[i]);
  snprintf(pattern, sizeof pattern, "[ *](%s[a-z0-9_]+)\\([^*]", prefix); /* but not NAME (*pointer)( */
  assert_int_equal(regcomp(&function, pattern, REG_EXTENDED), 0);
  for (const char *at = text; !regexec(&function, at, 2, found, 0); at += found[0].rm_eo - 1, count++) {
    bool tested = false;
    snprintf(name, sizeof name, "%.*s", (int)(found[1].rm_eo - found[1].rm_so), at + found[1].rm_so);
    for (int i = 0; test[i]; i++) tested |= has_word(test[i], name);
    if (!tested) fail_msg("%s declares %s, which no test calls with wrong arguments", header, name);
  }
  regfree(&function);
  for (int i = 0; test[i]; i++) free(test[i]);
  free(text);
  return count;
}

#endif
