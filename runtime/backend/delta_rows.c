/* Which rows of delta layers run together: see delta_rows.h. */
#include "backend/delta_rows.h"

int delta_rows_together(const dt_rows *rows, int first, int most) {
  int n = 0;
  for (; n < most; n++) {
    int row = first + n, base = delta_base_of(rows->position[row]);
    for (int i = first; i < row; i++)
      if (rows->sequence[i] == rows->sequence[row] && rows->position[i] < base) return n;
  }
  return n;
}

dt_status delta_check(const dt_rows *rows, dt_error *err) {
  for (int i = 0; i < rows->n; i++) {
    int base = delta_base_of(rows->position[i]), of = rows->prefix[i] < base ? rows->prefix[i] : base;
    while (of < base && delta_slot_of(rows, i, of) == of) of++;
    bool far =
        rows->position[i] > base && rows->slot[i] - base >= DT_DELTA_RING; /* it would overwrite a row that it reads */
    if (of < base || far)
      return dt_fail(
          err, DT_EINPUT,
          "forward: row %d (position %d, slot %d): delta layers need each of the text's first %d rows in the slot with "
          "its own number, and this row in one of the %d slots that follow",
          i, rows->position[i], rows->slot[i], base, DT_DELTA_RING);
  }
  return DT_OK;
}
