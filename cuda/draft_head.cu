/* The steps of a draft head before its layer, which is like a model's: see dt_head_desc. A row's feature is the
 * target's, in the cache that the pass names, or the one that the head computed for the row before. */
#include "draft_head.cuh"

static void run(enqueuer *q, const norm_job &a, int streams) {
  must(q, normalize(q->stream, q->w->activations, a, q->shape.rows, streams));
}

/* The job that writes an entering stream to columns of `to`, with or without a norm, and leaves x alone. */
static norm_job job_beside_x(const enqueuer *q, entering kind, const float *weight, const operand &to, int column) {
  norm_job a = step_job(q, 0, {kind, 0, nullptr, false, false}, false);
  a.x = nullptr;
  a.weight1 = weight;
  a.y1 = to, a.column = column;
  return a;
}

/* x becomes fc of this input. */
static entry fresh_x(enqueuer *q, const operand &input) {
  entry made = step_store(q, q->w->head.fc, input);
  made.fresh = true;
  return made;
}

static bool reads_target(const enqueuer *q) { return q->shape.given.at; }

/* x becomes fc of the target's streams, or the feature that the head computed. */
static entry begin_feature(enqueuer *q) {
  const draft_head &h = q->w->head;
  if (!reads_target(q)) return {BEFORE, 0, nullptr, false, false};
  norm_job a = job_beside_x(q, GIVEN, h.given_norm, h.given, 0);
  a.hidden = h.target->shape.hidden;
  a.norm_over = h.norms_all ? h.streams * a.hidden : 0;
  run(q, a, h.streams);
  return fresh_x(q, h.given);
}

/* x is the feature; q, k and v read the norm of the embedding and the norm of x side by side. */
static void begin_eagle3(enqueuer *q) {
  const draft_head &h = q->w->head;
  run(q, job_beside_x(q, TOKEN, h.token_norm, h.pair, 0), 1);
  norm_job a = step_job(q, 0, begin_feature(q), false);
  a.weight1 = h.feature_norm;
  a.keeps_norm = h.norm_residual;
  a.y1 = h.pair, a.column = a.hidden;
  run(q, a, 1);
}

/* x = fc(embedding and feature side by side), with norms of both in an MTP layer, which has one of x, too. */
static void begin_eagle(enqueuer *q) {
  const draft_head &h = q->w->head;
  const layer &l = q->w->layers_of[0];
  run(q, job_beside_x(q, TOKEN, h.token_norm, h.pair, 0), 1);
  run(q, job_beside_x(q, reads_target(q) ? GIVEN : BEFORE, h.feature_norm, h.pair, q->w->shape.hidden), 1);
  step_norms(q, UNKEPT, fresh_x(q, h.pair), false, l.norm1, l.norm1_bias, q->w->pass.normed1, nullptr, nullptr);
}

/* x = fc(the target's embedding and the feature side by side). A row's path is the slot of the feature. */
static entry begin_cross_attention(enqueuer *q) {
  const draft_head &h = q->w->head;
  const int width = h.target->shape.hidden;
  norm_job token = job_beside_x(q, TOKEN, nullptr, h.pair, 0),
           feature = job_beside_x(q, LISTED, nullptr, h.pair, width);
  token.hidden = feature.hidden = width;
  if (q->shape.distance == 0) feature.from = q->shape.given;
  run(q, token, 1);
  run(q, feature, 1);
  return fresh_x(q, h.pair);
}

void head_end(enqueuer *q) {
  const draft_head &h = q->w->head;
  const int width = h.target->shape.hidden;
  const size_t part = (size_t)ROWS * (size_t)width;
  must(q, multiply_plain(q->stream, step_product(q, h.post, q->w->pass.normed1),
                         plain_epilogue{q->w->partial, part, width}, q->shape.rows));
  norm_job a = step_job(q, 0, {SUM, h.post.splits, h.post.bias, true, false}, false);
  a.x = nullptr, a.hidden = width, a.part_stride = part;
  a.y1 = h.pair; /* nobody reads it any more */
  a.taps = 1;
  run(q, a, 1);
}

/* x is the feature; the blocks of the pass's distance are added to it. */
static entry run_medusa(enqueuer *q) {
  const draft_head &h = q->w->head;
  entry made = {GIVEN, 0, nullptr, false, false};
  for (int b = 0; b < h.blocks && q->shape.wanted; b++) {
    step_norms(q, UNKEPT, made, false, nullptr, nullptr, q->w->pass.normed1, nullptr, nullptr);
    made = step_store(q, h.block[q->shape.distance][b], q->w->pass.normed1);
    made.activates = true;
  }
  return made;
}

/* The rows of a block are like a model's. Rows of the text write keys and values only, of the norm of fc. */
static void begin_block(enqueuer *q) {
  if (reads_target(q))
    step_norms(q, UNKEPT, begin_feature(q), false, q->w->head.feature_norm, nullptr, q->w->pass.normed1, nullptr,
               nullptr);
}

entry head_begin(enqueuer *q) {
  switch (q->w->head.kind) {
  case DT_HEAD_EAGLE3: begin_eagle3(q); break;
  case DT_HEAD_EAGLE: begin_eagle(q); break;
  case DT_HEAD_MEDUSA: return run_medusa(q);
  case DT_HEAD_BLOCK: begin_block(q); break;
  case DT_HEAD_CROSS_ATTENTION: return begin_cross_attention(q);
  }
  return {};
}

bool head_keys_only(const enqueuer *q) { return q->w->head.kind == DT_HEAD_BLOCK && reads_target(q); }

bool head_norms(const dt_weights *w) { return w->head.kind == DT_HEAD_BLOCK || reads_keys(*w); }

const operand &head_reads(const dt_weights *w) {
  return w->head.kind == DT_HEAD_EAGLE3 ? w->head.pair : w->pass.normed1;
}
