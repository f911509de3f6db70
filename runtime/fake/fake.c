/* The scripted backend: see fake.h. */
#include "fake/fake.h"

#include "fake/mix.h"
#include "system/clock.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dt_backend {
  size_t cache_bytes;
  dt_fake_delay *delays; /* [n_delays] */
  int n_delays, passes;
  bool chunks; /* as in dt_fake_options */
};

typedef struct {
  int32_t *context, *token;
  float *p;
  int context_len, count;
} rule;

/* An id and the number that ranks it. */
typedef struct {
  float x;
  int32_t id;
} ranked;

struct dt_weights {
  dt_backend *backend;
  int vocab, n_rules;
  bool drafts; /* as in fake_model */
  rule *rules;
  float *p;        /* [vocab] the current distribution */
  float *adjusted; /* [vocab] the same with a row's adjustments; it does not sum to 1 */
  ranked *order;   /* [vocab] */
  fake_routes routes;
  dt_fake_times times;
  int32_t *expert; /* [layers][chosen] of a row */
  bool *taken;     /* [layers][experts] by a pass */
};

struct dt_cache {
  dt_weights *weights;
  int sequences, slots;
  int32_t *token; /* [sequences][slots] -1: never written; with IN_CHUNK if the row was computed in a chunk */
};

enum { IN_CHUNK = 1 << 30 };

struct dt_snapshot {
  int n;
  int32_t token[];
};

static const char *const CACHE_DTYPES[] = {"f32", NULL}; /* tokens, in fact */
static const char *const WEIGHT_DTYPES[] = {NULL}, *const ACTIVATIONS[] = {NULL};

static void *copy(const void *from, size_t bytes) {
  void *to = malloc(bytes ? bytes : 1);
  if (to && bytes) memcpy(to, from, bytes);
  return to;
}

static dt_status fake_open(const dt_backend_options *options, dt_backend **out, dt_error *err) {
  (void)options;
  *out = calloc(1, sizeof **out);
  return *out ? DT_OK : dt_fail_memory(err, "the scripted backend", sizeof **out);
}

static void fake_close(dt_backend *b) {
  free(b->delays);
  free(b);
}

dt_status fake_delay(dt_backend *b, const dt_fake_delay *delays, int n, dt_error *err) {
  b->delays = copy(delays, (size_t)n * sizeof *delays);
  b->n_delays = n;
  return b->delays ? DT_OK : dt_fail_memory(err, "the scripted backend", (size_t)n * sizeof *delays);
}

void fake_compute_in_chunks(dt_backend *b) { b->chunks = true; }

/* Simulates the time of a pass over this number of rows. */
static void take_time(const dt_weights *w, int rows) {
  dt_backend *b = w->backend;
  double ms = w->times.first + w->times.row * (rows - 1);
  b->passes++;
  for (int i = 0; i < b->n_delays; i++)
    if (b->passes >= b->delays[i].from && b->passes <= b->delays[i].to) ms *= b->delays[i].factor;
  if (ms > 0) dt_clock_skip(ms);
}

static const char *fake_describe(const dt_backend *b) {
  (void)b;
  return "fake";
}

static dt_status fake_no_upload(dt_backend *b, const dt_model_desc *desc, const dt_holding *how, dt_weights **out,
                                dt_error *err) {
  (void)b, (void)desc, (void)how, (void)out;
  return dt_fail(err, DT_EINPUT, "the scripted backend runs tables, not weight files");
}

static const char *fake_weight_dtype(const dt_weights *w) {
  (void)w;
  return "f16"; /* tables, in fact */
}

static const char *fake_weight_activations(const dt_weights *w) {
  (void)w;
  return NULL;
}

static void fake_free_weights(dt_weights *w) {
  if (!w) return;
  for (int i = 0; w->rules && i < w->n_rules; i++)
    free(w->rules[i].context), free(w->rules[i].token), free(w->rules[i].p);
  free(w->rules);
  free(w->p), free(w->adjusted), free(w->order), free(w->expert), free(w->taken);
  free(w);
}

