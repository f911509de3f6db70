/* JSON texts as values: integers stay integers, and strings may contain NUL bytes. */
#ifndef DT_TEMPLATE_READ_JSON_H
#define DT_TEMPLATE_READ_JSON_H

#include "template/value.h"

/* The value of a variable, its strings marked as its origin says. */
tpl_value tpl_read_json(tpl_job *job, const template_variable *variable);

#endif
