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

#define SCHEMA_DEPTH 100 /* maximum depth of nested schemas */

/* Converts a schema. *gbnf is malloc'd; the caller frees it. DT_EINPUT: the schema is not JSON, has an unsupported
 * keyword, or is too large. */
dt_status schema_to_gbnf(const char *json, char **gbnf, dt_error *err);

#endif