dt_status fake_upload(dt_backend *backend, const fake_model *model, dt_weights **out, dt_error *err) {
  dt_weights *w = calloc(1, sizeof *w);
  if (!w) return dt_fail_memory(err, "a scripted model", sizeof *w);
  *w = (dt_weights){.backend = backend,
                    .vocab = model->vocab,
                    .n_rules = model->n_rules,
                    .drafts = model->drafts,
                    .routes = model->routes,
                    .times = model->times};
  w->p = malloc((size_t)model->vocab * sizeof(float));
  w->adjusted = malloc((size_t)model->vocab * sizeof(float));
  w->order = malloc((size_t)model->vocab * sizeof(ranked));
  w->rules = calloc((size_t)model->n_rules + 1, sizeof(rule));
  w->expert = malloc(((size_t)model->routes.layers * (size_t)model->routes.chosen + 1) * sizeof(int32_t));
  w->taken = malloc((size_t)model->routes.layers * (size_t)model->routes.experts + 1);
  bool ok = w->p && w->adjusted && w->order && w->rules && w->expert && w->taken;
  for (int i = 0; ok && i < model->n_rules; i++) {
    const dt_fake_rule *from = &model->rules[i];
    rule *to = &w->rules[i];
    to->context_len = from->context_len;
    to->count = from->count;
    to->context = copy(from->context, (size_t)from->context_len * sizeof(int32_t));
    to->token = copy(from->token, (size_t)from->count * sizeof(int32_t));
    to->p = copy(from->p, (size_t)from->count * sizeof(float));
    ok = to->context && to->token && to->p;
  }
  if (!ok) {
    fake_free_weights(w);
    return dt_fail_memory(err, "a scripted model", (unsigned long long)model->vocab * sizeof(float));
  }
  *out = w;
  return DT_OK;
}

static dt_status fake_create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  size_t n = (size_t)sequences * (size_t)slots;
  dt_cache *c = calloc(1, sizeof *c);
  int32_t *token = malloc(n * sizeof(int32_t));
  if (!c || !token) {
    free(c), free(token);
    return dt_fail_memory(err, "a scripted cache", n * sizeof(int32_t));
  }
  memset(token, 0xff, n * sizeof(int32_t));
  *c = (dt_cache){.weights = w, .sequences = sequences, .slots = slots, .token = token};
  w->backend->cache_bytes += n * sizeof(int32_t);
  *out = c;
  return DT_OK;
}

static size_t fake_cache_bytes(const dt_weights *w, int slots) {
  (void)w;
  return (size_t)slots * sizeof(int32_t);
}

static size_t fake_bytes_free(const dt_backend *b) {
  (void)b;
  return SIZE_MAX;
}

static void fake_free_cache(dt_cache *c) {
  if (!c) return;
  c->weights->backend->cache_bytes -= (size_t)c->sequences * (size_t)c->slots * sizeof(int32_t);
  free(c->token);
  free(c);
}

/* The token `back` positions before the end of row i's text (0: the row's own token). */
static int32_t text_at(const dt_cache *c, const dt_rows *r, int i, int back) {
  const int32_t *slots = c->token + (size_t)r->sequence[i] * (size_t)c->slots;
  int at = r->position[i] - back;
  return slots[at < r->prefix[i] ? at : r->path[(size_t)i * (size_t)r->path_stride + (size_t)(at - r->prefix[i])]];
}

/* The distribution if no rule matches: four favourites from a hash of the whole text, in one of two shapes. In ten
 * texts, the target's first choice is the draft's first choice seven times, and its second choice twice. */
static void hashed(const dt_weights *w, const dt_cache *c, const dt_rows *r, int i, float *p) {
  static const float shape[2][4] = {{0.875f, 0.0625f, 0.03125f, 0.015625f}, {0.375f, 0.25f, 0.125f, 0.125f}};
  uint64_t h = 0;
  for (int at = r->position[i]; at >= 0; at--)
    h = fake_mix(h ^ (uint64_t)(uint32_t)text_at(c, r, i, at)) + 0x9e3779b97f4a7c15u;
  int favourites = w->vocab < 4 ? w->vocab : 4;
  int turn = w->drafts || h % 10 < 7 ? 0 : h % 10 < 9 ? 1 : 2;
  for (int k = 0; k < favourites; k++)
    p[(h / 16 + (uint64_t)((k + turn) % favourites)) % (uint64_t)w->vocab] = shape[(h >> 60) & 1][k];
}

