/* Attention of a few rows over the keys of one head.
 *
 * Positions are logical: a row reads its keys in the order 0, 1, .., whatever slots hold them. Every number has one
 * fixed order of operations: a score is sixteen partial sums over the dimensions, added in the order of v_sum; the
 * softmax's sum is sixteen partial sums over the positions (position modulo 16); an output is one accumulator per
 * dimension, with one fma for each position in order.
 *
 * Each attention_*.c includes this file for one type of cache. Before that it defines CACHE (the type's name), LINES
 * (the number of 64-byte lines in 64 numbers), row_bytes and write_row (as in cpu_cache_type), and load_sixteen, which
 * widens the numbers d..d+15 of a row exactly. */
#include "vmath.h"

/* A group is as many rows as fit into registers. All groups read the same sixteen keys, or the values of the same SPAN
 * positions, before any group reads the next ones. All groups but the first therefore find them in the L1 cache. */
#if defined(__AVX512F__)
enum { GROUP_ROWS = 6 };
#else
enum { GROUP_ROWS = 1 };
#endif
enum { SPAN = 64 };

/* A single group is memory-bound, so it prefetches keys and values this many bytes ahead. */
enum { AHEAD = 8192 };

/* Sets scores[r * ld + i] to row r's score for key i, for sixteen keys. With `asks` it also prefetches the keys AHEAD
 * bytes further on. */
VI void dots(const int n, const bool asks, const cpu_attention_row *rows, const char *const key[16], int dim,
             float *scores, size_t ld) {
  const char *next = key[0] + AHEAD;
  v16 group[GROUP_ROWS][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    v16 acc[GROUP_ROWS][4];
#pragma GCC unroll 6
    for (int r = 0; r < n; r++) acc[r][0] = acc[r][1] = acc[r][2] = acc[r][3] = v_set1(0.0f);
    for (int d = 0; d < dim; d += 16) {
      for (int i = 0; asks && i < LINES; i++, next += 64) __builtin_prefetch(next, 0, 3);
      v16 k0 = load_sixteen(key[j], dim, d), k1 = load_sixteen(key[4 + j], dim, d);
      v16 k2 = load_sixteen(key[8 + j], dim, d), k3 = load_sixteen(key[12 + j], dim, d);
#pragma GCC unroll 6
      for (int r = 0; r < n; r++) {
        v16 q = v_load(rows[r].q + d);
        acc[r][0] = v_fma(q, k0, acc[r][0]);
        acc[r][1] = v_fma(q, k1, acc[r][1]);
        acc[r][2] = v_fma(q, k2, acc[r][2]);
        acc[r][3] = v_fma(q, k3, acc[r][3]);
      }
    }
#pragma GCC unroll 6
    for (int r = 0; r < n; r++) group[r][j] = v_sums4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
  }
#pragma GCC unroll 6
  for (int r = 0; r < n; r++)
    v_store(scores + (size_t)r * ld, v_sums16(group[r][0], group[r][1], group[r][2], group[r][3]));
}

VI int slot_of(const cpu_attention_row *row, int position) {
  return position < row->prefix ? position : row->path[position - row->prefix];
}

VI int keys_of(const cpu_attention_row *row) { return row->prefix + row->path_len; }

/* The first position of the sixteen that contain the row's first position. */
VI int begin_of(const cpu_attention_row *row) { return row->begin & ~15; }

/* Positions from..to-1 are not read: the window hides all sixteens between the first keys of the text and the most
 * recent ones. Both are multiples of 16; to = from = begin_of(row): there are none. */
typedef struct {
  int from, to;
} gap;

VI gap gap_of(const cpu_attention_row *row) {
  const int begin = begin_of(row), hidden = (row->hidden + 15) & ~15, to = row->seen & ~15;
  const int from = hidden > begin ? hidden : begin;
  return to > from ? (gap){from, to} : (gap){begin, begin};
}

/* The row's first sixteen that is read, and the one after sixteen p. */
VI int first_read(const cpu_attention_row *row, gap g) { return g.from == begin_of(row) ? g.to : begin_of(row); }
VI int next_read(gap g, int p) { return p + 16 == g.from ? g.to : p + 16; }

/* Replaces the scores of the row's keys by exp(score - largest) and returns 1 / their sum. A sink counts as one more
 * score, and its term is added last. */
