/* Byte-pair encoding of one word: its symbols, merged pair by pair, the pair of the lowest rank first and the leftmost
 * of equal ones, until no pair is left that the merges know. */
#ifndef DT_BPE_H
#define DT_BPE_H

#include "system/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t pair;        /* left id << 32 | right id */
  int32_t rank, merged; /* rank -1: an empty place of the table */
} bpe_merge;

typedef struct {
  bpe_merge *table; /* open addressing, at most half full */
  uint32_t mask;
} bpe;

dt_status bpe_init(bpe *b, size_t n_merges, dt_error *err);
void bpe_free(bpe *b);
/* Pairs may share a rank; a pair given twice has its last one, as in Hugging Face. At most n_merges calls. */
void bpe_add_merge(bpe *b, int32_t left, int32_t right, int32_t rank, int32_t merged);

/* Memory that calls share; zero it first. One per thread. */
typedef struct {
  struct bpe_symbol *symbols;
  uint64_t *heap;
  size_t capacity; /* in symbols of a word */
} bpe_scratch;
void bpe_scratch_free(bpe_scratch *scratch);

/* ids[0..*n) are symbols, 1 <= *n < 2^31, and become tokens, in O(n log n). */
dt_status bpe_encode(const bpe *b, bpe_scratch *scratch, int32_t *ids, size_t *n, dt_error *err);

#endif
