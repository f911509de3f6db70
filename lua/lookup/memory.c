/* What policies remember between runs with a pair: see memory.h. */
#include "lookup/memory.h"

#include "system/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dtl_memory {
  policy_memory policy[MEMORY_POLICIES];
  long turn;
};

/* Forgets everything; returns whether there was anything. */
static bool forget(policy_memory *p) {
  bool kept = memory_forget(&p->table) || p->outputs.n > 0;
  corpus_forget(&p->outputs);
  *p = (policy_memory){0};
  return kept;
}

dtl_memory *dtl_memory_open(void) { return calloc(1, sizeof(dtl_memory)); }

void dtl_memory_forget(dtl_memory *memory) {
  bool kept = false;
  for (int i = 0; memory && i < MEMORY_POLICIES; i++) kept |= forget(&memory->policy[i]);
  if (kept) os_return_freed();
}

void dtl_memory_close(dtl_memory *memory) {
  if (memory) dtl_memory_forget(memory);
  free(memory);
}

policy_memory *memory_of(dtl_memory *memory, const char *source) {
  policy_memory *found = &memory->policy[0];
  for (int i = 0; i < MEMORY_POLICIES; i++) {
    policy_memory *p = &memory->policy[i];
    if (p->turn && !strcmp(p->source, source)) {
      found = p;
      break;
    }
    if (p->turn < found->turn) found = p;
  }
  if ((!found->turn || strcmp(found->source, source)) && forget(found)) os_return_freed();
  snprintf(found->source, sizeof found->source, "%s", source);
  found->turn = ++memory->turn;
  return found;
}
