/* Byte-pair encoding of one word: merges pairs of symbols until there is no pair left that the merges contain. The pair
 * with the lowest rank is merged first, and the leftmost of equal ones. */
#ifndef DT_BPE_H
#define DT_BPE_H

#include "system/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t pair;        /* left id << 32 | right id */
  int32_t rank, merged; /* rank -1: an empty entry of the table */
} bpe_merge;

typedef struct {
  bpe_merge *table; /* open addressing, at most half full */
  uint32_t mask;
} bpe;

dt_status bpe_init(bpe *b, size_t n_merges, dt_error *err);
void bpe_free(bpe *b);
/* Adds a merge, at most n_merges times. Pairs may share a rank; if a pair is added twice, the last one counts, as in
 * Hugging Face. */
void bpe_add_merge(bpe *b, int32_t left, int32_t right, int32_t rank, int32_t merged);

/* Memory that calls reuse, one for each thread. Zero it first. */
typedef struct {
  struct bpe_symbol *symbols;
  uint64_t *heap;
  size_t capacity; /* in symbols of a word */
} bpe_scratch;
void bpe_scratch_free(bpe_scratch *scratch);

/* Replaces the symbols ids[0..*n), 1 <= *n < 2^31, by tokens, in O(n log n). */
dt_status bpe_encode(const bpe *b, bpe_scratch *scratch, int32_t *ids, size_t *n, dt_error *err);

#endif
