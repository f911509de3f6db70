/* Tables of the costs of passes, looked up, and written and read as JSON: see costs.h. */
#include "measure/costs.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "dtrun.costs/2"
#define LEAST_STEP 1e-6 /* minimum cost of one more row, as a part of the time */
#define LEAST_MS 1e-6   /* minimum time of a pass, ms; between the bounds everything computed from times is finite */
#define MOST_MS 1e9

#define TIMES "one list for each context, of increasing times for each row count, from 1e-6 to 1e9 ms"
#define WRONG_BATCH "batch is not an integer from 1 to 256"
#define WRONG_CONTEXTS "contexts is not an ascending list of at most 8 lengths"
#define WRONG_ROWS "rows is not an ascending list of at most 96 row counts"
#define WRONG_TARGET "target needs " TIMES
#define WRONG_DRAFT "draft needs " TIMES
#define WRONG_EXPERTS "experts needs one number for each row count, not decreasing, from 1 to 1e9"
#define WRONG_EXPERT "expert needs one time for each row count, from 0 to 1e9 ms"
#define WRONG_CACHE_MISS "cache_miss needs three times, not decreasing, from 0 to 1e9 ms"
#define WRONG_FIRST "first needs one time for each context, not below the draft's time for one row, at most 1e9 ms"

#define MOST_BLOCK 16

#define TELLS 0.1     /* a difference of experts must be above this part of their usual number to say what one costs */
#define MOST_ROWS 512 /* rows of all sequences together */

static const int ROWS[COSTS_ROWS] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 257};

void costs_choose_rows(dtl_costs *c) {
  for (c->n_rows = 0; c->n_rows < COSTS_ROWS && (c->n_rows < 2 || ROWS[c->n_rows] * c->batch <= MOST_ROWS); c->n_rows++)
    c->rows[c->n_rows] = ROWS[c->n_rows];
}

/* The index i such that x lies between the ascending at[i] and at[i + 1]; outside of all: that of the nearest two. */
static int bracket(const int *at, int n, double x) {
  int i = 0;
  while (i + 2 < n && at[i + 1] <= x) i++;
  return i;
}

static double between(int x0, double y0, int x1, double y1, double x) { return y0 + (y1 - y0) * (x - x0) / (x1 - x0); }

/* Extends a straight line below the first row count. It might reach 0, but a row of a small pass costs at least as much
 * as one of a large pass. */
static double in_rows(const dtl_costs *c, const double *ms, double rows) {
  if (c->n_rows == 1) return ms[0] * (1 + LEAST_STEP * (rows - c->rows[0]));
  int i = bracket(c->rows, c->n_rows, rows);
  double line = between(c->rows[i], ms[i], c->rows[i + 1], ms[i + 1], rows), share = ms[0] * rows / c->rows[0];
  return rows < c->rows[0] && share > line ? share : line;
}

/* Finds the two measured contexts around *context, or twice the same one outside of all, and rounds *context up as
 * costs do. */
static void contexts_about(const dtl_costs *c, int *context, int *below, int *above) {
  int last = c->n_contexts - 1;
  if (*context > c->context[last]) *context = c->context[last];
  *context = (*context + COSTS_STEP - 1) / COSTS_STEP * COSTS_STEP;
  *below = *above = *context <= c->context[0] ? 0 : last;
  if (*context <= c->context[0] || *context >= c->context[last]) return;
  *below = bracket(c->context, c->n_contexts, *context);
  *above = *below + 1;
}

double costs_pass(const dtl_costs *c, const costs_of ms, double rows, int context) {
  int k, l;
  contexts_about(c, &context, &k, &l);
  double low = in_rows(c, ms[k], rows);
  return k == l ? low : between(c->context[k], low, c->context[l], in_rows(c, ms[l], rows), context);
}

/* A value by rows: interpolated linearly between the measured row counts, and that of the nearest one beyond them. */
static double by_rows(const dtl_costs *c, const double *value, double rows) {
  int last = c->n_rows - 1, i = bracket(c->rows, c->n_rows, rows);
  if (rows <= c->rows[0]) return value[0];
  return rows >= c->rows[last] ? value[last] : between(c->rows[i], value[i], c->rows[i + 1], value[i + 1], rows);
}

double costs_target(const dtl_costs *c, double rows, int context, double experts) {
  double ms = costs_pass(c, c->target, rows, context);
  if (!(experts > 0) || !(c->experts[0] > 0)) return ms;
  return fmax(LEAST_MS, ms + by_rows(c, c->expert, rows) * (experts - by_rows(c, c->experts, rows)));
}

