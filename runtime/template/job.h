/* What a compilation or a rendering uses up: memory, steps, levels. Everything is allocated here and freed at once. A
 * failure jumps out to who began the job, so that no call has to look for one. */
#ifndef DT_TEMPLATE_JOB_H
#define DT_TEMPLATE_JOB_H

#include "template/template.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tpl_chunk tpl_chunk;

typedef struct {
  tpl_chunk *chunks;        /* the newest first */
  char *at, *end;           /* the free part of the newest chunk */
  size_t used;              /* bytes of all chunks */
  size_t steps, more_steps; /* more_steps: allowed beyond TEMPLATE_STEPS */
  int levels, line;         /* line: of the template, being run or parsed; 0: none */
  bool is_shared;           /* its results are shared by threads (a compiled template) */
  dt_error *err;
  dt_status status;
  jmp_buf failed;
} tpl_job;

void tpl_job_free(tpl_job *job);

/* The message follows the line, if there is one. */
_Noreturn void tpl_fail(tpl_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void tpl_fail_whole(tpl_job *job, const char *message); /* without the line */

void *tpl_allocate(tpl_job *job, size_t bytes); /* zeroed */

/* A larger copy of a list of n items, or the same list where it can grow in place. */
void *tpl_grow(tpl_job *job, void *list, size_t n, size_t new_n, size_t item);

void tpl_charge(tpl_job *job, size_t steps);
void tpl_charge_bytes(tpl_job *job, size_t bytes);  /* for a scan of many bytes at once */
void tpl_charge_characters(tpl_job *job, size_t n); /* for a scan one by one */

void tpl_enter(tpl_job *job); /* one level deeper */
static inline void tpl_leave(tpl_job *job) { job->levels--; }

#endif