/* Computes the distribution after row i, into w->p. */
static void distribution(dt_weights *w, const dt_cache *c, const dt_rows *r, int i) {
  const rule *best = NULL;
  for (const rule *q = w->rules; q < w->rules + w->n_rules; q++) {
    if ((best && q->context_len <= best->context_len) || q->context_len > r->position[i] + 1) continue;
    int k = 0;
    while (k < q->context_len && q->context[q->context_len - 1 - k] == text_at(c, r, i, k)) k++;
    if (k == q->context_len) best = q;
  }
  for (int id = 0; id < w->vocab; id++) w->p[id] = -1; /* ids that the rule does not name */
  if (best)
    for (int k = 0; k < best->count; k++) w->p[best->token[k]] = best->p[k];
  else
    hashed(w, c, r, i, w->p);
  double sum = 0;
  int unnamed = 0;
  for (int id = 0; id < w->vocab; id++)
    if (w->p[id] == -1)
      unnamed++;
    else
      sum += (double)w->p[id];
  for (int id = 0; id < w->vocab; id++)
    if (w->p[id] == -1) w->p[id] = sum < 1 ? (float)((1 - sum) / unnamed) : 0;
}

static int32_t likeliest(const float *p, int vocab) {
  int32_t best = 0;
  for (int32_t id = 1; id < vocab; id++)
    if (p[id] > p[best]) best = id;
  return best;
}

/* Orders by falling x; ties by lower id. */
static int compare(const void *a, const void *b) {
  const ranked *l = a, *r = b;
  return l->x != r->x ? (l->x < r->x) - (l->x > r->x) : (l->id > r->id) - (l->id < r->id);
}

/* ln p / temp + G, as sample.h defines it. */
static float noisy(float p, const dt_sampling *s, int position, int32_t id) {
  double u = ((double)sample_bits(s->seed, position, id) + 0.5) / 4294967296.0;
  return (float)(log((double)p) / (double)s->temp - log(-log1p(-u)));
}

/* Samples a token: walks the ids from the likeliest on, as long as they are allowed. */
static int32_t sample(const dt_weights *w, const float *p, const dt_sampling *s, int position) {
  int top_k = s->top_k > 0 && s->top_k < w->vocab ? s->top_k : w->vocab;
  double power = 1 / (double)s->temp, sum = 0, ahead = 0, first = 0;
  int32_t best = -1;
  for (int32_t id = 0; id < w->vocab; id++) w->order[id] = (ranked){p[id], id};
  qsort(w->order, (size_t)w->vocab, sizeof *w->order, compare);
  for (int k = 0; k < top_k; k++) {
    sum += pow((double)w->order[k].x, power);
    if (k == 0) first = sum;
  }
  float top = -INFINITY;
  for (int k = 0; k < top_k; k++) {
    int32_t id = w->order[k].id;
    double weight = pow((double)p[id], power);
    bool in_top_p = !(s->top_p > 0 && s->top_p < 1) || ahead < (double)s->top_p * sum;
    if (k > 0 && !(in_top_p && weight >= (double)s->min_p * first)) break;
    float score = noisy(p[id], s, position, id);
    if (best < 0 || score > top || (score == top && id < best)) top = score, best = id;
    ahead += weight;
  }
  return best;
}

/* The log-sum-exp of the scores in w->order. */
static double log_sum_exp(const dt_weights *w, int n) {
  double largest = (double)w->order[0].x, sum = 0;
  for (int i = 0; i < n; i++) sum += exp((double)w->order[i].x - largest);
  return largest + log(sum);
}

/* Writes the candidates after row j, ranked by p or, if a token is sampled, by scores; then the softmax is that of the
 * scores. */
static void rank(const dt_weights *w, const float *p, const dt_sampling *s, int position, const dt_out *out, int j) {
  int vocab = out->want == DT_WANT_BOTH ? w->vocab : out->vocab;
  for (int32_t id = 0; id < vocab; id++) w->order[id] = (ranked){s ? noisy(p[id], s, position, id) : p[id], id};
  qsort(w->order, (size_t)vocab, sizeof *w->order, compare);
  double log_sum = s ? log_sum_exp(w, vocab) : 0, entropy = 0;
  for (int i = 0; i < vocab; i++) {
    int32_t id = w->order[i].id;
    double probability = s ? exp((double)w->order[i].x - log_sum) : (double)p[id];
    if (i == 0 && out->confidence) out->confidence[j] = (float)probability;
    if (probability > 0) entropy -= probability * log(probability);
    if (i >= out->k) continue;
    out->top_id[j * out->k + i] = id;
    out->top_logp[j * out->k + i] = s ? (float)((double)w->order[i].x - log_sum) : logf(p[id]);
    if (out->top_own) out->top_own[j * out->k + i] = logf(p[id]);
  }
  if (out->entropy) out->entropy[j] = (float)entropy;
}

