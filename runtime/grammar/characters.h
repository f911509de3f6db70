/* Sets of characters, written in the notation of grammars (gbnf.h): either unchanged or as they appear in a JSON
 * string. In a JSON string only the characters that need an escape have one: the quote, the backslash and control
 * characters. */
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
/* Sorts the ranges, joins adjacent ones and removes surrogates, which are not characters. */
void characters_tidy(characters *s);
void characters_invert(characters *s); /* replaces a tidy set by all other characters, also tidy */
void characters_free(characters *s);   /* leaves an empty set; a zeroed set is allowed */

bool characters_escaped(int32_t c); /* whether it has an escape in a JSON string */
/* Writes one item of a grammar's rule: any character of the set, which must be tidy and not empty. in_json: the grammar
 * must have the rules `wide` and `escape`, for characters beyond ASCII and for escapes as `plain` has them. */
void characters_put(const characters *s, bool in_json, FILE *out);
void characters_put_one(int32_t c, FILE *out); /* writes one character inside a quoted text or a class */

#endif
