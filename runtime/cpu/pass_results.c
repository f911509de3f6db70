/* The results of a pass: logits, the best ids with their probabilities, and the sampled id. */
#include "chunk.h"

#include <math.h>
#include <string.h>

/* A row has two softmaxes: over its scores and, if these differ from its logits, over the logits. */
typedef enum { OF_SCORES, OF_LOGITS } softmax_kind;

/* The parts of one block are consecutive, since one thread writes them: two threads that write to the same cache line
 * would slow each other down. */
enum { NEXT_BLOCK = 2 * CPU_ROWS };
static cpu_softmax_part *part_of(const dt_weights *w, int block, softmax_kind kind, int row) {
  return w->scratch.parts + (size_t)block * NEXT_BLOCK + (size_t)kind * CPU_ROWS + (size_t)row;
}

/* How the token after the j-th wanted row is sampled; NULL if it is not sampled. */
static const dt_sampling *sampling_of(const cpu_chunk *c, int j) {
  const dt_out *out = c->p->out;
  if (!out->sampling) return NULL;
  const dt_sampling *s = &out->sampling[c->p->rows->sequence[out->row[c->wanted + j]]];
  return s->temp > 0.0f ? s : NULL;
}

/* The logit adjustments of the j-th wanted row; NULL if there are none. */
static const dt_row_adjustments *adjustments_of(const cpu_chunk *c, int j) {
  const dt_row_adjustments *all = c->p->out->adjustments, *s = all ? &all[c->wanted + j] : NULL;
  return s && (s->allowed || s->n_text + s->n_path > 0) ? s : NULL;
}

/* Whether sampling excludes some ids (top-p etc.). The filter then needs all logits. */
static bool is_filtered(const cpu_chunk *c, const dt_sampling *s) {
  dt_want want = c->p->out->want;
  return s && (want == DT_WANT_ARGMAX || want == DT_WANT_BOTH) && sample_is_filtered(s);
}

/* A thread's list of the best ids of a row. */
static cpu_top *list_of(const dt_weights *w, int thread, int row, softmax_kind kind) {
  return w->scratch.top + ((size_t)thread * CPU_ROWS + (size_t)row) * 2 + kind;
}

/* Turns the logits of listed ids into scores, as the kernel does for consecutive ids. The noise is computed for each
 * run of 64 ids that contains a listed one. */
static void add_noise_to(const cpu_kernels *k, const dt_sampling *s, int32_t position, const int32_t *id, int count,
                         const float *logits, float *scores) {
  enum { RUN = 64 };
  for (int i = 0, n; i < count; i += n) {
    int first = id[i] / RUN * RUN;
    float all[RUN] = {0}, noisy[RUN];
    for (n = 0; i + n < count && id[i + n] < first + RUN; n++) all[id[i + n] - first] = logits[i + n];
    k->add_noise(s, position, first, RUN, all, noisy);
    for (int j = i; j < i + n; j++) scores[j] = noisy[id[j] - first];
  }
}

/* Reduces a block of logits of the j-th wanted row to the result that the caller wants. The block is ids
 * from..from+count-1 (or, if the model has a list of ids, these elements of the list). By what is wanted:
 *
 *   LOGITS    stores the block
 *   ARGMAX    the id of the largest score
 *   TOPK      the k best scores, the block's part of their softmax and, if wanted, of the softmax of the logits
 *   BOTH      the k best logits without adjustments, the block's part of their softmax, and the logit of a given id;
 *             if the row is sampled or adjusted, also as ARGMAX
 *
 * A sampling filter (top-p etc.) must see all ids, so with one the block is stored, too. A score is the logit with its
 * adjustment; if the row is sampled, it is the adjusted logit / temperature + noise. */
