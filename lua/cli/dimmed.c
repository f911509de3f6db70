/* Dim thoughts: see dimmed.h. */
#include "cli/dimmed.h"

#define DIM "\033[2m"

static bool on_part(void *user, bool thought, const char *bytes, size_t len) {
  dimmed *d = user;
  if (d->any && thought != d->thought) words_end(&d->out), shown_text(&d->out, "\n\n", 2);
  d->out.out.color = thought ? DIM : NULL;
  d->thought = thought, d->any = true;
  return words_text(&d->out, bytes, len);
}

bool dimmed_text(void *user, const char *bytes, size_t len) {
  dimmed *d = user;
  return d->thoughts ? dt_thoughts_add(d->thoughts, bytes, len, on_part, d) : words_text(&d->out, bytes, len);
}

bool dimmed_end(dimmed *d) {
  dt_thoughts_end(d->thoughts, on_part, d);
  bool more = words_end(&d->out);
  d->out.out.color = NULL;
  dt_thoughts_close(d->thoughts);
  d->thoughts = NULL;
  return more;
}
