/* Operators between values. */
#ifndef DT_TEMPLATE_OPERATORS_H
#define DT_TEMPLATE_OPERATORS_H

#include "template/run.h"

/* op: a token, + - * / % or T_FLOOR, T_POWER (lexer.h). */
tpl_value tpl_arithmetic(tpl_run *run, int op, tpl_value a, tpl_value b);
tpl_value tpl_negative(tpl_job *job, tpl_value v);

/* op: a token of a comparison; T_NAME: in, T_DATA: not in. */
bool tpl_compare(tpl_job *job, int op, tpl_value a, tpl_value b);

/* value[begin:end:step]; TPL_MISSING or none where a part is left out. */
tpl_value tpl_slice(tpl_job *job, tpl_value of, tpl_value begin, tpl_value end, tpl_value step);

#endif
