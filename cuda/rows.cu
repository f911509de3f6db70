/* Writes the rows of a pass as the device reads them, with the embeddings of their tokens, and the units of their
 * attention. */
#include "delta.cuh"
#include "format.cuh"

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
  for (int part = 0; part <= to.reach[first + n - 1] / SPLIT; part++) {
    int before = part * SPLIT - to.reach[first], skipped = before > 0 ? before : 0;
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
    for (int part = shared + 1; part <= to.reach[first + i] / SPLIT; part++)
      to.unit[2 * units++] = make_int4(first + i, 1, part, SPLIT);
  return units;
}

/* Writes the units of n rows, of which the first is row `first` of the pass, and returns their number. Up to `most`
 * rows share a unit, where a tree's rows have keys of their own up to `together`. `read`: the keys are the target's,
 * and the rows of a unit see the same ones. */
static int add_units(const pass_rows &to, const dt_rows *rows, int first, int n, int most, int together, bool read) {
  int units = 0;
  for (int i = 0, same; i < n; i += same) {
    for (same = 1; same < most && i + same < n && to.sequence[i + same] == to.sequence[i];) same++;
    while (read && to.reach[i + same - 1] != to.reach[i]) same--;
    units = read || is_text(rows, first + i, same) ? add_text_units(to, i, same, units)
                                                   : add_tree_units(to, i, same, together, units);
  }
  return units;
}

/* Writes a token's own numbers for all layers. */
static void put_inputs(const dt_weights *w, int32_t token, uint16_t *to) {
  const int all = w->shape.layers * w->shape.inputs;
  const char *row = w->inputs_rows + (size_t)token * dt_row_bytes(w->inputs_type, (size_t)all);
  to_format(w->inputs_type, w->activations, row, all, w->inputs_wide, to);
}

int stage_rows(const dt_cache *c, int group, const dt_rows *rows, int first, int most, size_t *bytes) {
  const dt_weights *w = c->weights;
  const pass_rows &to = c->staged[group];
  const size_t width = (size_t)w->embed_width;
  const bool read = reads_keys(*w);
  size_t paths = 0, room = ROWS * (size_t)PATH + (size_t)c->slots;
  int n = 0;
  for (; n < most && first + n < rows->n && paths + (size_t)rows->path_len[first + n] <= room; n++) {
    uint16_t *embedding = embedding_of(to, n, w->embedding);
    if (w->part.enters)
      memcpy(embedding, rows->entering + (size_t)(first + n) * (size_t)w->shape.hidden, width * sizeof *w->embed);
    else
      memcpy(embedding, w->embed + (size_t)rows->token[first + n] * width, width * sizeof *w->embed);
    if (w->inputs_rows) put_inputs(w, rows->token[first + n], embedding + width);
    to.position[n] = rows->position[first + n];
    to.sequence[n] = rows->sequence[first + n];
    to.slot[n] = rows->slot[first + n];
    to.prefix[n] = read ? to.position[n] : rows->prefix[first + n];
    to.reach[n] = rows->blocks && !w->head.backward ? to.prefix[n] + rows->path_len[first + n] - 1
                                                    : to.position[n] - (read ? 1 : 0);
    paths += (size_t)rows->path_len[first + n];
  }
  int joined = w->joined; /* heads of a row that are in the same block: fewer rows then fill it */
  int together = n * w->shape.heads > PLACES ? TREE_QUERIES / joined : 1; /* both give the same bits */
  int batches = blocks_of(n, c->batch), begin[ROWS / QUERIES + 1] = {}, most_units = 0;
  for (int batch = 0; batch < batches; batch++) {
    int before = batch * c->batch, of_batch = n - before < c->batch ? n - before : c->batch;
    pass_rows of = to.after(before, begin[batch]);
    begin[batch + 1] = begin[batch] + add_units(of, rows, first + before, of_batch, QUERIES / joined, together, read);
    if (most_units < begin[batch + 1] - begin[batch]) most_units = begin[batch + 1] - begin[batch];
  }
  int all = 8; /* a graph has blocks for this number of units in each batch */
  while (all < most_units) all *= 2;
  if (all > c->batch * c->splits) all = c->batch * c->splits;
  for (int batch = batches - 1; batch >= 0; batch--) { /* from the last on, since units move towards the end */
    int4 *from = to.unit + 2 * begin[batch], *unit = to.unit + 2 * batch * all;
    int units = begin[batch + 1] - begin[batch];
    memmove(unit, from, 2 * sizeof *unit * (size_t)units);
    for (int i = units; i < all; i++) unit[2 * i] = make_int4(0, 0, 0, 0);
  }
  int at = 8 * batches * all; /* paths lie after the units */
  for (int i = 0; i < n; i++) {
    const int32_t *path = rows->path + (size_t)(first + i) * (size_t)rows->path_stride;
    to.path_at[i] = at;
    if (read) { /* the slot of the feature: of the target's row before this one, or of the row above it */
      to.path[at++] = rows->distance ? path[rows->path_len[first + i] - 2] : to.position[i] - 1;
      continue;
    }
    for (int j = 0; j < rows->path_len[first + i]; j++) to.path[at++] = path[j];
  }
  for (int i = 0; i < batches * all; i++) {
    int last = i / all * c->batch + to.unit[2 * i].x + to.unit[2 * i].y - 1;
    if (to.unit[2 * i].y)
      to.unit[2 * i + 1] = make_int4(to.sequence[last], to.prefix[last], to.path_at[last], to.reach[last]);
  }
  *to.header = {n, 0, all, 0, 0, rows->window, batches, {}};
  if (to.deltas) stage_deltas(c, to.deltas, rows, first, n);
  *bytes = rows_fixed(*w) + sizeof(int32_t) * (size_t)at;
  return n;
}

cudaError_t copy_rows(const dt_cache *c, int group, int n, size_t bytes) {
  size_t embeddings = (size_t)n * (size_t)c->weights->embedding * sizeof(uint16_t);
  char *to = reinterpret_cast<char *>(c->rows[group].header), *from = reinterpret_cast<char *>(c->staged[group].header);
  return cudaMemcpyAsync(to - embeddings, from - embeddings, embeddings + bytes, cudaMemcpyHostToDevice,
                         c->weights->backend->stream);
}
