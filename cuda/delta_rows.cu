/* What a pass and a cache know of the rows of delta layers: the plan of a pass, and which bases and rows of a sequence
 * exist. The host knows this without asking the device, since all layers and heads have the same bases. */
#include "delta.cuh"
#include "launch.cuh"

#include <limits.h>

delta_sizes size_deltas(const dt_shape &s) {
  delta_sizes d = {};
  const int keys = s.delta_key_heads * s.delta_key_dim, values = s.delta_value_heads * s.delta_value_dim;
  d.values = s.delta_value_heads;
  if (!d.values) return d;
  d.mixed = 2 * keys + values;
  d.z_at = d.mixed, d.a_at = d.z_at + values, d.b_at = d.a_at + round_up(d.values, 16);
  d.outputs = d.b_at + round_up(d.values, 16);
  d.keys_at = (size_t)d.mixed, d.deltas_at = d.keys_at + (size_t)keys, d.rates_at = d.deltas_at + (size_t)values;
  d.row = d.rates_at + (size_t)round_up(d.values, 16);
  d.base = (size_t)d.values * (size_t)s.delta_key_dim * (size_t)s.delta_value_dim;
  d.bases_at = DT_DELTA_RING * d.row;
  d.store = d.bases_at + DT_DELTA_BASES * d.base;
  return d;
}

/* ---- the plan of a pass --------------------------------------------------------------------------------------------
 */

int delta_together(const dt_rows *rows, int first, int most) {
  int32_t sequence[DELTA_RUNS];
  int runs = 0, n = delta_rows_together(rows, first, most);
  for (int i = 0; i < n; i++) {
    int32_t of = rows->sequence[first + i];
    if (i && of == rows->sequence[first + i - 1]) continue;
    for (int j = 0; j < runs; j++)
      if (sequence[j] == of) return i;
    if (runs == DELTA_RUNS) return i;
    sequence[runs++] = of;
  }
  return n;
}

/* The place from which a row reads the numbers of the row at position p of its path. */
static int32_t tap_of(const dt_rows *rows, int first, int r, int run_first, int lowest, int p) {
  if (p < 0) return DELTA_NO_TAP;
  const int32_t slot = delta_slot_of(rows, first + r, p);
  for (int i = r - 1; p >= lowest && i >= run_first; i--)
    if (rows->slot[first + i] == slot) return i;
  return ~slot;
}

/* Which bases the rows of a run need that do not exist: those after `from` up to `to`. */
static void plan_bases(delta_state *state, delta_run *run, int least, int most) {
  run->from = run->to = 0;
  for (int32_t tag : state->tag)
    if (tag <= least && tag > run->from) run->from = tag;
  run->to = run->from;
  for (int at = least; at <= most; at += DT_DELTA_STEP)
    if (at && state->tag[at / DT_DELTA_STEP % DT_DELTA_BASES] != at) run->to = at;
  for (int at = run->from + DT_DELTA_STEP; at <= run->to; at += DT_DELTA_STEP)
    state->tag[at / DT_DELTA_STEP % DT_DELTA_BASES] = at;
}

int stage_deltas(const dt_cache *c, delta_rows *to, const dt_rows *rows, int first, int n) {
  to->runs = 0;
  for (int r = 0, end; r < n; r = end) {
    delta_run run = {rows->sequence[first + r], r, 0, 0, 0, {}};
    delta_state *state = &c->delta_states[run.sequence];
    int lowest = INT_MAX, least = INT_MAX, most = 0;
    for (end = r; end < n && rows->sequence[first + end] == run.sequence; end++) {
      const int position = rows->position[first + end], base = delta_base_of(position);
      const int lost = rows->slot[first + end] + 1 - DT_DELTA_RING;
      if (position < lowest) lowest = position;
      if (base < least) least = base;
      if (base > most) most = base;
      if (lost > state->since) state->since = lost;
    }
    for (int i = r; i < end; i++)
      for (int t = 0; t < DT_DELTA_TAPS - 1; t++)
        to->tap[i][t] = tap_of(rows, first, i, r, lowest, rows->position[first + i] - (DT_DELTA_TAPS - 1) + t);
    run.n = end - r;
    plan_bases(state, &run, least, most);
    to->run[to->runs++] = run;
  }
  return to->runs;
}

/* ---- what a cache keeps --------------------------------------------------------------------------------------------
 */

constexpr int MOVES = 256, THREADS = 128;
struct ring_moves {              /* a kernel argument: no copy to wait for */
  int n, from[MOVES], to[MOVES]; /* rows of the ring */
};

