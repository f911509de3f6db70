/* Values as text: Python's str and repr, and JSON. */
#ifndef DT_TEMPLATE_WRITE_H
#define DT_TEMPLATE_WRITE_H

#include "template/value.h"

void tpl_write(tpl_builder *b, tpl_value v);      /* str() */
void tpl_write_repr(tpl_builder *b, tpl_value v); /* repr() */
const tpl_string *tpl_str(tpl_job *job, tpl_value v);

enum { TPL_NUMBER_TEXT = 40 };
void tpl_number_text(char out[TPL_NUMBER_TEXT], double x); /* repr() of a float */

typedef struct {
  bool ascii, sorted;
  const tpl_string *indent;        /* NULL: all in one line */
  const tpl_string *comma, *colon; /* separators */
} tpl_json_style;

void tpl_write_json(tpl_builder *b, tpl_value v, const tpl_json_style *style);

#endif