VI float softmax(const cpu_attention_row *row, float *scores) {
  const gap g = gap_of(row);
  const float *sink = row->sink;
  const int first = first_read(row, g), keys = keys_of(row), whole = keys & ~15;
  for (int i = keys; i & 15; i++) scores[i] = -INFINITY;
  v16 largest = v_set1(-INFINITY), sum = v_set1(0.0f);
  for (int i = first; i < keys; i = next_read(g, i)) largest = v_max(v_load(scores + i), largest);
  if (sink) largest = v_max(v_set1(*sink), largest);
  largest = v_set1(v_hmax(largest));
  for (int i = first; i < whole; i = next_read(g, i)) {
    v16 e = v_exp(v_sub(v_load(scores + i), largest));
    v_store(scores + i, e);
    sum = v_add(sum, e);
  }
  if (keys > whole) {
    v16 e = v_first(v_exp(v_sub(v_load(scores + whole), largest)), keys - whole);
    v_store(scores + whole, e);
    sum = v_add(sum, e);
  }
  if (sink) sum = v_add(sum, v_first(v_exp(v_sub(v_set1(*sink), largest)), 1));
  return 1.0f / v_sum(sum);
}

/* A span of positions that the rows of a group share. `fresh`: it is the first span, so each row adds its own earlier
 * positions before it. `last`: it is the last span, so each row adds its own later positions after it. */
typedef struct {
  int from, to;
  bool fresh, last;
} span;

/* The row's first position after the gap. */
VI int late_of(const cpu_attention_row *row, gap g) { return row->begin > g.to ? row->begin : g.to; }

/* Adds the values of a row's positions from..to-1, which may lie in any slots. */
VI void weigh_own(const int width, const char *values, int dim, int first, const cpu_attention_row *row, int from,
                  int to, const float *scores, v16 acc[4]) {
  for (int p = from; p < to; p++) {
    v16 e = v_set1(scores[p]);
    const char *value = values + (size_t)slot_of(row, p) * row_bytes(dim);
#pragma GCC unroll 4
    for (int c = 0; c < width; c++) acc[c] = v_fma(e, load_sixteen(value, dim, first + 16 * c), acc[c]);
  }
}

/* Computes columns first..first + 16 width - 1 of the outputs of n rows: it adds the positions of a span, whose slots
 * are the same for all rows, to the sums so far. At the end it multiplies the sums by `scale`. `asks`: see dots. */
VI void weigh(const int n, const int width, const char *values, int dim, int first, const cpu_attention_row *rows,
              const span *s, bool asks, const float *scores, size_t ld, const float *scale) {
  const int from = s->from, to = s->to;
  const bool last = s->last;
  v16 acc[GROUP_ROWS][4];
#pragma GCC unroll 6
  for (int r = 0; r < n; r++) {
#pragma GCC unroll 4
    for (int c = 0; c < width; c++) acc[r][c] = s->fresh ? v_set1(0.0f) : v_load(rows[r].out + first + 16 * c);
    const gap g = gap_of(rows + r);
    if (!s->fresh) continue;
    weigh_own(width, values, dim, first, rows + r, rows[r].begin, g.from, scores + (size_t)r * ld, acc[r]);
    weigh_own(width, values, dim, first, rows + r, late_of(rows + r, g), from, scores + (size_t)r * ld, acc[r]);
  }
  const size_t step = row_bytes(dim);
  const int lines = asks && first == 0 ? (int)(step + 63) / 64 : 0;
  const char *value = values + (size_t)from * step;
  for (int p = from; p < to; p++, value += step) {
    v16 v[4];
    for (int i = 0; i < lines; i++) __builtin_prefetch(value + AHEAD + 64 * i, 0, 3);
#pragma GCC unroll 4
    for (int c = 0; c < width; c++) v[c] = load_sixteen(value, dim, first + 16 * c);
#pragma GCC unroll 6
    for (int r = 0; r < n; r++) {
      v16 e = v_set1(scores[(size_t)r * ld + (size_t)p]);
#pragma GCC unroll 4
      for (int c = 0; c < width; c++) acc[r][c] = v_fma(e, v[c], acc[r][c]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < n; r++) {
    const int late = late_of(rows + r, gap_of(rows + r)), after = to > late ? to : late;
    if (last) weigh_own(width, values, dim, first, rows + r, after, keys_of(&rows[r]), scores + (size_t)r * ld, acc[r]);
    v16 factor = v_set1(last ? scale[r] : 1.0f);
#pragma GCC unroll 4
    for (int c = 0; c < width; c++) v_store(rows[r].out + first + 16 * c, v_mul(acc[r][c], factor));
  }
}

#define DEFINE_ROWS(N)                                                                                                 \
  static void dots##N(const cpu_attention_row *rows, const char *const key[16], int dim, float *scores, size_t ld) {   \
    dots(N, false, rows, key, dim, scores, ld);                                                                        \
  }                                                                                                                    \
  static void asking_dots##N(const cpu_attention_row *rows, const char *const key[16], int dim, float *scores,         \
                             size_t ld) {                                                                              \
    dots(N, true, rows, key, dim, scores, ld);                                                                         \
  }                                                                                                                    \
  static void weigh##N(const char *values, int dim, const cpu_attention_row *rows, const span *s, bool asks,           \
                       const float *scores, size_t ld, const float *scale) {                                           \
    int first = 0;                                                                                                     \
    for (; first + 64 <= dim; first += 64) weigh(N, 4, values, dim, first, rows, s, asks, scores, ld, scale);          \
    for (; first + 32 <= dim; first += 32) weigh(N, 2, values, dim, first, rows, s, asks, scores, ld, scale);          \
    for (; first < dim; first += 16) weigh(N, 1, values, dim, first, rows, s, asks, scores, ld, scale);                \
  }

