/* One pass. Every thread runs the same phases; between phases the team waits, and within one each thread takes its share
 * of the outputs, heads or rows. A share never cuts a sum, so the number of threads cannot change a bit. */
#include "internal.h"

#include <math.h>
#include <string.h>

/* What all threads of a pass share. */
typedef struct {
  dt_weights *w;
  dt_cache *cache;
  const dt_rows *rows;
  const dt_out *out;
} pass;

/* At most CPU_ROWS rows of it, and one thread's view of them. */
typedef struct {
  const pass *p;
  const cpu_member *me;
  int first, n;         /* rows first..first+n-1 of the pass */
  int wanted, wanted_n; /* results wanted..wanted+wanted_n-1 are of these rows */
  float *sums;          /* this thread's */
  cpu_rows8 rounded;    /* likewise */
} chunk;

/* A product with `matrix`: from rows of x to rows of out. */
typedef struct {
  const cpu_matrix *matrix;
  const float *x;
  size_t ldx;
  cpu_finish how;
  float *out;
  size_t ldo;
} product;

/* Sums of some panels for n rows of x; int8 weights want them rounded before. */
static void round_rows(const chunk *c, const cpu_matrix *m, const float *x, size_t ldx, int n) {
  if (m->scale) c->p->w->backend->kernels->round_rows(x, ldx, n, m->k, &c->rounded);
}

static void sum_panels(const chunk *c, const cpu_matrix *m, int panel, int count, const float *x, size_t ldx, int n,
                       float *sums, size_t ld) {
  const cpu_kernels *k = c->p->w->backend->kernels;
  if (m->scale)
    k->matmul8(m, panel, count, &c->rounded, n, sums, ld);
  else
    k->matmul(m, panel, count, x, ldx, n, sums, ld);
}

/* Products that may run side by side, shared out by panels. */
static void multiply(const chunk *c, const product *products, int count) {
  const dt_weights *w = c->p->w;
  const cpu_kernels *k = w->backend->kernels;
  int total = 0, first, last, base = 0;
  for (int i = 0; i < count; i++) total += products[i].matrix->panels;
  cpu_share(c->me, total, &first, &last);
  for (int i = 0; i < count; base += products[i++].matrix->panels) {
    const product *p = &products[i];
    int from = first > base ? first - base : 0;
    int to = last - base < p->matrix->panels ? last - base : p->matrix->panels;
    if (from < to) round_rows(c, p->matrix, p->x, p->ldx, c->n);
    for (int panel = from; panel < to; panel += CPU_GROUP) {
      int group = to - panel < CPU_GROUP ? to - panel : CPU_GROUP;
      size_t ld = CPU_GROUP * CPU_PANEL;
      sum_panels(c, p->matrix, panel, group, p->x, p->ldx, c->n, c->sums, ld);
      k->finish(p->how, w->act, p->matrix, panel, group, c->sums, ld, c->n, p->out, p->ldo);
    }
  }
}

/* The norm of n rows of x (row[i] of them, or i if row is NULL). Few rows: each thread for itself; else shared out. */
static const float *normalize(const chunk *c, int which, const float *weight, const float *bias) {
  const dt_weights *w = c->p->w;
  float *own = w->own + ((size_t)c->me->thread * 2 + (size_t)which) * CPU_OWN_NORMS * w->ldx;
  float *shared = w->normed + (size_t)which * CPU_ROWS * w->ldx;
  int first = 0, last = c->n;
  float *y = c->n <= CPU_OWN_NORMS ? own : shared;
  if (y == shared) cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++)
    w->backend->kernels->norm(w->norm, w->x + (size_t)r * w->ldx, weight, bias, w->hidden, w->norm_eps,
                              y + (size_t)r * w->ldx);
  return y;
}

static void wait_for_norms(const chunk *c) {
  if (c->n > CPU_OWN_NORMS) cpu_wait(c->me);
}

static void embed(const chunk *c) {
  const dt_weights *w = c->p->w;
  size_t row = (size_t)w->hidden * (w->embed_dtype == DT_F32 ? 4 : 2);
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) {
    const char *from = (const char *)w->embed + (size_t)c->p->rows->token[c->first + r] * row;
    w->backend->kernels->widen(from, w->embed_dtype, w->hidden, w->x + (size_t)r * w->ldx);
  }
}

