/* Strings in pieces: replaced, split, joined, padded. What filters and methods share. */
#ifndef DT_TEMPLATE_PIECES_H
#define DT_TEMPLATE_PIECES_H

#include "template/value.h"

enum { TPL_ALL = -1 }; /* as a count: no limit */

const tpl_string *tpl_replace(tpl_job *job, const tpl_string *s, const tpl_string *from, const tpl_string *to,
                              int64_t count);

/* Lists of strings. by: NULL or none for white space. */
tpl_value tpl_split(tpl_job *job, const tpl_string *s, const tpl_string *by, int64_t count);
tpl_value tpl_split_right(tpl_job *job, const tpl_string *s, const tpl_string *by, int64_t count);
tpl_value tpl_split_lines(tpl_job *job, const tpl_string *s, bool keep_ends);

/* Fills up to a width in characters; side: -1, the text stands left; 0, in the middle; 1, right. */
const tpl_string *tpl_pad(tpl_job *job, const tpl_string *s, int64_t width, const tpl_string *fill, int side);

#endif
