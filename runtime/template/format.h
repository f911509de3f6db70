/* Python's two languages of formats: "%s" % values and "{}".format(values). */
#ifndef DT_TEMPLATE_FORMAT_H
#define DT_TEMPLATE_FORMAT_H

#include "template/run.h"

/* values: a tuple, or one value, or a dict for "%(name)s". */
tpl_value tpl_format_percent(tpl_run *run, const tpl_string *format, tpl_value values);

tpl_value tpl_format_braces(tpl_run *run, const tpl_string *format, const tpl_arguments *values);

#endif
