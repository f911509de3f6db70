/* Strings that know which of their bytes come from the request. Every operation builds its
 * result of parts of other strings, whose marks come along. Strings never change. */
#ifndef DT_TEMPLATE_STRING_H
#define DT_TEMPLATE_STRING_H

#include "template/job.h"

typedef struct tpl_room tpl_room; /* free bytes after a string, for a longer one that begins with it */

typedef struct {
  const char *bytes; /* UTF-8 */
  size_t len;
  const dt_range *marked; /* [n_marked], in order, apart */
  size_t n_marked;
  bool safe;      /* Jinja's Markup: what is added to it is escaped as HTML */
  tpl_room *room; /* NULL: none */
} tpl_string;

typedef struct {
  tpl_job *job;
  char *bytes;
  size_t len, capacity;
  dt_range *marked;
  size_t n_marked, marked_capacity;
  size_t n_fixed; /* of the marks: those of the string that is continued */
  size_t limit;   /* bytes; 0: only the job's memory limits it */
  bool safe;      /* of the string that is built */
} tpl_builder;

/* A string of these bytes, which are not copied. */
const tpl_string *tpl_string_of(tpl_job *job, const char *bytes, size_t len);
const tpl_string *tpl_text(tpl_job *job, const char *text);
const tpl_string *tpl_string_part(tpl_job *job, const tpl_string *s, size_t from, size_t to);

/* Begins an empty builder with a string. If the string has room, it is extended in place: a text that a template
 * collects in a variable would otherwise be copied for every part. */
void tpl_continue(tpl_builder *b, const tpl_string *s);

void tpl_add(tpl_builder *b, const char *bytes, size_t n, bool marked);
void tpl_add_text(tpl_builder *b, const char *text);
void tpl_add_part(tpl_builder *b, const tpl_string *s, size_t from, size_t to);
void tpl_add_string(tpl_builder *b, const tpl_string *s);
void tpl_add_escaped(tpl_builder *b, const tpl_string *s); /* as HTML */
const tpl_string *tpl_built(tpl_builder *b);

bool tpl_is_marked(const tpl_string *s, size_t at);
bool tpl_string_is(const tpl_string *s, const char *text);
bool tpl_string_equal(const tpl_string *a, const tpl_string *b);
int tpl_string_order(const tpl_string *a, const tpl_string *b); /* by code points */

/* Characters. */
size_t tpl_length(tpl_job *job, const tpl_string *s);
size_t tpl_offset(tpl_job *job, const tpl_string *s, size_t index); /* of the character; len if there are fewer */
int32_t tpl_character(const tpl_string *s, size_t at, size_t *len); /* invalid UTF-8: U+FFFD, 1 byte */
size_t tpl_before(const tpl_string *s, size_t at);                  /* where the character before `at` begins */
size_t tpl_after(const tpl_string *s, size_t at);                   /* where the one at `at` ends */
bool tpl_is_space(int32_t c);                                       /* Python's str.isspace */
size_t tpl_encode(int32_t c, char out[4]);

/* The offset of `part` at or after `from`, before `to`; SIZE_MAX: none. */
size_t tpl_find(tpl_job *job, const tpl_string *s, const tpl_string *part, size_t from, size_t to);

/* Strips the characters of `set` (NULL: white space) on the left or right. */
const tpl_string *tpl_strip(tpl_job *job, const tpl_string *s, const tpl_string *set, bool left, bool right);

#endif
