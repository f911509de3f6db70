/* Memory that is freed all at once: see arena.h. */
#include "grammar/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 << 10, ALIGN = 16 };

struct arena_chunk {
  arena_chunk *before;
  size_t size;
  _Alignas(ALIGN) char bytes[];
};

void arena_open(arena *a) {
  a->chunk = NULL;
  a->used = a->all = 0;
  a->status = DT_OK;
  a->err = NULL;
}

void arena_close(arena *a) {
  while (a->chunk) {
    arena_chunk *before = a->chunk->before;
    free(a->chunk);
    a->chunk = before;
  }
}

_Noreturn void arena_leave(arena *a, dt_status status) {
  a->status = status;
  longjmp(a->out, 1);
}

void *arena_take(arena *a, size_t bytes) {
  bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
  if (!a->chunk || a->chunk->size - a->used < bytes) {
    const size_t size = bytes > CHUNK ? bytes : CHUNK;
    arena_chunk *made = a->all + size <= ARENA_BYTES ? malloc(sizeof *made + size) : NULL;
    if (!made && a->all + size > ARENA_BYTES)
      arena_leave(a, dt_fail(a->err, DT_EINPUT, "the schema needs more than %u MiB to be compiled", ARENA_BYTES >> 20));
    if (!made) arena_leave(a, dt_fail_memory(a->err, "a JSON schema", size));
    made->before = a->chunk;
    made->size = size;
    a->chunk = made;
    a->used = 0;
    a->all += size;
  }
  void *at = a->chunk->bytes + a->used;
  a->used += bytes;
  return memset(at, 0, bytes);
}

void *arena_grow(arena *a, const void *from, size_t n, size_t room) {
  void *made = arena_take(a, room);
  if (n) memcpy(made, from, n);
  return made;
}

char *arena_print(arena *a, const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  const int n = vsnprintf(NULL, 0, format, list);
  va_end(list);
  char *text = n < 0 ? NULL : arena_take(a, (size_t)n + 1);
  if (text) vsnprintf(text, (size_t)n + 1, format, again);
  va_end(again);
  return text ? text : "";
}
