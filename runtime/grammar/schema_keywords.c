/* The table of keywords: see schema_build.h. */
#include "grammar/schema_build.h"

#include <string.h>

static const schema_known known[] = {{"type", K_APPLIES, 0},
                                     {"enum", K_ONLY, 0},
                                     {"const", K_ONLY, 0},
                                     {"allOf", K_APPLIES, 0},
                                     {"anyOf", K_APPLIES, 0},
                                     {"oneOf", K_APPLIES, 0},
                                     {"not", K_APPLIES, 0},
                                     {"if", K_APPLIES, 0},
                                     {"then", K_IGNORED, 0},
                                     {"else", K_IGNORED, 0},
                                     {"$ref", K_APPLIES, 0},
                                     {"minLength", K_MIN_LENGTH, WITH(STRING)},
                                     {"maxLength", K_MAX_LENGTH, WITH(STRING)},
                                     {"pattern", K_PATTERN, WITH(STRING)},
                                     {"format", K_FORMAT, WITH(STRING)},
                                     {"minimum", K_MINIMUM, NUMBERS},
                                     {"maximum", K_MAXIMUM, NUMBERS},
                                     {"exclusiveMinimum", K_ABOVE, NUMBERS},
                                     {"exclusiveMaximum", K_BELOW, NUMBERS},
                                     {"multipleOf", K_MULTIPLE, NUMBERS},
                                     {"minItems", K_MIN_ITEMS, WITH(ARRAY)},
                                     {"maxItems", K_MAX_ITEMS, WITH(ARRAY)},
                                     {"items", K_ITEMS, WITH(ARRAY)},
                                     {"prefixItems", K_ITEMS, WITH(ARRAY)},
                                     {"additionalItems", K_ITEMS, WITH(ARRAY)},
                                     {"uniqueItems", K_UNIQUE, WITH(ARRAY)},
                                     {"contains", K_CONTAINS, WITH(ARRAY)},
                                     {"minContains", K_CONTAINS, WITH(ARRAY)},
                                     {"maxContains", K_CONTAINS, WITH(ARRAY)},
                                     {"minProperties", K_MIN_PROPERTIES, WITH(OBJECT)},
                                     {"maxProperties", K_MAX_PROPERTIES, WITH(OBJECT)},
                                     {"properties", K_MEMBERS, WITH(OBJECT)},
                                     {"patternProperties", K_MEMBERS, WITH(OBJECT)},
                                     {"additionalProperties", K_MEMBERS, WITH(OBJECT)},
                                     {"required", K_REQUIRED, WITH(OBJECT)},
                                     {"propertyNames", K_NAMES, WITH(OBJECT)},
                                     {"unevaluatedProperties", K_UNSEEN, WITH(OBJECT)},
                                     {"dependentRequired", K_APPLIES, WITH(OBJECT)},
                                     {"dependentSchemas", K_APPLIES, WITH(OBJECT)},
                                     {"dependencies", K_APPLIES, WITH(OBJECT)},
                                     {"unevaluatedItems", K_REFUSED, WITH(ARRAY)},
                                     {"$dynamicRef", K_REFUSED, 0},
                                     {"$recursiveRef", K_REFUSED, 0},
                                     {"extends", K_REFUSED, 0},
                                     {"disallow", K_REFUSED, 0},
                                     {"$defs", K_IGNORED, 0},
                                     {"definitions", K_IGNORED, 0},
                                     {"title", K_IGNORED, 0},
                                     {"description", K_IGNORED, 0},
                                     {"default", K_IGNORED, 0},
                                     {"examples", K_IGNORED, 0},
                                     {"deprecated", K_IGNORED, 0},
                                     {"readOnly", K_IGNORED, 0},
                                     {"writeOnly", K_IGNORED, 0},
                                     {"contentEncoding", K_IGNORED, 0},
                                     {"contentMediaType", K_IGNORED, 0},
                                     {"contentSchema", K_IGNORED, 0},
                                     {"$schema", K_IGNORED, 0},
                                     {"$id", K_IGNORED, 0},
                                     {"id", K_IGNORED, 0},
                                     {"$anchor", K_IGNORED, 0},
                                     {"$dynamicAnchor", K_IGNORED, 0},
                                     {"$recursiveAnchor", K_IGNORED, 0},
                                     {"$vocabulary", K_IGNORED, 0},
                                     {"$comment", K_IGNORED, 0}};

const schema_known *schema_known_of(const char *name) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, name)) return &known[i];
  return NULL;
}

bool schema_has_effect(const char *keyword) {
  const schema_known *k = schema_known_of(keyword);
  return k && k->is != K_IGNORED;
}
