/* Compares what a pass reports about the next token, with and without the noise of sample.h, with the definition in
 * double precision. Also checks that a pass that wants both reports what two separate passes would. */
#ifndef CANDIDATES_CASE_H
#define CANDIDATES_CASE_H

#include "rig.h"
#include "sample_definition.h"

enum { CANDIDATES_ROWS = 9, CANDIDATES = 32 };

typedef struct {
  int32_t id[CANDIDATES_ROWS][CANDIDATES];
  float logp[CANDIDATES_ROWS][CANDIDATES], own[CANDIDATES_ROWS][CANDIDATES];
  float confidence[CANDIDATES_ROWS], entropy[CANDIDATES_ROWS];
} candidates;

static void near_definition(const char *what, double is, double should, double error) {
  if (!(fabs(is - should) < error)) fail_msg("%s: %.9g, not %.9g", what, is, should);
}

/* Checks row i of the candidates against these logits of ids 0..vocab-1, in a sequence that samples as `s` says. */
static void check_candidates(const candidates *c, int i, const float *logits, int vocab, const dt_sampling *s,
                             double error) {
  double *score = malloc(sizeof *score * (size_t)vocab), sum = 0, own_sum = 0, entropy = 0, largest = -INFINITY;
  for (int v = 0; v < vocab; v++) {
    double logit = (double)logits[v];
    score[v] = s->temp > 0 ? logit / (double)s->temp + definition_noise(s->seed, 0, v) : logit;
    sum += exp(score[v]), own_sum += exp(logit);
    largest = score[v] > largest ? score[v] : largest;
  }
  for (int v = 0; v < vocab; v++) entropy -= exp(score[v]) / sum * (score[v] - log(sum));
  near_definition("confidence", (double)c->confidence[i], exp(largest) / sum, error);
  near_definition("entropy", (double)c->entropy[i], entropy, error);
  for (int k = 0; k < CANDIDATES; k++) {
    int id = c->id[i][k], larger = 0; /* exactly k ids come before it */
    for (int v = 0; v < vocab; v++) larger += score[v] > score[id] || (score[v] == score[id] && v < id);
    assert_int_equal(larger, k);
    near_definition("log-probability", (double)c->logp[i][k], score[id] - log(sum), error);
    near_definition("log-probability without noise", (double)c->own[i][k], (double)logits[id] - log(own_sum), error);
  }
  free(score);
}

/* Checks the candidates of the first rows of `l` (one row per sequence, at position 0), with the noise and without it.
 * `noisy` gets what was reported with noise. Only ids below `vocab` take part. */
static void candidates_are_those_of_the_definition(rig *r, row_list *l, int vocab, double error, candidates *noisy) {
  int32_t index[CANDIDATES_ROWS];
  dt_sampling sampling[CANDIDATES_ROWS];
  candidates quiet;
  int moved = 0;
  float *logits = rig_run(r, l, true);
  dt_rows rows = rows_of(l);
  for (int i = 0; i < CANDIDATES_ROWS; i++)
    index[i] = i, sampling[i] = (dt_sampling){(uint64_t)i, 0.5f * (float)(i % 4), 1, 0.1f, 1};
  for (int pass = 0; pass < 2; pass++) {
    candidates *c = pass ? &quiet : noisy;
    dt_out out = {.want = DT_WANT_TOPK,
                  .n = CANDIDATES_ROWS,
                  .row = index,
                  .k = CANDIDATES,
                  .vocab = vocab,
                  .sampling = pass ? NULL : sampling,
                  .top_id = &c->id[0][0],
                  .top_logp = &c->logp[0][0],
                  .top_own = &c->own[0][0],
                  .confidence = c->confidence,
                  .entropy = c->entropy};
    ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  }
  for (int i = 0; i < CANDIDATES_ROWS; i++) {
    const float *row = logits + (size_t)i * (size_t)r->vocab;
    check_candidates(noisy, i, row, vocab, &sampling[i], error);
    check_candidates(&quiet, i, row, vocab, &(dt_sampling){0}, error);
    assert_memory_equal(quiet.own[i], quiet.logp[i], sizeof quiet.own[i]);
    for (int k = 0; k < CANDIDATES; k++) moved += noisy->id[i][k] != quiet.id[i][k];
    if (sampling[i].temp > 0) continue;
    assert_memory_equal(noisy->id[i], quiet.id[i], sizeof quiet.id[i]);
    assert_memory_equal(noisy->logp[i], quiet.logp[i], sizeof quiet.logp[i]);
  }
  assert_true(moved > CANDIDATES_ROWS * CANDIDATES / 2);
  free(logits);
}

