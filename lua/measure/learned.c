/* Learns the costs of passes: see learned.h. */
#include "measure/learned.h"

#include "measure/shape.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "dtrun.learned/2"
#define LEAST_MS 1e-6 /* smallest accepted time */
#define MOST_MS 1e8   /* largest accepted time; below the limit of tables, since costs_straighten adds a little */
#define FIRST 1.25    /* first / later draft pass (estimate): the draft's weights are not in a near cache */
#define ATTENTION 2.0 /* attention's time is that of reading keys and values times this (estimate) */
#define OVERHEAD 0.01 /* ms of a pass in addition to the time of its bytes (estimate) */
#define SURE 4        /* number of times from which on the costs of first passes are trusted; fewer count in part */
#define MOVED 0.03    /* relative change of a cost that makes a new revision */
#define EAGER 64      /* so long costs are updated after each pass, later after every eighth of all passes, */
#define SELDOM 128    /* but at the latest after this many; an update takes as long as a small pass */
#define TRUSTED 8     /* a time in a file counts as at most this many */

static const int CONTEXTS[] = {COSTS_STEP,      2 * COSTS_STEP,  4 * COSTS_STEP,   8 * COSTS_STEP,
                               16 * COSTS_STEP, 32 * COSTS_STEP, 128 * COSTS_STEP, 1024 * COSTS_STEP};
enum { N_CONTEXTS = sizeof CONTEXTS / sizeof *CONTEXTS };
_Static_assert(N_CONTEXTS <= DTL_COST_CONTEXTS, "tables have room");

static double clamp(double x, double low, double high) { return x > low ? x < high ? x : high : low; }

/* ---- the estimate ------------------------------------------------------------------------------------------------ */

/* The time of a pass over `rows` rows, as a multiple of that of a pass over one row. */
static double rows_take(const learned_guess *g, double rows) {
  double few = rows < LEARNED_FEW ? rows : LEARNED_FEW;
  return 1 + g->row * (few - 1) + g->many * (rows - few);
}

static void estimate(dtl_costs *c, costs_of ms, const learned_guess *g, double bytes, double token) {
  for (int k = 0; k < c->n_contexts; k++)
    for (int i = 0; i < c->n_rows; i++) {
      double weights = bytes / g->speed * rows_take(g, c->rows[i] * c->batch);
      double seen = c->batch * ATTENTION * token * c->context[k] / g->speed * rows_take(g, c->rows[i]);
      ms[k][i] = clamp(OVERHEAD + weights + seen, LEAST_MS, MOST_MS);
    }
  costs_straighten(c, ms);
}

