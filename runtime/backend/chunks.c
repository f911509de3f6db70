/* See chunks.h. */
#include "backend/chunks.h"

#include "system/min_max.h"

int chunks_rows(int chunk, int n) { return chunk ? (n - 1) / chunk * chunk : 0; }

int chunks_alike(int chunk, int rows, int had, int wants) {
  const int alike = had == wants ? rows : dt_min(rows, dt_min(had, wants));
  return alike < wants ? alike - alike % chunk : alike;
}

int chunks_piece(int chunk, int done, int missing, int wants, int most) {
  if (done >= wants || most >= missing) return dt_min(most, missing);
  return dt_min(dt_max(most / chunk, 1) * chunk, wants - done);
}
