/* From tokens to a tree, as Jinja2's parser does. */
#ifndef DT_TEMPLATE_PARSE_H
#define DT_TEMPLATE_PARSE_H

#include "template/lexer.h"
#include "template/node.h"

typedef struct {
  tpl_job *job;
  const tpl_tables *tables;
  const tpl_token *at;
  int loops;                                   /* that are open */
  bool uses_caller, uses_varargs, uses_kwargs; /* the macro that is read */
} tpl_parser;

/* The body of the whole template (N_BODY). */
tpl_node *tpl_parse(tpl_job *job, const tpl_tables *tables, const tpl_token *tokens);

/* ---- parse_expression.c: what statements are made of */

tpl_node *tpl_node_new(tpl_parser *p, tpl_node_kind kind);
void tpl_node_add(tpl_parser *p, tpl_nodes *list, tpl_node *node);

bool tpl_sees_word(const tpl_parser *p, const char *word);
bool tpl_take_word(tpl_parser *p, const char *word);
bool tpl_take(tpl_parser *p, int kind);
void tpl_expect(tpl_parser *p, int kind, const char *what);
const tpl_string *tpl_expect_name(tpl_parser *p);
_Noreturn void tpl_fail_token(tpl_parser *p, const char *expected);

tpl_node *tpl_parse_expression(tpl_parser *p);
tpl_node *tpl_parse_filters(tpl_parser *p, tpl_node *of); /* "| name ..." or nothing */
tpl_node *tpl_parse_filter(tpl_parser *p, tpl_node *of);  /* "name ..." */

/* Expressions with commas between them are a tuple. `conditions`: "if" may stand in them; `end`: a word that ends the
 * list, or NULL. */
tpl_node *tpl_parse_tuple(tpl_parser *p, bool conditions, const char *end);

/* What can be assigned to: names, tuples of them, and, in `set`, attributes of namespaces. */
tpl_node *tpl_parse_target(tpl_parser *p, bool attributes, const char *end);

#endif