/* The first rotary_dims of a head, as split halves. */
static void rotate(const dt_weights *w, int position, float *head) {
  int pairs = w->rotary_dims / 2;
  const float *cosine = w->cosine + (size_t)position * (size_t)pairs;
  const float *sine = w->sine + (size_t)position * (size_t)pairs;
  for (int j = 0; j < pairs; j++) {
    float a = head[j], b = head[j + pairs];
    head[j] = a * cosine[j] - b * sine[j];
    head[j + pairs] = b * cosine[j] + a * sine[j];
  }
}

static void write_cache(const chunk *c, int layer, int r, int head) {
  const dt_weights *w = c->p->w;
  const dt_rows *rows = c->p->rows;
  int row = c->first + r;
  size_t dim = (size_t)w->dim, at = (size_t)rows->slot[row] * cpu_row_bytes(w);
  float *key = w->qkv + (size_t)r * w->ldqkv + (size_t)(w->heads + head) * dim;
  rotate(w, rows->position[row], key);
  for (int part = 0; part < 2; part++) {
    const float *from = key + (size_t)(part * w->kv_heads) * dim; /* the values lie behind the keys */
    char *to = cpu_rows_of(c->p->cache, rows->sequence[row], layer, part, head) + at;
    if (w->backend->caches_f16)
      w->backend->kernels->narrow(from, w->dim, (uint16_t *)to);
    else
      memcpy(to, from, dim * sizeof *from);
  }
}

/* Attention of one head for up to CPU_ATTENTION_ROWS rows, run by run of rows of one sequence. */
static void attend(const chunk *c, int layer, int head, int first, int n) {
  const dt_weights *w = c->p->w;
  const dt_cache *cache = c->p->cache;
  const dt_rows *rows = c->p->rows;
  const cpu_kernels *k = w->backend->kernels;
  cpu_attention_kernel *kernel = w->backend->caches_f16 ? k->attention_f16 : k->attention;
  cpu_attention_row row[CPU_ATTENTION_ROWS];
  size_t dim = (size_t)w->dim;
  int kv_head = head / (w->heads / w->kv_heads);
  for (int r = first; r < first + n;) {
    int sequence = rows->sequence[c->first + r], count = 0;
    for (; r < first + n && rows->sequence[c->first + r] == sequence; r++, count++) {
      int i = c->first + r;
      float *q = w->qkv + (size_t)r * w->ldqkv + (size_t)head * dim;
      rotate(w, rows->position[i], q);
      for (size_t d = 0; d < dim; d++) q[d] *= w->scale;
      row[count] =
          (cpu_attention_row){q, w->cat + (size_t)r * w->ldcat + (size_t)head * dim,
                              rows->path + (size_t)i * (size_t)rows->path_stride, rows->prefix[i], rows->path_len[i]};
    }
    kernel(cpu_rows_of(cache, sequence, layer, 0, kv_head), cpu_rows_of(cache, sequence, layer, 1, kv_head), w->dim,
           row, count, cache->scores + (size_t)c->me->thread * CPU_ATTENTION_ROWS * cache->ldscores, cache->ldscores);
  }
}

/* Writes the keys and values, then attends. If the key heads can be shared out evenly, a thread needs only what it wrote
 * itself; else rows are shared out too, with a barrier between. */
static void attention(const chunk *c, int layer, bool write_only) {
  const dt_weights *w = c->p->w;
  int blocks = (c->n + CPU_ATTENTION_ROWS - 1) / CPU_ATTENTION_ROWS, first, last;
  if (w->kv_heads % c->me->threads == 0) {
    cpu_share(c->me, w->kv_heads, &first, &last);
    for (int h = first; h < last; h++)
      for (int r = 0; r < c->n; r++) write_cache(c, layer, r, h);
    int group = w->heads / w->kv_heads;
    first *= group * blocks, last *= group * blocks;
  } else {
    cpu_share(c->me, c->n * w->kv_heads, &first, &last);
    for (int i = first; i < last; i++) write_cache(c, layer, i / w->kv_heads, i % w->kv_heads);
    if (!write_only) cpu_wait(c->me);
    cpu_share(c->me, w->heads * blocks, &first, &last);
  }
  for (int i = first; !write_only && i < last; i++) {
    int r = i % blocks * CPU_ATTENTION_ROWS;
    attend(c, layer, i / blocks, r, c->n - r < CPU_ATTENTION_ROWS ? c->n - r : CPU_ATTENTION_ROWS);
  }
}

