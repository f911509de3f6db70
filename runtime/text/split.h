/* Cuts a text into words, which are encoded one by one. Each step cuts the pieces of the previous step. */
#ifndef DT_SPLIT_H
#define DT_SPLIT_H

#include "text/pattern.h"

#include <stdbool.h>

typedef enum {
  SPLIT_PATTERN,  /* a piece is cut at the matches of `pattern` */
  SPLIT_SPACE,    /* a piece that does not begin with a space gets one */
  SPLIT_METASPACE /* spaces become a mark, the piece gets one in front, and it is cut before each mark */
} split_kind;

typedef enum {
  MARK_NEVER,
  MARK_FIRST,
  MARK_ALWAYS
} split_mark; /* MARK_FIRST: only for a piece at the beginning of the whole text */

typedef enum {
  KEEP_ALL, /* matches and the texts between them, as separate pieces */
  KEEP_MATCHES,
  KEEP_BETWEEN,
  KEEP_JOINED /* a match ends the text before it */
} split_keep;

typedef struct {
  split_kind kind;
  pcre2_code *pattern;
  split_keep keep; /* for a pattern */
  char mark[8];    /* for metaspace: one character, NUL-terminated */
  split_mark in_front;
  bool cut;
} split_step;

void split_free(split_step *steps, int n_steps);

/* Receives one word, which is never empty. Any result except DT_OK ends the splitting. */
typedef dt_status (*split_word)(void *user, const char *word, size_t n);

typedef struct {
  const split_step *steps;
  int n_steps;
  split_word word;
  void *user;
  dt_error *err;
  pcre2_match_data *match; /* the splitter's own */
  pcre2_match_context *context;
} splitter; /* one per thread */

/* Allocates what the splitter owns. */
dt_status split_open(splitter *p);
void split_close(splitter *p);

/* Splits s, n >= 1 bytes of valid UTF-8. `first`: s is the beginning of the whole text. */
dt_status split_text(const splitter *p, const char *s, size_t n, bool first);

#endif
