/* Tree attention. The keys of a row are taken in logical order, whatever slots they lie in, in parts of SPLIT positions
 * that begin at multiples of SPLIT. A part's 4 warps take 32 positions each. Every part of every row goes through the
 * same operations: scores by the tensor core over the head's dimensions in order; one maximum and one sum for the part;
 * values summed by the tensor core over 16 positions at a time; the 4 warps' sums added in order; at last the parts
 * added in order. A row of a tensor core's product does not depend on the other rows, so a row's result does not depend
 * on the rows that share its unit. Keys and values of caches in q8 are widened where they are loaded (held.cuh).
 *
 * A unit of work is one part for some rows of a sequence, and a block computes it for `joined` heads that share their
 * keys. One head of one row is a line, and lines are the M side of the products: a row's heads first, then the next
 * row's; up to GROUP. Either the rows have all the unit's positions in common (in their prefix, or as rows of one text,
 * whose last row has the most keys), so that keys and values are read once for all lines. Or the rows of a tree, up to
 * OWN lines, have only the first `own` positions in common; the other positions are computed row by row, and the warps
 * share the rows out. A key that a row does not have, or that a window hides from it, has the weight zero. Only a NaN
 * or an infinity in the later rows of a text could pass that weight, and such a text is lost anyway. The block that
 * finishes the last part of a row adds up the row's parts.
 *
 * An example: three rows of a tree, a, b (a child of a) and c (a's sibling), after a prefix of 300. Parts 0 and 1
 * (positions 0 to 255) are in every row's prefix: two units of three rows, `common` 128. Part 2 begins at 256: its
 * first 44 positions are in the prefix (`own` 44), and the rest belong to the paths: a's [a], b's [a b], c's [c]. With
 * many heads this is one unit of three rows (rows.cu: `together`), which is `apart`: positions 256 to 299 are computed
 * once for all rows, positions 300 and 301 row by row. Otherwise these are three units of one row, each of which
 * computes all its positions for itself. Either way position 300 is one of the 16 from 288 on, and is added with those.
 * Where two heads share each key head, `joined` is 2, and the lines are a's first head, a's second, b's first, and so
 * on: six. */
#include "attention.cuh"
#include "held.cuh"
#include "launch.cuh"

constexpr int WARPS = 4, KEYS = SPLIT / WARPS, TILES = KEYS / 8;

/* Shared memory of a block; the arrays lie one after the other. */
struct room {
  int *slot;        /* [SPLIT] slots of the keys that the rows have in common */
  float *most;      /* [WARPS][GROUP] largest score of each line */
  float *sums;      /* [WARPS][GROUP] sum of exponentials */
  int *last;        /* [GROUP] whether this part was the line's last */
  int *own_slot;    /* [OWN][SPLIT] slots of the other keys of each row */
  float *own_score; /* [OWN][SPLIT] scores of these for each line, then their exponentials */
  /* [WARPS]: first the values, [KEYS] rows, VALUE_PITCH apart; then [GROUP][PITCH] their sums, in the order of
   * place_of */
  float *values_of;
};
static __device__ __forceinline__ room rooms(int *slot) {
  room s;
  s.slot = slot;
  s.most = reinterpret_cast<float *>(slot + SPLIT);
  s.sums = s.most + WARPS * GROUP;
  s.last = reinterpret_cast<int *>(s.sums + WARPS * GROUP);
  s.own_slot = s.last + GROUP;
  s.own_score = reinterpret_cast<float *>(s.own_slot + OWN * SPLIT);
  s.values_of = s.own_score + OWN * SPLIT;
  return s;
}
template <int DIM> constexpr int PITCH = DIM + 8; /* no two rows of a warp share a bank; nor do its values, */
/* at this distance, except for pairs of rows in q8 with 80 numbers. */
template <int DIM, held H> constexpr int VALUE_PITCH = H == HELD_Q8 ? DIM + 16 : PITCH<DIM>;
static_assert(KEYS * sizeof(uint16_t) == GROUP * sizeof(float), "values lie where their sums will");
static_assert(VALUE_PITCH<32, HELD_Q8> <= 2 * PITCH<32> &&
                  row_length(HELD_Q8, MAX_HEAD) <= VALUE_PITCH<MAX_HEAD, HELD_Q8>,
              "so do those in q8, which have no more than 16 bytes of scales");
