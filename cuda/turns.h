/* Decides for how many rows of a pass, and for how many of their heads, attention is computed at once. The parts of a
 * row's attention are in scratch memory until the row's last part is done, and their number grows with the context.
 * With long contexts, the rows of a pass therefore take turns with the same scratch memory. The bits of a row do not
 * depend on its turn, since they do not depend on other rows. */
#ifndef DT_CUDA_TURNS_H
#define DT_CUDA_TURNS_H

#include <stddef.h>

#define TURN_BYTES ((size_t)512 << 20) /* bytes of scratch that are always allowed */
#define TURN_STEP 16                   /* heads of rows whose attention to a shared prefix is computed together */

/* Returns the bytes of one row's parts: for each head and part, sums of `dim` values, a largest score and a sum of
 * exponentials. 0: no heads. */
static inline size_t turn_row_bytes(int heads, int parts, int dim) {
  return (size_t)heads * (size_t)parts * ((size_t)dim + 2) * sizeof(float);
}

/* Returns the number of rows of a turn: a multiple of TURN_STEP (at least one), not more than `most` (1 or more) needs,
 * whose parts take at most TURN_BYTES or an eighth of the cache, whichever is larger. */
static inline int rows_of_turn(int most, size_t row_bytes, size_t cache_bytes) {
  size_t bytes = cache_bytes / 8 > TURN_BYTES ? cache_bytes / 8 : TURN_BYTES;
  int rows = row_bytes > bytes / (size_t)most ? (int)(bytes / row_bytes) : most;
  return rows < TURN_STEP ? TURN_STEP : rows - rows % TURN_STEP;
}

/* Returns how many of `group` heads that share their keys a block computes together, so that it reads the keys once for
 * them. It is the largest divisor of `group` that is at most half of TURN_STEP and leaves at most two of the TURN_STEP
 * places for heads of rows empty. */
static inline int heads_together(int group) {
  int heads = group < TURN_STEP / 2 ? group : TURN_STEP / 2;
  while (group % heads || TURN_STEP % heads > 2) heads--;
  return heads;
}

#endif
