/* Names, calls, attributes and items: see run.h. */
#include "template/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------------------------------- */

tpl_scope *tpl_scope_new(tpl_run *run, tpl_scope *outer) {
  tpl_scope *scope = tpl_allocate(&run->job, sizeof *scope);
  scope->outer = outer;
  return scope;
}

static tpl_value *find(const tpl_scope *scope, const tpl_string *name) {
  for (size_t i = 0; i < scope->n; i++)
    if (tpl_string_equal(scope->variables[i].name, name)) return &scope->variables[i].value;
  return NULL;
}

void tpl_scope_set(tpl_run *run, tpl_scope *scope, const tpl_string *name, tpl_value value) {
  tpl_value *known = find(scope, name);
  tpl_charge(&run->job, scope->n >> 5);
  if (known) {
    *known = value;
    return;
  }
  if (scope->n == scope->capacity) {
    size_t wanted = scope->capacity ? 2 * scope->capacity : 4;
    scope->variables = tpl_grow(&run->job, scope->variables, scope->n, wanted, sizeof *scope->variables);
    scope->capacity = wanted;
  }
  scope->variables[scope->n++] = (tpl_named){name, value};
}

const tpl_value *tpl_scope_get(tpl_run *run, const tpl_scope *scope, const tpl_string *name) {
  for (; scope; scope = scope->outer) {
    tpl_charge(&run->job, scope->n >> 5);
    const tpl_value *known = find(scope, name);
    if (known) return known;
  }
  return NULL;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Nothing the first time, then the separator. */
static tpl_value call_joiner(tpl_run *run, tpl_list *joiner) {
  return joiner->at++ ? joiner->items[0] : tpl_string_value(tpl_text(&run->job, ""));
}

tpl_value tpl_call_value(tpl_run *run, tpl_value callee, const tpl_arguments *arguments) {
  switch (callee.kind) {
  case TPL_FUNCTION: return tpl_native_call(run, callee.function->native, callee.function->self, arguments);
  case TPL_MACRO:
  case TPL_LOOP: return run->call_statement(run, callee, arguments);
  case TPL_JOINER: return call_joiner(run, callee.list);
  default: tpl_need_defined(&run->job, callee); tpl_fail(&run->job, "'%s' object is not callable", tpl_type(callee));
  }
}

/* ---- attributes and items ---------------------------------------------------------------------------------------- */

static tpl_table_list methods(const tpl_run *run, tpl_value of) {
  static const tpl_native *const none[] = {NULL};
  switch (of.kind) {
  case TPL_STRING: return run->tables->string_methods;
  case TPL_LIST: return run->tables->list_methods;
  case TPL_TUPLE:
  case TPL_RANGE: return run->tables->tuple_methods;
  case TPL_DICT: return run->tables->dict_methods;
  case TPL_CYCLER: return run->tables->cycler_methods;
  default: return none;
  }
}

static tpl_value unsafe(tpl_run *run, tpl_value of, const tpl_native *method) {
  char text[120];
  int n = snprintf(text, sizeof text, "access to attribute '%s' of '%s' object is unsafe.", method->name, tpl_type(of));
  return tpl_undefined_text(&run->job, memcpy(tpl_allocate(&run->job, (size_t)n + 1), text, (size_t)n + 1));
}

/* What Python's getattr finds; TPL_MISSING: nothing. */
static tpl_value own_attribute(tpl_run *run, tpl_value of, const tpl_string *name) {
  if (of.kind == TPL_NAMESPACE) {
    const tpl_value *known = tpl_dict_get(&run->job, of.dict, tpl_string_value(name));
    return known ? *known : (tpl_value){0};
  }
  if (of.kind == TPL_LOOP) return run->loop_attribute(run, of, name);
  if (of.kind == TPL_CYCLER && tpl_string_is(name, "current")) return of.list->items[of.list->at];
  if (of.kind == TPL_MACRO && tpl_string_is(name, "name")) return tpl_string_value(of.macro->name);
  const tpl_native *method = tpl_native_find(methods(run, of), name);
  if (!method) return (tpl_value){0};
  if (!method->call) return unsafe(run, of, method);
  tpl_function *function = tpl_allocate(&run->job, sizeof *function);
  *function = (tpl_function){method, of};
  return (tpl_value){.kind = TPL_FUNCTION, .function = function};
}

/* The element at an index, which may be negative; TPL_MISSING: there is none. */
static tpl_value element(tpl_run *run, tpl_value of, int64_t index) {
  int64_t n = tpl_count(&run->job, of);
  if (index < 0) index += n;
  if (index < 0 || index >= n) return (tpl_value){0};
  if (of.kind != TPL_STRING) return of.list->items[index];
  size_t at = tpl_offset(&run->job, of.string, (size_t)index);
  return tpl_string_value(tpl_string_part(&run->job, of.string, at, tpl_after(of.string, at)));
}

/* What Python's value[key] finds; TPL_MISSING: nothing. */
static tpl_value own_item(tpl_run *run, tpl_value of, tpl_value key) {
  bool is_sequence = of.kind == TPL_STRING || of.kind == TPL_LIST || of.kind == TPL_TUPLE || of.kind == TPL_RANGE;
  if (is_sequence && tpl_is_integer(key)) return element(run, of, tpl_integer(&run->job, key));
  if (of.kind != TPL_DICT || key.kind == TPL_LIST || key.kind == TPL_DICT) return (tpl_value){0};
  const tpl_value *known = tpl_dict_get(&run->job, of.dict, key);
  return known ? *known : (tpl_value){0};
}

tpl_value tpl_attribute(tpl_run *run, tpl_value of, const tpl_string *name) {
  tpl_need_defined(&run->job, of);
  tpl_value found = own_attribute(run, of, name);
  if (!tpl_is_given(found)) found = own_item(run, of, tpl_string_value(name));
  return tpl_is_given(found) ? found : tpl_undefined_item(&run->job, of, tpl_string_value(name));
}

tpl_value tpl_item(tpl_run *run, tpl_value of, tpl_value key) {
  tpl_need_defined(&run->job, of);
  tpl_value found = own_item(run, of, key);
  if (!tpl_is_given(found) && key.kind == TPL_STRING) found = own_attribute(run, of, key.string);
  return tpl_is_given(found) ? found : tpl_undefined_item(&run->job, of, key);
}

/* A part of a path: digits are an index. */
static tpl_value path_part(tpl_run *run, const tpl_string *part) {
  char text[20];
  if (part->len == 0 || part->len >= sizeof text) return tpl_string_value(part);
  memcpy(text, part->bytes, part->len);
  text[part->len] = '\0';
  bool is_index = strspn(text, "0123456789") == part->len;
  return is_index ? tpl_int(strtoll(text, NULL, 10)) : tpl_string_value(tpl_string_part(&run->job, part, 0, part->len));
}

tpl_value tpl_path(tpl_run *run, tpl_value of, tpl_value path) {
  if (path.kind == TPL_NONE || path.kind == TPL_MISSING) return of;
  if (path.kind != TPL_STRING) return tpl_item(run, of, path);
  const tpl_string *s = path.string;
  for (size_t at = 0; at <= s->len;) {
    const char *dot = memchr(s->bytes + at, '.', s->len - at);
    size_t end = dot ? (size_t)(dot - s->bytes) : s->len;
    of = tpl_item(run, of, path_part(run, tpl_string_part(&run->job, s, at, end)));
    at = end + 1;
  }
  return of;
}
