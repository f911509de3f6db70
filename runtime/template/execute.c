/* The statements of a template: see execute.h. As in Jinja2, a loop's body, a macro, a block that is set or filtered,
 * and `with` have names of their own; the branches of `if` have not. */
#include "template/execute.h"
#include "template/evaluate.h"
#include "template/write.h"

#include <string.h>

typedef enum { GOES_ON, BREAKS, CONTINUES } flow;

/* The condition of a loop is evaluated as late as possible: it may depend on what the body has done. */
struct tpl_loop {
  const tpl_node *node;
  tpl_scope *scope; /* around the loop */
  const tpl_list *source;
  size_t taken;   /* of the source */
  tpl_value kept; /* a list: the items that passed the condition */
  size_t index;
  int level;         /* of a recursive loop, from 0 on */
  tpl_value changed; /* what loop.changed was asked last */
};

static flow execute(tpl_run *run, tpl_scope *scope, const tpl_node *node);
static flow execute_body(tpl_run *run, tpl_scope *scope, const tpl_node *body);

/* ---- captured text ------------------- --------------------------------------------------------------------------- */

static tpl_value captured(tpl_builder *b) { return tpl_string_value(tpl_built(b)); }

static tpl_value capture(tpl_run *run, tpl_scope *scope, const tpl_node *body, flow *flows) {
  tpl_builder b = {.job = &run->job}, *out = run->out;
  run->out = &b;
  *flows = execute_body(run, scope, body);
  run->out = out;
  return captured(&b);
}

/* ---- assignment -------------------------------------------------------------------------------------------------- */

static void assign(tpl_run *run, tpl_scope *scope, const tpl_node *target, tpl_value value);

static void unpack(tpl_run *run, tpl_scope *scope, const tpl_node *target, tpl_value value) {
  const tpl_list *items = tpl_items(&run->job, value);
  if (items->n < target->list.n)
    tpl_fail(&run->job, "not enough values to unpack (expected %zu, got %zu)", target->list.n, items->n);
  if (items->n > target->list.n) tpl_fail(&run->job, "too many values to unpack (expected %zu)", target->list.n);
  for (size_t i = 0; i < items->n; i++) assign(run, scope, target->list.items[i], items->items[i]);
}

static void assign_attribute(tpl_run *run, tpl_scope *scope, const tpl_node *target, tpl_value value) {
  tpl_value of = tpl_evaluate(run, scope, target->a);
  if (of.kind != TPL_NAMESPACE) tpl_fail(&run->job, "cannot assign attribute on non-namespace object");
  if (target->text->bytes[0] == '_') tpl_fail(&run->job, "an attribute of a namespace begins with _");
  tpl_dict_set(&run->job, of.dict, tpl_string_value(target->text), value);
}