static const float *with_adjustments(const dt_weights *w, const dt_row_adjustments *s) {
  memcpy(w->adjusted, w->p, (size_t)w->vocab * sizeof *w->p);
  for (int i = 0; i < s->n_text; i++)
    w->adjusted[s->text[i].id] = expf(adjust_logit(&s->text[i], logf(w->p[s->text[i].id])));
  for (int i = 0; i < s->n_path; i++)
    w->adjusted[s->path[i].id] = expf(adjust_logit(&s->path[i], logf(w->p[s->path[i].id])));
  for (int32_t id = 0; id < w->vocab; id++)
    if (!adjustment_allows(s, id)) w->adjusted[id] = 0;
  return w->adjusted;
}

static void answer(const dt_weights *w, const dt_rows *r, const dt_out *out, int j) {
  const float *p = out->adjustments ? with_adjustments(w, &out->adjustments[j]) : w->p;
  int vocab = w->vocab, position = r->position[out->row[j]];
  const dt_sampling *s = out->sampling ? &out->sampling[r->sequence[out->row[j]]] : NULL;
  if (s && !(s->temp > 0)) s = NULL;
  bool nan = false;
  for (int id = 0; id < vocab; id++) nan |= isnan(p[id]);
  if (out->want == DT_WANT_ARGMAX || (out->want == DT_WANT_BOTH && !out->given))
    out->argmax[j] = nan ? -1 : s ? sample(w, p, s, position) : likeliest(p, vocab);
  if (out->want == DT_WANT_BOTH && out->logp)
    out->logp[j] = nan ? NAN : logf(w->p[out->given ? out->given[j] : out->argmax[j]]);
  if (out->want == DT_WANT_LOGITS)
    for (int id = 0; id < vocab; id++) out->logits[(size_t)j * (size_t)vocab + (size_t)id] = logf(p[id]);
  if (out->want != DT_WANT_TOPK && out->want != DT_WANT_BOTH) return;
  for (int k = 0; k < out->k; k++) {
    out->top_id[j * out->k + k] = -1, out->top_logp[j * out->k + k] = 0;
    if (out->top_own) out->top_own[j * out->k + k] = 0;
  }
  if (out->confidence) out->confidence[j] = out->entropy[j] = 0;
  bool both = out->want == DT_WANT_BOTH;
  if (!nan) rank(w, both ? w->p : p, both ? NULL : s, position, out, j);
}

typedef struct {
  const dt_cache *cache;
  const dt_rows *rows;
  int i;
} text_row;

static int32_t token_of(const void *row, int back) {
  const text_row *r = row;
  return text_at(r->cache, r->rows, r->i, back);
}

/* Counts the experts of the pass, and writes those of wanted rows. */
static void take_experts(dt_weights *w, const dt_cache *c, const dt_rows *r, const dt_out *out) {
  const size_t layers = (size_t)w->routes.layers, chosen = (size_t)w->routes.chosen, all = (size_t)w->routes.experts;
  memset(w->taken, 0, layers * all);
  for (int i = 0; i < r->n; i++) {
    fake_route(&w->routes, token_of, &(text_row){c, r, i}, r->position[i] + 1, w->expert);
    for (size_t k = 0; k < layers * chosen; k++) {
      bool *taken = &w->taken[k / chosen * all + (size_t)w->expert[k]];
      if (!*taken && out->experts_read) ++*out->experts_read;
      *taken = true;
    }
    for (int j = 0; out->experts && j < out->n; j++)
      if (out->row[j] == i)
        memcpy(out->experts + (size_t)j * layers * chosen, w->expert, layers * chosen * sizeof *w->expert);
  }
}

/* Rows of whole chunks have other bits than other rows: here the hash of their text differs. */
static void mark_chunks(dt_cache *c, const dt_rows *r) {
  for (int i = 0; i < r->n / FAKE_CHUNK * FAKE_CHUNK; i++)
    c->token[(size_t)r->sequence[i] * (size_t)c->slots + (size_t)r->slot[i]] |= IN_CHUNK;
}

