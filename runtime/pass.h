/* The rows of one pass while they are put together: dt_rows with room to grow into, taken once. */
#ifndef DT_PASS_H
#define DT_PASS_H

#include "backend.h"

typedef struct {
  int n, capacity;
  size_t path_capacity; /* entries of path */
  int path_stride;
  int32_t *token, *position, *sequence, *slot, *prefix, *path, *path_len;
} pass;

dt_status pass_open(pass *p, int capacity, size_t path_capacity, dt_error *err);
void pass_close(pass *p);

/* Empties it; paths of this pass have at most `longest` slots. */
void pass_begin(pass *p, int longest);

/* Adds a row in `slot`, whose keys are slots 0..prefix-1 and then those of the path: the caller writes path_len slots, its
 * own last, to where the result points. */
int32_t *pass_row(pass *p, int sequence, int32_t token, int slot, int prefix, int path_len);

/* Adds rows for committed tokens [first, last): row i lies in slot i and sees slots 0..i. */
void pass_text(pass *p, int sequence, const int32_t *token, int first, int last);

dt_rows pass_rows(const pass *p);

#endif
