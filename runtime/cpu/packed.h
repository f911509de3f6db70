/* Weights as a variant of the backend stores them, kept in a folder: the next start reads them instead of packing them
 * again. They are read and not mapped, since with pages of a page cache (4 KiB) a pass takes half as long again
 * (tests/bench/results/start.md).
 *
 * A file is named by a digest of all that its content depends on. Its blocks carry checksums; if one is wrong, the file
 * counts as absent and is replaced. Files that were used least recently are removed when all together exceed a limit. A
 * folder that cannot be written, or a full disk, only means that nothing is kept. */
#ifndef DT_CPU_PACKED_H
#define DT_CPU_PACKED_H

#include "internal.h"
#include "system/digest.h"

#define PACKED_LEAST ((size_t)32000000) /* bytes; smaller models are packed in no time */

/* What a digest covers. An upload begins it, adds each step of the layout in order, and ends it. */
typedef struct {
  digest of;
  bool possible; /* all weights are in files */
} packed_key;

void packed_key_begin(packed_key *key, const dt_backend *b);
void packed_key_add(packed_key *key, const void *bytes, size_t n);
void packed_key_add_matrix(packed_key *key, const dt_matrix *m);

/* Fills the arena with what is kept under this name; false: nothing is. The arena is then as it was: zeros. */
bool cpu_packed_read(const dt_backend *b, const char name[DIGEST_TEXT], cpu_arena *arena);

typedef struct cpu_packed_writer cpu_packed_writer;
/* Begins to keep the arena under this name, in a thread of its own; NULL: it cannot be kept. The arena must not change
 * until cpu_packed_stop (NULL is allowed), after which a later writer continues. */
cpu_packed_writer *cpu_packed_write(const dt_backend *b, const char name[DIGEST_TEXT], const cpu_arena *arena);
void cpu_packed_stop(cpu_packed_writer *w);

#endif
