/* Tree attention. The keys of a row are taken in logical order, whatever slots they lie in, in parts of SPLIT positions
 * that begin at multiples of SPLIT. A part's 4 warps take 32 positions each. Every part of every row goes through the
 * same operations: scores by the tensor core over the head's dimensions in order; one maximum and one sum for the part;
 * values summed by the tensor core over 16 positions at a time; the 4 warps' sums added in order; at last the parts
 * added in order. A row of a tensor core's product does not depend on the other rows, so a row's result does not depend
 * on the rows that share its unit. Keys and values of caches in q8 are widened where they are loaded
 * (cache_format.cuh).
 *
 * A unit of work is one part for some rows of a sequence, and a block computes it for `joined` heads that share their
 * keys. One head of one row is a query, and queries are the M side of the products: a row's heads first, then the next
 * row's; up to QUERIES. Either the rows have all the unit's positions in common (in their prefix, or as rows of one
 * text, whose last row has the most keys), so that keys and values are read once for all queries. Or the rows of a
 * tree, up to TREE_QUERIES queries, have only the first `shared` positions in common; the other positions, their
 * suffixes, are computed row by row, and the warps share the rows out. A key that a row does not have, or that a window
 * hides from it, has the weight zero. Only a NaN or an infinity in the later rows of a text could pass that weight, and
 * such a text is lost anyway. The block that finishes the last part of a row adds up the row's parts.
 *
 * A row skips the parts that a window hides from it (`gap`). Units that all of their rows skip end at once; a row that
 * shares a unit with others may compute a part for nothing, and does not add it up. A part whose keys are all hidden
 * would add zero to the row's sums, so skipping it changes no bit.
 *
 * An example: three rows of a tree, a, b (a child of a) and c (a's sibling), after a prefix of 300. Parts 0 and 1
 * (positions 0 to 255) are in every row's prefix: two units of three rows, `common` 128. Part 2 begins at 256: its
 * first 44 positions are in the prefix (`shared` 44), and the others belong to the paths: a's [a], b's [a b], c's [c].
 * With many heads this is one unit of three rows (rows.cu: `together`), which diverges: positions 256 to 299 are
 * computed once for all rows, positions 300 and 301 row by row. Otherwise these are three units of one row, each of
 * which computes all its positions for itself. Either way position 300 is one of the 16 from 288 on, and is added with
 * those. Where two heads share each key head, `joined` is 2, and the queries are a's first head, a's second, b's first,
 * and so on: six. */
#include "attention.cuh"
#include "cache_format.cuh"
#include "launch.cuh"

constexpr int WARPS = 4, KEYS = SPLIT / WARPS, TILES = KEYS / 8;
constexpr float LOG2E = 1.44269504f; /* softmax uses powers of two */
/* The number of dimensions of values that a block multiplies at once: what its registers and shared memory hold. */
template <int DIM> constexpr int WIDTH = DIM < 256 ? DIM : 256;

/* Shared memory of a block; the arrays lie one after the other. */
struct room {
  int *slot;           /* [SPLIT] slots of the keys that the rows have in common */
  float *most;         /* [WARPS][QUERIES] largest score of each query */
  float *sums;         /* [WARPS][QUERIES] sum of exponentials */
  int *last;           /* [QUERIES] whether this part was the query's last */
  int *suffix_slot;    /* [TREE_QUERIES][SPLIT] slots of the other keys of each row */
  float *suffix_score; /* [TREE_QUERIES][SPLIT] scores of these for each query, then their exponentials */
  /* [WARPS]: first the values, [KEYS] rows, VALUE_PITCH apart; then [QUERIES][PITCH] their sums, in the order of
   * place_of */
  float *values_of;
};
static __device__ __forceinline__ room rooms(int *slot) {
  room s;
  s.slot = slot;
  s.most = reinterpret_cast<float *>(slot + SPLIT);
  s.sums = s.most + WARPS * QUERIES;
  s.last = reinterpret_cast<int *>(s.sums + WARPS * QUERIES);
  s.suffix_slot = s.last + QUERIES;
  s.suffix_score = reinterpret_cast<float *>(s.suffix_slot + TREE_QUERIES * SPLIT);
  s.values_of = s.suffix_score + TREE_QUERIES * SPLIT;
  return s;
}
template <int DIM> constexpr int PITCH = WIDTH<DIM> + 8; /* no two rows of a warp share a bank; nor do its values, */
/* at this distance, except for pairs of rows in q8 with 80 numbers. */
template <int DIM, cache_format C> constexpr int VALUE_PITCH = C == CACHE_Q8 ? WIDTH<DIM> + 16 : PITCH<DIM>;
static_assert(KEYS * sizeof(uint16_t) == QUERIES * sizeof(float), "values lie where their sums will");
static_assert(VALUE_PITCH<32, CACHE_Q8> <= 2 * PITCH<32> &&
                  row_length(CACHE_Q8, WIDTH<MAX_HEAD>) <= VALUE_PITCH<MAX_HEAD, CACHE_Q8>,
              "so do those in q8, which have no more than 16 bytes of scales");
