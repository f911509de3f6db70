/* Trees of traces as SVG: the drawings of dtrun run trace. */
#ifndef SERVE_DRAWING_H
#define SERVE_DRAWING_H

#include "files/json_text.h"
#include "serve/ask.h"

typedef struct drawing drawing;

drawing *drawing_open(void);    /* NULL: out of memory */
void drawing_close(drawing *d); /* NULL is allowed */

/* {"iterations": [lines of a trace]} to {"value": [a drawing of each]}. Any thread may call it. */
bool drawing_run(drawing *d, const char *body, size_t len, json_text *out, refusal *why);

#endif
