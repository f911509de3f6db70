/* Packs calls into bytes. One function visits a call's fields, both to write and to read them, so that the two
 * agree. */
#include "ranks/call.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 8 };

typedef struct {
  char *bytes; /* NULL: only counts them */
  size_t at, size;
  bool reading, short_of;
} tape;

/* The next n bytes of a tape, or NULL. */
static char *next(tape *t, size_t n) {
  char *here = t->bytes ? t->bytes + t->at : NULL;
  if (t->bytes && n > t->size - t->at) t->short_of = true, here = NULL;
  n = (n + ALIGN - 1) / ALIGN * ALIGN;
  t->at = t->bytes && n > t->size - t->at ? t->size : t->at + n;
  return here;
}

static void value(tape *t, void *x, size_t n) {
  char *here = next(t, n);
  if (here) memcpy(t->reading ? x : here, t->reading ? here : x, n);
}

/* n bytes to which a call points. */
static void block(tape *t, const void **p, size_t n) {
  char *here = next(t, n);
  if (t->reading)
    *p = here;
  else if (here && n)
    memcpy(here, *p, n);
}

/* A text, or NULL. */
static void text(tape *t, const char **s) {
  int32_t n = !t->reading && *s ? (int32_t)strlen(*s) + 1 : 0;
  value(t, &n, sizeof n);
  if (n) block(t, (const void **)s, (size_t)n);
  if (t->reading && (!n || (*s && (*s)[n - 1]))) *s = NULL;
}

static void ints(tape *t, const int32_t **p, size_t n) { block(t, (const void **)p, n * sizeof **p); }

static void pass(tape *t, call *c) {
  dt_rows *r = &c->rows;
  value(t, &r->n, sizeof r->n);
  value(t, &r->path_stride, sizeof r->path_stride);
  value(t, &r->prompt, sizeof r->prompt);
  value(t, &r->window, sizeof r->window);
  size_t n = (size_t)r->n;
  ints(t, &r->token, n), ints(t, &r->position, n), ints(t, &r->sequence, n), ints(t, &r->slot, n);
  ints(t, &r->prefix, n), ints(t, &r->path_len, n), ints(t, &r->path, n * (size_t)r->path_stride);
  value(t, &c->wants, sizeof c->wants);
  if (!c->wants) return;
  value(t, &c->out.want, sizeof c->out.want);
  value(t, &c->out.n, sizeof c->out.n);
  value(t, &c->out.k, sizeof c->out.k);
  value(t, &c->out.vocab, sizeof c->out.vocab);
  ints(t, &c->out.row, (size_t)c->out.n);
}

static void walk(tape *t, call *c) {
  value(t, &c->kind, sizeof c->kind);
  value(t, &c->on, sizeof c->on);
  value(t, &c->with, sizeof c->with);
  value(t, &c->sequence, sizeof c->sequence);
  value(t, &c->n, sizeof c->n);
  value(t, &c->slots, sizeof c->slots);
  switch ((call_kind)c->kind) {
  case CALL_OPEN: text(t, &c->version), text(t, &c->variant), text(t, &c->cache_dtype), text(t, &c->numa); break;
  case CALL_UPLOAD:
    text(t, &c->path), text(t, &c->how.dtype), text(t, &c->how.activations), text(t, &c->rope.scaling);
    value(t, &c->rope.context, sizeof c->rope.context);
    value(t, &c->rope.scale, sizeof c->rope.scale), value(t, &c->rope.original, sizeof c->rope.original);
    value(t, &c->signature, sizeof c->signature);
    break;
  case CALL_MOVE: ints(t, &c->from, (size_t)c->n), ints(t, &c->to, (size_t)c->n); break;
  case CALL_FORWARD: pass(t, c); break;
  default: break;
  }
}

void *call_pack(const call *c, size_t *bytes) {
  call said = *c;
  tape counted = {.bytes = NULL};
  walk(&counted, &said);
  char *message = calloc(1, counted.at);
  if (message) walk(&(tape){.bytes = message, .size = counted.at}, &said);
  *bytes = counted.at;
  return message;
}

size_t call_pack_short(const call *c, char message[CALL_SHORT]) {
  call said = *c;
  tape t = {.bytes = memset(message, 0, CALL_SHORT), .size = CALL_SHORT};
  walk(&t, &said);
  return t.at;
}

bool call_unpack(void *message, size_t bytes, call *c) {
  tape t = {.bytes = message, .size = bytes, .reading = true};
  *c = (call){.kind = -1};
  walk(&t, c);
  return !t.short_of;
}