static_assert(TREE_QUERIES <= 8, "a lane of score_suffixes has one query");
template <int DIM>
constexpr int SHARED = sizeof(int) * (SPLIT + QUERIES + TREE_QUERIES * SPLIT) +
                       sizeof(float) * (2 * WARPS * QUERIES + TREE_QUERIES * SPLIT + WARPS * QUERIES * PITCH<DIM>);

/* Scores of N times 8 keys. For the k of the product, a lane takes dimensions d + 4 t .. + 3 of a query and of a key.
 */
template <number TYPE, int DIM, cache_format C, int N>
static __device__ __forceinline__ void multiply_keys(const uint16_t *lower, const uint16_t *upper,
                                                     const stored<C> *const (&key_of)[N], float (&score)[N][4]) {
#pragma unroll
  for (int d = 0; d < DIM; d += 16) {
    uint2 low = *reinterpret_cast<const uint2 *>(lower + d), high = *reinterpret_cast<const uint2 *>(upper + d);
    unsigned query_of[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
    for (int j = 0; j < N; j++) {
      uint2 key = load_kept<TYPE, DIM>(key_of[j], d, 4 * (int)(threadIdx.x % 4));
      unsigned keys_of[2] = {key.x, key.y};
      mma<TYPE>(score[j], query_of, keys_of);
    }
  }
}

/* A lane takes DIM / 8 dimensions of a key's values: 8 consecutive ones at a time, then the rest. This is its dimension
 * in column g of block j of 8 columns. */
template <int DIM> static __device__ __forceinline__ constexpr int dimension_of(int g, int j) {
  constexpr int WHOLE = DIM / 64 * 8;
  return j < WHOLE ? j / 8 * 64 + 8 * g + j % 8 : 8 * WHOLE + (DIM / 8 - WHOLE) * g + j - WHOLE;
}
/* The place of a dimension among the sums, block by block. */
template <int DIM> static __device__ __forceinline__ int place_of(int dimension) {
  constexpr int WHOLE = DIM / 64 * 8, REST = DIM / 8 - WHOLE;
  int left = dimension - 8 * WHOLE;
  if constexpr (REST > 0)
    if (left >= 0) return 8 * (WHOLE + left % REST) + left / REST;
  return 8 * (dimension / 64 * 8 + dimension % 8) + dimension % 64 / 8;
}
template <int DIM> struct lane_values { unsigned two[DIM / 16]; /* blocks 2 c and 2 c + 1 */ };
/* Loads a lane's values of a row of STORED dimensions, from dimension `from` on. */
template <number TYPE, int DIM, int STORED, cache_format C>
static __device__ __forceinline__ lane_values<DIM> load_values(const stored<C> *value, int from, int g) {
  lane_values<DIM> v;
#pragma unroll
  for (int p = 0; p < DIM / 64; p++) {
    uint4 eight = load_eight<TYPE, STORED>(value, from + dimension_of<DIM>(g, 8 * p));
    v.two[4 * p] = eight.x, v.two[4 * p + 1] = eight.y, v.two[4 * p + 2] = eight.z, v.two[4 * p + 3] = eight.w;
  }
  constexpr int LEFT = DIM / 64 * 4; /* 0, 2 or 4 numbers */
  if constexpr (DIM % 64 == 16) v.two[LEFT] = load_two<TYPE, STORED>(value, from + dimension_of<DIM>(g, 2 * LEFT));
  if constexpr (DIM % 64 == 32) {
    uint2 four = load_four<TYPE, STORED>(value, from + dimension_of<DIM>(g, 2 * LEFT));
    v.two[LEFT] = four.x, v.two[LEFT + 1] = four.y;
  }
  return v;
}

/* The i-th of the four keys that a lane has among 16: keys 2 t, 2 t + 1, 2 t + 8 and 2 t + 9. */
static __device__ __forceinline__ int key_of_lane(int i) { return 2 * (int)(threadIdx.x % 4) + i % 2 + i / 2 * 8; }

/* Adds the values of 16 keys, blocks 2 c and 2 c + 1 of 8 dimensions. */
template <number TYPE, int DIM>
static __device__ __forceinline__ void add_values(const unsigned (&weights)[4], const lane_values<DIM> (&v)[4], int c,
                                                  float (&even)[4], float (&odd)[4]) {
  unsigned w0 = v[0].two[c], w1 = v[1].two[c], w2 = v[2].two[c], w3 = v[3].two[c];
  unsigned first[2] = {__byte_perm(w0, w1, 0x5410), __byte_perm(w2, w3, 0x5410)};
  unsigned second[2] = {__byte_perm(w0, w1, 0x7632), __byte_perm(w2, w3, 0x7632)};
  mma<TYPE>(even, weights, first);
  mma<TYPE>(odd, weights, second);
}

/* A unit of work of `joined` heads from `head` on, which share their keys. */
struct work {
  int row0, rows, part, shared, head;
  int sequence; /* of its rows */
  bool hidden;  /* a window, the layer's or the pass's, may hide keys from its rows */
};

static __device__ __forceinline__ int queries_of(const attention &a, const work &u) { return u.rows * a.joined; }

/* Whether the rows have only some of the part's positions in common. */
static __device__ __forceinline__ bool diverges(const work &u) { return u.shared < SPLIT; }

/* The keys, or the values, of a layer; and where a slot's row begins among them. */
template <cache_format C> static __device__ __forceinline__ const stored<C> *rows_of(const void *rows) {
  return static_cast<const stored<C> *>(rows);
}
template <int DIM, cache_format C>
static __device__ __forceinline__ size_t row_at(const attention &a, const work &u, int slot) {
  return u.sequence * a.sequence_stride +
         ((size_t)(u.head / (a.heads / a.kv_heads)) * a.slots + slot) * row_length(C, DIM);
}

/* For a query: its row in the unit; whether it belongs to a row; its place among the heads of all rows. */
static __device__ __forceinline__ int row_of(const attention &a, int query) { return query * a.inverse >> 8; }
static __device__ __forceinline__ bool is_of(const attention &a, int query, int row) {
  return (unsigned)(query - row * a.joined) < (unsigned)a.joined;
}
static __device__ __forceinline__ size_t head_of(const attention &a, const work &u, int query) {
  int row = row_of(a, query);
  return (size_t)(u.row0 + row) * a.heads + u.head + query - row * a.joined;
}

/* The number of keys that row r of the unit has in its part. */
static __device__ __forceinline__ int count_of(const attention &a, const work &u, int r) {
  int left = a.rows.reach[u.row0 + r] + 1 - u.part * SPLIT;
  return left < SPLIT ? left : SPLIT;
}

/* The slot of key i of a row in the part that begins at position `begin`; past the end any key of the row, since its
 * weight is zero. */
static __device__ __forceinline__ int slot_of(const attention &a, int begin, int prefix, int path_at, int i,
                                              int count) {
  int position = begin + (i < count ? i : count - 1);
  return position < prefix ? position : a.rows.path[path_at + position - prefix];
}

/* The parts [from, to) of which row r of the unit sees nothing: those before the layer's window or, in a layer without
 * one, those between the first keys and the pass's window. The row neither reads nor counts them. */
struct gap {
  int from, to;
};
static __device__ __forceinline__ gap gap_of(const attention &a, const work &u, int r) {
  if (!u.hidden) return {0, 0};
  int next = a.rows.position[u.row0 + r] + 1, from = 0, begin = next - a.window;
  if (!a.window) {
    dt_window window = a.rows.header->window;
    from = (window.sinks + SPLIT - 1) / SPLIT, begin = next - window.last;
  }
  int to = begin > 0 ? begin / SPLIT : 0;
  return {from, to > from ? to : from};
}
static __device__ __forceinline__ bool holds(const gap &g, int part) { return part >= g.from && part < g.to; }

/* Whether all rows of the unit skip its part. */
static __device__ __forceinline__ bool is_skipped(const attention &a, const work &u) {
  for (int r = 0; r < u.rows; r++)
    if (!holds(gap_of(a, u, r), u.part)) return false;
  return true;
}

/* What a thread has of a unit. The lanes of a warp are those of the tensor core's products: g = lane / 4 and
 * t = lane % 4. */
struct view {
  int warp, lane, g, t;
  int first, common; /* the warp's first key in the part; the number of keys from there on that all rows have, may be
                        negative */
  int query[2];      /* g and g + 8, or 0 if there is no such query */
  int keys[2];       /* the number of keys of these from `first` on */
};

/* `common`: the number of the part's keys that all rows have. */
static __device__ __forceinline__ view view_of(const attention &a, const work &u, int common) {
  view v;
  v.warp = threadIdx.x / WARP, v.lane = threadIdx.x % WARP, v.g = v.lane / 4, v.t = v.lane % 4;
  v.first = v.warp * KEYS, v.common = common - v.first;
  for (int h = 0; h < 2; h++) {
    v.query[h] = v.g + 8 * h < queries_of(a, u) ? v.g + 8 * h : 0;
    v.keys[h] = count_of(a, u, row_of(a, v.query[h])) - v.first;
  }
  return v;
}

/* Hides the scores of keys outside the pass's window or the layer's. */
static __device__ __forceinline__ void hide(const attention &a, const work &u, const view &v,
                                            float (&score)[TILES][4]) {
  dt_window window = a.rows.header->window;
  int at = u.part * SPLIT + v.first, begin[2] = {}, nearest[2] = {}; /* where windows of queries begin: see window.h */
  for (int h = 0; h < 2; h++) {
    int next = a.rows.position[u.row0 + row_of(a, v.query[h])] + 1;
    if (window.last) begin[h] = next - window.last;
    if (a.window) nearest[h] = next - a.window;
  }
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      int position = at + 8 * j + 2 * v.t + i % 2;
      if ((position >= window.sinks && position < begin[i / 2]) || position < nearest[i / 2]) score[j][i] = -INFINITY;
    }
}

