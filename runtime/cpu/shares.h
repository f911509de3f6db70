/* The shares of the members of a team: a faster member gets more of the work, so that all finish together. */
#ifndef DT_CPU_SHARES_H
#define DT_CPU_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#define SHARES_WHOLE (UINT64_C(1) << 32)

/* Corrects the speeds of n members, in (0, 1], by the rates that a pass measured (0: nothing was measured). A pass
 * moves a speed by a sixteenth at most, so that one in which another process interrupted a member changes little.
 * Returns whether a speed is still far from what was measured. */
bool shares_learn(float *speed, const float *rate, int n);

/* Divides the whole, SHARES_WHOLE, among n members: member i gets bound[i]..bound[i + 1]. Members that are nearly as
 * fast as the fastest get exactly as much as that one. speed NULL: all get the same. */
void shares_divide(const float *speed, int n, uint64_t *bound);

/* The first of `count` items that belongs to a share that begins at `bound`. */
static inline int shares_first(int count, uint64_t bound) {
  return (int)(((uint64_t)count * bound + SHARES_WHOLE - 1) / SHARES_WHOLE);
}

#endif