static_assert(OWN <= 8, "a lane of score_own has one line");
template <int DIM>
constexpr int SHARED = sizeof(int) * (SPLIT + GROUP + OWN * SPLIT) +
                       sizeof(float) * (2 * WARPS * GROUP + OWN * SPLIT + WARPS * GROUP * PITCH<DIM>);

/* Scores of N times 8 keys. For the k of the product, a lane takes dimensions d + 4 t .. + 3 of a line and of a key. */
template <number TYPE, int DIM, held H, int N>
static __device__ __forceinline__ void multiply_keys(const uint16_t *lower, const uint16_t *upper,
                                                     const stored<H> *const (&key_of)[N], float (&score)[N][4]) {
#pragma unroll
  for (int d = 0; d < DIM; d += 16) {
    uint2 low = *reinterpret_cast<const uint2 *>(lower + d), high = *reinterpret_cast<const uint2 *>(upper + d);
    unsigned lines_of[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
    for (int j = 0; j < N; j++) {
      uint2 key = load_kept<TYPE, DIM>(key_of[j], d, 4 * (int)(threadIdx.x % 4));
      unsigned keys_of[2] = {key.x, key.y};
      mma<TYPE>(score[j], lines_of, keys_of);
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
template <number TYPE, int DIM, held H>
static __device__ __forceinline__ lane_values<DIM> load_values(const stored<H> *value, int g) {
  lane_values<DIM> v;
#pragma unroll
  for (int p = 0; p < DIM / 64; p++) {
    uint4 eight = load_eight<TYPE, DIM>(value, dimension_of<DIM>(g, 8 * p));
    v.two[4 * p] = eight.x, v.two[4 * p + 1] = eight.y, v.two[4 * p + 2] = eight.z, v.two[4 * p + 3] = eight.w;
  }
  constexpr int LEFT = DIM / 64 * 4; /* 0, 2 or 4 numbers */
  if constexpr (DIM % 64 == 16) v.two[LEFT] = load_two<TYPE, DIM>(value, dimension_of<DIM>(g, 2 * LEFT));
  if constexpr (DIM % 64 == 32) {
    uint2 four = load_four<TYPE, DIM>(value, dimension_of<DIM>(g, 2 * LEFT));
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
  int row0, rows, part, own, head;
  int list; /* the list of slots in the cache that has the keys of these heads */
};

static __device__ __forceinline__ int lines_of(const attention &a, const work &u) { return u.rows * a.joined; }

/* The keys, or the values, of a layer; and where a slot's row begins among them. */
template <held H> static __device__ __forceinline__ const stored<H> *rows_of(const void *rows) {
  return static_cast<const stored<H> *>(rows);
}
template <int DIM, held H>
static __device__ __forceinline__ size_t row_at(const attention &a, const work &u, int slot) {
  return ((size_t)u.list * a.slots + slot) * row_length(H, DIM);
}

/* For a line: its row in the unit; whether it belongs to a row; its place among the heads of all rows. */
static __device__ __forceinline__ int row_of(const attention &a, int line) { return line * a.inverse >> 8; }
static __device__ __forceinline__ bool is_of(const attention &a, int line, int row) {
  return (unsigned)(line - row * a.joined) < (unsigned)a.joined;
}
static __device__ __forceinline__ size_t head_of(const attention &a, const work &u, int line) {
  int row = row_of(a, line);
  return (size_t)(u.row0 + row) * a.heads + u.head + line - row * a.joined;
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

/* Hides the scores, in lines lower and upper, of keys outside the pass's window; keys begin at `first` of the part. */
static __device__ __forceinline__ void hide(const attention &a, const work &u, int first, int lower, int upper,
                                            float (&score)[TILES][4]) {
  dt_window window = a.rows.header->window;
  int at = u.part * SPLIT + first, begin[2]; /* where the window of each line begins: see window.h */
  for (int h = 0; h < 2; h++) begin[h] = a.rows.reach[u.row0 + row_of(a, h ? upper : lower)] + 1 - window.last;
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      int position = at + 8 * j + 2 * (int)(threadIdx.x % 4) + i % 2;
      if (position >= window.sinks && position < begin[i / 2]) score[j][i] = -INFINITY;
    }
}

/* Scores of the keys that rows do not have in common: eight keys at a time, of any rows, two such groups in flight. The
 * product multiplies all lines with each key; only the scores of the key's own row are kept. */
template <number TYPE, int DIM, held H>
static __device__ __forceinline__ void score_own(const attention &a, const work &u, const room &s) {
  constexpr int TOGETHER = 2; /* more would not fit the registers */
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  int first = u.own / 8, end = first;
  for (int r = 0; r < u.rows; r++) {
    int eights = (count_of(a, u, r) + 7) / 8;
    if (eights > end) end = eights;
  }
  int each = end - first, items = u.rows * each;
  const uint16_t *q = a.q + head_of(a, u, g < lines_of(a, u) ? g : 0) * DIM + 4 * t;
  float *score_of = s.own_score + g * SPLIT + 2 * t;
  for (int item = warp * TOGETHER; item < items; item += WARPS * TOGETHER) {
    int row[TOGETHER], at[TOGETHER];
    const stored<H> *key_of[TOGETHER];
#pragma unroll
    for (int j = 0; j < TOGETHER; j++) {
      int i = item + j < items ? item + j : items - 1;
      row[j] = i / each, at[j] = (first + i % each) * 8;
      key_of[j] = rows_of<H>(a.keys) + row_at<DIM, H>(a, u, s.own_slot[row[j] * SPLIT + at[j] + g]) + kept_at<H>(4 * t);
    }
    float score[TOGETHER][4] = {};
    multiply_keys<TYPE, DIM, H>(q, q, key_of, score);
#pragma unroll
    for (int j = 0; j < TOGETHER; j++)
      if (item + j < items && is_of(a, g, row[j])) score_of[at[j]] = score[j][0], score_of[at[j] + 1] = score[j][1];
  }
}

/* Adds the values of these keys, and of common keys among the same 16 positions, to the sums of the other keys. An item
 * is the positions of one row that belong to one warp. */
template <number TYPE, int DIM, held H>
static __device__ __forceinline__ void add_own(const attention &a, const work &u, const room &s) {
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  int first = u.own / KEYS, items = u.rows * (WARPS - first);
  for (int item = warp; item < items; item += WARPS) {
    int r = item % u.rows, of_warp = first + item / u.rows, begin = of_warp * KEYS, end = begin + KEYS;
    int count = (count_of(a, u, r) + 15) / 16 * 16; /* after them all weights are zero */
    if (end > count) end = count;
    if (begin >= end) continue;
    if (begin < u.own) begin = u.own / 16 * 16;
    bool of_row = is_of(a, g, r);
    int line = of_row ? g : r * a.joined; /* other lanes repeat the row's first line, for nothing */
    for (int at = begin; at < end; at += 16) {
      const int *slot = s.own_slot + r * SPLIT + at;
      lane_values<DIM> value[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        value[i] = load_values<TYPE, DIM, H>(rows_of<H>(a.values) + row_at<DIM, H>(a, u, slot[key_of_lane(i)]), g);
      const float *e = s.own_score + line * SPLIT + at + 2 * t;
      unsigned weights[4] = {narrow2<TYPE>(e[0], e[1]), 0, narrow2<TYPE>(e[8], e[9]), 0};
      float *sum = s.values_of + (of_warp * GROUP + line) * PITCH<DIM> + 2 * t;
#pragma unroll
      for (int c = 0; c < DIM / 16; c++, sum += 16) {
        float even[4] = {sum[0], sum[1], 0.0f, 0.0f}, odd[4] = {sum[8], sum[9], 0.0f, 0.0f};
        add_values<TYPE, DIM>(weights, value, c, even, odd);
        if (of_row) sum[0] = even[0], sum[1] = even[1], sum[8] = odd[0], sum[9] = odd[1];
      }
      __syncwarp();
    }
  }
}

/* Adds the parts of the lines whose last part this block has finished, each line's in order: out = sum of parts / sum
 * of exponentials. A thread takes EACH dimensions of a line. AT_ONCE parts are loaded before the first is added: with a
 * trip to the second-level cache for each, this would be most of attention's time. So no branch may depend on a part,
 * since the compiler loads it after the branch. Missing parts at the end are replaced by the first part of the group,
 * with the weight zero. */
template <number TYPE, int DIM>
static __device__ __forceinline__ void combine(const attention &a, const work &u, const room &s) {
  constexpr int EACH = 4, ITEMS = DIM / EACH, AT_ONCE = 8;
  for (int item = threadIdx.x; item < lines_of(a, u) * ITEMS; item += WARPS * WARP) {
    int line = item / ITEMS, d = item % ITEMS * EACH;
    if (!s.last[line]) continue;
    size_t first = head_of(a, u, line) * a.splits;
    int count = a.rows.reach[u.row0 + row_of(a, line)] / SPLIT + 1;
    float sum[EACH] = {}, total = 0.0f, largest = -INFINITY;
    for (int begin = AT_ONCE; begin < count; begin += AT_ONCE) {
      float biggest[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++)
        biggest[i] = __ldcg(&a.weight[first + (begin + i < count ? begin + i : begin)].x);
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) largest = fmaxf(largest, biggest[i]);
    }
    for (int begin = 0; begin < count; begin += AT_ONCE) {
      float2 weight[AT_ONCE];
      float4 part[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        size_t at = first + (begin + i < count ? begin + i : begin);
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
    int row = row_of(a, line), column = (u.head + line - row * a.joined) * a.head_dim + d;
    for (int i = 0; i < EACH && d + i < a.head_dim; i++)
      a.out.at[a.out.place(u.row0 + row, column + i)] = narrow<TYPE>(sum[i] / total);
  }
}

/* Blocks on a multiprocessor at once: as many as registers and shared memory allow without spilling. */
template <int DIM> constexpr int BLOCKS = DIM <= 64 ? 6 : DIM <= 80 ? 5 : DIM <= 128 ? 4 : 2;

template <number TYPE, int DIM, held H>
static __global__ __launch_bounds__(WARPS *WARP, BLOCKS<DIM>) void k_attention(attention a) {
  DYNAMIC_SHARED_OF(int, shared, SHARED<DIM>);
  room s = rooms(shared);
  dependency_release();
  int4 unit = a.rows.unit[2 * blockIdx.x], last = a.rows.unit[2 * blockIdx.x + 1];
  if (!unit.y) return dependency_wait();
  work u = {unit.x, unit.y, unit.z, unit.w, (int)blockIdx.y * a.joined, 0};
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  u.list = last.x * (int)a.sequence_stride + u.head / (a.heads / a.kv_heads);
  bool apart = u.own < SPLIT;
  /* keys that the rows have in common; the last row of a text has the most */
  int left = last.w + 1 - u.part * SPLIT, common = apart ? u.own : left < SPLIT ? left : SPLIT;
  for (int i = threadIdx.x; i < SPLIT && common; i += WARPS * WARP)
    s.slot[i] = slot_of(a, u.part * SPLIT, last.y, last.z, i, common);
  if (apart)
    for (int item = threadIdx.x; item < u.rows * SPLIT; item += WARPS * WARP)
      if (item % SPLIT >= u.own / 16 * 16)
        s.own_slot[item] = slot_of(a, u.part * SPLIT, a.rows.prefix[u.row0 + item / SPLIT],
                                   a.rows.path_at[u.row0 + item / SPLIT], item % SPLIT, count_of(a, u, item / SPLIT));
  int first = warp * KEYS, mine = common - first; /* may be negative */
  int lower = g < lines_of(a, u) ? g : 0, upper = g + 8 < lines_of(a, u) ? g + 8 : 0;
  int keys_of_line[2] = {count_of(a, u, row_of(a, lower)) - first, count_of(a, u, row_of(a, upper)) - first};
  bool hidden = a.rows.header->window.last > 0;
  dependency_wait();
  __syncthreads();

  /* Loads values while the scores are computed: each step 16 positions that all rows have in common. */
  constexpr int STEPS = KEYS / 16, PIECES = row_length(H, DIM) / 8;
  using piece = row_piece<H>;
  int steps = !apart ? (mine > 0 ? STEPS : 0) : mine < 0 ? 0 : mine / 16 < STEPS ? mine / 16 : STEPS;
  float *sums_of = s.values_of + warp * GROUP * PITCH<DIM>;
  stored<H> *values = reinterpret_cast<stored<H> *>(sums_of);
  for (int i = lane; i < steps * 16 * PIECES; i += WARP) {
    int key = i / PIECES, d = i % PIECES * 8;
    copy_stream(reinterpret_cast<piece *>(values + key * VALUE_PITCH<DIM, H> + d),
                reinterpret_cast<const piece *>(rows_of<H>(a.values) + row_at<DIM, H>(a, u, s.slot[first + key]) + d));
  }
  copies_commit();

  float score[TILES][4] = {};
  if (mine > 0) {
    const stored<H> *key_of[TILES];
#pragma unroll
    for (int j = 0; j < TILES; j++)
      key_of[j] = rows_of<H>(a.keys) + row_at<DIM, H>(a, u, s.slot[first + 8 * j + g]) + kept_at<H>(4 * t);
    multiply_keys<TYPE, DIM, H>(a.q + head_of(a, u, lower) * DIM + 4 * t, a.q + head_of(a, u, upper) * DIM + 4 * t,
                                key_of, score);
  }
  if (apart) score_own<TYPE, DIM, H>(a, u, s);
  if (apart) __syncthreads(); /* for the scores of other warps */

  /* For lines g and g + 8: the largest score, exponentials as powers of two, their sum. */
  float scale = a.scale * 1.44269504f, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      int key = 8 * j + 2 * t + i % 2;
      if (i < 2 && first + key >= u.own && key < keys_of_line[0])
        score[j][i] = s.own_score[lower * SPLIT + first + key];
      score[j][i] = key < keys_of_line[i / 2] ? score[j][i] * scale : -INFINITY;
    }
  if (hidden) hide(a, u, first, lower, upper, score);
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) largest[i / 2] = fmaxf(largest[i / 2], score[j][i]);
  for (int h = 0; h < 2; h++) {
    for (int bits = 1; bits < 4; bits *= 2)
      largest[h] = fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], bits));
    if (t == 0) s.most[warp * GROUP + g + 8 * h] = largest[h];
  }
  __syncthreads();
  for (int h = 0; h < 2; h++)
    for (int w = 0; w < WARPS; w++) largest[h] = fmaxf(largest[h], s.most[w * GROUP + g + 8 * h]);
  for (int h = 0; h < 2; h++)
    largest[h] = fmaxf(largest[h], -3.40282347e38f); /* if all keys are hidden, their weights are zero */
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      score[j][i] = exp2f(score[j][i] - largest[i / 2]);
      sum[i / 2] += score[j][i];
      if (apart && i < 2 && g < lines_of(a, u)) s.own_score[g * SPLIT + first + 8 * j + 2 * t + i] = score[j][i];
    }
  for (int h = 0; h < 2; h++) {
    for (int bits = 1; bits < 4; bits *= 2) sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], bits);
    if (t == 0) s.sums[warp * GROUP + g + 8 * h] = sum[h];
  }

  copies_wait<0>();
  __syncwarp();
  float out[DIM / 8][4] = {};