/* Scores become tanh(score * scale / cap), which is still to be multiplied by the cap. */
static __device__ __forceinline__ void cap_scores(const attention &a, float (&score)[TILES][4]) {
  float by = a.scale / a.cap;
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) score[j][i] = tanhf(score[j][i] * by);
}

/* Scores of the keys that rows do not have in common: eight keys at a time, of any rows, two such groups in flight. The
 * product multiplies all queries with each key; only the scores of the key's own row are kept. */
template <number TYPE, int DIM, cache_format C>
static __device__ __forceinline__ void score_suffixes(const attention &a, const work &u, const room &s) {
  constexpr int TOGETHER = 2; /* more would not fit the registers */
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  int first = u.shared / 8, end = first;
  for (int r = 0; r < u.rows; r++) {
    int eights = (count_of(a, u, r) + 7) / 8;
    if (eights > end) end = eights;
  }
  int each = end - first, items = u.rows * each;
  const uint16_t *q = a.q + head_of(a, u, g < queries_of(a, u) ? g : 0) * DIM + 4 * t;
  float *score_of = s.suffix_score + g * SPLIT + 2 * t;
  for (int item = warp * TOGETHER; item < items; item += WARPS * TOGETHER) {
    int row[TOGETHER], at[TOGETHER];
    const stored<C> *key_of[TOGETHER];
#pragma unroll
    for (int j = 0; j < TOGETHER; j++) {
      int i = item + j < items ? item + j : items - 1;
      row[j] = i / each, at[j] = (first + i % each) * 8;
      key_of[j] =
          rows_of<C>(a.keys) + row_at<DIM, C>(a, u, s.suffix_slot[row[j] * SPLIT + at[j] + g]) + kept_at<C>(4 * t);
    }
    float score[TOGETHER][4] = {};
    multiply_keys<TYPE, DIM, C>(q, q, key_of, score);
#pragma unroll
    for (int j = 0; j < TOGETHER; j++)
      if (item + j < items && is_of(a, g, row[j])) score_of[at[j]] = score[j][0], score_of[at[j] + 1] = score[j][1];
  }
}

