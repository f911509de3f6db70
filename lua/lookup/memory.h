/* A policy's memory for later runs with the same pair: a table that the policy fills, and its outputs. A policy is
 * identified by its text. Sizes are bounded, whatever a policy does. */
#ifndef DTL_MEMORY_H
#define DTL_MEMORY_H

#include "lookup/corpus.h"
#include "system/digest.h"

#define MEMORY_BYTES (64u << 20) /* maximum bytes of a table, as policies count them */
#define MEMORY_SPACE (72u << 20) /* bytes for its entries: the more, the more seldom they are moved together */
#define MEMORY_ENTRY 64          /* bytes that an entry takes in addition to its key and value */
#define MEMORY_POLICIES 4        /* policies that are remembered for a pair: the ones that ran last */
#define MEMORY_LIST 256          /* maximum number of numbers in a list */

/* A table whose keys and values are bytes. All zeros: an empty table. A full one takes 80 MB, slots included. */
typedef struct {
  unsigned char *space; /* [MEMORY_SPACE], mapped; NULL: never used */
  size_t end;           /* bytes of it in use, holes included */
  uint32_t *slot;       /* [slots] heads of the chains of entries with equal low hash bits */
  size_t slots, n, used;
  uint64_t seed; /* of the hash: a policy cannot choose keys that share a slot */
} memory_table;

typedef struct {
  const void *bytes;
  size_t len;
} memory_bytes;

/* Looks up a key; false: it has no value. *value is valid until the table changes. */
bool memory_get(const memory_table *t, memory_bytes key, memory_bytes *value);
/* Sets the value of a key. False: there is no room, and nothing has changed. */
bool memory_set(memory_table *t, memory_bytes key, memory_bytes value);
void memory_drop(memory_table *t, memory_bytes key);
/* Empties the table and frees its memory. Returns whether it had any. */
bool memory_forget(memory_table *t);
/* Bytes that are left, as policies count them. */
static inline size_t memory_room(const memory_table *t) { return MEMORY_BYTES - t->used; }

typedef struct {
  char source[DIGEST_TEXT]; /* digest of the policy's text */
  long turn;                /* counts runs: the policy's last one; 0: it never ran */
  memory_table table;
  corpus_outputs outputs;
} policy_memory;

/* The memory of the policy whose text has the digest `source`. That policy now counts as the last that ran; the memory
 * of the policy that ran least recently may be dropped for it. */
policy_memory *memory_of(dtl_memory *memory, const char *source);

#endif
