/* The evaluator of expressions: see evaluate.h. */
#include "template/evaluate.h"
#include "template/operators.h"
#include "template/write.h"

enum { MOST_DEPTH = 1000 };

void tpl_deeper(tpl_run *run, const tpl_node *node) {
  run->job.line = node->line;
  tpl_charge(&run->job, 1);
  if (++run->depth > MOST_DEPTH) tpl_fail(&run->job, "nested more than %d levels deep", MOST_DEPTH);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void add_named(tpl_run *run, tpl_arguments *arguments, tpl_pair *list, tpl_value name, tpl_value value) {
  if (name.kind != TPL_STRING) tpl_fail(&run->job, "names of arguments must be strings");
  for (size_t i = 0; i < arguments->n_named; i++)
    if (tpl_string_equal(list[i].key.string, name.string)) tpl_fail(&run->job, "two arguments have one name");
  list[arguments->n_named++] = (tpl_pair){name, value};
}

static void evaluate_places(tpl_run *run, tpl_scope *scope, const tpl_call_arguments *node, tpl_arguments *arguments) {
  tpl_list none = {0}, *more = node->more ? tpl_items(&run->job, tpl_evaluate(run, scope, node->more)) : &none;
  arguments->n = node->list.n + more->n;
  tpl_value *values = tpl_allocate(&run->job, arguments->n * sizeof *values);
  for (size_t i = 0; i < node->list.n; i++) values[i] = tpl_evaluate(run, scope, node->list.items[i]);
  for (size_t i = 0; i < more->n; i++) values[node->list.n + i] = more->items[i];
  arguments->values = values;
}

static void evaluate_named(tpl_run *run, tpl_scope *scope, const tpl_call_arguments *node, const tpl_pair *one_more,
                           tpl_arguments *arguments) {
  tpl_value more = node && node->more_named ? tpl_evaluate(run, scope, node->more_named) : (tpl_value){0};
  if (tpl_is_given(more) && more.kind != TPL_DICT) tpl_fail(&run->job, "** takes a dict, not %s", tpl_type(more));
  size_t n = node ? node->named.n / 2 : 0, n_more = tpl_is_given(more) ? more.dict->n : 0;
  if (n + n_more == 0 && !one_more) return;
  tpl_pair *list = tpl_allocate(&run->job, (n + n_more + 1) * sizeof *list);
  for (size_t i = 0; i < n; i++)
    add_named(run, arguments, list, node->named.items[2 * i]->value,
              tpl_evaluate(run, scope, node->named.items[2 * i + 1]));
  for (size_t i = 0; i < n_more; i++)
    add_named(run, arguments, list, more.dict->pairs[i].key, more.dict->pairs[i].value);
  if (one_more) add_named(run, arguments, list, one_more->key, one_more->value);
  arguments->named = list;
}

static tpl_arguments evaluate_arguments(tpl_run *run, tpl_scope *scope, const tpl_node *node, const tpl_pair *more) {
  tpl_arguments arguments = {0};
  if (node->arguments) evaluate_places(run, scope, node->arguments, &arguments);
  evaluate_named(run, scope, node->arguments, more, &arguments);
  run->job.line = node->line;
  return arguments;
}

tpl_value tpl_evaluate_call(tpl_run *run, tpl_scope *scope, const tpl_node *node, const tpl_pair *more) {
  tpl_value callee = tpl_evaluate(run, scope, node->a);
  tpl_arguments arguments = evaluate_arguments(run, scope, node, more);
  return tpl_call_value(run, callee, &arguments);
}

static tpl_value apply(tpl_run *run, tpl_scope *scope, const tpl_node *node, tpl_value self) {
  if (!node->native)
    tpl_fail(&run->job, "no %s is named '%.*s'", node->kind == N_TEST ? "test" : "filter",
             node->text->len < 40 ? (int)node->text->len : 40, node->text->bytes);
  tpl_arguments arguments = evaluate_arguments(run, scope, node, NULL);
  return tpl_native_call(run, node->native, self, &arguments);
}

tpl_value tpl_evaluate_filters(tpl_run *run, tpl_scope *scope, const tpl_node *filter, tpl_value text) {
  return filter ? apply(run, scope, filter, tpl_evaluate_filters(run, scope, filter->a, text)) : text;
}

/* ---- names and parts --------------------------------------------------------------------------------------------- */

static tpl_value evaluate_name(tpl_run *run, const tpl_scope *scope, const tpl_node *node) {
  const tpl_value *known = tpl_scope_get(run, scope, node->text);
  if (known) return tpl_is_given(*known) ? *known : tpl_undefined_name(&run->job, node->text);
  if (!node->native) return tpl_undefined_name(&run->job, node->text);
  tpl_function *function = tpl_allocate(&run->job, sizeof *function);
  function->native = node->native;
  return (tpl_value){.kind = TPL_FUNCTION, .function = function};
}

static tpl_value evaluate_slice(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_value of = tpl_evaluate(run, scope, node->a), part[3] = {0};
  for (int i = 0; i < 3; i++)
    if (node->list.items[i]) part[i] = tpl_evaluate(run, scope, node->list.items[i]);
  run->job.line = node->line;
  return tpl_slice(&run->job, of, part[0], part[1], part[2]);
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static tpl_value evaluate_arithmetic(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_value v = tpl_evaluate(run, scope, node->list.items[0]);
  for (size_t i = 1; i < node->list.n; i++) {
    tpl_value other = tpl_evaluate(run, scope, node->list.items[i]);
    run->job.line = node->line;
    v = tpl_arithmetic(run, node->operators[i - 1], v, other);
  }
  return v;
}

static tpl_value evaluate_comparison(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_value left = tpl_evaluate(run, scope, node->list.items[0]);
  for (size_t i = 1; i < node->list.n; i++) {
    tpl_value right = tpl_evaluate(run, scope, node->list.items[i]);
    run->job.line = node->line;
    if (!tpl_compare(&run->job, node->operators[i - 1], left, right)) return tpl_bool(false);
    left = right;
  }
  return tpl_bool(true);
}

/* The first value that decides: false for "and", true for "or". */
static tpl_value evaluate_logic(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_value v = {0};
  for (size_t i = 0; i < node->list.n; i++) {
    v = tpl_evaluate(run, scope, node->list.items[i]);
    if (tpl_truth(v) == (node->kind == N_OR)) break;
  }
  return v;
}

static tpl_value evaluate_concat(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_builder b = {.job = &run->job};
  tpl_value first = tpl_evaluate(run, scope, node->list.items[0]);
  if (first.kind == TPL_STRING)
    tpl_continue(&b, first.string);
  else
    tpl_write(&b, first);
  for (size_t i = 1; i < node->list.n; i++) tpl_write(&b, tpl_evaluate(run, scope, node->list.items[i]));
  return tpl_string_value(tpl_built(&b));
}

static tpl_value evaluate_condition(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  if (tpl_truth(tpl_evaluate(run, scope, node->a))) return tpl_evaluate(run, scope, node->b);
  if (node->c) return tpl_evaluate(run, scope, node->c);
  return tpl_undefined_text(&run->job, "the inline if-expression evaluated to false and no else section was defined");
}

static tpl_value evaluate_sign(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_value v = tpl_evaluate(run, scope, node->a);
  return node->kind == N_NEGATE ? tpl_negative(&run->job, v) : tpl_negative(&run->job, tpl_negative(&run->job, v));
}

/* ---- literals ---------------------------------------------------------------------------------------------------- */

static tpl_value evaluate_list(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_value list = tpl_list_new(&run->job, node->kind == N_LIST ? TPL_LIST : TPL_TUPLE, node->list.n);
  for (size_t i = 0; i < node->list.n; i++) list.list->items[i] = tpl_evaluate(run, scope, node->list.items[i]);
  return list;
}

static tpl_value evaluate_dict(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_value dict = tpl_dict_new(&run->job);
  for (size_t i = 0; i < node->list.n; i += 2) {
    tpl_value key = tpl_evaluate(run, scope, node->list.items[i]);
    tpl_dict_set(&run->job, dict.dict, key, tpl_evaluate(run, scope, node->list.items[i + 1]));
  }
  return dict;
}

static tpl_value evaluate(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  switch (node->kind) {
  case N_CONSTANT: return node->value;
  case N_NAME: return evaluate_name(run, scope, node);
  case N_ATTRIBUTE: return tpl_attribute(run, tpl_evaluate(run, scope, node->a), node->text);
  case N_ITEM: {
    tpl_value of = tpl_evaluate(run, scope, node->a);
    return tpl_item(run, of, tpl_evaluate(run, scope, node->b));
  }
  case N_SLICE: return evaluate_slice(run, scope, node);
  case N_CALL: return tpl_evaluate_call(run, scope, node, NULL);
  case N_FILTER:
  case N_TEST: return apply(run, scope, node, tpl_evaluate(run, scope, node->a));
  case N_NOT: return tpl_bool(!tpl_truth(tpl_evaluate(run, scope, node->a)));
  case N_NEGATE:
  case N_PLUS: return evaluate_sign(run, scope, node);
  case N_AND:
  case N_OR: return evaluate_logic(run, scope, node);
  case N_ARITHMETIC: return evaluate_arithmetic(run, scope, node);
  case N_COMPARE: return evaluate_comparison(run, scope, node);
  case N_CONCAT: return evaluate_concat(run, scope, node);
  case N_CONDITION: return evaluate_condition(run, scope, node);
  case N_LIST:
  case N_TUPLE: return evaluate_list(run, scope, node);
  case N_DICT: return evaluate_dict(run, scope, node);
  default: return tpl_none(); /* statements are not evaluated */
  }
}

tpl_value tpl_evaluate(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_deeper(run, node);
  tpl_value v = evaluate(run, scope, node);
  run->depth--;
  return v;
}
