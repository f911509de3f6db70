/* Converts JSON schemas to grammars that match JSON which the schema accepts: never more, and all of it except for the
 * order of properties, some spellings of values, and what is refused by name. lua/cli/OPTIONS.md lists the keywords.
 *
 * Properties must be in the order of their first appearance in the schema, with additional ones after them. */
#ifndef DT_SCHEMA_H
#define DT_SCHEMA_H

#include "system/status.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#define SCHEMA_BYTES (4 << 20) /* maximum length of a schema */
#define SCHEMA_DEPTH 400       /* maximum depth of nested schemas */
#define SCHEMA_VALUES 10000    /* maximum number of values of an enum */
#define SCHEMA_NOTE 256

typedef struct {
  /* Objects may have more properties than a schema lists, as the standard says. Otherwise, a schema with `properties`
   * allows only those, the required ones and those of patternProperties, unless it has additionalProperties or
   * unevaluatedProperties; and a schema without `type` has the types of its keywords. */
  bool open;
  bool strict; /* keywords without effect are refused: unknown ones, and those of other types */
  char *note;  /* [SCHEMA_NOTE] NULL or gets a sentence about the first keyword without effect; unchanged: none */
} schema_options;

/* Converts a schema. options NULL: all zero. *gbnf is malloc'd; the caller frees it. DT_EINPUT: the schema is not JSON,
 * has an unsupported keyword, or is too large. */
dt_status schema_to_gbnf(const char *json, const schema_options *options, char **gbnf, dt_error *err);

/* Whether the keyword can change what is valid. */
bool schema_has_effect(const char *keyword);

/* ---- several schemas in one grammar ------------------------------------------------------------------------------ */

/* How values are written: items of GBNF, each with a space after it, for where white space may be anywhere, and for
 * commas and colons with what follows them. For ", " and ": " they are "", "\", \" " and "\": \" ". In calls below,
 * NULL means JSON with any white space. */
typedef struct {
  const char *ws, *comma, *colon;
  /* NULL: JSON. Otherwise strings stand as they are between two of these texts, and names of members have no quotes.
   * The caller writes the rules text-0, a string without them, and mild, a character of one of limited length. */
  const char *quote;
} schema_notation;

/* Writes the rules that all schemas of a grammar share: value, object, array, string, number, integer, boolean, null,
 * char, and others that no schema uses as a name. open: as in schema_options; integers may have more digits. */
void schema_put_common(const schema_notation *notation, bool open, FILE *out);

/* Writes the rules of one schema, which was read with exact_json_read. Its own rule is rN, where N is *made before the
 * call; *made counts the rules of the grammar. DT_EINPUT as above; messages begin with `what`. If `out` runs out of
 * memory, the caller finds out when it closes it. */
dt_status schema_put(const cJSON *schema, const char *what, const schema_notation *notation,
                     const schema_options *options, int *made, FILE *out, dt_error *err);

#endif
