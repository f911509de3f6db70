/* The memory that runs of a policy leave to its later runs with the same pair: a table that the page fills itself, and its
 * outputs. A policy is known by its text, and what is kept is bounded: whatever a page does, it takes no more than this. */
#ifndef DTL_MEMORY_H
#define DTL_MEMORY_H

#include "lookup/corpus.h"
#include "system/digest.h"

#define MEMORY_BYTES (64u << 20) /* of a table, as the page counts them */
#define MEMORY_SPACE (72u << 20) /* that its entries lie in: the more, the more seldom they move together */
#define MEMORY_ENTRY 64          /* bytes that an entry takes beside its key and value */
#define MEMORY_POLICIES 4        /* remembered of a pair: those that ran last */
#define MEMORY_LIST 256          /* numbers of a list */

/* Keys and values are bytes. Zeros are an empty table; a full one takes 80 MB of the process, its slots among them. */
typedef struct {
  unsigned char *space; /* [MEMORY_SPACE], mapped; NULL: nothing was ever put in */
  size_t end;           /* bytes of it that hold entries, and holes between them */
  uint32_t *slot;       /* [slots] where chains of those whose hash ends alike begin */
  size_t slots, n, used;
  uint64_t seed; /* of the hash: a page cannot know which keys share a slot */
} memory_table;

typedef struct {
  const void *bytes;
  size_t len;
} memory_bytes;

/* *value is valid until the table changes. */
bool memory_get(const memory_table *t, memory_bytes key, memory_bytes *value);
/* False: there is no room, and nothing has changed. */
bool memory_set(memory_table *t, memory_bytes key, memory_bytes value);
void memory_drop(memory_table *t, memory_bytes key);
/* Empties it, and gives its memory back. Whether it had any. */
bool memory_forget(memory_table *t);
static inline size_t memory_room(const memory_table *t) { return MEMORY_BYTES - t->used; }

typedef struct {
  char source[DIGEST_TEXT]; /* a digest of its text */
  long turn;                /* when it ran last; 0: never */
  memory_table table;
  corpus_outputs outputs;
} policy_memory;

/* That of the policy with this text, which is the one that ran last from now on; another may be forgotten for it. */
policy_memory *memory_of(dtl_memory *memory, const char *source);

#endif
