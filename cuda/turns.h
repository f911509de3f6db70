/* How many rows of a pass, and how many of their heads, have their attention at once. The parts of a row's attention
 * lie in scratch until the row's last part is done, and their number grows with the context; so where contexts are
 * long, the rows of a pass take turns at the same scratch. A row's bits do not depend on its turn, since they do not
 * depend on other rows. */
#ifndef DT_CUDA_TURNS_H
#define DT_CUDA_TURNS_H

#include <stddef.h>

#define TURN_BYTES ((size_t)512 << 20) /* of scratch that are always allowed */
#define TURN_STEP 16                   /* heads of rows whose attention to a shared prefix is computed together */

/* Bytes of one row's parts: sums of `dim` values, a largest score and a sum of exponentials for each head and part. 0:
 * no heads. */
static inline size_t turn_row_bytes(int heads, int parts, int dim) {
  return (size_t)heads * (size_t)parts * ((size_t)dim + 2) * sizeof(float);
}

/* Rows of a turn: a multiple of TURN_STEP, at least that and at most `most` (1 or more), whose parts take no more than
 * TURN_BYTES or, if that is more, an eighth of the cache. */
static inline int rows_of_turn(int most, size_t row_bytes, size_t cache_bytes) {
  size_t bytes = cache_bytes / 8 > TURN_BYTES ? cache_bytes / 8 : TURN_BYTES;
  int rows = row_bytes > bytes / (size_t)most ? (int)(bytes / row_bytes) : most;
  return rows < TURN_STEP ? TURN_STEP : rows - rows % TURN_STEP;
}

/* Of `group` heads that share their keys, as many as a block computes together, so that it reads the keys once for
 * them: the most that divide the group, are no more than half of TURN_STEP, and leave no more than two of TURN_STEP
 * places for heads of rows empty. */
static inline int heads_together(int group) {
  int heads = group < TURN_STEP / 2 ? group : TURN_STEP / 2;
  while (group % heads || TURN_STEP % heads > 2) heads--;
  return heads;
}

#endif
