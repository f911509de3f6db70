/* The smaller and the larger of two integers. */
#ifndef DT_MIN_MAX_H
#define DT_MIN_MAX_H

static inline int dt_min(int a, int b) { return a < b ? a : b; }
static inline int dt_max(int a, int b) { return a > b ? a : b; }

#endif
