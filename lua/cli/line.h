/* Reads typed lines: at a terminal with editing and history (libedit), otherwise as they are. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct line_source line_source;

line_source *line_open(bool terminal); /* reads standard input; NULL: out of memory */
void line_close(line_source *s);       /* NULL is allowed */

/* Reads a line without its newline: *len bytes and a NUL, valid until the next call. NULL: end of input, or
 * `interrupted` was set while waiting. At a terminal it shows `prompt` first. */
char *line_next(line_source *s, const char *prompt, size_t *len);

/* Adds a line to the history of this session and of later ones: see history.h. */
void line_remember(line_source *s, const char *line);

#endif
