/* The parser of statements: see parse.h. */
#include "template/parse.h"

static tpl_node *parse_body(tpl_parser *p, const char *const *ends);

/* After the words of a tag: its end, and the statements up to one of `ends`, which is not taken. */
static tpl_node *parse_until(tpl_parser *p, const char *const *ends) {
  tpl_take(p, ':');
  tpl_expect(p, T_BLOCK_END, "the end of the tag");
  tpl_enter(p->job);
  tpl_node *body = parse_body(p, ends);
  tpl_leave(p->job);
  return body;
}

/* The same, and the end is taken. */
static tpl_node *parse_to(tpl_parser *p, const char *end) {
  tpl_node *body = parse_until(p, (const char *const[]){end, NULL});
  tpl_take(p, T_NAME);
  return body;
}

static void parse_for(tpl_parser *p, tpl_node *node) {
  node->kind = N_FOR;
  node->a = tpl_parse_target(p, false, "in");
  if (!tpl_take_word(p, "in")) tpl_fail_token(p, "'in'");
  node->b = tpl_parse_tuple(p, false, "recursive");
  if (tpl_take_word(p, "if")) node->c = tpl_parse_expression(p);
  node->recursive = tpl_take_word(p, "recursive");
  p->loops++;
  node->body = parse_until(p, (const char *const[]){"endfor", "else", NULL});
  p->loops--;
  if (!tpl_take_word(p, "endfor")) {
    tpl_take_word(p, "else");
    node->other = parse_to(p, "endfor");
  }
}

static void parse_if(tpl_parser *p, tpl_node *node) {
  node->kind = N_IF;
  do {
    tpl_node_add(p, &node->list, tpl_parse_tuple(p, false, NULL));
    tpl_node_add(p, &node->list, parse_until(p, (const char *const[]){"elif", "else", "endif", NULL}));
  } while (tpl_take_word(p, "elif"));
  if (tpl_take_word(p, "else"))
    node->b = parse_to(p, "endif");
  else
    tpl_take_word(p, "endif");
}

static void parse_set(tpl_parser *p, tpl_node *node) {
  node->kind = N_SET;
  node->a = tpl_parse_target(p, true, NULL);
  if (tpl_take(p, '=')) {
    node->b = tpl_parse_tuple(p, true, NULL);
    return;
  }
  node->kind = N_SET_BLOCK;
  node->b = tpl_parse_filters(p, NULL);
  node->body = parse_to(p, "endset");
}

static void parse_parameters(tpl_parser *p, tpl_node *node) {
  tpl_expect(p, '(', "'('");
  while (!tpl_take(p, ')')) {
    if (node->list.n) tpl_expect(p, ',', "',' or ')'");
    tpl_node *name = tpl_node_new(p, N_NAME);
    name->text = tpl_expect_name(p);
    tpl_node_add(p, &node->list, name);
    if (tpl_take(p, '='))
      tpl_node_add(p, &node->defaults, tpl_parse_expression(p));
    else if (node->defaults.n)
      tpl_fail_token(p, "a default value");
  }
}

/* The names in its body decide which extra arguments a macro takes. */
static void parse_macro_body(tpl_parser *p, tpl_node *node, const char *end) {
  tpl_parser outer = *p;
  p->uses_caller = p->uses_varargs = p->uses_kwargs = false;
  p->loops = 0;
  node->body = parse_to(p, end);
  node->uses_caller = p->uses_caller;
  node->uses_varargs = p->uses_varargs;
  node->uses_kwargs = p->uses_kwargs;
  p->loops = outer.loops;
  p->uses_caller |= outer.uses_caller;
  p->uses_varargs |= outer.uses_varargs;
  p->uses_kwargs |= outer.uses_kwargs;
}

static void parse_macro(tpl_parser *p, tpl_node *node) {
  node->kind = N_MACRO;
  node->text = tpl_expect_name(p);
  parse_parameters(p, node);
  parse_macro_body(p, node, "endmacro");
}

static void parse_call_block(tpl_parser *p, tpl_node *node) {
  node->kind = N_CALL_BLOCK;
  node->b = tpl_node_new(p, N_MACRO);
  node->b->text = tpl_text(p->job, "caller");
  if (p->at->kind == '(') parse_parameters(p, node->b);
  node->a = tpl_parse_expression(p);
  if (node->a->kind != N_CALL) tpl_fail_token(p, "a call");
  parse_macro_body(p, node->b, "endcall");
}

