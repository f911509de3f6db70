/* Decides for how many rows of a pass, and for how many of their heads, attention is computed at once. The parts of a
 * row's attention are in scratch memory until the row's last part is done, and their number grows with the context.
 * With long contexts, the rows of a pass are therefore divided into batches, one after the other, with the same scratch
 * memory. The bits of a row do not depend on its batch, since they do not depend on other rows. */
#ifndef DT_CUDA_ROW_BATCHES_H
#define DT_CUDA_ROW_BATCHES_H

#include <stddef.h>

#define BATCH_BYTES ((size_t)512 << 20) /* bytes of scratch that are always allowed */
enum { QUERIES = 16 };                  /* heads of rows whose attention to a shared prefix is computed together */

/* Returns the bytes of one row's parts: for each head and part, sums of `dim` values, a largest score and a sum of
 * exponentials. 0: no heads. */
static inline size_t attention_row_bytes(int heads, int parts, int dim) {
  return (size_t)heads * (size_t)parts * ((size_t)dim + 2) * sizeof(float);
}

/* Returns the number of rows of a batch: a multiple of QUERIES (at least one), not more than `most` (1 or more) needs,
 * whose parts take at most BATCH_BYTES or an eighth of the cache, whichever is larger. */
static inline int rows_of_batch(int most, size_t row_bytes, size_t cache_bytes) {
  size_t bytes = cache_bytes / 8 > BATCH_BYTES ? cache_bytes / 8 : BATCH_BYTES;
  int rows = row_bytes > bytes / (size_t)most ? (int)(bytes / row_bytes) : most;
  return rows < QUERIES ? QUERIES : rows - rows % QUERIES;
}

/* Returns how many of `group` heads that share their keys a block computes together, so that it reads the keys once for
 * them. It is the largest divisor of `group` that is at most half of QUERIES and leaves at most two of the QUERIES
 * places for heads of rows empty. */
static inline int heads_together(int group) {
  int heads = group < QUERIES / 2 ? group : QUERIES / 2;
  while (group % heads || QUERIES % heads > 2) heads--;
  return heads;
}

#endif