#pragma unroll
  for (int k = 0; k < STEPS; k++) {
    if (k >= steps) break;
    lane_values<DIM> value[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      value[i] = load_values<TYPE, DIM, H>(values + (16 * k + key_of_lane(i)) * VALUE_PITCH<DIM, H>, g);
    const float(&e)[4] = score[2 * k], (&f)[4] = score[2 * k + 1];
    unsigned weights[4] = {narrow2<TYPE>(e[0], e[1]), narrow2<TYPE>(e[2], e[3]), narrow2<TYPE>(f[0], f[1]),
                           narrow2<TYPE>(f[2], f[3])};
#pragma unroll
    for (int c = 0; c < DIM / 16; c++) add_values<TYPE, DIM>(weights, value, c, out[2 * c], out[2 * c + 1]);
  }
  __syncwarp();
#pragma unroll
  for (int j = 0; j < DIM / 8; j++)
    for (int h = 0; h < 2; h++)
      *reinterpret_cast<float2 *>(sums_of + (g + 8 * h) * PITCH<DIM> + 8 * j + 2 * t) =
          make_float2(out[j][2 * h], out[j][2 * h + 1]);
  __syncthreads();
  if (apart) {
    add_own<TYPE, DIM, H>(a, u, s);
    __syncthreads();
  }

  for (int item = threadIdx.x; item < lines_of(a, u) * DIM; item += WARPS * WARP) {
    const float *sums = s.values_of + item / DIM * PITCH<DIM> + place_of<DIM>(item % DIM);
    float total = sums[0];
    for (int w = 1; w < WARPS; w++) total += sums[w * GROUP * PITCH<DIM>];
    a.part[(head_of(a, u, item / DIM) * a.splits + u.part) * DIM + item % DIM] = total;
  }
  int line = threadIdx.x;
  if (line < lines_of(a, u)) {
    float biggest = s.most[line], total = s.sums[line];
    for (int w = 1; w < WARPS; w++)
      biggest = fmaxf(biggest, s.most[w * GROUP + line]), total += s.sums[w * GROUP + line];
    a.weight[head_of(a, u, line) * a.splits + u.part] = make_float2(biggest, total);
  }
  __syncthreads();
  if (line < lines_of(a, u)) {
    unsigned *done = &a.done[head_of(a, u, line)];
    s.last[line] = add_one_for_block(done) == (unsigned)(a.rows.reach[u.row0 + row_of(a, line)] / SPLIT);
    if (s.last[line]) *done = 0;
  }
  __syncthreads();
  combine<TYPE, DIM>(a, u, s);
}

