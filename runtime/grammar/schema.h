/* JSON schemas as grammars: the texts of the grammar are JSON that the schema takes.
 *
 *   type (one or a list), enum, const, anyOf, $ref (# and #/$defs/NAME), $defs
 *   properties, required, additionalProperties (a schema or false; false without it), items, minItems, maxItems
 *   minLength, maxLength or pattern (regex.h)
 *   minimum, maximum, exclusiveMinimum, exclusiveMaximum of integers (integers.h)
 *
 * Properties come in the schema's order, further ones after them. title, description, default, examples, $schema, $id
 * and $comment say nothing. */
#ifndef DT_SCHEMA_H
#define DT_SCHEMA_H

#include "system/status.h"

#define SCHEMA_DEPTH 100 /* schemas in schemas */

/* *gbnf is malloc'd. DT_EINPUT: not JSON, another keyword, too large. */
dt_status schema_to_gbnf(const char *json, char **gbnf, dt_error *err);

#endif