/* Adds the values, from dimension `from` on, of these keys, and of common keys among the same 16 positions, to the sums
 * of the other keys. An item is the positions of one row that belong to one warp. */
template <number TYPE, int DIM, cache_format C>
static __device__ __forceinline__ void add_suffixes(const attention &a, const work &u, const room &s, int from) {
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  int first = u.shared / KEYS, items = u.rows * (WARPS - first);
  for (int item = warp; item < items; item += WARPS) {
    int r = item % u.rows, of_warp = first + item / u.rows, begin = of_warp * KEYS, end = begin + KEYS;
    int count = (count_of(a, u, r) + 15) / 16 * 16; /* after them all weights are zero */
    if (end > count) end = count;
    if (begin >= end) continue;
    if (begin < u.shared) begin = u.shared / 16 * 16;
    bool of_row = is_of(a, g, r);
    int query = of_row ? g : r * a.joined; /* other lanes repeat the row's first query, for nothing */
    for (int at = begin; at < end; at += 16) {
      const int *slot = s.suffix_slot + r * SPLIT + at;
      lane_values<WIDTH<DIM>> value[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        value[i] = load_values<TYPE, WIDTH<DIM>, DIM, C>(
            rows_of<C>(a.values) + row_at<DIM, C>(a, u, slot[key_of_lane(i)]), from, g);
      const float *e = s.suffix_score + query * SPLIT + at + 2 * t;
      unsigned weights[4] = {narrow2<TYPE>(e[0], e[1]), 0, narrow2<TYPE>(e[8], e[9]), 0};
      float *sum = s.values_of + (of_warp * QUERIES + query) * PITCH<DIM> + 2 * t;
#pragma unroll
      for (int c = 0; c < WIDTH<DIM> / 16; c++, sum += 16) {
        float even[4] = {sum[0], sum[1], 0.0f, 0.0f}, odd[4] = {sum[8], sum[9], 0.0f, 0.0f};
        add_values<TYPE, WIDTH<DIM>>(weights, value, c, even, odd);
        if (of_row) sum[0] = even[0], sum[1] = even[1], sum[8] = odd[0], sum[9] = odd[1];
      }
      __syncwarp();
    }
  }
}

/* Adds the parts of the queries whose last part this block has finished, each query's in order: out = sum of parts /
 * sum of exponentials. A thread takes EACH dimensions of a query. AT_ONCE parts are loaded before the first is added:
 * with a trip to the second-level cache for each, this would be most of attention's time. So no branch may depend on a
 * part, since the compiler loads it after the branch. Missing parts at the end are replaced by the first part of the
 * group, with the weight zero. */
template <number TYPE, int DIM>
static __device__ __forceinline__ void combine(const attention &a, const work &u, const room &s) {
  constexpr int EACH = 4, ITEMS = DIM / EACH, AT_ONCE = 8;
  for (int item = threadIdx.x; item < queries_of(a, u) * ITEMS; item += WARPS * WARP) {
    int query = item / ITEMS, d = item % ITEMS * EACH;
    if (!s.last[query]) continue;
    int row = row_of(a, query), head = u.head + query - row * a.joined;
    gap hidden = gap_of(a, u, row);
    int width = hidden.to - hidden.from, count = a.rows.reach[u.row0 + row] / SPLIT + 1 - width;
    size_t parts = head_of(a, u, query) * a.splits;
    /* of the row's part i of a group or, past the end, of the group's first part */
    auto place = [&](int i, int begin) {
      int part = begin + i < count ? begin + i : begin;
      return parts + part + (part < hidden.from ? 0 : width);
    };
    float sink = a.sinks ? a.sinks[head] * LOG2E : -INFINITY;
    float sum[EACH] = {}, total = 0.0f, largest = sink;
    for (int begin = AT_ONCE; begin < count; begin += AT_ONCE) {
      float biggest[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) biggest[i] = __ldcg(&a.weight[place(i, begin)].x);
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) largest = fmaxf(largest, biggest[i]);
    }
    for (int begin = 0; begin < count; begin += AT_ONCE) {
      float2 weight[AT_ONCE];
      float4 part[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        size_t at = place(i, begin);
        weight[i] = __ldcg(&a.weight[at]);
        part[i] = __ldcg(reinterpret_cast<const float4 *>(&a.part[at * DIM + d]));
      }
      if (begin == 0)
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) largest = fmaxf(largest, weight[i].x);
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        float e = begin + i < count ? exp2f(weight[i].x - largest) : 0.0f;
        total = fmaf(e, weight[i].y, total);
        sum[0] = fmaf(e, part[i].x, sum[0]), sum[1] = fmaf(e, part[i].y, sum[1]);
        sum[2] = fmaf(e, part[i].z, sum[2]), sum[3] = fmaf(e, part[i].w, sum[3]);
      }
    }
    if (a.sinks) total += exp2f(sink - largest);
    int column = head * a.head_dim + d;
    for (int i = 0; i < EACH && d + i < a.head_dim; i++)
      a.out.at[a.out.place(u.row0 + row, column + i)] = narrow<TYPE>(sum[i] / total);
  }
}

