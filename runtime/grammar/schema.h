/* Converts JSON schemas to grammars that match JSON which the schema accepts. Supported keywords:
 *
 *   type (one or a list), enum, const, anyOf, $ref (# and #/$defs/NAME), $defs
 *   properties, required, additionalProperties (a schema or false; false without it), items, minItems, maxItems
 *   minLength, maxLength or pattern (regex.h)
 *   minimum, maximum, exclusiveMinimum, exclusiveMaximum of integers (integers.h)
 *
 * Properties must be in the schema's order, with additional ones after them. title, description, default, examples,
 * $schema, $id and $comment are ignored. */
#ifndef DT_SCHEMA_H
#define DT_SCHEMA_H

#include "system/status.h"

#include <cjson/cJSON.h>
#include <stdio.h>

#define SCHEMA_DEPTH 100 /* maximum depth of nested schemas */

/* Converts a schema. *gbnf is malloc'd; the caller frees it. DT_EINPUT: the schema is not JSON, has an unsupported
 * keyword, or is too large. */
dt_status schema_to_gbnf(const char *json, char **gbnf, dt_error *err);

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
 * char, and others that no schema uses as a name. */
void schema_put_common(const schema_notation *notation, FILE *out);

/* Writes the rules of one schema, which was read with exact_json_read. Its own rule is rN, where N is *made before the
 * call; *made counts the rules of the grammar. DT_EINPUT as above; messages begin with `what`. If `out` runs out of
 * memory, the caller finds out when it closes it. */
dt_status schema_put(const cJSON *schema, const char *what, const schema_notation *notation, int *made, FILE *out,
                     dt_error *err);

#endif