/* Thread i of a layer moves a piece of every row, in order; a row has `each` pieces. */
static __global__ void k_move_ring(float4 *rows, size_t layer, int each, ring_moves plan) {
  dependency_release();
  dependency_wait();
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= each) return;
  float4 *at = rows + blockIdx.y * layer + i;
  for (int m = 0; m < plan.n; m++) at[(size_t)plan.to[m] * each] = at[(size_t)plan.from[m] * each];
}

/* The number of delta layers. */
static int layers_in(const dt_weights *w) { return w->delta.all ? (int)(w->delta.all / w->delta.store) : 0; }

static float *store_of(const dt_cache *c, int sequence) { return c->deltas + (size_t)sequence * c->weights->delta.all; }

cudaError_t delta_move(const dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n) {
  const delta_sizes &d = c->weights->delta;
  const int each = (int)(d.row / 4);
  cudaError_t e = cudaSuccess;
  for (int first = 0; d.all && e == cudaSuccess && first < n; first += MOVES) {
    ring_moves plan = {};
    for (; plan.n < MOVES && first + plan.n < n; plan.n++) {
      plan.from[plan.n] = from[first + plan.n] % DT_DELTA_RING;
      plan.to[plan.n] = to[first + plan.n] % DT_DELTA_RING;
    }
    e = launch(c->weights->backend->stream, dim3((unsigned)blocks_of(each, THREADS), (unsigned)layers_in(c->weights)),
               THREADS, 0, k_move_ring, reinterpret_cast<float4 *>(store_of(c, sequence)), d.store / 4, each, plan);
  }
  return e;
}

int delta_newest(const dt_cache *c, int sequence, int rows) {
  if (!c->weights->delta.all) return 0;
  const delta_state &state = c->delta_states[sequence];
  int newest = 0, wanted = delta_base_of(rows);
  for (int32_t tag : state.tag)
    if (tag <= wanted && tag > newest) newest = tag;
  return state.since <= newest ? newest : -1;
}

int cuda_keep(dt_cache *c, int sequence, int rows) {
  if (!c->weights->delta.all) return rows;
  delta_state *state = &c->delta_states[sequence];
  int base = rows > 0 ? delta_newest(c, sequence, rows) : -1;
  for (int32_t &tag : state->tag)
    if (base < 0 || tag != base) tag = 0;
  if (base >= 0) return rows;
  state->since = 0;
  return 0;
}

void delta_restart(dt_cache *c, int sequence, int base) {
  if (!c->weights->delta.all) return;
  delta_state *state = &c->delta_states[sequence];
  *state = {};
  state->since = base < 0 ? INT_MAX : base;
  if (base > 0) state->tag[base / DT_DELTA_STEP % DT_DELTA_BASES] = base;
}

size_t delta_bytes(const dt_weights *w, int base, int n) {
  const delta_sizes &d = w->delta;
  if (!d.all || base < 0) return 0;
  return (size_t)layers_in(w) * ((size_t)(n - base) * d.row + (base > 0 ? d.base : 0)) * sizeof(float);
}

cudaError_t delta_carry(const dt_cache *c, int sequence, int base, int n, void *to, const void *from,
                        cudaMemcpyKind kind) {
  const delta_sizes &d = c->weights->delta;
  if (!d.all || base < 0) return cudaSuccess;
  const queue &stream = c->weights->backend->stream;
  const size_t layers = (size_t)layers_in(c->weights), pitch = d.store * sizeof(float);
  size_t done = 0;
  /* Copies `numbers` numbers of every layer, from place `at` of its store on. */
  const auto copy = [&](size_t at, size_t numbers) {
    float *here = store_of(c, sequence) + at;
    const size_t width = numbers * sizeof(float), before = done;
    done += layers * width;
    if (!numbers) return cudaSuccess;
    return to ? cudaMemcpy2DAsync(static_cast<char *>(to) + before, width, here, pitch, width, layers, kind, stream)
              : cudaMemcpy2DAsync(here, pitch, static_cast<const char *>(from) + before, width, width, layers, kind,
                                  stream);
  };
  const int first = base % DT_DELTA_RING, rows = n - base,
            straight = rows < DT_DELTA_RING - first ? rows : DT_DELTA_RING - first;
  cudaError_t e = copy((size_t)first * d.row, (size_t)straight * d.row);
  if (!e) e = copy(0, (size_t)(rows - straight) * d.row);
  if (!e && base > 0) e = copy(d.bases_at + (size_t)(base / DT_DELTA_STEP % DT_DELTA_BASES) * d.base, d.base);
  return e;
}