static void reduce_block(const cpu_chunk *c, int j, float *logits, int from, int count) {
  const dt_weights *w = c->p->w;
  const dt_out *out = c->p->out;
  const cpu_kernels *k = w->backend->kernels;
  const dt_sampling *s = sampling_of(c, j);
  const dt_row_adjustments *adjustments = adjustments_of(c, j);
  if (out->want == DT_WANT_LOGITS || is_filtered(c, s)) {
    float *all = out->want == DT_WANT_LOGITS ? out->logits + (size_t)(c->wanted + j) * (size_t)w->shape.vocab
                                             : w->scratch.logits + (size_t)j * w->scratch.ldlogits;
    if (all + from != logits) memcpy(all + from, logits, (size_t)count * sizeof *logits);
    if (adjustments && out->want == DT_WANT_LOGITS) cpu_adjust(adjustments, w->ids, from, count, all + from);
  }
  cpu_softmax_part *own = part_of(w, from / CPU_LOGIT_BLOCK, OF_LOGITS, j);
  if (out->want == DT_WANT_BOTH) {
    float largest = k->rank(logits, logits, from, count, out->k, list_of(w, c->me->thread, j, OF_LOGITS));
    k->softmax_sum(logits, count, largest, own);
    if (out->given) {
      int at = out->given[c->wanted + j] - from;
      if (at >= 0 && at < count)
        out->logp[c->wanted + j] = logits[at]; /* its probability follows when the sum is known */
      return;
    }
  }
  if (out->want == DT_WANT_LOGITS || is_filtered(c, s) || (out->want == DT_WANT_BOTH && !s && !adjustments)) return;
  cpu_top *top = list_of(w, c->me->thread, j, OF_SCORES);
  int32_t position = c->p->rows->position[out->row[c->wanted + j]];
  if (w->head.target) position += w->head.leads + c->p->rows->distance;
  float adjusted[CPU_LOGIT_BLOCK];
  const float *reported = logits; /* the logits to report; for drafted candidates the adjusted ones */
  if (adjustments && cpu_is_adjusted(adjustments, w->ids, from, count)) {
    logits = memcpy(adjusted, logits, (size_t)count * sizeof *logits);
    cpu_adjust(adjustments, w->ids, from, count, adjusted);
    if (out->want == DT_WANT_TOPK) reported = adjusted;
  }
  if (s && out->want != DT_WANT_TOPK) {
    k->sample_among(s, position, from, count, logits, reported, top);
    return;
  }
  float noisy[CPU_LOGIT_BLOCK], *scores = s ? noisy : logits;
  if (s && w->ids) add_noise_to(k, s, position, w->ids + from, count, logits, noisy);
  if (s && !w->ids) k->add_noise(s, position, from, count, logits, noisy);
  float largest = k->rank(scores, reported, from, count, out->want == DT_WANT_TOPK ? out->k : 1, top);
  if (out->want != DT_WANT_TOPK) return;
  k->softmax_part(scores, count, largest, part_of(w, from / CPU_LOGIT_BLOCK, OF_SCORES, j));
  if (s && out->top_own) k->softmax_sum(logits, count, k->largest(logits, count), own);
}

/* If ranks share the model, they exchange the logits of their blocks, and rank 0 reduces all of them. */
static void reduce_gathered(const cpu_chunk *c, int ids) {
  const dt_weights *w = c->p->w;
  int first, last;
  cpu_gather(c, CPU_LOGITS);
  if (w->ranks->rank) return;
  cpu_share(c->me, (ids + CPU_LOGIT_BLOCK - 1) / CPU_LOGIT_BLOCK, &first, &last);
  for (int from = first * CPU_LOGIT_BLOCK; from < last * CPU_LOGIT_BLOCK; from += CPU_LOGIT_BLOCK)
    for (int j = 0; j < c->wanted_n; j++)
      reduce_block(c, j, w->scratch.logits + (size_t)j * w->scratch.ldlogits + from, from,
                   ids - from < CPU_LOGIT_BLOCK ? ids - from : CPU_LOGIT_BLOCK);
}

