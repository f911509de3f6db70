/* A rendering while it runs: names and their values, calls, attributes and items of values. */
#ifndef DT_TEMPLATE_RUN_H
#define DT_TEMPLATE_RUN_H

#include "template/native.h"

typedef struct tpl_scope tpl_scope;

typedef struct {
  const tpl_string *name;
  tpl_value value;
} tpl_named;

struct tpl_scope { /* of names; the outermost holds the variables of the caller */
  tpl_scope *outer;
  tpl_named *variables;
  size_t n, capacity;
};

struct tpl_run {
  tpl_job job;
  const tpl_tables *tables;
  const struct tm *now;
  tpl_builder *out; /* where statements write */
  int depth;        /* of expressions and statements that are evaluated: the C stack is finite */
  /* From execute.c, which expressions do not include: calls of macros and recursive loops, attributes of loops. */
  tpl_value (*call_statement)(tpl_run *run, tpl_value callee, const tpl_arguments *arguments);
  tpl_value (*loop_attribute)(tpl_run *run, tpl_value loop, const tpl_string *name);
};

tpl_scope *tpl_scope_new(tpl_run *run, tpl_scope *outer);
void tpl_scope_set(tpl_run *run, tpl_scope *scope, const tpl_string *name, tpl_value value);
const tpl_value *tpl_scope_get(tpl_run *run, const tpl_scope *scope, const tpl_string *name); /* NULL: not known */

tpl_value tpl_call_value(tpl_run *run, tpl_value callee, const tpl_arguments *arguments);

/* value.name and value[key], as Jinja2's sandbox looks them up; undefined where there is nothing. */
tpl_value tpl_attribute(tpl_run *run, tpl_value of, const tpl_string *name);
tpl_value tpl_item(tpl_run *run, tpl_value of, tpl_value key);

/* "a.0.b" as filters take it, an integer, or TPL_NONE: the value itself. */
tpl_value tpl_path(tpl_run *run, tpl_value of, tpl_value path);

#endif
