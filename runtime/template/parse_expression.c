/* The parser of expressions: see parse.h. */
#include "template/parse.h"

#include <string.h>

/* ---- nodes and tokens -------------------------------------------------------------------------------------------- */

tpl_node *tpl_node_new(tpl_parser *p, tpl_node_kind kind) {
  tpl_node *node = tpl_allocate(p->job, sizeof *node);
  node->kind = kind;
  node->line = p->job->line = p->at->line;
  return node;
}

/* Capacities are powers of two. */
void tpl_node_add(tpl_parser *p, tpl_nodes *list, tpl_node *node) {
  if ((list->n & (list->n - 1)) == 0)
    list->items = tpl_grow(p->job, list->items, list->n, list->n ? 2 * list->n : 1, sizeof *list->items);
  list->items[list->n++] = node;
}

static bool is_word(const tpl_token *token, const char *word) {
  return token->kind == T_NAME && tpl_string_is(token->text, word);
}

bool tpl_sees_word(const tpl_parser *p, const char *word) { return is_word(p->at, word); }

static void advance(tpl_parser *p) {
  if (p->at->kind != T_END) p->at++;
}

bool tpl_take_word(tpl_parser *p, const char *word) {
  bool seen = tpl_sees_word(p, word);
  if (seen) advance(p);
  return seen;
}

bool tpl_take(tpl_parser *p, int kind) {
  bool seen = p->at->kind == kind;
  if (seen) advance(p);
  return seen;
}

void tpl_fail_token(tpl_parser *p, const char *expected) {
  const tpl_string *found = p->at->text;
  p->job->line = p->at->line;
  tpl_fail(p->job, "expected %s, found '%.*s'", expected, found->len < 40 ? (int)found->len : 40, found->bytes);
}

void tpl_expect(tpl_parser *p, int kind, const char *what) {
  if (!tpl_take(p, kind)) tpl_fail_token(p, what);
}

const tpl_string *tpl_expect_name(tpl_parser *p) {
  const tpl_string *name = p->at->text;
  tpl_expect(p, T_NAME, "a name");
  return name;
}

static tpl_node *constant(tpl_parser *p, tpl_value value) {
  tpl_node *node = tpl_node_new(p, N_CONSTANT);
  node->value = value;
  return node;
}

static tpl_node *unary(tpl_parser *p, tpl_node_kind kind, tpl_node *a) {
  tpl_node *node = tpl_node_new(p, kind);
  node->a = a;
  return node;
}

/* ---- names, literals --------------------------------------------------------------------------------------------- */

static tpl_node *parse_name(tpl_parser *p) {
  const tpl_string *name = p->at->text;
  tpl_node *node = tpl_node_new(p, N_NAME);
  advance(p);
  bool is_true = tpl_string_is(name, "true") || tpl_string_is(name, "True");
  if (is_true || tpl_string_is(name, "false") || tpl_string_is(name, "False")) return constant(p, tpl_bool(is_true));
  if (tpl_string_is(name, "none") || tpl_string_is(name, "None")) return constant(p, tpl_none());
  node->text = name;
  node->native = tpl_native_find(p->tables->globals, name);
  p->uses_caller |= tpl_string_is(name, "caller");
  p->uses_varargs |= tpl_string_is(name, "varargs");
  p->uses_kwargs |= tpl_string_is(name, "kwargs");
  return node;
}

static tpl_node *parse_strings(tpl_parser *p) {
  const tpl_string *first = p->at->text;
  tpl_node *node = tpl_node_new(p, N_CONSTANT);
  tpl_builder b = {.job = p->job};
  bool several = p->at[1].kind == T_STRING;
  for (; p->at->kind == T_STRING; advance(p))
    if (several) tpl_add_string(&b, p->at->text);
  node->value = tpl_string_value(several ? tpl_built(&b) : first);
  return node;
}

static tpl_node *parse_list(tpl_parser *p) {
  tpl_node *node = tpl_node_new(p, N_LIST);
  advance(p);
  while (!tpl_take(p, ']')) {
    if (node->list.n) tpl_expect(p, ',', "',' or ']'");
    if (tpl_take(p, ']')) break;
    tpl_node_add(p, &node->list, tpl_parse_expression(p));
  }
  return node;
}