double costs_first(const dtl_costs *c, int sequences, int context) {
  if (c->block) return costs_pass(c, c->draft, sequences * (c->block + 1.0) / c->batch, context);
  double later = costs_pass(c, c->draft, (double)sequences / c->batch, context);
  int k, l;
  contexts_about(c, &context, &k, &l);
  double more = c->first[k] - c->draft[k][0], then = c->first[l] - c->draft[l][0];
  return later + (k == l ? more : between(c->context[k], more, c->context[l], then, context));
}

double costs_read_text(const dtl_costs *c, int n) {
  return c->read > 0 ? n * c->read : costs_pass(c, c->draft, (double)n / c->batch, n);
}

const double COSTS_CACHE_MISS[DTL_COST_MISSES] = {0.00075, 0.0035, 0.018};

double costs_cache_miss(const dtl_costs *c, int passes) {
  return c->cache_miss[passes < DTL_COST_MISSES ? passes : DTL_COST_MISSES - 1];
}

void costs_straighten(const dtl_costs *c, costs_of ms) {
  for (int k = c->n_contexts - 1; k >= 0; k--) {
    for (int i = c->n_rows - 1; i >= 0; i--) {
      if (i + 1 < c->n_rows && ms[k][i] > ms[k][i + 1]) ms[k][i] = ms[k][i + 1];
      if (k + 1 < c->n_contexts && ms[k][i] > ms[k + 1][i]) ms[k][i] = ms[k + 1][i];
    }
  }
  for (int k = 0; k < c->n_contexts; k++)
    for (int i = 1; i < c->n_rows; i++)
      if (ms[k][i] < ms[k][i - 1] * (1 + LEAST_STEP)) ms[k][i] = ms[k][i - 1] * (1 + LEAST_STEP);
}

/* The cost of an expert at row count i, from the passes of that row count and, to reduce noise, of its neighbours.
 * Returns false if none of them differ enough. */
static bool expert_cost_at(const dtl_costs *c, const int *more, const double *longer, int i, double *each) {
  double experts = 0, ms = 0;
  for (int j = i - 1; j <= i + 1; j++)
    if (j > 0 && j < c->n_rows && more[j] > TELLS * c->experts[j]) experts += more[j], ms += longer[j];
  if (experts > 0) *each = ms / experts;
  return experts > 0;
}

void costs_estimate_experts(dtl_costs *c, const int *usual, const int *more, const double *longer) {
  int last = c->n_rows - 1;
  c->experts[0] = usual[0];
  for (int i = 1; i <= last; i++) c->experts[i] = fmax(c->experts[i - 1], usual[i]);
  double added = c->experts[last] - c->experts[0],
         each = added > 0 ? (c->target[0][last] - c->target[0][0]) / added : 0;
  for (int i = last; i > 0; i--) expert_cost_at(c, more, longer, i, &each); /* ends with the first known cost */
  for (int i = 0; i <= last; i++) {
    expert_cost_at(c, more, longer, i, &each);
    c->expert[i] = fmin(fmax(each, 0), c->target[0][i] / c->experts[i]);
  }
}

/* ---- checks of a table ------------------------------------------------------------------------------------------- */

static bool ascends(const int *at, int n, int most) {
  if (n < 1 || n > most || at[0] < 1) return false;
  for (int i = 1; i < n; i++)
    if (at[i] <= at[i - 1]) return false;
  return true;
}

static bool is_time(double ms, double least) { return ms >= least && ms <= MOST_MS; } /* false for NaN */

static bool are_times(const dtl_costs *c, const costs_of ms) {
  for (int k = 0; k < c->n_contexts; k++)
    for (int i = 0; i < c->n_rows; i++)
      if (!is_time(ms[k][i], LEAST_MS) || (i && ms[k][i] <= ms[k][i - 1])) return false;
  return true;
}

/* All zeros mean that the target has no experts. */
static const char *wrong_experts(const dtl_costs *c) {
  for (int i = 0; i < c->n_rows; i++) {
    bool none = c->experts[0] == 0 && c->experts[i] == 0;
    if (!none && !(c->experts[i] >= (i ? c->experts[i - 1] : 1) && c->experts[i] <= COSTS_EXPERTS))
      return WRONG_EXPERTS;
    if (!is_time(c->expert[i], 0)) return WRONG_EXPERT;
  }
  return NULL;
}

static bool are_cache_misses(const double *cache_miss) {
  for (int i = 0; i < DTL_COST_MISSES; i++)
    if (!is_time(cache_miss[i], i ? cache_miss[i - 1] : 0)) return false;
  return true;
}

