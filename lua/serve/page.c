/* See page.h. */
#include "serve/page.h"

#include <string.h>

const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const page_file *page_find(const char *url) {
  for (const page_file *f = page_files; f->url; f++)
    if (strcmp(f->url, url) == 0) return f;
  return NULL;
}
