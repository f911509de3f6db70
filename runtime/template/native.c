/* Calls of built-in functions: see native.h. */
#include "template/native.h"
#include "template/run.h"

#include <string.h>

const tpl_native *tpl_native_find(tpl_table_list tables, const tpl_string *name) {
  for (; *tables; tables++)
    for (const tpl_native *row = *tables; row->name; row++)
      if (tpl_string_is(name, row->name)) return row;
  return NULL;
}

typedef struct {
  const char *name;
  size_t len;
  bool optional;
} parameter;

/* The next parameter of a row; false: there is none. */
static bool next_parameter(const char **at, parameter *p) {
  *at += strspn(*at, " ");
  if (!**at) return false;
  size_t len = strcspn(*at, " ");
  *p = (parameter){*at, len, (*at)[len - 1] == '?'};
  if (p->optional) p->len--;
  *at += len;
  return true;
}

static const tpl_value *named(const tpl_arguments *arguments, const parameter *p) {
  for (size_t i = 0; i < arguments->n_named; i++) {
    const tpl_string *name = arguments->named[i].key.string;
    if (name->len == p->len && memcmp(name->bytes, p->name, p->len) == 0) return &arguments->named[i].value;
  }
  return NULL;
}

static void bind(tpl_job *job, const tpl_native *native, const tpl_arguments *arguments, tpl_value *given) {
  const char *at = native->parameters;
  size_t n = 0, used = 0;
  for (parameter p; next_parameter(&at, &p); n++) {
    const tpl_value *by_name = named(arguments, &p);
    used += by_name != NULL;
    if (by_name && n < arguments->n) tpl_fail(job, "%s: two values for %.*s", native->name, (int)p.len, p.name);
    given[n] = n < arguments->n ? arguments->values[n] : by_name ? *by_name : (tpl_value){0};
    if (!tpl_is_given(given[n]) && !p.optional) tpl_fail(job, "%s: no %.*s", native->name, (int)p.len, p.name);
  }
  if (arguments->n > n) tpl_fail(job, "%s: %zu arguments, expected at most %zu", native->name, arguments->n, n);
  if (used < arguments->n_named) tpl_fail(job, "%s: a named argument that it does not have", native->name);
}

tpl_value tpl_native_call(tpl_run *run, const tpl_native *native, tpl_value self, const tpl_arguments *arguments) {
  tpl_value given[TPL_PARAMETERS] = {0};
  tpl_charge(&run->job, 1);
  if (strcmp(native->parameters, "*") != 0) bind(&run->job, native, arguments, given);
  return native->call(run, self, given, arguments);
}