typedef void dots_fn(const cpu_attention_row *rows, const char *const key[16], int dim, float *scores, size_t ld);
typedef void weigh_fn(const char *values, int dim, const cpu_attention_row *rows, const span *s, bool asks,
                      const float *scores, size_t ld, const float *scale);

DEFINE_ROWS(1)
#if defined(__AVX512F__)
DEFINE_ROWS(2)
DEFINE_ROWS(3)
DEFINE_ROWS(4)
DEFINE_ROWS(5)
DEFINE_ROWS(6)
static dots_fn *const dots_of[2][GROUP_ROWS] = {
    {dots1, dots2, dots3, dots4, dots5, dots6},
    {asking_dots1, asking_dots2, asking_dots3, asking_dots4, asking_dots5, asking_dots6}};
static weigh_fn *const weigh_of[GROUP_ROWS] = {weigh1, weigh2, weigh3, weigh4, weigh5, weigh6};
#else
static dots_fn *const dots_of[2][GROUP_ROWS] = {{dots1}, {asking_dots1}};
static weigh_fn *const weigh_of[GROUP_ROWS] = {weigh1};
#endif

/* Computes one row's scores for its keys first..last-1, which may lie in any slots. first is a multiple of 16. */
static void score_own(const char *keys, int dim, const cpu_attention_row *row, int first, int last, float *scores) {
  const char *key[16];
  int count = keys_of(row);
  for (int p = first; p < last; p += 16) {
    for (int i = 0; i < 16; i++) { /* past the end it takes the last key and ignores the score */
      int position = p + i < count ? p + i : count - 1;
      key[i] = keys + (size_t)slot_of(row, position) * row_bytes(dim);
    }
    dots1(row, key, dim, scores + p, 0);
  }
}

/* Sets the scores of positions that the row does not see: those hidden by the window, and those before the row
 * begins. */
static void hide(const cpu_attention_row *row, float *scores, float score) {
  const gap g = gap_of(row);
  for (int p = row->hidden; p < row->seen && p < g.from; p++) scores[p] = score;
  for (int p = row->hidden > g.to ? row->hidden : g.to; p < row->seen; p++) scores[p] = score;
  for (int p = begin_of(row); p < row->begin; p++) scores[p] = score;
}

static void cap_scores(const cpu_attention_row *row, float *scores) {
  const gap g = gap_of(row);
  for (int p = first_read(row, g); row->cap != 0 && p < keys_of(row); p = next_read(g, p))
    v_store(scores + p, v_cap(v_load(scores + p), row->cap));
}

/* The positions first..common-1, which are in the same slots for all rows of a group, and neither before any row's
 * begin nor in its gap. first is a multiple of 16. */
typedef struct {
  int first, common;
} shared;