void learned_begin(lessons *l, const learned_guess *g) {
  memset(l, 0, sizeof *l);
  dtl_costs *c = &l->estimated;
  c->batch = g->batch;
  c->drafts = g->drafts;
  costs_choose_rows(c);
  for (int i = 0; i < c->n_rows; i++) l->log_rows[i] = log(c->rows[i]);
  do c->context[c->n_contexts] = CONTEXTS[c->n_contexts], c->n_contexts++;
  while (c->n_contexts < N_CONTEXTS && CONTEXTS[c->n_contexts - 1] < g->context);
  estimate(c, c->target, g, g->target_bytes, g->target_token);
  if (c->drafts) {
    estimate(c, c->draft, g, g->draft_bytes, g->draft_token);
    c->block = g->block;
    for (int k = 0; k < c->n_contexts; k++) c->first[k] = clamp(FIRST * c->draft[k][0], LEAST_MS, MOST_MS);
  }
  memcpy(c->cache_miss, COSTS_CACHE_MISS, sizeof c->cache_miss);
  l->shown = *c;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* The index in the ascending at[n] whose value is nearest to x, as a ratio. */
static int nearest(const int *at, int n, double x) {
  int i = 0;
  while (i + 1 < n && x * x > (double)at[i] * at[i + 1]) i++;
  return i;
}

/* Adds the time of a pass `times` times, and returns its place; NULL: the time is invalid. */
static learned_place *seed(lessons *l, learned_kind kind, double rows, int context, double experts, double ms,
                           int times) {
  const dtl_costs *c = &l->estimated;
  bool sound = ms >= LEAST_MS && ms <= MOST_MS && rows > 0 && rows <= 1e6 && context >= 0 && context <= 1 << 30;
  if (!sound || (kind != LEARNED_TARGET && !c->drafts)) return NULL;
  int k = nearest(c->context, c->n_contexts, context),
      i = kind == LEARNED_FIRST ? 0 : nearest(c->rows, c->n_rows, rows);
  learned_place *p = &l->place[kind][k][i];
  double ratio = log(ms / learned_estimate(c, kind, rows, context));
  if (experts > 0) learned_count_pass(l, i, experts, p->n ? ratio - place_counted(p) : 0, times);
  for (; times > 0; times--) place_add(p, ratio);
  l->at[kind] = k;
  l->passes++, l->waiting++;
  return p;
}

static void confirm(learned_place *p, int times) {
  if (p) p->fresh = p->fresh + times < LEARNED_KEPT ? p->fresh + times : LEARNED_KEPT;
}

void learned_pass(lessons *l, learned_kind kind, double rows, int context, int experts, double ms) {
  if (kind == LEARNED_FIRST && l->estimated.block) kind = LEARNED_DRAFT;
  learned_place *p = seed(l, kind, rows, context, experts, ms, 1);
  if (!p) return;
  confirm(p, 1);
  int i = (int)(p - l->place[kind][l->at[kind]]);
  if (kind == LEARNED_TARGET) l->targets++;
  /* a pass over several rows that reads few experts shows nothing about passes that read many */
  double ratio = experts && i ? INFINITY : log(ms / learned_estimate(&l->estimated, kind, rows, context));
  learned_doubt(l, kind, i, p, ratio);
}

void learned_table(lessons *l, const dtl_costs *t, bool sampled, bool coupled) {
  double target = sampled ? t->target_sample * t->batch : 0, draft = coupled ? t->draft_sample * t->batch : 0;
  if (t->batch != l->estimated.batch || t->drafts != l->estimated.drafts) return;
  for (int k = 0; k < t->n_contexts; k++) {
    for (int i = 0; i < t->n_rows; i++) {
      double ms = t->target[k][i] + target * t->rows[i];
      confirm(seed(l, LEARNED_TARGET, t->rows[i], t->context[k], t->experts[i], ms, TRUSTED), TRUSTED);
      ms = t->draft[k][i] + draft * t->rows[i];
      confirm(seed(l, LEARNED_DRAFT, t->rows[i], t->context[k], 0, ms, TRUSTED), TRUSTED);
    }
    confirm(seed(l, LEARNED_FIRST, 1, t->context[k], 0, t->first[k] + draft, TRUSTED), TRUSTED);
  }
  for (int i = 0; i < DTL_COST_MISSES; i++)
    for (int times = 0; times < TRUSTED; times++) learned_cache_miss(l, i, t->cache_miss[i]);
  for (int times = 0; times < TRUSTED; times++) learned_read(l, COSTS_STEP, COSTS_STEP * t->read);
}

/* ---- from times to costs ----------------------------------------------------------------------------------------- */

/* Makes costs not decrease with the context. If two contexts contradict each other, the one nearer to the last pass is
 * right, since its times are newer. */
static void order_contexts(const dtl_costs *c, costs_of ms, int at) {
  for (int i = 0; i < c->n_rows; i++) {
    for (int k = at + 1; k < c->n_contexts; k++) ms[k][i] = fmax(ms[k][i], ms[k - 1][i]);
    for (int k = at - 1; k >= 0; k--) ms[k][i] = fmin(ms[k][i], ms[k + 1][i]);
  }
}

static void correct(lessons *l, learned_kind kind, const costs_of estimated, costs_of ms) {
  const dtl_costs *c = &l->estimated;
  shape_costs(l, kind, estimated, ms);
  for (int k = 0; k < c->n_contexts; k++)
    for (int i = 0; i < c->n_rows; i++) ms[k][i] = clamp(ms[k][i], LEAST_MS, MOST_MS);
  order_contexts(c, ms, l->at[kind]);
  costs_straighten(c, ms);
}

static double belief(int n) { return n >= SURE ? 1 : (n + 1) / (SURE + 1.0); }

/* Corrects the cost of first passes that were rarely timed: it is that of a later pass plus the estimated difference.
 */
static void correct_first(lessons *l, dtl_costs *out) {
  const dtl_costs *c = &l->estimated;
  learned_place(*of)[COSTS_ROWS] = l->place[LEARNED_FIRST];
  int best = -1;
  for (int k = 0; k < c->n_contexts; k++)
    if (of[k][0].n && (best < 0 || of[k][0].n > of[best][0].n)) best = k;
  for (int k = 0; k < c->n_contexts; k++) {
    learned_place *p = &of[k][0];
    double one = out->draft[k][0], later = log(one / c->draft[k][0]), ratio = later;
    int from = p->n || best < 0 ? k : best;
    p = &of[from][0];
    if (p->n) ratio += belief(p->n) * (learned_counted(l, LEARNED_FIRST, from, 0) - later);
    out->first[k] = fmax(one, clamp(c->first[k] * exp(ratio), LEAST_MS, MOST_MS));
  }
}

static bool moved(double a, double b) { return fabs(a - b) > MOVED * b; }

static bool have_moved(const dtl_costs *c, const costs_of a, const costs_of b) {
  for (int k = 0; k < c->n_contexts; k++)
    for (int i = 0; i < c->n_rows; i++)
      if (moved(a[k][i], b[k][i])) return true;
  return false;
}

static bool has_moved(const dtl_costs *a, const dtl_costs *b) {
  for (int i = 0; i < a->n_rows; i++)
    if (moved(a->experts[i], b->experts[i]) || moved(a->expert[i], b->expert[i])) return true;
  if (learned_cache_miss_moved(a->cache_miss, b->cache_miss) || learned_read_moved(a->read, b->read)) return true;
  for (int k = 0; k < a->n_contexts; k++)
    if (moved(a->first[k], b->first[k])) return true;
  return have_moved(a, a->draft, b->draft) || have_moved(a, a->target, b->target);
}

bool learned_look(lessons *l) {
  if (!l->waiting || (l->passes > EAGER && l->waiting < fmin(SELDOM, l->passes / 8.0))) return false;
  dtl_costs now = l->estimated;
  l->waiting = 0;
  correct(l, LEARNED_TARGET, l->estimated.target, now.target);
  learned_count_costs(l, &now);
  learned_cache_miss_costs(l, now.cache_miss);
  now.read = learned_read_costs(l);
  if (now.drafts) {
    correct(l, LEARNED_DRAFT, l->estimated.draft, now.draft);
    correct_first(l, &now);
  }
  if (!has_moved(&now, &l->shown)) return false;
  l->shown = now;
  l->revision++;
  return true;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static const char *const NAMES[LEARNED_KINDS] = {"target", "draft", "first"};

/* [rows, context, ms, the number of times it counts for] */
static void add_place(cJSON *list, lessons *l, learned_kind kind, int k, int i) {
  const dtl_costs *c = &l->estimated;
  learned_place *p = &l->place[kind][k][i];
  if (!p->n) return;
  double ms = learned_estimate(c, kind, c->rows[i], c->context[k]) * exp(place_counted(p));
  const double entry[] = {c->rows[i], c->context[k], clamp(ms, LEAST_MS, MOST_MS), p->n};
  cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(entry, 4));
}

char *learned_json(lessons *l, const char *key) {
  errno = 0; /* if memory runs out, cJSON leaves out members without reporting it */
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "schema", SCHEMA);
  cJSON_AddStringToObject(root, "key", key);
  for (int kind = 0; kind < LEARNED_KINDS; kind++) {
    cJSON *list = cJSON_AddArrayToObject(root, NAMES[kind]);
    for (int k = 0; k < l->estimated.n_contexts; k++)
      for (int i = 0; i < l->estimated.n_rows; i++) add_place(list, l, (learned_kind)kind, k, i);
  }
  learned_count_json(l, root);
  learned_cache_miss_json(l, root);
  learned_read_json(l, root);
  char *text = errno == ENOMEM ? NULL : cJSON_PrintUnformatted(root);
  cJSON_Delete(root);
  return text;
}

