/* The rows of a pass whose paths are their own slots alone: of a text, or leaves below one prefix. */
#ifndef BENCH_LEAF_ROWS_H
#define BENCH_LEAF_ROWS_H

#include "backend/backend.h"

/* one: [n] ones. */
static inline dt_rows leaf_rows(int n, const int32_t *token, const int32_t *position, const int32_t *sequence,
                                const int32_t *slot, const int32_t *prefix, const int32_t *one) {
  return (dt_rows){.n = n,
                   .token = token,
                   .position = position,
                   .sequence = sequence,
                   .slot = slot,
                   .prefix = prefix,
                   .path = slot,
                   .path_len = one,
                   .path_stride = 1};
}

#endif
