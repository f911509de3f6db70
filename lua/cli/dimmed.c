/* Shows reasoning dimmed: see dimmed.h. */
#include "cli/dimmed.h"

#define DIM "\033[2m"

static bool on_part(void *user, bool reasoning, const char *bytes, size_t len) {
  dimmed *d = user;
  if (d->any && reasoning != d->reasoning) words_end(&d->out), shown_text(&d->out, "\n\n", 2);
  d->out.out.color = reasoning ? DIM : NULL;
  d->reasoning = reasoning, d->any = true;
  return words_text(&d->out, bytes, len);
}

bool dimmed_text(void *user, const char *bytes, size_t len) {
  dimmed *d = user;
  return d->parser ? dt_reasoning_add(d->parser, bytes, len, on_part, d) : words_text(&d->out, bytes, len);
}

bool dimmed_end(dimmed *d) {
  dt_reasoning_end(d->parser, on_part, d);
  bool more = words_end(&d->out);
  d->out.out.color = NULL;
  dt_reasoning_close(d->parser);
  d->parser = NULL;
  return more;
}