/* Computes the final norm of the wanted rows and their logits, and reduces the logits block by block. */
static void reduce_logits(const cpu_chunk *c, int ids) {
  const dt_weights *w = c->p->w;
  const dt_out *out = c->p->out;
  const cpu_kernels *k = w->backend->kernels;
  const cpu_format *f = c->p->unembed->format;
  const float scale = w->shape.logit_scale != 0 ? w->shape.logit_scale : 1.0f;
  const bool bounded = scale != 1.0f || w->shape.logit_cap != 0;
  int first, last, n = c->wanted_n;
  cpu_share(c->me, n, &first, &last);
  for (int j = first; j < last; j++) {
    int r = out->row[c->wanted + j] - c->first;
    float *x = w->scratch.normed + (size_t)j * w->scratch.ldx;
    const float *from = w->scratch.x + (size_t)r * w->scratch.ldx;
    if (w->final_norm)
      k->norm(w->shape.norm, from, w->final_norm, w->final_norm_bias, w->shape.hidden, w->shape.norm_eps, x);
    else
      memcpy(x, from, (size_t)w->shape.hidden * sizeof *x);
    if (f->prepare) f->prepare(x, w->shape.hidden, cpu_prepared_row(w, 0, j));
  }
  for (int i = 0; i < 2 * n; i++) {
    cpu_top *top = list_of(w, c->me->thread, i / 2, i % 2);
    top->count = 0, top->nan = false;
  }
  cpu_wait(c->me);

  const char *rows = f->prepare ? cpu_prepared_row(w, 0, 0) : (const char *)w->scratch.normed;
  size_t step = f->prepare ? w->scratch.prepared_bytes : w->scratch.ldx * sizeof(float);
  const cpu_range *mine = &w->mine.ids;
  int here = mine->first + mine->count > ids ? ids - mine->first : mine->count;
  cpu_share(c->me, here > 0 ? (here + CPU_LOGIT_BLOCK - 1) / CPU_LOGIT_BLOCK : 0, &first, &last);
  for (int block = first; block < last; block++) {
    int from = mine->first + block * CPU_LOGIT_BLOCK,
        count = ids - from < CPU_LOGIT_BLOCK ? ids - from : CPU_LOGIT_BLOCK;
    int panels = (count + CPU_PANEL - 1) / CPU_PANEL;
    for (int panel = 0; panel < panels; panel += CPU_GROUP)
      f->multiply(c->p->unembed, block * (CPU_LOGIT_BLOCK / CPU_PANEL) + panel,
                  panels - panel < CPU_GROUP ? panels - panel : CPU_GROUP, rows, step, n, c->sums + panel * CPU_PANEL,
                  CPU_LOGIT_BLOCK);
    for (int j = 0; j < n; j++) {
      float *logits = c->sums + (size_t)j * CPU_LOGIT_BLOCK;
      if (bounded) k->bound(scale, w->shape.logit_cap, logits, count);
      if (w->ranks)
        memcpy(w->scratch.logits + (size_t)j * w->scratch.ldlogits + from, logits, (size_t)count * sizeof *logits);
      else
        reduce_block(c, j, logits, from, count);
    }
  }
  if (w->ranks) reduce_gathered(c, ids);
}

/* ln x for x >= 1 in double precision, as 2 artanh((m - 1) / (m + 1)). It does not use libm, whose last bit differs
 * between machines. */
static double natural_log(double x) {
  int exponent;
  double m = frexp(x, &exponent); /* in [1/2, 1) */
  if (m < 0.70710678118654752) m *= 2.0, exponent--;
  double s = (m - 1.0) / (m + 1.0), z = s * s, sum = 0.0;
  for (int i = 19; i >= 1; i -= 2) sum = sum * z + 1.0 / (double)i;
  return (double)exponent * 0.69314718055994531 + 2.0 * s * sum;
}