static dt_status fake_forward(dt_weights *w, dt_cache *c, const dt_rows *r, const dt_out *out, dt_error *err) {
  for (int i = 0; i < r->n; i++) {
    if (r->slot[i] < 0 || r->slot[i] >= c->slots || r->position[i] != r->prefix[i] + r->path_len[i] - 1 ||
        r->path[(size_t)i * (size_t)r->path_stride + (size_t)r->path_len[i] - 1] != r->slot[i])
      return dt_fail(err, DT_EDEVICE, "fake: row %d is inconsistent: slot %d, position %d, prefix %d, path of %d", i,
                     r->slot[i], r->position[i], r->prefix[i], r->path_len[i]);
    c->token[(size_t)r->sequence[i] * (size_t)c->slots + (size_t)r->slot[i]] = r->token[i];
  }
  if (r->prompt && w->backend->chunks && r->position[0] % FAKE_CHUNK)
    return dt_fail(err, DT_EDEVICE, "fake: a prompt pass begins at position %d, inside a chunk", r->position[0]);
  if (r->prompt && w->backend->chunks) mark_chunks(c, r);
  take_time(w, r->n);
  if (!out || out->want == DT_WANT_NOTHING) return DT_OK;
  if (w->routes.experts) take_experts(w, c, r, out);
  for (int j = 0; j < out->n; j++) {
    distribution(w, c, r, out->row[j]);
    answer(w, r, out, j);
  }
  return DT_OK;
}

static dt_status fake_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  (void)err;
  int32_t *slots = c->token + (size_t)sequence * (size_t)c->slots;
  for (int i = 0; i < n; i++) slots[to[i]] = slots[from[i]];
  return DT_OK;
}

static dt_status fake_snapshot(const dt_cache *c, int sequence, int n, dt_snapshot **out, dt_error *err) {
  dt_snapshot *s = malloc(sizeof *s + (size_t)n * sizeof(int32_t));
  if (!s) return dt_fail_memory(err, "a scripted snapshot", (size_t)n * sizeof(int32_t));
  s->n = n;
  memcpy(s->token, c->token + (size_t)sequence * (size_t)c->slots, (size_t)n * sizeof(int32_t));
  *out = s;
  return DT_OK;
}

static dt_status fake_restore(dt_cache *c, int sequence, const dt_snapshot *s, dt_error *err) {
  if (s->n > c->slots)
    return dt_fail(err, DT_ECONTEXT, "a snapshot of %d rows does not fit a cache of %d slots", s->n, c->slots);
  memcpy(c->token + (size_t)sequence * (size_t)c->slots, s->token, (size_t)s->n * sizeof(int32_t));
  return DT_OK;
}

static void fake_free_snapshot(dt_snapshot *s) { free(s); }

static dt_status fake_read_slot(const dt_cache *c, int sequence, int slot, void **bytes, size_t *len, dt_error *err) {
  *bytes = copy(&c->token[(size_t)sequence * (size_t)c->slots + (size_t)slot], sizeof(int32_t));
  *len = sizeof(int32_t);
  return *bytes ? DT_OK : dt_fail_memory(err, "a scripted slot", *len);
}

static dt_memory fake_memory(const dt_backend *b) { return (dt_memory){.caches = b->cache_bytes}; }

static bool fake_present(void) { return true; }

static double fake_bandwidth(dt_backend *b) {
  (void)b;
  return 0;
}

/* The calls of a backend with chunks of this many rows. */
#define CALLS(rows)                                                                                                    \
  {                                                                                                                    \
    .name = "fake", .cache_dtypes = CACHE_DTYPES, .weight_dtypes = WEIGHT_DTYPES, .activations = ACTIVATIONS,          \
    .candidates = INT_MAX, .windows = false, .chunk = rows, .present = fake_present, .open = fake_open,                \
    .close = fake_close, .describe = fake_describe, .upload = fake_no_upload, .weight_dtype = fake_weight_dtype,       \
    .weight_activations = fake_weight_activations, .free_weights = fake_free_weights, .cache_bytes = fake_cache_bytes, \
    .bytes_free = fake_bytes_free, .create_cache = fake_create_cache, .free_cache = fake_free_cache,                   \
    .forward = fake_forward, .move = fake_move, .snapshot = fake_snapshot, .restore = fake_restore,                    \
    .free_snapshot = fake_free_snapshot, .read_slot = fake_read_slot, .memory = fake_memory,                           \
    .read_bandwidth = fake_bandwidth,                                                                                  \
  }

const dt_backend_ops dt_fake_ops = CALLS(0), dt_fake_chunked_ops = CALLS(FAKE_CHUNK);
