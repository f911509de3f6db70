/* Statements: what a template writes. */
#ifndef DT_TEMPLATE_EXECUTE_H
#define DT_TEMPLATE_EXECUTE_H

#include "template/node.h"
#include "template/run.h"

/* Runs the body of a template in the scope of its variables. */
void tpl_execute(tpl_run *run, tpl_scope *scope, const tpl_node *body);

#endif
