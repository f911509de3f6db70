/* The public face of schemas: see dtrun.h. */
#include "grammar/schema.h"
#include "dtrun.h"
#include "system/need.h"

dt_status dt_schema_grammar(const char *json, char **grammar, dt_error *err) {
  NEED(json, "json");
  NEED(grammar, "grammar");
  return schema_to_gbnf(json, grammar, err);
}