static const char *wrong_draft(const dtl_costs *c) {
  if (!are_times(c, c->draft)) return WRONG_DRAFT;
  for (int k = 0; k < c->n_contexts; k++)
    if (!is_time(c->first[k], c->draft[k][0])) return WRONG_FIRST;
  if (!is_time(c->read, 0)) return "read is not a time from 0 to 1e9 ms";
  return c->block < 0 || c->block > MOST_BLOCK ? "block is not an integer from 0 to 16" : NULL;
}

const char *costs_wrong(const dtl_costs *c) {
  if (c->batch < 1 || c->batch > DTL_SLOTS) return WRONG_BATCH;
  if (!ascends(c->context, c->n_contexts, DTL_COST_CONTEXTS)) return WRONG_CONTEXTS;
  if (!ascends(c->rows, c->n_rows, DTL_COST_ROWS)) return WRONG_ROWS;
  if (c->rows[0] != 1) return "rows must begin with 1";
  if (!are_times(c, c->target)) return WRONG_TARGET;
  const char *wrong = c->drafts ? wrong_draft(c) : NULL;
  if (wrong) return wrong;
  if (!is_time(c->target_sample, 0)) return "target_sample is not a time from 0 to 1e9 ms";
  if (!is_time(c->draft_sample, 0)) return "draft_sample is not a time from 0 to 1e9 ms";
  if (!are_cache_misses(c->cache_miss)) return WRONG_CACHE_MISS;
  return wrong_experts(c);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void add_times(cJSON *root, const char *name, const dtl_costs *c, const costs_of ms) {
  cJSON *lists = cJSON_AddArrayToObject(root, name);
  for (int k = 0; k < c->n_contexts; k++) cJSON_AddItemToArray(lists, cJSON_CreateDoubleArray(ms[k], c->n_rows));
}

char *costs_json(const dtl_costs *c, const char *key) {
  errno = 0; /* if memory runs out, cJSON leaves out members without reporting it */
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "schema", SCHEMA);
  if (key) cJSON_AddStringToObject(root, "key", key);
  cJSON_AddNumberToObject(root, "batch", c->batch);
  if (c->disturbed) cJSON_AddTrueToObject(root, "disturbed");
  cJSON_AddItemToObject(root, "contexts", cJSON_CreateIntArray(c->context, c->n_contexts));
  cJSON_AddItemToObject(root, "rows", cJSON_CreateIntArray(c->rows, c->n_rows));
  add_times(root, "target", c, c->target);
  if (c->drafts) {
    add_times(root, "draft", c, c->draft);
    cJSON_AddItemToObject(root, "first", cJSON_CreateDoubleArray(c->first, c->n_contexts));
    if (c->read > 0) cJSON_AddNumberToObject(root, "read", c->read);
    if (c->block) cJSON_AddNumberToObject(root, "block", c->block);
    cJSON_AddNumberToObject(root, "draft_sample", c->draft_sample);
  }
  cJSON_AddNumberToObject(root, "target_sample", c->target_sample);
  cJSON_AddItemToObject(root, "cache_miss", cJSON_CreateDoubleArray(c->cache_miss, DTL_COST_MISSES));
  if (c->experts[0] > 0) {
    cJSON_AddItemToObject(root, "experts", cJSON_CreateDoubleArray(c->experts, c->n_rows));
    cJSON_AddItemToObject(root, "expert", cJSON_CreateDoubleArray(c->expert, c->n_rows));
  }
  char *text = errno == ENOMEM ? NULL : cJSON_Print(root);
  cJSON_Delete(root);
  return text;
}

static bool take_numbers(const cJSON *list, int most, int *numbers, int *n) {
  *n = cJSON_GetArraySize(list);
  if (!cJSON_IsArray(list) || *n > most) return false;
  int i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsNumber(item) || item->valuedouble != item->valueint) return false;
    numbers[i++] = item->valueint;
  }
  return ascends(numbers, *n, most);
}

static bool take_list(const cJSON *list, int n, double *ms) {
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != n) return false;
  const cJSON *item;
  cJSON_ArrayForEach(item, list) *ms++ = cJSON_IsNumber(item) ? item->valuedouble : NAN;
  return true;
}

static bool take_times(const cJSON *lists, const dtl_costs *c, costs_of ms) {
  if (!cJSON_IsArray(lists) || cJSON_GetArraySize(lists) != c->n_contexts) return false;
  int k = 0;
  const cJSON *list;
  cJSON_ArrayForEach(list, lists) if (!take_list(list, c->n_rows, ms[k++])) return false;
  return true;
}

