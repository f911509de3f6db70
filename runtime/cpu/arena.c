/* The memory of weights, caches and scratch buffers: see cpu_arena in internal.h. */
#include "internal.h"

#include "system/os.h"

#include <string.h>

#define HUGE_PAGE ((size_t)2 << 20)

void *cpu_take(cpu_arena *arena, size_t bytes) {
  char *p = arena->base ? arena->base + arena->used : NULL;
  arena->used += (bytes + 63) & ~(size_t)63;
  return p;
}

/* Populates the pages on all threads, so that the first pass does not wait for them to be cleared. */
static void populate(const cpu_member *me, void *context) {
  const cpu_arena *arena = context;
  int first, last;
  cpu_share(me, (int)(arena->size / HUGE_PAGE), &first, &last);
  if (first < last) os_populate(arena->base + (size_t)first * HUGE_PAGE, (size_t)(last - first) * HUGE_PAGE);
}

dt_status cpu_arena_open(cpu_arena *arena, const char *what, cpu_team *team, size_t *account, dt_error *err) {
  arena->size = arena->used ? arena->used : 64;
  arena->used = 0;
  if (arena->size >= HUGE_PAGE) arena->size = (arena->size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
  size_t mapped = arena->size + (arena->size >= HUGE_PAGE ? HUGE_PAGE : 0);
  size_t left = os_free_memory();
  if (arena->size > left)
    return dt_fail(err, DT_ENOMEM, "out of memory: %s need%s %.3g GiB, but only %.3g GiB are free", what,
                   what[strlen(what) - 1] == 's' ? "" : "s", (double)arena->size / (1 << 30), (double)left / (1 << 30));
  char *p = os_map(mapped, false);
  if (!p) return dt_fail_memory(err, what, arena->size);
  if (arena->size >= HUGE_PAGE) { /* begin at a huge page; unmap the rest at both ends */
    size_t before = (HUGE_PAGE - (size_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (before) os_unmap(p, before);
    if (before < HUGE_PAGE) os_unmap(p + before + arena->size, HUGE_PAGE - before);
    p += before;
    os_use_huge_pages(p, arena->size);
  }
  arena->base = p;
  if (team && cpu_team_nodes(team)) os_interleave(p, arena->size, cpu_team_nodes(team));
  if (team) cpu_team_run(team, populate, arena);
  *account += arena->size;
  return DT_OK;
}

void cpu_arena_close(cpu_arena *arena, size_t *account) {
  if (!arena->base) return;
  os_unmap(arena->base, arena->size);
  *account -= arena->size;
  *arena = (cpu_arena){0};
}
