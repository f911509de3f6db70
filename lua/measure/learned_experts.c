/* Learns how many distinct experts the target's passes read on average, by row count, and the time of one more expert.
 * The learned times of passes are those with the average number. The time of one more expert is a share of the time
 * that further rows take; at first all of it, since the arithmetic of a row is little compared with the weights that it
 * reads. Passes that read more or fewer experts than the average correct the share, for all row counts together, by
 * least squares: if such a pass would be longer by the fraction x of its usual time with a share of 1, and was longer
 * by the fraction y, then share = sum(x y) / sum(x x) = slower / more. */
#include "measure/learned.h"

#include <cJSON.h>
#include <math.h>

#define DOUBT 0.04 /* first value of `more`: the first share counts as 16 passes with x = 5 % */
#define KNOWN 1.0  /* maximum of `more`: older passes fade */
#define MOST_SHARE 1.5
#define PUT_OFF 0.3  /* y is bounded to this, since other programs make some passes take many times as long */
#define MOST_FILED 8 /* a mean in a file counts as at most this many passes */

static double share(const lessons *l) { return fmin(fmax((DOUBT + l->slower) / (DOUBT + l->more), 0), MOST_SHARE); }

/* The time in ms of one more expert, if the rows after the first cost nothing else. */
static double whole(const dtl_costs *c, int i) {
  double more = c->experts[i] - c->experts[0];
  return more > 0 ? (c->target[0][i] - c->target[0][0]) / more : 0;
}

void learned_count_pass(lessons *l, int i, double experts, double slower, int times) {
  learned_count *count = &l->count[i];
  double more = experts - count->mean;
  if (!(experts > 0)) return;
  double expected = count->n ? whole(&l->shown, i) * more / l->shown.target[0][i] : 0;
  l->slower += expected * fmin(fmax(slower, -PUT_OFF), PUT_OFF), l->more += expected * expected;
  if (l->more > KNOWN) l->slower *= KNOWN / l->more, l->more = KNOWN;
  count->n = count->n + times < LEARNED_KEPT ? count->n + times : LEARNED_KEPT;
  count->mean += fmin((double)times / count->n, 1) * more;
}

/* The index of the next row count from i, in the direction step, whose passes were counted; -1 or n_rows: there is
 * none. */
static int next_counted(const lessons *l, int i, int step) {
  do i += step;
  while (i >= 0 && i < l->estimated.n_rows && !l->count[i].n);
  return i;
}

/* The number of experts at row count i. Between counted row counts it is a power of the number of rows, and beyond them
 * it continues that of the last two. If only one is counted, no two rows are assumed to share an expert. */
static double counted(const lessons *l, int i) {
  if (l->count[i].n) return l->count[i].mean;
  int n = l->estimated.n_rows, a = next_counted(l, i, -1), b = next_counted(l, i, 1);
  if (a < 0) a = b, b = next_counted(l, b, 1);
  if (b == n) b = a, a = next_counted(l, b, -1);
  double power = a < 0 ? 1 : log(l->count[b].mean / l->count[a].mean) / (l->log_rows[b] - l->log_rows[a]);
  return l->count[b].mean * exp(fmin(fmax(power, 0), 1) * (l->log_rows[i] - l->log_rows[b]));
}

void learned_count_costs(const lessons *l, dtl_costs *out) {
  if (next_counted(l, -1, 1) == l->estimated.n_rows) return;
  for (int i = 0; i < out->n_rows; i++) out->experts[i] = fmax(counted(l, i), i ? out->experts[i - 1] : 1);
  for (int i = 1; i < out->n_rows; i++)
    out->expert[i] = fmin(share(l) * whole(out, i), out->target[0][i] / out->experts[i]);
  out->expert[0] = out->n_rows > 1 ? out->expert[1] : 0;
}

/* Writes [rows, mean, passes] for each row count, and the two sums. */
void learned_count_json(const lessons *l, cJSON *root) {
  if (next_counted(l, -1, 1) == l->estimated.n_rows) return;
  cJSON *list = cJSON_AddArrayToObject(root, "experts");
  for (int i = 0; i < l->estimated.n_rows; i++) {
    const double entry[] = {l->estimated.rows[i], l->count[i].mean, l->count[i].n};
    if (l->count[i].n) cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(entry, 3));
  }
  cJSON_AddItemToObject(root, "expert", cJSON_CreateDoubleArray((const double[]){l->slower, l->more}, 2));
}

static bool take_numbers(const cJSON *list, double *x, int n) {
  const cJSON *item;
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != n) return false;
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsNumber(item)) return false;
    *x++ = item->valuedouble;
  }
  return true;
}

static bool take_count(lessons *l, const cJSON *entry) {
  double x[3] = {0};
  if (!take_numbers(entry, x, 3)) return false;
  if (!(x[1] >= 1 && x[1] <= COSTS_EXPERTS) || !(x[2] >= 1 && x[2] <= LEARNED_KEPT)) return false;
  for (int i = 0; i < l->estimated.n_rows; i++)
    if (l->estimated.rows[i] == x[0]) l->count[i] = (learned_count){x[1], x[2] < MOST_FILED ? (int)x[2] : MOST_FILED};
  return true;
}

bool learned_count_parse(lessons *l, const cJSON *root) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "experts"), *entry;
  const cJSON *sums = cJSON_GetObjectItemCaseSensitive(root, "expert");
  double x[2] = {0};
  if (!list && !sums) return true; /* the target has no experts, or the file is from before they were counted */
  if (!cJSON_IsArray(list) || !take_numbers(sums, x, 2)) return false;
  if (!(x[1] >= 0 && x[1] <= KNOWN) || !(fabs(x[0]) <= 1e9)) return false;
  cJSON_ArrayForEach(entry, list) if (!take_count(l, entry)) return false;
  l->slower = x[0], l->more = x[1];
  return true;
}