static void parse_filter_block(tpl_parser *p, tpl_node *node) {
  node->kind = N_FILTER_BLOCK;
  node->b = tpl_parse_filters(p, tpl_parse_filter(p, NULL));
  node->body = parse_to(p, "endfilter");
}

static void parse_with(tpl_parser *p, tpl_node *node) {
  node->kind = N_WITH;
  while (p->at->kind != T_BLOCK_END) {
    if (node->list.n) tpl_expect(p, ',', "','");
    tpl_node_add(p, &node->list, tpl_parse_target(p, false, NULL));
    tpl_expect(p, '=', "'='");
    tpl_node_add(p, &node->list, tpl_parse_expression(p));
  }
  node->body = parse_to(p, "endwith");
}

static void parse_print(tpl_parser *p, tpl_node *node) {
  node->kind = N_PRINT;
  while (p->at->kind != T_BLOCK_END) {
    if (node->list.n) tpl_expect(p, ',', "','");
    tpl_node_add(p, &node->list, tpl_parse_expression(p));
  }
}

static void parse_generation(tpl_parser *p, tpl_node *node) {
  node->kind = N_SCOPE;
  node->body = parse_to(p, "endgeneration");
}

static void parse_jump(tpl_parser *p, tpl_node *node, tpl_node_kind kind) {
  node->kind = kind;
  if (!p->loops) tpl_fail(p->job, "%s outside of a loop", kind == N_BREAK ? "break" : "continue");
}

static void parse_break(tpl_parser *p, tpl_node *node) { parse_jump(p, node, N_BREAK); }
static void parse_continue(tpl_parser *p, tpl_node *node) { parse_jump(p, node, N_CONTINUE); }

static tpl_node *parse_statement(tpl_parser *p) {
  static const struct {
    const char *name;
    void (*parse)(tpl_parser *p, tpl_node *node);
  } statements[] = {{"if", parse_if},       {"for", parse_for},          {"set", parse_set},
                    {"macro", parse_macro}, {"call", parse_call_block},  {"filter", parse_filter_block},
                    {"with", parse_with},   {"print", parse_print},      {"generation", parse_generation},
                    {"break", parse_break}, {"continue", parse_continue}};
  tpl_node *node = tpl_node_new(p, N_BODY);
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
    if (!tpl_take_word(p, statements[i].name)) continue;
    statements[i].parse(p, node);
    tpl_expect(p, T_BLOCK_END, "the end of the tag");
    return node;
  }
  tpl_fail_token(p, "a statement");
}

static tpl_node *parse_output(tpl_parser *p) {
  tpl_node *node = tpl_node_new(p, N_PRINT);
  tpl_node_add(p, &node->list, tpl_parse_tuple(p, true, NULL));
  tpl_expect(p, T_PRINT_END, "the end of the tag");
  return node;
}

static tpl_node *parse_text(tpl_parser *p) {
  tpl_node *node = tpl_node_new(p, N_TEXT);
  node->text = p->at->text;
  tpl_take(p, T_DATA);
  return node;
}

/* Whether the tag that begins here is one of `ends`. */
static bool ends_body(tpl_parser *p, const char *const *ends) {
  for (; ends && *ends; ends++)
    if (tpl_sees_word(p, *ends)) return true;
  return false;
}

static tpl_node *parse_body(tpl_parser *p, const char *const *ends) {
  tpl_node *body = tpl_node_new(p, N_BODY);
  for (;;) {
    if (p->at->kind == T_END && !ends) return body;
    if (p->at->kind == T_DATA)
      tpl_node_add(p, &body->list, parse_text(p));
    else if (tpl_take(p, T_PRINT_BEGIN))
      tpl_node_add(p, &body->list, parse_output(p));
    else if (!tpl_take(p, T_BLOCK_BEGIN))
      tpl_fail_token(p, ends ? ends[0] : "a statement");
    else if (ends_body(p, ends))
      return body;
    else
      tpl_node_add(p, &body->list, parse_statement(p));
  }
}

tpl_node *tpl_parse(tpl_job *job, const tpl_tables *tables, const tpl_token *tokens) {
  tpl_parser p = {.job = job, .tables = tables, .at = tokens};
  return parse_body(&p, NULL);
}