static double number_or(const cJSON *item, double none) {
  return !item ? none : cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Reads the lists of the draft, if the table has one. If there is none for first passes, the times of later passes are
 * used. */
static const char *take_draft(const cJSON *root, dtl_costs *c) {
  const cJSON *draft = cJSON_GetObjectItemCaseSensitive(root, "draft");
  const cJSON *first = cJSON_GetObjectItemCaseSensitive(root, "first");
  c->drafts = draft != NULL;
  if (!draft) return NULL;
  if (!take_times(draft, c, c->draft)) return WRONG_DRAFT;
  for (int i = 0; i < c->n_contexts; i++) c->first[i] = c->draft[i][0];
  if (first && !take_list(first, c->n_contexts, c->first)) return WRONG_FIRST;
  c->read = number_or(cJSON_GetObjectItemCaseSensitive(root, "read"), 0);
  double block = number_or(cJSON_GetObjectItemCaseSensitive(root, "block"), 0);
  c->block = block >= 0 && block <= MOST_BLOCK && block == floor(block) ? (int)block : -1;
  return NULL;
}

/* Reads the numbers of experts; without lists the target has none. */
static const char *take_experts(const cJSON *root, dtl_costs *c) {
  const cJSON *experts = cJSON_GetObjectItemCaseSensitive(root, "experts");
  const cJSON *expert = cJSON_GetObjectItemCaseSensitive(root, "expert");
  memset(c->experts, 0, sizeof c->experts);
  memset(c->expert, 0, sizeof c->expert);
  if (!experts && !expert) return NULL;
  if (!take_list(experts, c->n_rows, c->experts) || !(c->experts[0] > 0)) return WRONG_EXPERTS;
  return take_list(expert, c->n_rows, c->expert) ? NULL : WRONG_EXPERT;
}

/* Reads the cost of cache misses; without a list it is COSTS_CACHE_MISS. */
static const char *take_cache_misses(const cJSON *root, dtl_costs *c) {
  const cJSON *cache_miss = cJSON_GetObjectItemCaseSensitive(root, "cache_miss");
  memcpy(c->cache_miss, COSTS_CACHE_MISS, sizeof c->cache_miss);
  return !cache_miss || take_list(cache_miss, DTL_COST_MISSES, c->cache_miss) ? NULL : WRONG_CACHE_MISS;
}

static const char *take_table(const cJSON *root, const char *key, dtl_costs *c) {
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
  const cJSON *measured_on = cJSON_GetObjectItemCaseSensitive(root, "key");
  if (schema && !(cJSON_IsString(schema) && !strcmp(schema->valuestring, SCHEMA))) return "its schema is not " SCHEMA;
  bool of_now = cJSON_HasObjectItem(root, "cache_miss"); /* every table that this version measures has it */
  if (key && !(of_now && cJSON_IsString(measured_on) && !strcmp(measured_on->valuestring, key)))
    return "it was measured by an older version, or on another machine or model";
  double batch = number_or(cJSON_GetObjectItemCaseSensitive(root, "batch"), 1);
  c->batch = batch >= 1 && batch <= DTL_SLOTS && batch == floor(batch) ? (int)batch : 0;
  c->disturbed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "disturbed"));
  c->target_sample = number_or(cJSON_GetObjectItemCaseSensitive(root, "target_sample"), 0);
  c->draft_sample = number_or(cJSON_GetObjectItemCaseSensitive(root, "draft_sample"), 0);
  if (!c->batch) return WRONG_BATCH;
  if (!take_numbers(cJSON_GetObjectItemCaseSensitive(root, "contexts"), DTL_COST_CONTEXTS, c->context, &c->n_contexts))
    return WRONG_CONTEXTS;
  if (!take_numbers(cJSON_GetObjectItemCaseSensitive(root, "rows"), DTL_COST_ROWS, c->rows, &c->n_rows))
    return WRONG_ROWS;
  if (!take_times(cJSON_GetObjectItemCaseSensitive(root, "target"), c, c->target)) return WRONG_TARGET;
  const char *wrong = take_draft(root, c);
  if (!wrong) wrong = take_experts(root, c);
  if (!wrong) wrong = take_cache_misses(root, c);
  return wrong ? wrong : costs_wrong(c);
}

const char COSTS_STARVED[] = "out of memory";

const char *costs_parse_object(const char *json, cJSON **object) {
  errno = 0;
  *object = cJSON_Parse(json);
  if (!*object && errno == ENOMEM) return COSTS_STARVED; /* cJSON itself does not report this */
  return cJSON_IsObject(*object) ? NULL : "it is not a JSON object";
}

const char *costs_parse(const char *json, const char *key, dtl_costs *costs) {
  cJSON *root;
  const char *wrong = costs_parse_object(json, &root);
  if (!wrong) wrong = take_table(root, key, costs);
  cJSON_Delete(root);
  return wrong;
}