static shared shared_by(const cpu_attention_row *rows, int n) {
  shared s = {0, rows[0].prefix};
  for (int r = 0; r < n; r++) {
    const int late = late_of(rows + r, gap_of(rows + r));
    if (late > s.first) s.first = late;
    if (rows[r].prefix < s.common) s.common = rows[r].prefix;
  }
  s.first = (s.first + 15) & ~15;
  return s.first <= s.common ? s : (shared){0, 0};
}

/* Several groups are compute-bound. Group g of `groups` therefore prefetches its share of the sixteen keys after the
 * next sixteen, and its share of the values of these sixteen positions. */
static void fetch_ahead(const char *keys, const char *values, int p, int dim, int g, int groups) {
  const int lines = (int)(row_bytes(dim) / 4);
  const size_t next = (size_t)(p + 32) * row_bytes(dim), same = (size_t)p * row_bytes(dim);
  for (int i = lines * g / groups; i < lines * (g + 1) / groups; i++) {
    __builtin_prefetch(keys + next + 64 * i, 0, 3);
    __builtin_prefetch(values + same + 64 * i, 0, 2);
  }
}

static void attend(const char *keys, const char *values, int dim, const cpu_attention_row *rows, int n, float *scores,
                   size_t ld) {
  enum { GROUPS = (CPU_ATTENTION_ROWS + GROUP_ROWS - 1) / GROUP_ROWS };
  int groups = (n + GROUP_ROWS - 1) / GROUP_ROWS, longest = 0, lowest = 0, highest = 0;
  int begin[GROUPS + 1]; /* group g is rows begin[g]..begin[g+1]-1; the sizes of groups differ by at most 1 */
  shared of[GROUPS];
  for (int g = 0; g <= groups; g++) begin[g] = n * g / groups;
  for (int g = 0; g < groups; g++) {
    of[g] = shared_by(rows + begin[g], begin[g + 1] - begin[g]);
    int length = of[g].common - of[g].first;
    longest = length > longest ? length : longest;
    lowest = g == 0 || of[g].first < lowest ? of[g].first : lowest;
    highest = of[g].common > highest ? of[g].common : highest;
  }

  for (int p = lowest; p + 16 <= highest; p += 16) {
    const char *key[16];
    for (int i = 0; i < 16; i++) key[i] = keys + (size_t)(p + i) * row_bytes(dim);
    for (int g = 0; g < groups; g++) {
      if (groups > 1) fetch_ahead(keys, values, p, dim, g, groups);
      if (p >= of[g].first && p + 16 <= of[g].common)
        dots_of[groups == 1][begin[g + 1] - begin[g] - 1](rows + begin[g], key, dim, scores + (size_t)begin[g] * ld + p,
                                                          ld);
    }
  }
  for (int i = 0; groups == 1 && i < AHEAD; i += 64)
    __builtin_prefetch(values + i, 0, 2); /* the memory is idle during the softmax */
  float scale[CPU_ATTENTION_ROWS];
  for (int g = 0; g < groups; g++)
    for (int r = begin[g]; r < begin[g + 1]; r++) {
      float *score = scores + (size_t)r * ld;
      const gap skipped = gap_of(rows + r);
      int after = of[g].common & ~15;
      score_own(keys, dim, rows + r, begin_of(rows + r), skipped.from, score);
      score_own(keys, dim, rows + r, skipped.to, of[g].first, score);
      score_own(keys, dim, rows + r, after > skipped.to ? after : skipped.to, keys_of(rows + r), score);
      cap_scores(rows + r, score);
      hide(rows + r, score, -INFINITY);
      scale[r] = softmax(rows + r, score);
      hide(rows + r, score, 0); /* v_exp(-inf) is 2^-126, not 0 */
    }
  for (int done = 0; done == 0 || done < longest; done += SPAN)
    for (int g = 0; g < groups; g++) {
      int from = of[g].first + done, left = of[g].common - from;
      if (done > 0 && left <= 0) continue;
      const span s = {from, left > SPAN ? from + SPAN : of[g].common, done == 0, left <= SPAN};
      weigh_of[begin[g + 1] - begin[g] - 1](values, dim, rows + begin[g], &s, groups == 1,
                                            scores + (size_t)begin[g] * ld, ld, scale + begin[g]);
    }
}

#define CACHE_STRING_(name) #name
#define CACHE_STRING(name) CACHE_STRING_(name)
const cpu_cache_type V(SIMD_PASTE(cpu_cache, CACHE)) = {CACHE_STRING(CACHE), row_bytes, write_row, attend};