/* Blocks on a multiprocessor at once: as many as registers and shared memory allow without spilling. From sm_120 on it
 * has 100 KiB of shared memory, which leave more registers to a block. */
#if __CUDA_ARCH__ >= 1200
template <int DIM> constexpr int BLOCKS = DIM <= 32 ? 4 : DIM <= 80 ? 3 : DIM <= 128 ? 2 : 1;
#else
template <int DIM> constexpr int BLOCKS = DIM <= 32 ? 5 : DIM <= 64 ? 6 : DIM <= 80 ? 5 : DIM <= 128 ? 4 : 2;
#endif

/* Finds the slots of the keys. `last`: the sequence, prefix, path and reach of the unit's last row. */
static __device__ __forceinline__ void find_slots(const attention &a, const work &u, const room &s, int4 last,
                                                  int common) {
  for (int i = threadIdx.x; i < SPLIT && common; i += WARPS * WARP)
    s.slot[i] = slot_of(a, u.part * SPLIT, last.y, last.z, i, common);
  if (!diverges(u)) return;
  for (int item = threadIdx.x; item < u.rows * SPLIT; item += WARPS * WARP)
    if (item % SPLIT >= u.shared / 16 * 16)
      s.suffix_slot[item] = slot_of(a, u.part * SPLIT, a.rows.prefix[u.row0 + item / SPLIT],
                                    a.rows.path_at[u.row0 + item / SPLIT], item % SPLIT, count_of(a, u, item / SPLIT));
}

