/* Lines that are typed: edited and remembered at a terminal (libedit), as they come where there is none. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct line_source line_source;

line_source *line_open(bool terminal); /* of standard input; NULL: out of memory */
void line_close(line_source *s);       /* NULL is allowed */

/* The next line without its end, *len bytes and a NUL: the source's, until the next call. NULL: there is none, or `interrupted`
 * was set while it was typed. At a terminal `prompt` stands before it. */
char *line_next(line_source *s, const char *prompt, size_t *len);

/* The arrow keys bring it back, now and in later sessions: it is kept among the user's files, for the user only. */
void line_remember(line_source *s, const char *line);

#endif
