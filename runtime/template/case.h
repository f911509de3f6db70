/* Strings in another case, by Python's rules for Unicode. */
#ifndef DT_TEMPLATE_CASE_H
#define DT_TEMPLATE_CASE_H

#include "template/string.h"

const tpl_string *tpl_upper(tpl_job *job, const tpl_string *s);
const tpl_string *tpl_lower(tpl_job *job, const tpl_string *s);
const tpl_string *tpl_capitalize(tpl_job *job, const tpl_string *s);
const tpl_string *tpl_title(tpl_job *job, const tpl_string *s); /* the method */
const tpl_string *tpl_title_filter(tpl_job *job,
                                   const tpl_string *s); /* Jinja's filter, which splits words differently */
const tpl_string *tpl_swap_case(tpl_job *job, const tpl_string *s);

bool tpl_is_cased(int32_t c);

/* Whether the string has cased letters, all in this case. */
bool tpl_is_lower(tpl_job *job, const tpl_string *s);
bool tpl_is_upper(tpl_job *job, const tpl_string *s);

#endif
