/* Collects the rows of one pass: a dt_rows that can grow up to a capacity allocated once. A caller with more rows runs
 * several passes, which does not change the numbers of any row. */
#ifndef DT_PASS_H
#define DT_PASS_H

#include "backend/backend.h"

typedef struct {
  int n, capacity;
  size_t path_capacity; /* entries of path */
  int path_stride;
  int32_t *token, *position, *sequence, *slot, *prefix, *path, *path_len;
  dt_window window;         /* for all passes */
  const dt_cache *features; /* for the pass of a head, as in dt_rows; set by the caller */
} pass;

dt_status pass_open(pass *p, int capacity, size_t path_capacity, dt_error *err);
void pass_close(pass *p);

/* Empties the pass. The paths of its rows will have at most `longest` slots. */
void pass_begin(pass *p, int longest);

/* Returns whether n more rows fit. */
bool pass_fits(const pass *p, int n);

/* Adds a row in `slot`, whose keys are slots 0..prefix-1 and then those of its path. Returns the array for the path, to
 * which the caller writes path_len slots, the row's own last. */
int32_t *pass_row(pass *p, int sequence, int32_t token, int slot, int prefix, int path_len);

/* Adds rows for the committed tokens first..last-1: row i is in slot i and sees slots 0..i. */
void pass_text(pass *p, int sequence, const int32_t *token, int first, int last);

dt_rows pass_rows(const pass *p);

/* Fills rows 0..n-1 of a sequence (n >= 1) for measurements, with meaningless numbers: computes one row in the last
 * slot and copies it to the others. */
dt_status pass_blank(pass *p, const dt_backend_ops *ops, dt_weights *w, dt_cache *c, int sequence, int n,
                     dt_error *err);

#endif