/* Entered when all threads have left x alone; leaves with x complete. */
static void run_layer(const chunk *c, int index) {
  const dt_weights *w = c->p->w;
  const cpu_layer *l = &w->layer[index];
  float *inner = w->cat + (size_t)w->heads * (size_t)w->dim;
  cpu_finish how = w->gated ? CPU_GATE : CPU_ACTIVATE;
  if (index == w->layers - 1 && c->wanted_n == 0) { /* nobody asks what comes out: keys and values are all */
    const float *x1 = normalize(c, 0, l->norm1, l->norm1_bias);
    wait_for_norms(c);
    multiply(c, &(product){&l->qkv, x1, w->ldx, CPU_STORE, w->qkv, w->ldqkv}, 1);
    cpu_wait(c->me);
    attention(c, index, true);
    return;
  }
  const float *x1 = normalize(c, 0, l->norm1, l->norm1_bias);
  const float *x2 = w->parallel ? normalize(c, 1, l->norm2, l->norm2_bias) : NULL;
  wait_for_norms(c);
  const product before[2] = {{&l->qkv, x1, w->ldx, CPU_STORE, w->qkv, w->ldqkv},
                             {&l->up, x2, w->ldx, how, inner, w->ldcat}};
  multiply(c, before, w->parallel ? 2 : 1);
  cpu_wait(c->me);
  attention(c, index, false);
  cpu_wait(c->me);
  multiply(c, &(product){&l->o, w->cat, w->ldcat, CPU_ADD, w->x, w->ldx}, 1);
  cpu_wait(c->me);
  if (w->parallel) return;
  x2 = normalize(c, 1, l->norm2, l->norm2_bias);
  wait_for_norms(c);
  multiply(c, &(product){&l->up, x2, w->ldx, how, inner, w->ldcat}, 1);
  cpu_wait(c->me);
  multiply(c, &(product){&l->down, inner, w->ldcat, CPU_ADD, w->x, w->ldx}, 1);
  cpu_wait(c->me);
}

static cpu_softmax_parts parts_of(const dt_weights *w, int row) {
  float *p = w->parts + (size_t)row * 3 * w->ldparts;
  return (cpu_softmax_parts){p, p + w->ldparts, p + 2 * w->ldparts};
}

/* How the token after the j-th wanted row is drawn; NULL: it is not. */
static const dt_sampling *sampling_of(const chunk *c, int j) {
  const dt_out *out = c->p->out;
  if (!out->sampling) return NULL;
  const dt_sampling *s = &out->sampling[c->p->rows->sequence[out->row[c->wanted + j]]];
  return s->temp > 0.0f ? s : NULL;
}

/* Not every id is allowed: which are, all logits must tell. */
static bool is_filtered(const chunk *c, const dt_sampling *s) {
  return s && c->p->out->want == DT_WANT_ARGMAX && draw_is_filtered(s);
}

