/* What backends agree on about delta layers (dt_layer): which rows a row is computed from, and from which on.
 *
 * The state before a row at position p is not stored. It is computed from a base, which is the state S at position B =
 * delta_base_of(p), and from the rows of the path since then:
 *   S' k = D(B-1,p) base' k + sum over B <= j < p of D(j,p) (k_j . k) u_j          D(i,p) = e^(g_i+1 + .. + g_p)
 * and likewise for q, where the sum includes j = p. A row therefore needs two things. The first is the base; it covers
 * committed text only, since it lies at least DT_DELTA_LAG positions before the row. The second is the keys, deltas u
 * and rates g of at most DT_DELTA_ROWS rows on its path; each of these rows is written once and never changed by
 * another. A tree needs no state of its own, and plain decoding computes exactly the same sums.
 *
 * Rows are stored in a ring of DT_DELTA_RING slots: row i of the text in slot i modulo DT_DELTA_RING, and the rows of
 * a tree after the text. DT_DELTA_BASES bases, DT_DELTA_STEP positions apart, serve all rows that run together. */
#ifndef DT_DELTA_ROWS_H
#define DT_DELTA_ROWS_H

#include "backend/backend.h"

/* CUDA's compiler needs a mark on functions that also run on a device. */
#if defined(__CUDACC__)
#define DELTA_FUNCTION static inline __host__ __device__
#else
#define DELTA_FUNCTION static inline
#endif

enum {
  DT_DELTA_STEP = 32,                               /* distance between two bases, in positions */
  DT_DELTA_ROWS = DT_DELTA_LAG + DT_DELTA_STEP - 1, /* maximum number of rows from a base to a row that uses it */
  DT_DELTA_RING = 512, /* rows that may still be needed: since the oldest base, a longest commit, the largest tree */
  DT_DELTA_BASES = 3
};

/* The position of the base of a row at this position. 0 is the beginning of the text, where the state is zero. */
DELTA_FUNCTION int delta_base_of(int position) {
  return position < DT_DELTA_LAG ? 0 : (position - DT_DELTA_LAG) / DT_DELTA_STEP * DT_DELTA_STEP;
}

/* The slot of position p on a row's path. */
static inline int delta_slot_of(const dt_rows *rows, int row, int p) {
  int prefix = rows->prefix[row];
  return p < prefix ? p : rows->path[(size_t)row * (size_t)rows->path_stride + (size_t)(p - prefix)];
}

/* How many of a pass's rows first, first + 1, .. can run together: a base that one of them needs must not cover
 * another of them. */
int delta_rows_together(const dt_rows *rows, int first, int most);
/* Returns DT_EINPUT if a row's base would not cover text whose slots have the numbers of its positions. */
dt_status delta_check(const dt_rows *rows, dt_error *err);

#endif