static tpl_node *parse_dict(tpl_parser *p) {
  tpl_node *node = tpl_node_new(p, N_DICT);
  advance(p);
  while (!tpl_take(p, '}')) {
    if (node->list.n) tpl_expect(p, ',', "',' or '}'");
    if (tpl_take(p, '}')) break;
    tpl_node_add(p, &node->list, tpl_parse_expression(p));
    tpl_expect(p, ':', "':'");
    tpl_node_add(p, &node->list, tpl_parse_expression(p));
  }
  return node;
}

static tpl_node *parse_parentheses(tpl_parser *p) {
  advance(p);
  tpl_node *node = p->at->kind == ')' ? tpl_node_new(p, N_TUPLE) : tpl_parse_tuple(p, true, NULL);
  tpl_expect(p, ')', "')'");
  return node;
}

static tpl_node *parse_primary(tpl_parser *p) {
  switch (p->at->kind) {
  case T_NAME: return parse_name(p);
  case T_STRING: return parse_strings(p);
  case T_NUMBER: {
    tpl_node *node = constant(p, p->at->number);
    advance(p);
    return node;
  }
  case '(': return parse_parentheses(p);
  case '[': return parse_list(p);
  case '{': return parse_dict(p);
  default: tpl_fail_token(p, "an expression");
  }
}

/* ---- what follows a value ---------------------------------------------------------------------------------------- */

static void parse_argument(tpl_parser *p, tpl_call_arguments *arguments) {
  bool only_named = arguments->named.n || arguments->more || arguments->more_named;
  if (tpl_take(p, '*')) {
    if (arguments->more || arguments->more_named) tpl_fail_token(p, "an argument");
    arguments->more = tpl_parse_expression(p);
  } else if (tpl_take(p, T_POWER)) {
    if (arguments->more_named) tpl_fail_token(p, "an argument");
    arguments->more_named = tpl_parse_expression(p);
  } else if (p->at->kind == T_NAME && p->at[1].kind == '=') {
    tpl_node_add(p, &arguments->named, constant(p, tpl_string_value(p->at->text)));
    p->at += 2;
    tpl_node_add(p, &arguments->named, tpl_parse_expression(p));
  } else {
    if (only_named) tpl_fail_token(p, "a named argument");
    tpl_node_add(p, &arguments->list, tpl_parse_expression(p));
  }
}

static tpl_call_arguments *parse_arguments(tpl_parser *p) {
  tpl_call_arguments *arguments = tpl_allocate(p->job, sizeof *arguments);
  tpl_expect(p, '(', "'('");
  while (!tpl_take(p, ')')) {
    parse_argument(p, arguments);
    if (p->at->kind != ')') tpl_expect(p, ',', "',' or ')'");
  }
  return arguments;
}

static tpl_node *parse_call(tpl_parser *p, tpl_node *of) {
  tpl_node *node = unary(p, N_CALL, of);
  node->arguments = parse_arguments(p);
  return node;
}

/* One of the parts of a slice; NULL where it is left out. */
static tpl_node *slice_part(tpl_parser *p) {
  if (p->at->kind == ':' || p->at->kind == ']' || p->at->kind == ',') return NULL;
  return tpl_parse_expression(p);
}

static tpl_node *parse_index(tpl_parser *p, tpl_node *of) {
  tpl_node *node = unary(p, N_ITEM, of);
  advance(p);
  node->b = slice_part(p);
  if (p->at->kind == ':') {
    node->kind = N_SLICE;
    tpl_node_add(p, &node->list, node->b);
    tpl_node_add(p, &node->list, tpl_take(p, ':') ? slice_part(p) : NULL);
    tpl_node_add(p, &node->list, tpl_take(p, ':') ? slice_part(p) : NULL);
  }
  if (node->kind == N_ITEM && !node->b) tpl_fail_token(p, "an index");
  tpl_expect(p, ']', "']'");
  return node;
}

static tpl_node *parse_attribute(tpl_parser *p, tpl_node *of) {
  tpl_node *node = unary(p, N_ATTRIBUTE, of);
  advance(p);
  if (p->at->kind == T_NUMBER) {
    node->kind = N_ITEM;
    node->b = parse_primary(p);
  } else {
    node->text = tpl_expect_name(p);
  }
  return node;
}