/* The logits of ids from.. of the j-th wanted row, in parts or as they are. */
static void reduce_block(const chunk *c, int j, float *logits, int from, int count, cpu_top *top) {
  const dt_weights *w = c->p->w;
  const dt_out *out = c->p->out;
  const cpu_kernels *k = w->backend->kernels;
  const dt_sampling *s = sampling_of(c, j);
  if (out->want == DT_WANT_LOGITS || is_filtered(c, s)) {
    float *all = out->want == DT_WANT_LOGITS ? out->logits + (size_t)(c->wanted + j) * (size_t)w->vocab
                                             : w->logits + (size_t)j * w->ldlogits;
    memcpy(all + from, logits, (size_t)count * sizeof *logits);
    return;
  }
  float noisy[CPU_LOGIT_BLOCK], *scores = s ? noisy : logits;
  if (s) k->add_noise(s, c->p->rows->position[out->row[c->wanted + j]], from, count, logits, noisy);
  if (out->want == DT_WANT_TOPK) {
    cpu_softmax_parts parts = parts_of(w, j);
    k->softmax_part(logits, count, &parts, from / CPU_LOGIT_BLOCK);
  }
  k->rank(scores, logits, from, count, out->want == DT_WANT_TOPK ? out->k : 1, top);
}

/* The final norm of the wanted rows, and their logits, reduced block by block. */
static void reduce_logits(const chunk *c, int ids) {
  const dt_weights *w = c->p->w;
  const dt_out *out = c->p->out;
  const cpu_kernels *k = w->backend->kernels;
  int first, last, n = c->wanted_n;
  cpu_share(c->me, n, &first, &last);
  for (int j = first; j < last; j++) {
    int r = out->row[c->wanted + j] - c->first;
    k->norm(w->norm, w->x + (size_t)r * w->ldx, w->final_norm, w->final_norm_bias, w->hidden, w->norm_eps,
            w->normed + (size_t)j * w->ldx);
  }
  cpu_top *top = w->top + (size_t)c->me->thread * CPU_ROWS;
  for (int j = 0; j < n; j++) top[j].count = 0, top[j].nan = false;
  cpu_wait(c->me);

  round_rows(c, &w->unembed, w->normed, w->ldx, n);
  cpu_share(c->me, (ids + CPU_LOGIT_BLOCK - 1) / CPU_LOGIT_BLOCK, &first, &last);
  for (int block = first; block < last; block++) {
    int from = block * CPU_LOGIT_BLOCK, count = ids - from < CPU_LOGIT_BLOCK ? ids - from : CPU_LOGIT_BLOCK;
    int panels = (count + CPU_PANEL - 1) / CPU_PANEL;
    for (int panel = 0; panel < panels; panel += CPU_GROUP)
      sum_panels(c, &w->unembed, from / CPU_PANEL + panel, panels - panel < CPU_GROUP ? panels - panel : CPU_GROUP,
                 w->normed, w->ldx, n, c->sums + panel * CPU_PANEL, CPU_LOGIT_BLOCK);
    for (int j = 0; j < n; j++) reduce_block(c, j, c->sums + (size_t)j * CPU_LOGIT_BLOCK, from, count, &top[j]);
  }
}

/* ln x for x >= 1, in double without libm, whose last bit differs between machines: 2 artanh((m - 1) / (m + 1)). */
static double natural_log(double x) {
  int exponent;
  double m = frexp(x, &exponent); /* [1/2, 1) */
  if (m < 0.70710678118654752) m *= 2.0, exponent--;
  double s = (m - 1.0) / (m + 1.0), z = s * s, sum = 0.0;
  for (int i = 19; i >= 1; i -= 2) sum = sum * z + 1.0 / (double)i;
  return (double)exponent * 0.69314718055994531 + 2.0 * s * sum;
}

/* The k ids of the largest scores of a row over all threads' lists. */
static void merge_tops(const chunk *c, int row, int k, cpu_top *merged) {
  const cpu_top *lists = c->p->w->top + row;
  int threads = c->me->threads;
  merged->count = 0, merged->nan = false;
  for (int t = 0; t < threads; t++) { /* ids rise with the thread: among equals, whoever is in stays ahead */
    const cpu_top *list = lists + (size_t)t * CPU_ROWS;
    merged->nan |= list->nan;
    for (int i = 0; i < list->count; i++) {
      int at = merged->count < k ? merged->count : k - 1;
      if (merged->count == k && !(list->score[i] > merged->score[at])) break;
      for (; at > 0 && merged->score[at - 1] < list->score[i]; at--)
        merged->score[at] = merged->score[at - 1], merged->logit[at] = merged->logit[at - 1],
        merged->id[at] = merged->id[at - 1];
      merged->score[at] = list->score[i], merged->logit[at] = list->logit[i], merged->id[at] = list->id[i];
      if (merged->count < k) merged->count++;
    }
  }
}

