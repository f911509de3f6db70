/* Memory, steps and failures: see job.h. */
#include "template/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tpl_chunk {
  tpl_chunk *next;
  max_align_t bytes[];
};

enum { FIRST_CHUNK = 1 << 14, LARGEST_CHUNK = 1 << 20, ALIGN = _Alignof(max_align_t) };

void tpl_job_free(tpl_job *job) {
  for (tpl_chunk *c = job->chunks, *next; c; c = next) {
    next = c->next;
    free(c);
  }
  job->chunks = NULL;
}

static _Noreturn void leave(tpl_job *job, dt_status status) {
  job->status = status;
  longjmp(job->failed, 1);
}

void tpl_fail(tpl_job *job, const char *format, ...) {
  char text[sizeof job->err->message];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (job->line)
    dt_fail(job->err, DT_EINPUT, "line %d: %s", job->line, text);
  else
    dt_fail(job->err, DT_EINPUT, "%s", text);
  leave(job, DT_EINPUT);
}

void tpl_fail_whole(tpl_job *job, const char *message) {
  dt_fail(job->err, DT_EINPUT, "%s", message);
  leave(job, DT_EINPUT);
}

static void add_chunk(tpl_job *job, size_t least) {
  size_t size = job->used < FIRST_CHUNK ? FIRST_CHUNK : job->used > LARGEST_CHUNK ? LARGEST_CHUNK : job->used;
  if (size < least) size = least;
  if (size > TEMPLATE_MEMORY - job->used) size = least;
  if (size > TEMPLATE_MEMORY - job->used) tpl_fail(job, "more than %d MiB of memory", TEMPLATE_MEMORY >> 20);
  tpl_chunk *chunk = malloc(sizeof *chunk + size);
  if (!chunk) leave(job, dt_fail_memory(job->err, "a chat template", sizeof *chunk + size));
  chunk->next = job->chunks;
  job->chunks = chunk;
  job->used += size;
  job->at = (char *)chunk->bytes;
  job->end = job->at + size;
}

static size_t rounded(size_t bytes) { return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1); }

/* Not zeroed. */
static void *take(tpl_job *job, size_t bytes) {
  if (bytes > TEMPLATE_MEMORY) tpl_fail(job, "more than %d MiB of memory", TEMPLATE_MEMORY >> 20);
  bytes = rounded(bytes);
  if ((size_t)(job->end - job->at) < bytes) add_chunk(job, bytes);
  void *taken = job->at;
  job->at += bytes;
  return taken;
}

void *tpl_allocate(tpl_job *job, size_t bytes) { return memset(take(job, bytes), 0, bytes); }

void *tpl_grow(tpl_job *job, void *list, size_t n, size_t new_n, size_t item) {
  if (new_n > TEMPLATE_MEMORY / item) tpl_fail(job, "more than %d MiB of memory", TEMPLATE_MEMORY >> 20);
  size_t old = rounded(n * item), wanted = rounded(new_n * item);
  if (list && (char *)list + old == job->at && wanted - old <= (size_t)(job->end - job->at)) {
    job->at += wanted - old;
    return list;
  }
  void *grown = take(job, wanted);
  if (list) memcpy(grown, list, n * item);
  return grown;
}

void tpl_charge(tpl_job *job, size_t steps) {
  job->steps += steps;
  if (job->steps > TEMPLATE_STEPS + job->more_steps)
    tpl_fail(job, "more than %zu steps", TEMPLATE_STEPS + job->more_steps);
}

void tpl_charge_bytes(tpl_job *job, size_t bytes) { tpl_charge(job, bytes >> 8); }

void tpl_charge_characters(tpl_job *job, size_t n) { tpl_charge(job, n >> 5); }

void tpl_enter(tpl_job *job) {
  if (++job->levels > TEMPLATE_LEVELS) tpl_fail(job, "nested more than %d levels deep", TEMPLATE_LEVELS);
}
