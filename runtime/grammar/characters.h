/* Sets of characters, and how a grammar (gbnf.h) spells them: as they are, or as they stand in a JSON string. There
 * only those have an escape that need one: the quote, the backslash and control characters. */
#ifndef DT_CHARACTERS_H
#define DT_CHARACTERS_H

#include "grammar/rules.h"

#include <stdio.h>

typedef struct {
  rules_range *range; /* [n] */
  int n, room;
  bool no_memory;
} characters;

void characters_add(characters *s, int32_t low, int32_t high);
/* Sorts the ranges, joins those that touch and leaves out surrogates, which are no characters. */
void characters_tidy(characters *s);
void characters_invert(characters *s); /* all others of a tidy set, tidy */
void characters_free(characters *s);   /* leaves an empty set; zeros are allowed */

bool characters_escaped(int32_t c); /* in a JSON string */
/* One item of a grammar's rule: a character of the set, which is tidy and not empty. */
void characters_put(const characters *s, bool in_json, FILE *out);
void characters_put_one(int32_t c, FILE *out); /* within a text in quotes or a class */

#endif