template <number TYPE, int DIM> static auto kernel_of(held h) {
  return h == HELD_Q8 ? k_attention<TYPE, DIM, HELD_Q8> : k_attention<TYPE, DIM, HELD_16>;
}

template <number TYPE, int DIM> static cudaError_t start(const queue &stream, held h, const attention &a, int units) {
  dim3 grid((unsigned)units, (unsigned)(a.heads / a.joined));
  return launch(stream, grid, WARPS * WARP, SHARED<DIM>, kernel_of<TYPE, DIM>(h), a);
}

template <number TYPE, int DIM> static cudaError_t prepare(held h) {
  return cudaFuncSetAttribute(kernel_of<TYPE, DIM>(h), cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED<DIM>);
}

/* The widths of padded_head() in upload.cu. */
#define FOR_WIDTH(TYPE, CALL)                                                                                          \
  switch (dim) {                                                                                                       \
  case 32: return CALL(TYPE, 32);                                                                                      \
  case 64: return CALL(TYPE, 64);                                                                                      \
  case 80: return CALL(TYPE, 80);                                                                                      \
  case 96: return CALL(TYPE, 96);                                                                                      \
  case 128: return CALL(TYPE, 128);                                                                                    \
  default: return CALL(TYPE, MAX_HEAD);                                                                                \
  }
#define START(TYPE, DIM) start<TYPE, DIM>(stream, h, a, units)
#define PREPARE(TYPE, DIM) prepare<TYPE, DIM>(h)

cudaError_t attend(const queue &stream, number type, held h, int dim, const attention &a, int units) {
  if (type == F16) FOR_WIDTH(F16, START)
  FOR_WIDTH(BF16, START)
}

cudaError_t attention_prepare(number type, held h, int dim) {
  if (type == F16) FOR_WIDTH(F16, PREPARE)
  FOR_WIDTH(BF16, PREPARE)
}