/* How many times 16 positions that all rows have in common a warp takes values of. */
static __device__ __forceinline__ int steps_of(const work &u, const view &v) {
  constexpr int MOST = KEYS / 16;
  if (!diverges(u)) return v.common > 0 ? MOST : 0;
  return v.common < 0 ? 0 : v.common / 16 < MOST ? v.common / 16 : MOST;
}

template <int DIM> static __device__ __forceinline__ float *sums_of(const room &s, int warp) {
  return s.values_of + warp * QUERIES * PITCH<DIM>;
}

/* Where piece p of a row's values lies that are copied from dimension `from` on: in q8, the scales follow the codes. */
template <int DIM> static __device__ __forceinline__ int piece_at(int p, int from) {
  if (WIDTH<DIM> == DIM || 8 * p < WIDTH<DIM>) return from + 8 * p;
  return DIM + from / SCALED * 2 + 8 * p - WIDTH<DIM>;
}

/* Begins to load the values of these positions, from dimension `from` on. */
template <int DIM, cache_format C>
static __device__ __forceinline__ void copy_values(const attention &a, const work &u, const room &s, const view &v,
                                                   int from, int steps) {
  constexpr int PIECES = row_length(C, WIDTH<DIM>) / 8;
  using piece = row_piece<C>;
  stored<C> *values = reinterpret_cast<stored<C> *>(sums_of<DIM>(s, v.warp));
  for (int i = v.lane; i < steps * 16 * PIECES; i += WARP) {
    int key = i / PIECES, p = i % PIECES;
    copy_stream(reinterpret_cast<piece *>(values + key * VALUE_PITCH<DIM, C> + 8 * p),
                reinterpret_cast<const piece *>(rows_of<C>(a.values) + row_at<DIM, C>(a, u, s.slot[v.first + key]) +
                                                piece_at<DIM>(p, from)));
  }
  copies_commit();
}

/* Computes the scores of the warp's keys for two queries, as exponents of two; -inf: a key that a query does not have,
 * or that is hidden from it. */
template <number TYPE, int DIM, cache_format C>
static __device__ __forceinline__ void compute_scores(const attention &a, const work &u, const room &s, const view &v,
                                                      float (&score)[TILES][4]) {
  if (v.common > 0) {
    const stored<C> *key_of[TILES];
#pragma unroll
    for (int j = 0; j < TILES; j++)
      key_of[j] = rows_of<C>(a.keys) + row_at<DIM, C>(a, u, s.slot[v.first + 8 * j + v.g]) + kept_at<C>(4 * v.t);
    multiply_keys<TYPE, DIM, C>(a.q + head_of(a, u, v.query[0]) * DIM + 4 * v.t,
                                a.q + head_of(a, u, v.query[1]) * DIM + 4 * v.t, key_of, score);
  }
  if (diverges(u)) score_suffixes<TYPE, DIM, C>(a, u, s);
  if (diverges(u)) __syncthreads(); /* for the scores of other warps */
  float scale = a.scale * LOG2E;
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 2; i++) {
      int key = 8 * j + 2 * v.t + i;
      if (v.first + key >= u.shared && key < v.keys[0])
        score[j][i] = s.suffix_score[v.query[0] * SPLIT + v.first + key];
    }
  if (a.cap > 0.0f) cap_scores(a, score), scale = a.cap * LOG2E;
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      int key = 8 * j + 2 * v.t + i % 2;
      score[j][i] = key < v.keys[i / 2] ? score[j][i] * scale : -INFINITY;
    }
  if (u.hidden) hide(a, u, v, score);
}

/* Turns scores into exponentials, relative to the largest score of the part. Their sums, by warp, and the largest
 * scores are left in shared memory. */
