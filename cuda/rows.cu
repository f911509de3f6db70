/* Writes the rows of a pass as the device reads them, and the units of their attention. */
#include "internal.cuh"

/* Whether n rows of one sequence follow each other in its text, each in the slot of its position. */
static bool is_text(const dt_rows *rows, int first, int n) {
  for (int r = first; r < first + n; r++)
    if (rows->path_len[r] != 1 || rows->slot[r] != rows->position[r] ||
        (r > first && rows->position[r] != rows->position[r - 1] + 1))
      return false;
  return true;
}

/* Rows of a text see the same keys, each up to its own: the unit of a part is all rows that have keys there. */
static int add_text_units(const pass_rows &to, int first, int n, int units) {
  for (int part = 0; part <= to.position[first + n - 1] / SPLIT; part++) {
    int before = part * SPLIT - to.position[first], skipped = before > 0 ? before : 0;
    to.unit[2 * units++] = make_int4(first + skipped, n - skipped, part, SPLIT);
  }
  return units;
}

/* Rows of a tree: the parts within the prefix of all rows; the part where that prefix ends, for all rows together or
 * each row separately; and the remaining parts of each row. */
static int add_tree_units(const pass_rows &to, int first, int n, int together, int units) {
  int common = to.prefix[first];
  for (int i = 1; i < n; i++) common = to.prefix[first + i] < common ? to.prefix[first + i] : common;
  int shared = common / SPLIT;
  for (int part = 0; part < shared; part++) to.unit[2 * units++] = make_int4(first, n, part, SPLIT);
  for (int i = 0; i < n; i += together) {
    int rows = n - i < together ? n - i : together;
    to.unit[2 * units++] = make_int4(first + i, rows, shared, rows > 1 ? common - shared * SPLIT : (int)SPLIT);
  }
  for (int i = 0; i < n; i++)
    for (int part = shared + 1; part <= to.position[first + i] / SPLIT; part++)
      to.unit[2 * units++] = make_int4(first + i, 1, part, SPLIT);
  return units;
}

int stage_rows(const dt_cache *c, const pass_rows &to, const dt_rows *rows, int first, int most, size_t *bytes) {
  size_t paths = 0, room = ROWS * (size_t)PATH + (size_t)c->slots;
  int n = 0;
  for (; n < most && first + n < rows->n && paths + (size_t)rows->path_len[first + n] <= room; n++) {
    to.token[n] = rows->token[first + n];
    to.position[n] = rows->position[first + n];
    to.sequence[n] = rows->sequence[first + n];
    to.slot[n] = rows->slot[first + n];
    to.prefix[n] = rows->prefix[first + n];
    paths += (size_t)rows->path_len[first + n];
  }
  int units = 0, together = n * c->weights->shape.heads > PLACES ? OWN : 1; /* both give the same bits */
  for (int i = 0, same; i < n; i += same) {
    for (same = 1; same < GROUP && i + same < n && to.sequence[i + same] == to.sequence[i];) same++;
    units = is_text(rows, first + i, same) ? add_text_units(to, i, same, units)
                                           : add_tree_units(to, i, same, together, units);
  }
  int all = 8, most_units = ROWS * c->splits; /* a graph has blocks for so many */
  while (all < units) all *= 2;
  if (all > most_units) all = most_units;
  for (int i = units; i < all; i++) to.unit[2 * i] = make_int4(0, 0, 0, 0);
  int at = 8 * all; /* paths lie after the units */
  for (int i = 0; i < n; i++) {
    const int32_t *path = rows->path + (size_t)(first + i) * (size_t)rows->path_stride;
    to.path_at[i] = at;
    for (int j = 0; j < rows->path_len[first + i]; j++) to.path[at++] = path[j];
  }
  for (int i = 0; i < units; i++) {
    int last = to.unit[2 * i].x + to.unit[2 * i].y - 1;
    to.unit[2 * i + 1] = make_int4(to.sequence[last], to.prefix[last], to.path_at[last], to.position[last]);
  }
  *to.header = {n, 0, all, 0, 0, rows->window};
  *bytes = ROWS_FIXED + sizeof(int32_t) * (size_t)at;
  return n;
}
