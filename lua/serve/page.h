/* The page that a browser gets: files of lua/serve/page/ and the drawing of traces, embedded when the program is built.
 */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include <stddef.h>

typedef struct {
  const char *url, *type; /* type: its Content-Type */
  const char *tag;        /* its ETag, with quotes: a digest of its bytes */
  const unsigned char *bytes;
  size_t len;
} page_file;

extern const page_file page_files[]; /* written by lua/serve/embed.cmake; the last one's url is NULL */

const page_file *page_find(const char *url); /* NULL: there is none */

/* What a browser may do with the page: load its own files from this server and ask this server, nothing else. */
extern const char page_policy[];

#endif
