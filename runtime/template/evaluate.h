/* Expressions to values. */
#ifndef DT_TEMPLATE_EVALUATE_H
#define DT_TEMPLATE_EVALUATE_H

#include "template/node.h"
#include "template/run.h"

tpl_value tpl_evaluate(tpl_run *run, tpl_scope *scope, const tpl_node *node);

/* A call (N_CALL) with one more named argument. */
tpl_value tpl_evaluate_call(tpl_run *run, tpl_scope *scope, const tpl_node *node, const tpl_pair *more);

/* The filters of a block (N_FILTER without a first value, or NULL) applied to its text. */
tpl_value tpl_evaluate_filters(tpl_run *run, tpl_scope *scope, const tpl_node *filter, tpl_value text);

/* One level deeper on the C stack, and one step. */
void tpl_deeper(tpl_run *run, const tpl_node *node);

#endif