/* Merges the lists of all threads into the k largest scores of a row and their ids. */
static void merge_tops(const cpu_chunk *c, int row, softmax_kind kind, int k, cpu_top *merged) {
  int threads = c->me->threads;
  merged->count = 0, merged->nan = false;
  for (int t = 0; t < threads;
       t++) { /* ids rise with the thread number, so among equal scores the first one to enter stays first */
    const cpu_top *list = list_of(c->p->w, t, row, kind);
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

typedef struct {
  bool usable;
  double log_sum;
  cpu_softmax_part of;
} softmax;

static softmax sum_up(const cpu_chunk *c, int row, softmax_kind kind, int ids, bool nan) {
  const dt_weights *w = c->p->w;
  softmax s = {.of = w->backend->kernels->combine_parts(part_of(w, 0, kind, row), NEXT_BLOCK,
                                                        (ids + CPU_LOGIT_BLOCK - 1) / CPU_LOGIT_BLOCK)};
  s.usable = !nan && s.of.sum >= 1.0f && isfinite(s.of.sum) && isfinite(s.of.max);
  s.log_sum = s.usable ? natural_log((double)s.of.sum) : 0.0;
  return s;
}

static float log_probability(float score, const softmax *of) {
  return (float)((double)score - (double)of->of.max - of->log_sum);
}

static void write_candidates(const dt_out *out, size_t result, const cpu_top *top, const int32_t *ids,
                             const softmax *scores, const softmax *own) {
  for (int i = 0; i < out->k; i++) {
    bool there = scores->usable && own->usable && i < top->count;
    size_t at = result * (size_t)out->k + (size_t)i;
    out->top_id[at] = !there ? -1 : ids ? ids[top->id[i]] : top->id[i];
    out->top_logp[at] = there ? log_probability(top->score[i], scores) : -INFINITY;
    if (out->top_own) out->top_own[at] = there ? log_probability(top->logit[i], own) : -INFINITY;
  }
}

/* Samples a token among the allowed ids. All logits have been stored, without adjustments. *own becomes the token's
 * unadjusted logit. */
static int32_t sample_filtered(const cpu_chunk *c, int j, const dt_sampling *s, float *own) {
  const dt_weights *w = c->p->w;
  const dt_row_adjustments *adjustments = adjustments_of(c, j);
  int vocab = w->shape.vocab;
  float *stored = w->scratch.logits + (size_t)j * w->scratch.ldlogits, *logits = stored;
  if (adjustments) {
    logits = w->scratch.adjusted + (size_t)c->me->thread * w->scratch.ldlogits;
    memcpy(logits, stored, (size_t)vocab * sizeof *logits);
    cpu_adjust(adjustments, NULL, 0, vocab, logits);
  }
  int32_t position = c->p->rows->position[c->p->out->row[c->wanted + j]];
  int32_t id = w->backend->kernels->sample(s, position, logits, vocab,
                                           w->scratch.weight + (size_t)c->me->thread * w->scratch.ldlogits);
  *own = id < 0 ? 0 : stored[id];
  return id;
}

/* Chooses the token after the j-th wanted row. *own becomes its unadjusted logit. */
static int32_t choose(const cpu_chunk *c, int j, const dt_sampling *s, float *own) {
  cpu_top top;
  if (is_filtered(c, s)) return sample_filtered(c, j, s, own);
  merge_tops(c, j, OF_SCORES, 1, &top);
  *own = top.count ? top.logit[0] : 0;
  return top.nan || top.count == 0 ? -1 : top.id[0];
}

static void write_each(const cpu_chunk *c, int ids) {
  const dt_weights *w = c->p->w;
  const dt_out *out = c->p->out;
  int first, last;
  cpu_share(c->me, c->wanted_n, &first, &last);
  for (int j = first; j < last; j++) {
    size_t result = (size_t)(c->wanted + j);
    const dt_sampling *s = sampling_of(c, j);
    cpu_top top;
    if (out->want == DT_WANT_BOTH) {
      merge_tops(c, j, OF_LOGITS, out->k, &top);
      softmax own = sum_up(c, j, OF_LOGITS, ids, top.nan);
      write_candidates(out, result, &top, w->ids, &own, &own);
      float logit = out->given ? out->logp[result] : top.count ? top.logit[0] : 0;
      if (!out->given) out->argmax[result] = top.nan || top.count == 0 ? -1 : top.id[0];
      if (!out->given && (s || adjustments_of(c, j))) out->argmax[result] = choose(c, j, s, &logit);
      if (out->logp) out->logp[result] = own.usable ? log_probability(logit, &own) : NAN;
      continue;
    }
    if (out->want == DT_WANT_ARGMAX) {
      float logit;
      out->argmax[result] = choose(c, j, s, &logit);
      continue;
    }
    merge_tops(c, j, OF_SCORES, out->k, &top);
    softmax scores = sum_up(c, j, OF_SCORES, ids, top.nan);
    softmax own = s && out->top_own ? sum_up(c, j, OF_LOGITS, ids, top.nan) : scores;
    out->confidence[result] = scores.usable ? 1.0f / scores.of.sum : 0.0f;
    out->entropy[result] =
        scores.usable ? (float)(scores.log_sum - (double)scores.of.weighted / (double)scores.of.sum) : 0.0f;
    write_candidates(out, result, &top, w->ids, &scores, &own);
  }
}

void cpu_write_results(const cpu_chunk *c, int ids) {
  reduce_logits(c, ids);
  cpu_wait(c->me);
  bool here = !c->p->w->ranks || c->p->w->ranks->rank == 0;
  if (here && c->p->out->want != DT_WANT_LOGITS) write_each(c, ids);
}
