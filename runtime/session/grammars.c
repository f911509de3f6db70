/* The public face of grammars, schemas and regular expressions: see dtrun.h. */
#include "dtrun.h"
#include "grammar/gbnf.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "system/need.h"

#include <string.h>

dt_status dt_schema_grammar(const char *json, const dt_schema_options *options, char **grammar, char *note,
                            dt_error *err) {
  NEED(json, "json");
  NEED(grammar, "grammar");
  schema_options how = {.note = note};
  if (options) how.open = options->open, how.strict = options->strict;
  if (note) *note = '\0';
  return schema_to_gbnf(json, &how, grammar, err);
}

dt_status dt_regex_grammar(const char *regex, char **grammar, dt_error *err) {
  NEED(regex, "regex");
  NEED(grammar, "grammar");
  return regex_to_gbnf(regex, grammar, err);
}

dt_status dt_check_grammar(const char *grammar, dt_error *err) {
  rules r;
  NEED(grammar, "grammar");
  dt_status status = gbnf_read(grammar, strlen(grammar), &r, err);
  rules_free(&r);
  return status;
}