static bool take_entry(lessons *l, learned_kind kind, const cJSON *entry) {
  double x[4] = {0};
  if (!cJSON_IsArray(entry) || cJSON_GetArraySize(entry) != 4) return false;
  int i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, entry) {
    if (!cJSON_IsNumber(item)) return false;
    x[i++] = item->valuedouble;
  }
  bool whole = x[1] >= 0 && x[1] <= 1 << 30 && x[3] >= 1 && x[3] <= LEARNED_KEPT;
  if (!whole || !(x[2] >= LEAST_MS && x[2] <= MOST_MS) || !(x[0] >= 1 && x[0] <= 1e6)) return false;
  seed(l, kind, x[0], (int)x[1], 0, x[2], x[3] < TRUSTED ? (int)x[3] : TRUSTED);
  return true;
}

static const char *take_all(lessons *l, const cJSON *root, const char *key) {
  static const char *const wrong[] = {
      "target is not a list of [rows, context, ms, times]",
      "draft is not a list of [rows, context, ms, times]",
      "first is not a list of [rows, context, ms, times]",
  };
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
  const cJSON *learned_on = cJSON_GetObjectItemCaseSensitive(root, "key");
  if (!cJSON_IsString(schema) || strcmp(schema->valuestring, SCHEMA)) return "its schema is not " SCHEMA;
  if (!cJSON_IsString(learned_on) || strcmp(learned_on->valuestring, key))
    return "it was learned on another machine or model";
  for (int kind = 0; kind < LEARNED_KINDS; kind++) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, NAMES[kind]), *entry;
    if (!cJSON_IsArray(list)) return wrong[kind];
    cJSON_ArrayForEach(entry, list) if (!take_entry(l, (learned_kind)kind, entry)) return wrong[kind];
  }
  if (!learned_cache_miss_parse(l, root)) return "cache_miss is not a list of three [ms, times]";
  if (!learned_read_parse(l, root)) return "read is not a list with [ms, times]";
  return learned_count_parse(l, root)
             ? NULL
             : "experts is not a list of [rows, mean, passes], or expert is not a list of two sums";
}

const char *learned_parse(lessons *l, const char *json, const char *key) {
  lessons *fresh = malloc(sizeof *fresh);
  if (!fresh) return COSTS_STARVED;
  *fresh = *l;
  cJSON *root;
  const char *wrong = costs_parse_object(json, &root);
  if (!wrong) wrong = take_all(fresh, root, key);
  if (!wrong) *l = *fresh;
  cJSON_Delete(root);
  free(fresh);
  return wrong;
}
