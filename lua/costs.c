/* Tables of what passes cost: lookup, and their JSON. See costs.h. */
#include "costs.h"

#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "dtrun.costs/1"
#define LEAST_STEP 1e-6 /* of a time: how much more one row costs at least */
#define LEAST_MS 1e-6   /* of a pass. Between these, whatever is counted with times stays a finite number */
#define MOST_MS 1e9
#define TIMES "a list per context, of a time per row, increasing, from 1e-6 to 1e9 ms"

#define MOST_ROWS 512 /* of all sequences together */

static const int ROWS[COSTS_ROWS] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 257};

void costs_choose_rows(dtl_costs *c) {
  for (c->n_rows = 0; c->n_rows < COSTS_ROWS && (c->n_rows < 2 || ROWS[c->n_rows] * c->batch <= MOST_ROWS); c->n_rows++)
    c->rows[c->n_rows] = ROWS[c->n_rows];
}

/* The first of two neighbours in the ascending at[n] between which x lies, or which are nearest to it. */
static int bracket(const int *at, int n, double x) {
  int i = 0;
  while (i + 2 < n && at[i + 1] <= x) i++;
  return i;
}

static double between(int x0, double y0, int x1, double y1, double x) { return y0 + (y1 - y0) * (x - x0) / (x1 - x0); }

/* Below the first number of rows a straight line may reach 0, but a row in a small pass costs no less than in a large one. */
static double in_rows(const dtl_costs *c, const double *ms, double rows) {
  if (c->n_rows == 1) return ms[0] * (1 + LEAST_STEP * (rows - c->rows[0]));
  int i = bracket(c->rows, c->n_rows, rows);
  double line = between(c->rows[i], ms[i], c->rows[i + 1], ms[i + 1], rows), share = ms[0] * rows / c->rows[0];
  return rows < c->rows[0] && share > line ? share : line;
}

/* The two measured contexts that one counts between, the same twice outside of all; *context: as it counts. */
static void contexts_about(const dtl_costs *c, int *context, int *below, int *above) {
  int last = c->n_contexts - 1;
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

double costs_first(const dtl_costs *c, int sequences, int context) {
  double later = costs_pass(c, c->draft, (double)sequences / c->batch, context);
  int k, l;
  contexts_about(c, &context, &k, &l);
  double more = c->first[k] - c->draft[k][0], then = c->first[l] - c->draft[l][0];
  return later + (k == l ? more : between(c->context[k], more, c->context[l], then, context));
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

/* ---- JSON -------------------------------------------------------------------------------------------------------------- */

static void add_times(cJSON *root, const char *name, const dtl_costs *c, const costs_of ms) {
  cJSON *lists = cJSON_AddArrayToObject(root, name);
  for (int k = 0; k < c->n_contexts; k++) cJSON_AddItemToArray(lists, cJSON_CreateDoubleArray(ms[k], c->n_rows));
}

char *costs_json(const dtl_costs *c, const char *key) {
  errno = 0; /* cJSON leaves out what it has no memory for, and does not tell */
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "schema", SCHEMA);
  if (key) cJSON_AddStringToObject(root, "key", key);
  cJSON_AddNumberToObject(root, "batch", c->batch);
  if (c->disturbed) cJSON_AddTrueToObject(root, "disturbed");
  cJSON_AddItemToObject(root, "contexts", cJSON_CreateIntArray(c->context, c->n_contexts));
  cJSON_AddItemToObject(root, "rows", cJSON_CreateIntArray(c->rows, c->n_rows));
  add_times(root, "target", c, c->target);
  if (c->has_draft) {
    add_times(root, "draft", c, c->draft);
    cJSON_AddItemToObject(root, "first", cJSON_CreateDoubleArray(c->first, c->n_contexts));
    cJSON_AddNumberToObject(root, "draft_draw", c->draft_draw);
  }
  cJSON_AddNumberToObject(root, "target_draw", c->target_draw);
  char *text = errno == ENOMEM ? NULL : cJSON_Print(root);
  cJSON_Delete(root);
  return text;
}

static const char *take_numbers(const cJSON *list, const char *wrong, int most, int *numbers, int *n) {
  *n = cJSON_GetArraySize(list);
  if (!cJSON_IsArray(list) || *n < 1 || *n > most) return wrong;
  int i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsNumber(item) || item->valuedouble != item->valueint || item->valueint < 1) return wrong;
    if (i > 0 && item->valueint <= numbers[i - 1]) return wrong;
    numbers[i++] = item->valueint;
  }
  return NULL;
}