static tpl_node *parse_postfix(tpl_parser *p, tpl_node *of) {
  for (;;) {
    if (p->at->kind == '.')
      of = parse_attribute(p, of);
    else if (p->at->kind == '[')
      of = parse_index(p, of);
    else if (p->at->kind == '(')
      of = parse_call(p, of);
    else
      return of;
  }
}

tpl_node *tpl_parse_filter(tpl_parser *p, tpl_node *of) {
  tpl_node *node = unary(p, N_FILTER, of);
  node->text = tpl_expect_name(p);
  node->native = tpl_native_find(p->tables->filters, node->text);
  if (p->at->kind == '(') node->arguments = parse_arguments(p);
  return node;
}

tpl_node *tpl_parse_filters(tpl_parser *p, tpl_node *of) {
  while (tpl_take(p, '|')) of = tpl_parse_filter(p, of);
  return of;
}

static bool begins_argument(const tpl_parser *p) {
  int kind = p->at->kind;
  if (kind == T_NAME) return !tpl_sees_word(p, "else") && !tpl_sees_word(p, "or") && !tpl_sees_word(p, "and");
  return kind == T_STRING || kind == T_NUMBER || kind == '[' || kind == '{';
}

static tpl_node *parse_test(tpl_parser *p, tpl_node *of) {
  bool negated = tpl_take_word(p, "not");
  tpl_node *node = unary(p, N_TEST, of);
  node->text = tpl_expect_name(p);
  node->native = tpl_native_find(p->tables->tests, node->text);
  if (p->at->kind == '(') {
    node->arguments = parse_arguments(p);
  } else if (begins_argument(p)) {
    if (tpl_sees_word(p, "is")) tpl_fail_token(p, "no second test");
    node->arguments = tpl_allocate(p->job, sizeof *node->arguments);
    tpl_node_add(p, &node->arguments->list, parse_postfix(p, parse_primary(p)));
  }
  return negated ? unary(p, N_NOT, node) : node;
}

static tpl_node *parse_filters_and_tests(tpl_parser *p, tpl_node *of) {
  for (;;) {
    if (tpl_take(p, '|'))
      of = tpl_parse_filter(p, of);
    else if (tpl_take_word(p, "is"))
      of = parse_test(p, of);
    else if (p->at->kind == '(')
      of = parse_call(p, of);
    else
      return of;
  }
}

/* ---- operators, the ones that bind most first -------------------------------------------------------------------- */

static tpl_node *parse_signed(tpl_parser *p) {
  int sign = p->at->kind;
  if (sign != '-' && sign != '+') return parse_postfix(p, parse_primary(p));
  tpl_enter(p->job);
  advance(p);
  tpl_node *node = unary(p, sign == '-' ? N_NEGATE : N_PLUS, parse_signed(p));
  tpl_leave(p->job);
  return parse_postfix(p, node);
}

static tpl_node *parse_unary(tpl_parser *p) { return parse_filters_and_tests(p, parse_signed(p)); }

typedef tpl_node *parse_part(tpl_parser *p);

/* A chain of operators of one rank, from the left. `next` takes one and gives its token, or 0. */
static tpl_node *parse_chain(tpl_parser *p, tpl_node_kind kind, int (*next)(tpl_parser *p), parse_part *part) {
  tpl_node *first = part(p), *node = NULL;
  for (int op; (op = next(p)) != 0;) {
    if (!node) {
      node = tpl_node_new(p, kind);
      tpl_node_add(p, &node->list, first);
    }
    size_t n = node->list.n - 1;
    if ((n & (n - 1)) == 0)
      node->operators = tpl_grow(p->job, node->operators, n, n ? 2 * n : 1, sizeof *node->operators);
    node->operators[n] = op;
    tpl_node_add(p, &node->list, part(p));
  }
  return node ? node : first;
}

static int next_of(tpl_parser *p, const int *kinds) {
  for (; *kinds; kinds++)
    if (tpl_take(p, *kinds)) return *kinds;
  return 0;
}

static int next_power(tpl_parser *p) { return next_of(p, (const int[]){T_POWER, 0}); }
static int next_product(tpl_parser *p) { return next_of(p, (const int[]){'*', '/', T_FLOOR, '%', 0}); }
static int next_tilde(tpl_parser *p) { return next_of(p, (const int[]){'~', 0}); }
static int next_sum(tpl_parser *p) { return next_of(p, (const int[]){'+', '-', 0}); }

