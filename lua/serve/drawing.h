/* Draws the trees of traces as SVG, as dtrun run trace does. */
#ifndef SERVE_DRAWING_H
#define SERVE_DRAWING_H

#include "files/json_text.h"
#include "serve/ask.h"

typedef struct drawing drawing;

drawing *drawing_open(void);    /* NULL: out of memory */
void drawing_close(drawing *d); /* NULL is allowed */

/* Turns the body {"iterations": [lines of a trace]} into {"value": [a drawing of each]}. It may be called from any
 * thread. */
bool drawing_run(drawing *d, const char *body, size_t len, json_text *out, refusal *why);

#endif
