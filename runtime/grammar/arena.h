/* Memory that is freed all at once. What is built in an arena need not be freed on each path, and a failure leaves all
 * functions at once: the code between arena_open and arena_close runs as
 *
 *   arena a;
 *   arena_open(&a);
 *   a.err = err;
 *   if (!setjmp(a.out)) ...build...
 *   arena_close(&a);
 *   return a.status;
 *
 * Nothing in between may own other memory. */
#ifndef DT_ARENA_H
#define DT_ARENA_H

#include "system/status.h"

#include <setjmp.h>
#include <stddef.h>

#define ARENA_BYTES (48u << 20) /* maximum memory of an arena */

typedef struct arena_chunk arena_chunk;

typedef struct {
  arena_chunk *chunk; /* the newest */
  size_t used, all;   /* used: of the newest chunk */
  jmp_buf out;
  dt_status status;
  dt_error *err;
} arena;

void arena_open(arena *a); /* without an `err`, which the caller sets; NULL: messages are dropped */
void arena_close(arena *a);
/* Returns zeroed memory; if there is none, does not return. */
void *arena_take(arena *a, size_t bytes);
/* Returns a copy of n bytes with room for `room` of them, the rest zeroed. */
void *arena_grow(arena *a, const void *from, size_t n, size_t room);
/* Leaves with a status whose message is set. */
_Noreturn void arena_leave(arena *a, dt_status status);
/* Formats a text. */
__attribute__((format(printf, 2, 3))) char *arena_print(arena *a, const char *format, ...);

#endif