static void assign(tpl_run *run, tpl_scope *scope, const tpl_node *target, tpl_value value) {
  tpl_charge(&run->job, 1);
  if (target->kind == N_TUPLE)
    unpack(run, scope, target, value);
  else if (target->kind == N_ATTRIBUTE)
    assign_attribute(run, scope, target, value);
  else
    tpl_scope_set(run, scope, target->text, value);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static bool passes(tpl_run *run, const tpl_loop *loop, tpl_value item) {
  if (!loop->node->c) return true;
  tpl_scope *scope = tpl_scope_new(run, loop->scope);
  assign(run, scope, loop->node->a, item);
  return tpl_truth(tpl_evaluate(run, scope, loop->node->c));
}

/* Whether there are at least n items that pass; takes them from the source. */
static bool has_items(tpl_run *run, tpl_loop *loop, size_t n) {
  while (loop->kept.list->n < n && loop->taken < loop->source->n) {
    tpl_value item = loop->source->items[loop->taken++];
    if (passes(run, loop, item)) tpl_append(&run->job, loop->kept, item);
  }
  return loop->kept.list->n >= n;
}

static int64_t loop_length(tpl_run *run, tpl_loop *loop) {
  has_items(run, loop, SIZE_MAX);
  return (int64_t)loop->kept.list->n;
}

/* As in Jinja2, `else` runs if no iteration reached the end of the body: break and continue prevent that. */
static flow iterate(tpl_run *run, tpl_loop *loop) {
  bool completed = false;
  const tpl_string *name = tpl_text(&run->job, "loop");
  for (; has_items(run, loop, loop->index + 1); loop->index++) {
    tpl_scope *scope = tpl_scope_new(run, loop->scope);
    tpl_scope_set(run, scope, name, (tpl_value){.kind = TPL_LOOP, .loop = loop});
    assign(run, scope, loop->node->a, loop->kept.list->items[loop->index]);
    flow flows = execute_body(run, scope, loop->node->body);
    completed |= flows == GOES_ON;
    if (flows == BREAKS) break;
  }
  bool runs_else = !completed && loop->node->other;
  return runs_else ? execute_body(run, tpl_scope_new(run, loop->scope), loop->node->other) : GOES_ON;
}

static flow run_loop(tpl_run *run, tpl_scope *scope, const tpl_node *node, tpl_value over, int level) {
  tpl_loop *loop = tpl_allocate(&run->job, sizeof *loop);
  tpl_value none = tpl_list_new(&run->job, TPL_LIST, 0);
  *loop = (tpl_loop){.node = node, .scope = scope, .source = tpl_items(&run->job, over), .kept = none, .level = level};
  return iterate(run, loop);
}

static tpl_value call_loop(tpl_run *run, tpl_loop *loop, const tpl_arguments *arguments) {
  tpl_builder b = {.job = &run->job}, *out = run->out;
  if (!loop->node->recursive) tpl_fail(&run->job, "the loop must have the 'recursive' marker to be called recursively");
  if (arguments->n != 1) tpl_fail(&run->job, "a recursive loop takes one argument");
  run->out = &b;
  run_loop(run, loop->scope, loop->node, arguments->values[0], loop->level + 1);
  run->out = out;
  return captured(&b);
}

TPL_FUNCTION(loop_cycle) {
  (void)given;
  if (all->n == 0) tpl_fail(&run->job, "no items for cycling given");
  return all->values[self.loop->index % all->n];
}

TPL_FUNCTION(loop_changed) {
  (void)given;
  tpl_value asked = tpl_list_new(&run->job, TPL_TUPLE, all->n);
  for (size_t i = 0; i < all->n; i++) asked.list->items[i] = all->values[i];
  bool changed = !tpl_equal(&run->job, self.loop->changed, asked);
  self.loop->changed = asked;
  return tpl_bool(changed);
}

static tpl_value loop_method(tpl_run *run, tpl_value loop, const tpl_string *name) {
  static const tpl_native table[] = {{"cycle", loop_cycle, "*"}, {"changed", loop_changed, "*"}, {0}};
  const tpl_native *native = tpl_native_find((const tpl_native *const[]){table, NULL}, name);
  if (!native) return (tpl_value){0};
  tpl_function *function = tpl_allocate(&run->job, sizeof *function);
  *function = (tpl_function){native, loop};
  return (tpl_value){.kind = TPL_FUNCTION, .function = function};
}

static tpl_value neighbour(tpl_run *run, tpl_loop *loop, bool next) {
  if (next ? !has_items(run, loop, loop->index + 2) : loop->index == 0)
    return tpl_undefined_text(&run->job, next ? "there is no next item" : "there is no previous item");
  return loop->kept.list->items[next ? loop->index + 1 : loop->index - 1];
}

static tpl_value loop_attribute(tpl_run *run, tpl_value v, const tpl_string *name) {
  tpl_loop *loop = v.loop;
  int64_t index = (int64_t)loop->index;
  if (tpl_string_is(name, "index")) return tpl_int(index + 1);
  if (tpl_string_is(name, "index0")) return tpl_int(index);
  if (tpl_string_is(name, "first")) return tpl_bool(index == 0);
  if (tpl_string_is(name, "last")) return tpl_bool(!has_items(run, loop, loop->index + 2));
  if (tpl_string_is(name, "length")) return tpl_int(loop_length(run, loop));
  if (tpl_string_is(name, "revindex")) return tpl_int(loop_length(run, loop) - index);
  if (tpl_string_is(name, "revindex0")) return tpl_int(loop_length(run, loop) - index - 1);
  if (tpl_string_is(name, "previtem")) return neighbour(run, loop, false);
  if (tpl_string_is(name, "nextitem")) return neighbour(run, loop, true);
  if (tpl_string_is(name, "depth")) return tpl_int(loop->level + 1);
  if (tpl_string_is(name, "depth0")) return tpl_int(loop->level);
  return loop_method(run, v, name);
}

/* ---- macros ------------------------------------------------------------------------------------------------------ */

static tpl_value macro_of(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_macro *macro = tpl_allocate(&run->job, sizeof *macro);
  *macro = (tpl_macro){node->text, node, scope};
  return (tpl_value){.kind = TPL_MACRO, .macro = macro};
}

static const tpl_value *named_argument(const tpl_arguments *arguments, const tpl_string *name) {
  for (size_t i = 0; i < arguments->n_named; i++)
    if (tpl_string_equal(arguments->named[i].key.string, name)) return &arguments->named[i].value;
  return NULL;
}

static tpl_value not_provided(tpl_run *run, const tpl_string *name) {
  tpl_builder b = {.job = &run->job};
  tpl_add_text(&b, "parameter '");
  tpl_add_string(&b, name);
  tpl_add(&b, "' was not provided", sizeof "' was not provided", false);
  return tpl_undefined_text(&run->job, tpl_built(&b)->bytes);
}

/* The value of parameter i; a default may name the parameters before it. */
static tpl_value parameter(tpl_run *run, tpl_scope *scope, const tpl_node *node, const tpl_arguments *arguments,
                           size_t i) {
  const tpl_string *name = node->list.items[i]->text;
  const tpl_value *given = named_argument(arguments, name);
  size_t first_default = node->list.n - node->defaults.n;
  if (i < arguments->n) return arguments->values[i];
  if (given) return *given;
  if (i >= first_default) return tpl_evaluate(run, scope, node->defaults.items[i - first_default]);
  return not_provided(run, name);
}

static bool is_parameter(const tpl_node *node, const tpl_string *name, size_t from) {
  for (size_t i = from; i < node->list.n; i++)
    if (tpl_string_equal(node->list.items[i]->text, name)) return true;
  return false;
}

/* Binds `caller`, `kwargs` and `varargs` if the body names them; any other surplus argument fails. */
static void bind_rest(tpl_run *run, tpl_scope *scope, const tpl_node *node, const tpl_arguments *arguments) {
  tpl_job *job = &run->job;
  tpl_value named = tpl_dict_new(job), rest = tpl_list_new(job, TPL_TUPLE, 0);
  const tpl_string *caller = tpl_text(job, "caller");
  const tpl_value *given = named_argument(arguments, caller);
  bool takes_caller = node->uses_caller && !is_parameter(node, caller, 0);
  for (size_t i = 0; i < arguments->n_named; i++) {
    const tpl_string *name = arguments->named[i].key.string;
    if (is_parameter(node, name, arguments->n) || (takes_caller && tpl_string_equal(name, caller))) continue;
    if (!node->uses_kwargs) tpl_fail(job, "a macro got a named argument that it does not take");
    tpl_dict_set(job, named.dict, arguments->named[i].key, arguments->named[i].value);
  }
  for (size_t i = node->list.n; i < arguments->n; i++) tpl_append(job, rest, arguments->values[i]);
  if (rest.list->n && !node->uses_varargs) tpl_fail(job, "a macro takes not more than %zu argument(s)", node->list.n);
  if (takes_caller) tpl_scope_set(run, scope, caller, given ? *given : tpl_undefined_text(job, "No caller defined"));
  if (node->uses_kwargs) tpl_scope_set(run, scope, tpl_text(job, "kwargs"), named);
  if (node->uses_varargs) tpl_scope_set(run, scope, tpl_text(job, "varargs"), rest);
}

static tpl_value call_macro(tpl_run *run, const tpl_macro *macro, const tpl_arguments *arguments) {
  const tpl_node *node = macro->node;
  tpl_scope *scope = tpl_scope_new(run, macro->scope);
  flow flows;
  tpl_enter(&run->job);
  bind_rest(run, scope, node, arguments);
  for (size_t i = 0; i < node->list.n; i++)
    tpl_scope_set(run, scope, node->list.items[i]->text, parameter(run, scope, node, arguments, i));
  tpl_value text = capture(run, scope, node->body, &flows);
  tpl_leave(&run->job);
  return text;
}

static tpl_value call_statement(tpl_run *run, tpl_value callee, const tpl_arguments *arguments) {
  int line = run->job.line;
  tpl_value text =
      callee.kind == TPL_MACRO ? call_macro(run, callee.macro, arguments) : call_loop(run, callee.loop, arguments);
  run->job.line = line;
  return text;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static flow execute_if(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  for (size_t i = 0; i < node->list.n; i += 2)
    if (tpl_truth(tpl_evaluate(run, scope, node->list.items[i])))
      return execute_body(run, scope, node->list.items[i + 1]);
  return node->b ? execute_body(run, scope, node->b) : GOES_ON;
}

static flow execute_set_block(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  flow flows;
  tpl_scope *inner = tpl_scope_new(run, scope);
  tpl_value text = capture(run, inner, node->body, &flows);
  assign(run, scope, node->a, tpl_evaluate_filters(run, inner, node->b, text));
  return flows;
}

static flow execute_filter_block(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  flow flows;
  tpl_scope *inner = tpl_scope_new(run, scope);
  tpl_value text = capture(run, inner, node->body, &flows);
  tpl_value filtered = tpl_evaluate_filters(run, inner, node->b, text);
  tpl_add_string(run->out, tpl_need_string(&run->job, filtered));
  return flows;
}

static void execute_call_block(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_pair caller = {tpl_string_value(node->b->text), macro_of(run, scope, node->b)};
  tpl_write(run->out, tpl_evaluate_call(run, scope, node->a, &caller));
}

static flow execute_with(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_scope *inner = tpl_scope_new(run, scope);
  for (size_t i = 0; i < node->list.n; i += 2)
    assign(run, inner, node->list.items[i], tpl_evaluate(run, scope, node->list.items[i + 1]));
  return execute_body(run, inner, node->body);
}

static void execute_print(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  for (size_t i = 0; i < node->list.n; i++) tpl_write(run->out, tpl_evaluate(run, scope, node->list.items[i]));
}

static flow execute_statement(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  switch (node->kind) {
  case N_TEXT: tpl_add_string(run->out, node->text); break;
  case N_PRINT: execute_print(run, scope, node); break;
  case N_IF: return execute_if(run, scope, node);
  case N_FOR: return run_loop(run, scope, node, tpl_evaluate(run, scope, node->b), 0);
  case N_SET: assign(run, scope, node->a, tpl_evaluate(run, scope, node->b)); break;
  case N_SET_BLOCK: return execute_set_block(run, scope, node);
  case N_MACRO: tpl_scope_set(run, scope, node->text, macro_of(run, scope, node)); break;
  case N_CALL_BLOCK: execute_call_block(run, scope, node); break;
  case N_FILTER_BLOCK: return execute_filter_block(run, scope, node);
  case N_WITH: return execute_with(run, scope, node);
  case N_SCOPE: return execute_body(run, tpl_scope_new(run, scope), node->body);
  case N_BREAK: return BREAKS;
  case N_CONTINUE: return CONTINUES;
  default: break; /* expressions are not executed */
  }
  return GOES_ON;
}

static flow execute(tpl_run *run, tpl_scope *scope, const tpl_node *node) {
  tpl_deeper(run, node);
  flow flows = execute_statement(run, scope, node);
  run->depth--;
  return flows;
}

static flow execute_body(tpl_run *run, tpl_scope *scope, const tpl_node *body) {
  flow flows = GOES_ON;
  for (size_t i = 0; i < body->list.n && flows == GOES_ON; i++) flows = execute(run, scope, body->list.items[i]);
  return flows;
}

void tpl_execute(tpl_run *run, tpl_scope *scope, const tpl_node *body) {
  run->call_statement = call_statement;
  run->loop_attribute = loop_attribute;
  execute_body(run, scope, body);
}
