/* Sorts places and finds them: see suffixes.h. It uses multikey quicksort (Bentley and Sedgewick, 1997) on the strings
 * of tokens that are read backwards from each place. */
#include "lookup/suffixes.h"

#include <stdlib.h>

#define FEW 12 /* up to this many places are sorted by insertion */

/* The d-th token before a place. */
static int32_t before(const suffixes *s, uint32_t place, int d) {
  return place >= (uint32_t)d ? s->token[place - (uint32_t)d] : SUFFIXES_END;
}

/* ---- sorting ----------------------------------------------------------------------------------------------------- */

/* Whether a sorts after b, if the last d tokens of both are equal. */
static bool is_behind(const suffixes *s, uint32_t a, uint32_t b, int d) {
  for (; d < SUFFIXES_MOST; d++) {
    int32_t x = before(s, a, d), y = before(s, b, d);
    if (x != y) return x > y;
  }
  return false;
}

static void insert(const suffixes *s, uint32_t *order, size_t n, int d) {
  for (size_t i = 1; i < n; i++) {
    uint32_t place = order[i];
    size_t at = i;
    for (; at > 0 && is_behind(s, order[at - 1], place, d); at--) order[at] = order[at - 1];
    order[at] = place;
  }
}

static int32_t middle(int32_t a, int32_t b, int32_t c) {
  int32_t low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

static int32_t pivot_of(const suffixes *s, const uint32_t *order, size_t n, int d) {
  int32_t third[3];
  for (size_t k = 0; k < 3; k++) {
    size_t at = k * (n / 3), apart = n / 9;
    third[k] = middle(before(s, order[at], d), before(s, order[at + apart], d), before(s, order[at + 2 * apart], d));
  }
  return middle(third[0], third[1], third[2]);
}

static void swap(uint32_t *order, size_t i, size_t j) {
  uint32_t place = order[i];
  order[i] = order[j], order[j] = place;
}

/* Sorts places whose last d tokens are equal. The loop continues with the largest of the three parts, so that recursion
 * stays shallow. */
static void sort(const suffixes *s, uint32_t *order, size_t n, int d) {
  while (n > FEW && d < SUFFIXES_MOST) {
    int32_t pivot = pivot_of(s, order, n, d);
    size_t less = 0, more = n;
    for (size_t i = 0; i < more;) {
      int32_t x = before(s, order[i], d);
      if (x < pivot)
        swap(order, less++, i++);
      else if (x > pivot)
        swap(order, i, --more);
      else
        i++;
    }
    size_t from[3] = {0, less, more}, size[3] = {less, more - less, n - more};
    int large = size[1] >= size[0] && size[1] >= size[2] ? 1 : size[0] > size[2] ? 0 : 2;
    for (int part = 0; part < 3; part++)
      if (part != large) sort(s, order + from[part], size[part], d + (part == 1));
    order += from[large], n = size[large], d += large == 1;
  }
  if (n <= FEW) insert(s, order, n, d);
}

/* Sorts places by their own tokens, which are below `ids`, and then those with equal tokens. */
static bool sort_first(const suffixes *s, int32_t ids) {
  uint32_t *end = calloc((size_t)ids + 1, sizeof *end), sum = 0; /* end of the places of token i - 1 */
  if (!end) return false;
  for (uint32_t i = 0; i < s->n; i++) end[s->token[i] + 1]++;
  for (int32_t t = 0; t <= ids; t++) {
    uint32_t count = end[t];
    end[t] = sum, sum += count;
  }
  for (uint32_t i = 0; i < s->n; i++) s->order[end[s->token[i] + 1]++] = i;
  for (int32_t t = 0; t <= ids; t++) {
    uint32_t begin = t ? end[t - 1] : 0;
    sort(s, s->order + begin, end[t] - begin, 1);
  }
  free(end);
  return true;
}

bool suffixes_open(suffixes *s, int32_t *token, size_t n) {
  size_t samples = 1 + (n - 1) / SUFFIXES_STEP;
  int32_t ids = 0;
  for (size_t i = 0; i < n; i++) ids = token[i] >= ids ? token[i] + 1 : ids;
  *s = (suffixes){.token = token,
                  .order = malloc(n * sizeof *s->order),
                  .sample = malloc(samples * SUFFIXES_KEY * sizeof *s->sample),
                  .n = (uint32_t)n};
  if (!s->order || !s->sample || !sort_first(s, ids)) {
    suffixes_close(s);
    return false;
  }
  for (size_t i = 0; i < samples; i++)
    for (int d = 0; d < SUFFIXES_KEY; d++)
      s->sample[i * SUFFIXES_KEY + (size_t)d] = before(s, s->order[i * SUFFIXES_STEP], d);
  return true;
}

void suffixes_close(suffixes *s) {
  free(s->token), free(s->order), free(s->sample);
  *s = (suffixes){0};
}

/* ---- search ------------------------------------------------------------------------------------------------------ */

/* The number of tokens that end at the place and equal the last tokens of the text, at most `most`. *less: whether the
 * place sorts before the text. */
static int common(const suffixes *s, uint32_t place, const int32_t *end, int most, bool *less) {
  for (int d = 0; d < most; d++) {
    int32_t x = before(s, place, d);
    if (x != end[-1 - d]) {
      *less = x < end[-1 - d];
      return d;
    }
  }
  *less = false;
  return most;
}

/* The first of order[low..high-1] that does not sort before the last `most` tokens; with `after`, the first that sorts
 * after them. */
static uint32_t search(const suffixes *s, const int32_t *end, int most, bool after, uint32_t low, uint32_t high) {
  while (low < high) {
    uint32_t at = low + (high - low) / 2;
    bool less;
    if ((common(s, s->order[at], end, most, &less) == most && after) || less)
      low = at + 1;
    else
      high = at;
  }
  return low;
}

/* The number of samples that sort before the last `most` tokens, by the tokens that samples have; with `after`, equal
 * samples count, too. */
static uint32_t search_samples(const suffixes *s, const int32_t *end, int most, bool after) {
  uint32_t low = 0, high = 1 + (s->n - 1) / SUFFIXES_STEP;
  if (most > SUFFIXES_KEY) most = SUFFIXES_KEY;
  while (low < high) {
    uint32_t at = low + (high - low) / 2;
    const int32_t *key = s->sample + (size_t)at * SUFFIXES_KEY;
    int d = 0;
    while (d < most && key[d] == end[-1 - d]) d++;
    if (d == most ? after : key[d] < end[-1 - d])
      low = at + 1;
    else
      high = at;
  }
  return low;
}

/* Narrows order[low..high-1] to a range that contains all places of the last `most` tokens, and the position where they
 * would be. Samples are adjacent in memory, so most of the search stays in the processor's caches. */
static void narrow(const suffixes *s, const int32_t *end, int most, uint32_t *low, uint32_t *high) {
  uint32_t less = search_samples(s, end, most, false), more = search_samples(s, end, most, true);
  *low = less ? (less - 1) * SUFFIXES_STEP + 1 : 0;
  *high = more * SUFFIXES_STEP < s->n ? more * SUFFIXES_STEP : s->n;
}

/* The index in order of the first place of the last m tokens. Those before `at` are its neighbours, and usually few. */
static uint32_t first_before(const suffixes *s, const int32_t *end, int m, uint32_t at) {
  bool less;
  for (uint32_t step = 1; at > 0; step *= 2) {
    uint32_t next = at > step ? at - step : 0;
    if (common(s, s->order[next], end, m, &less) < m) return search(s, end, m, false, next + 1, at);
    at = next;
  }
  return at;
}

/* The index in order after the last of these places, from `at` on. */
static uint32_t last_behind(const suffixes *s, const int32_t *end, int m, uint32_t at) {
  bool less;
  for (uint32_t step = 1; at < s->n; step *= 2) {
    uint32_t next = s->n - at > step ? at + step : s->n;
    if (common(s, s->order[next - 1], end, m, &less) < m) return search(s, end, m, true, at, next - 1);
    at = next;
  }
  return at;
}

suffixes_match suffixes_longest(const suffixes *s, const int32_t *text, size_t n, int most) {
  if (most > SUFFIXES_MOST) most = SUFFIXES_MOST;
  if (n < (size_t)most) most = (int)n;
  if (most < 1 || !s->n) return (suffixes_match){0};
  const int32_t *end = text + n;
  uint32_t low, high;
  narrow(s, end, most, &low, &high);
  uint32_t at = search(s, end, most, false, low, high);
  bool less;
  int here = at < s->n ? common(s, s->order[at], end, most, &less) : 0;
  int there = at > 0 ? common(s, s->order[at - 1], end, most, &less) : 0;
  int length = here > there ? here : there;
  if (!length) return (suffixes_match){0};
  return (suffixes_match){length, first_before(s, end, length, at), last_behind(s, end, length, at)};
}

suffixes_match suffixes_places(const suffixes *s, const int32_t *text, size_t n, int m) {
  const int32_t *end = text + n;
  uint32_t low, high;
  narrow(s, end, m, &low, &high);
  uint32_t from = search(s, end, m, false, low, high), to = search(s, end, m, true, from, high);
  return from < to ? (suffixes_match){m, from, to} : (suffixes_match){0};
}