static __device__ __forceinline__ void softmax(const attention &a, const work &u, const room &s, const view &v,
                                               float (&score)[TILES][4]) {
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) largest[i / 2] = fmaxf(largest[i / 2], score[j][i]);
  for (int h = 0; h < 2; h++) {
    for (int bits = 1; bits < 4; bits *= 2)
      largest[h] = fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], bits));
    if (v.t == 0) s.most[v.warp * QUERIES + v.g + 8 * h] = largest[h];
  }
  __syncthreads();
  for (int h = 0; h < 2; h++)
    for (int w = 0; w < WARPS; w++) largest[h] = fmaxf(largest[h], s.most[w * QUERIES + v.g + 8 * h]);
  for (int h = 0; h < 2; h++)
    largest[h] = fmaxf(largest[h], -3.40282347e38f); /* if all keys are hidden, their weights are zero */
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      score[j][i] = exp2f(score[j][i] - largest[i / 2]);
      sum[i / 2] += score[j][i];
      if (diverges(u) && i < 2 && v.g < queries_of(a, u))
        s.suffix_score[v.g * SPLIT + v.first + 8 * j + 2 * v.t + i] = score[j][i];
    }
  for (int h = 0; h < 2; h++) {
    for (int bits = 1; bits < 4; bits *= 2) sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], bits);
    if (v.t == 0) s.sums[v.warp * QUERIES + v.g + 8 * h] = sum[h];
  }
}

/* Multiplies the exponentials with the copied values, and leaves each warp's sums in shared memory, in place of the
 * values. */