static const char *take_times(const cJSON *lists, const char *wrong, const dtl_costs *c, costs_of ms) {
  if (!cJSON_IsArray(lists) || cJSON_GetArraySize(lists) != c->n_contexts) return wrong;
  int k = 0;
  const cJSON *list, *item;
  cJSON_ArrayForEach(list, lists) {
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != c->n_rows) return wrong;
    double last = 0;
    int i = 0;
    cJSON_ArrayForEach(item, list) {
      double time = cJSON_IsNumber(item) ? item->valuedouble : 0;
      if (!(time >= LEAST_MS && time <= MOST_MS && time > last)) return wrong;
      last = ms[k][i++] = time;
    }
    k++;
  }
  return NULL;
}

/* Without a list: as later passes. */
static const char *take_first(const cJSON *list, dtl_costs *c) {
  static const char wrong[] = "first needs a time per context, none below the draft's of one row, to 1e9 ms";
  int k = 0;
  const cJSON *item;
  for (int i = 0; i < c->n_contexts; i++) c->first[i] = c->draft[i][0];
  if (!list) return NULL;
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != c->n_contexts) return wrong;
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= c->draft[k][0] && item->valuedouble <= MOST_MS)) return wrong;
    c->first[k++] = item->valuedouble;
  }
  return NULL;
}

static const char *take_draw(const cJSON *item, const char *wrong, double *ms) {
  *ms = item ? item->valuedouble : 0;
  return item && !(cJSON_IsNumber(item) && *ms >= 0 && *ms <= MOST_MS) ? wrong : NULL;
}

static const char *take_table(const cJSON *root, const char *key, dtl_costs *c) {
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
  const cJSON *measured_on = cJSON_GetObjectItemCaseSensitive(root, "key");
  const cJSON *draft = cJSON_GetObjectItemCaseSensitive(root, "draft");
  if (schema && !(cJSON_IsString(schema) && !strcmp(schema->valuestring, SCHEMA))) return "its schema is not " SCHEMA;
  if (key && !(cJSON_IsString(measured_on) && !strcmp(measured_on->valuestring, key)))
    return "it was measured by an older version, or on another machine or model";
  const cJSON *batch = cJSON_GetObjectItemCaseSensitive(root, "batch");
  c->batch = batch ? batch->valueint : 1;
  if (batch && (!cJSON_IsNumber(batch) || c->batch < 1 || c->batch > DTL_PLACES || c->batch != batch->valuedouble))
    return "batch is no whole number from 1 to 256";
  const char *wrong =
      take_numbers(cJSON_GetObjectItemCaseSensitive(root, "contexts"),
                   "contexts is no ascending list of at most 8 lengths", DTL_COST_CONTEXTS, c->context, &c->n_contexts);
  if (!wrong)
    wrong = take_numbers(cJSON_GetObjectItemCaseSensitive(root, "rows"),
                         "rows is no ascending list of at most 96 counts", DTL_COST_ROWS, c->rows, &c->n_rows);
  if (!wrong && c->rows[0] != 1) wrong = "rows does not begin with 1";
  if (!wrong) wrong = take_times(cJSON_GetObjectItemCaseSensitive(root, "target"), "target needs " TIMES, c, c->target);
  c->has_draft = draft != NULL;
  c->disturbed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "disturbed"));
  if (!wrong && draft) wrong = take_times(draft, "draft needs " TIMES, c, c->draft);
  if (!wrong && draft) wrong = take_first(cJSON_GetObjectItemCaseSensitive(root, "first"), c);
  if (!wrong)
    wrong = take_draw(cJSON_GetObjectItemCaseSensitive(root, "target_draw"), "target_draw is no time from 0 to 1e9 ms",
                      &c->target_draw);
  if (!wrong)
    wrong = take_draw(cJSON_GetObjectItemCaseSensitive(root, "draft_draw"), "draft_draw is no time from 0 to 1e9 ms",
                      &c->draft_draw);
  return wrong;
}

const char *costs_parse(const char *json, const char *key, dtl_costs *costs) {
  cJSON *root = cJSON_Parse(json);
  const char *wrong = cJSON_IsObject(root) ? take_table(root, key, costs) : "it is no JSON object";
  cJSON_Delete(root);
  return wrong;
}