static int next_comparison(tpl_parser *p) {
  if (tpl_take_word(p, "in")) return T_NAME;
  if (tpl_sees_word(p, "not") && is_word(p->at + 1, "in")) return p->at += 2, T_DATA;
  return next_of(p, (const int[]){T_EQUAL, T_NOT_EQUAL, '<', T_LESS_EQUAL, '>', T_MORE_EQUAL, 0});
}

static int next_and(tpl_parser *p) { return tpl_take_word(p, "and"); }
static int next_or(tpl_parser *p) { return tpl_take_word(p, "or"); }

static tpl_node *parse_power(tpl_parser *p) { return parse_chain(p, N_ARITHMETIC, next_power, parse_unary); }
static tpl_node *parse_product(tpl_parser *p) { return parse_chain(p, N_ARITHMETIC, next_product, parse_power); }
static tpl_node *parse_concat(tpl_parser *p) { return parse_chain(p, N_CONCAT, next_tilde, parse_product); }
static tpl_node *parse_sum(tpl_parser *p) { return parse_chain(p, N_ARITHMETIC, next_sum, parse_concat); }
static tpl_node *parse_comparison(tpl_parser *p) { return parse_chain(p, N_COMPARE, next_comparison, parse_sum); }

static tpl_node *parse_not(tpl_parser *p) {
  if (!tpl_take_word(p, "not")) return parse_comparison(p);
  tpl_enter(p->job);
  tpl_node *node = unary(p, N_NOT, parse_not(p));
  tpl_leave(p->job);
  return node;
}

static tpl_node *parse_and(tpl_parser *p) { return parse_chain(p, N_AND, next_and, parse_not); }
static tpl_node *parse_or(tpl_parser *p) { return parse_chain(p, N_OR, next_or, parse_and); }

tpl_node *tpl_parse_expression(tpl_parser *p) {
  tpl_enter(p->job);
  tpl_node *node = parse_or(p);
  while (tpl_take_word(p, "if")) {
    tpl_node *condition = tpl_node_new(p, N_CONDITION);
    condition->b = node;
    condition->a = parse_or(p);
    condition->c = tpl_take_word(p, "else") ? tpl_parse_expression(p) : NULL;
    node = condition;
  }
  tpl_leave(p->job);
  return node;
}

/* ---- tuples and targets ------------------------------------------------------------------------------------------ */

static bool ends_tuple(const tpl_parser *p, const char *end) {
  int kind = p->at->kind;
  return kind == T_PRINT_END || kind == T_BLOCK_END || kind == ')' || (end && tpl_sees_word(p, end));
}

static tpl_node *parse_list_of(tpl_parser *p, parse_part *part, const char *end) {
  if (ends_tuple(p, end)) tpl_fail_token(p, "an expression");
  tpl_node *first = part(p);
  if (p->at->kind != ',') return first;
  tpl_node *tuple = tpl_node_new(p, N_TUPLE);
  tpl_node_add(p, &tuple->list, first);
  while (tpl_take(p, ',') && !ends_tuple(p, end)) tpl_node_add(p, &tuple->list, part(p));
  return tuple;
}

tpl_node *tpl_parse_tuple(tpl_parser *p, bool conditions, const char *end) {
  tpl_enter(p->job);
  tpl_node *node = parse_list_of(p, conditions ? tpl_parse_expression : parse_or, end);
  tpl_leave(p->job);
  return node;
}

static tpl_node *parse_target_part(tpl_parser *p) {
  tpl_node *node = parse_primary(p);
  return node->kind == N_NAME && p->at->kind == '.' ? parse_attribute(p, node) : node;
}

static void check_target(tpl_parser *p, const tpl_node *node, bool attributes) {
  if (node->kind == N_NAME || (node->kind == N_ATTRIBUTE && attributes)) return;
  if (node->kind != N_TUPLE) tpl_fail(p->job, "cannot assign to this expression");
  for (size_t i = 0; i < node->list.n; i++) check_target(p, node->list.items[i], attributes);
}

tpl_node *tpl_parse_target(tpl_parser *p, bool attributes, const char *end) {
  tpl_node *node = parse_list_of(p, parse_target_part, end);
  check_target(p, node, attributes);
  return node;
}