static void write_results(const chunk *c, int ids) {
  const dt_weights *w = c->p->w;
  const dt_out *out = c->p->out;
  int first, last;
  cpu_share(c->me, c->wanted_n, &first, &last);
  for (int j = first; j < last; j++) {
    size_t result = (size_t)(c->wanted + j);
    const dt_sampling *s = sampling_of(c, j);
    if (is_filtered(c, s)) {
      out->argmax[result] =
          w->backend->kernels->draw(s, c->p->rows->position[out->row[result]], w->logits + (size_t)j * w->ldlogits,
                                    w->vocab, w->weight + (size_t)c->me->thread * w->ldlogits);
      continue;
    }
    cpu_top top;
    merge_tops(c, j, out->want == DT_WANT_TOPK ? out->k : 1, &top);
    if (out->want == DT_WANT_ARGMAX) {
      out->argmax[result] = top.nan || top.count == 0 ? -1 : top.id[0];
      continue;
    }
    cpu_softmax_parts parts = parts_of(w, j);
    float max, sum, weighted;
    w->backend->kernels->combine_parts(&parts, (ids + CPU_LOGIT_BLOCK - 1) / CPU_LOGIT_BLOCK, &max, &sum, &weighted);
    bool usable = !top.nan && sum >= 1.0f && isfinite(sum) && isfinite(max);
    double log_sum = usable ? natural_log((double)sum) : 0.0;
    out->confidence[result] = usable ? 1.0f / sum : 0.0f;
    out->entropy[result] = usable ? (float)(log_sum - (double)weighted / (double)sum) : 0.0f;
    for (int i = 0; i < out->k; i++) {
      bool there = usable && i < top.count;
      out->top_id[result * (size_t)out->k + (size_t)i] = there ? top.id[i] : -1;
      out->top_logp[result * (size_t)out->k + (size_t)i] =
          there ? (float)((double)top.logit[i] - (double)max - log_sum) : -INFINITY;
    }
  }
}

static void run_pass(const cpu_member *me, void *context) {
  const pass *p = context;
  const dt_weights *w = p->w;
  size_t at = (size_t)me->thread * w->blocks;
  chunk c = {.p = p,
             .me = me,
             .sums = w->sums + (size_t)me->thread * CPU_ROWS * CPU_LOGIT_BLOCK,
             .rounded = {w->rounded.q + at * CPU_BLOCK, w->rounded.scale + at, w->rounded.offset + at}};
  int ids = p->out && p->out->want == DT_WANT_TOPK ? p->out->vocab : w->vocab;
  for (; c.first < p->rows->n; c.first += c.n) {
    int left = p->rows->n - c.first;
    c.n = left < CPU_ROWS ? left : CPU_ROWS;
    c.wanted += c.wanted_n, c.wanted_n = 0;
    while (p->out && c.wanted + c.wanted_n < p->out->n && p->out->row[c.wanted + c.wanted_n] < c.first + c.n)
      c.wanted_n++;
    embed(&c);
    cpu_wait(me);
    for (int layer = 0; layer < w->layers; layer++) run_layer(&c, layer);
    if (c.wanted_n == 0) continue;
    reduce_logits(&c, ids);
    cpu_wait(me);
    if (p->out->want != DT_WANT_LOGITS) write_results(&c, ids);
  }
}

dt_status cpu_forward(dt_weights *w, dt_cache *cache, const dt_rows *rows, const dt_out *out, dt_error *err) {
  if (out && (out->want == DT_WANT_NOTHING || out->n == 0)) out = NULL;
  dt_status status = cache->weights == w ? DT_OK : dt_fail(err, DT_EINPUT, "forward: the cache is of another model");
  if (status == DT_OK) status = check_pass(rows, out, cpu_limits(cache), err);
  if (status != DT_OK) return status;
  pass p = {w, cache, rows, out};
  cpu_team_run(w->backend->threads, run_pass, &p);
  return DT_OK;
}