template <number TYPE, int DIM, cache_format C>
static __device__ __forceinline__ void sum_values(const room &s, const view &v, int steps,
                                                  const float (&score)[TILES][4]) {
  float *sums = sums_of<DIM>(s, v.warp);
  const stored<C> *values = reinterpret_cast<const stored<C> *>(sums);
  copies_wait<0>();
  __syncwarp();
  constexpr int W = WIDTH<DIM>;
  float out[W / 8][4] = {};
#pragma unroll
  for (int k = 0; k < KEYS / 16; k++) {
    if (k >= steps) break;
    lane_values<W> value[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      value[i] = load_values<TYPE, W, W, C>(values + (16 * k + key_of_lane(i)) * VALUE_PITCH<DIM, C>, 0, v.g);
    const float(&e)[4] = score[2 * k], (&f)[4] = score[2 * k + 1];
    unsigned weights[4] = {narrow2<TYPE>(e[0], e[1]), narrow2<TYPE>(e[2], e[3]), narrow2<TYPE>(f[0], f[1]),
                           narrow2<TYPE>(f[2], f[3])};
#pragma unroll
    for (int c = 0; c < W / 16; c++) add_values<TYPE, W>(weights, value, c, out[2 * c], out[2 * c + 1]);
  }
  __syncwarp();
#pragma unroll
  for (int j = 0; j < W / 8; j++)
    for (int h = 0; h < 2; h++)
      *reinterpret_cast<float2 *>(sums + (v.g + 8 * h) * PITCH<DIM> + 8 * j + 2 * v.t) =
          make_float2(out[j][2 * h], out[j][2 * h + 1]);
  __syncthreads();
}

/* Adds up the warps' sums of each query, and stores them as the part's, from dimension `from` on. */
template <int DIM>
static __device__ __forceinline__ void store_sums(const attention &a, const work &u, const room &s, int from) {
  constexpr int W = WIDTH<DIM>;
  for (int item = threadIdx.x; item < queries_of(a, u) * W; item += WARPS * WARP) {
    const float *sums = s.values_of + item / W * PITCH<DIM> + place_of<W>(item % W);
    float total = sums[0];
    for (int w = 1; w < WARPS; w++) total += sums[w * QUERIES * PITCH<DIM>];
    a.part[(head_of(a, u, item / W) * a.splits + u.part) * DIM + from + item % W] = total;
  }
}

/* Stores each query's largest score and sum of exponentials. */
static __device__ __forceinline__ void store_weights(const attention &a, const work &u, const room &s) {
  int query = threadIdx.x;
  if (query < queries_of(a, u)) {
    float biggest = s.most[query], total = s.sums[query];
    for (int w = 1; w < WARPS; w++)
      biggest = fmaxf(biggest, s.most[w * QUERIES + query]), total += s.sums[w * QUERIES + query];
    a.weight[head_of(a, u, query) * a.splits + u.part] = make_float2(biggest, total);
  }
}

/* Counts the part for each query, and finds out whether it was the query's last one. */
static __device__ __forceinline__ void count_part(const attention &a, const work &u, const room &s) {
  __syncthreads();
  int query = threadIdx.x;
  if (query < queries_of(a, u)) {
    unsigned *done = &a.done[head_of(a, u, query)];
    int row = row_of(a, query);
    gap skipped = gap_of(a, u, row);
    unsigned others = (unsigned)(a.rows.reach[u.row0 + row] / SPLIT - (skipped.to - skipped.from));
    s.last[query] = !holds(skipped, u.part) && add_one_for_block(done) == others;
    if (s.last[query]) *done = 0;
  }
  __syncthreads();
}

template <number TYPE, int DIM, cache_format C>
static __global__ __launch_bounds__(WARPS *WARP, BLOCKS<DIM>) void k_attention(attention a) {
  DYNAMIC_SHARED_OF(int, shared, SHARED<DIM>);
  room s = rooms(shared);
  dependency_release();
  int4 unit = a.rows.unit[2 * blockIdx.x], last = a.rows.unit[2 * blockIdx.x + 1];
  if (!unit.y) return dependency_wait();
  bool hidden = a.window || a.rows.header->window.last > 0;
  work u = {unit.x, unit.y, unit.z, unit.w, (int)blockIdx.y * a.joined, 0, hidden};
  if (hidden && is_skipped(a, u)) return dependency_wait();
  u.sequence = last.x;
  /* the last row of a text has the most keys */
  int left = last.w + 1 - u.part * SPLIT, common = diverges(u) ? u.shared : left < SPLIT ? left : SPLIT;
  view v = view_of(a, u, common);
  find_slots(a, u, s, last, common);
  dependency_wait();
  __syncthreads();

  int steps = steps_of(u, v);
  copy_values<DIM, C>(a, u, s, v, 0, steps); /* while scores are computed */
  float score[TILES][4] = {};
  compute_scores<TYPE, DIM, C>(a, u, s, v, score);
  softmax(a, u, s, v, score);
#pragma unroll
  for (int from = 0; from < DIM; from += WIDTH<DIM>) {
    if (from > 0) {
      __syncthreads(); /* the sums of earlier dimensions are stored */
      copy_values<DIM, C>(a, u, s, v, from, steps);
    }
    sum_values<TYPE, DIM, C>(s, v, steps, score);
    if (diverges(u)) {
      add_suffixes<TYPE, DIM, C>(a, u, s, from);
      __syncthreads();
    }
    store_sums<DIM>(a, u, s, from);
  }
  store_weights(a, u, s);
  count_part(a, u, s);
  combine<TYPE, DIM>(a, u, s);
}

template <number TYPE, int DIM> static auto kernel_of(cache_format c) {
  return c == CACHE_Q8 ? k_attention<TYPE, DIM, CACHE_Q8> : k_attention<TYPE, DIM, CACHE_16>;
}

template <number TYPE, int DIM>
static cudaError_t start(const queue &stream, cache_format c, const attention &a, int units) {
  dim3 grid((unsigned)units, (unsigned)(a.heads / a.joined));
  return launch(stream, grid, WARPS * WARP, SHARED<DIM>, kernel_of<TYPE, DIM>(c), a);
}

template <number TYPE, int DIM> static cudaError_t prepare(cache_format c) {
  return cudaFuncSetAttribute(kernel_of<TYPE, DIM>(c), cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED<DIM>);
}

/* The widths of padded_head() in upload.cu. */
#define FOR_WIDTH(TYPE, CALL)                                                                                          \
  switch (dim) {                                                                                                       \
  case 32: return CALL(TYPE, 32);                                                                                      \
  case 64: return CALL(TYPE, 64);                                                                                      \
  case 80: return CALL(TYPE, 80);                                                                                      \
  case 96: return CALL(TYPE, 96);                                                                                      \
  case 128: return CALL(TYPE, 128);                                                                                    \
  case 256: return CALL(TYPE, 256);                                                                                    \
  default: return CALL(TYPE, MAX_HEAD);                                                                                \
  }
#define START(TYPE, DIM) start<TYPE, DIM>(stream, c, a, units)
#define PREPARE(TYPE, DIM) prepare<TYPE, DIM>(c)

cudaError_t attend(const queue &stream, number type, cache_format c, int dim, const attention &a, int units) {
  if (type == F16) FOR_WIDTH(F16, START)
  FOR_WIDTH(BF16, START)
}

cudaError_t attention_prepare(number type, cache_format c, int dim) {
  if (type == F16) FOR_WIDTH(F16, PREPARE)
  FOR_WIDTH(BF16, PREPARE)
}