/* As many candidates as the backend returns begin with those of the shorter list, and follow the same order. */
static void the_longest_list_continues_the_shorter_one(rig *r, row_list *l, int vocab, const candidates *shorter) {
  const int k = r->ops->candidates;
  int32_t index[CANDIDATES_ROWS], *id = malloc(sizeof *id * CANDIDATES_ROWS * (size_t)k);
  float *logp = malloc(sizeof *logp * CANDIDATES_ROWS * (size_t)k), confidence[CANDIDATES_ROWS],
        entropy[CANDIDATES_ROWS];
  dt_rows rows = rows_of(l);
  for (int i = 0; i < CANDIDATES_ROWS; i++) index[i] = i;
  const dt_out out = {.want = DT_WANT_TOPK,
                      .n = CANDIDATES_ROWS,
                      .row = index,
                      .k = k,
                      .vocab = vocab,
                      .top_id = id,
                      .top_logp = logp,
                      .confidence = confidence,
                      .entropy = entropy};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  for (int i = 0; i < CANDIDATES_ROWS; i++) {
    const int32_t *own = id + (ptrdiff_t)i * k;
    const float *of = logp + (ptrdiff_t)i * k;
    assert_memory_equal(own, shorter->id[i], sizeof shorter->id[i]);
    assert_memory_equal(of, shorter->logp[i], sizeof shorter->logp[i]);
    for (int j = 1; j < k; j++)
      assert_true(j < vocab ? of[j] < of[j - 1] || (of[j] == of[j - 1] && own[j] > own[j - 1]) : own[j] == -1);
  }
  free(id), free(logp);
}

/* For the same rows: a pass that wants both has the same argmax and, over all ids, the same candidates without noise,
 * for k = 1, 8 and 32. Some rows are filtered, some are not, and some do not sample. */
static void both_are_the_argmax_and_the_quiet_candidates(rig *r, row_list *l, int vocab) {
  int32_t index[CANDIDATES_ROWS], argmax[CANDIDATES_ROWS], expected[CANDIDATES_ROWS];
  dt_sampling sampling[CANDIDATES_ROWS];
  candidates quiet, both;
  dt_rows rows = rows_of(l);
  for (int i = 0; i < CANDIDATES_ROWS; i++)
    index[i] = i, sampling[i] = (dt_sampling){(uint64_t)i, 0.5f * (float)(i % 3), i % 2 ? 7 : 0, 0, 0};
  dt_out out = {.want = DT_WANT_ARGMAX, .n = CANDIDATES_ROWS, .row = index, .sampling = sampling, .argmax = expected};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  out = (dt_out){.want = DT_WANT_TOPK,
                 .n = CANDIDATES_ROWS,
                 .row = index,
                 .k = CANDIDATES,
                 .vocab = vocab,
                 .top_id = &quiet.id[0][0],
                 .top_logp = &quiet.logp[0][0],
                 .confidence = quiet.confidence,
                 .entropy = quiet.entropy};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  the_longest_list_continues_the_shorter_one(r, l, vocab, &quiet);
  for (int k = 1; k <= CANDIDATES; k = k == 1 ? 8 : 4 * k) {
    out = (dt_out){.want = DT_WANT_BOTH,
                   .n = CANDIDATES_ROWS,
                   .row = index,
                   .sampling = sampling,
                   .argmax = argmax,
                   .k = k,
                   .top_id = &both.id[0][0],
                   .top_logp = &both.logp[0][0]};
    ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
    assert_memory_equal(argmax, expected, sizeof argmax);
    for (int i = 0; i < CANDIDATES_ROWS; i++) {
      assert_memory_equal(&both.id[0][0] + i * k, quiet.id[i], sizeof(int32_t) * (size_t)k);
      assert_memory_equal(&both.logp[0][0] + i * k, quiet.logp[i], sizeof(float) * (size_t)k);
    }
  }
  out.k = r->ops->candidates + 1;
  assert_int_equal(r->ops->forward(r->weights, r->cache, &rows, &out, NULL), DT_EINPUT);
  out.k = 0;
  assert_int_equal(r->ops->forward(r->weights, r->cache, &rows, &out, NULL), DT_EINPUT);
}

#endif
