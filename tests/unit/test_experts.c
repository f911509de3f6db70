/* Experts: which ones a row chooses, and what is refused. Other tests check that rows have the same bits in every batch
 * (test_cpu_exact) and on every variant (test_cpu_isa), that the numbers are those of transformers
 * (test_golden_logits), and what can be wrong in files (test_malformed). */
#include "backend/check.h"
#include "backend/ranks.h"
#include "cpu.h"
#include "random_parts.h"
#include "rig.h"

enum { ROWS = 9 };

static float *logits_of(random_model *m) {
  rig r = rig_open(&dt_cpu_ops, NULL, 2, &m->desc, 1, ROWS);
  row_list l = {0};
  for (int p = 0; p < ROWS; p++) row_add_plain(&l, 0, 7 * p % r.vocab, p);
  float *logits = rig_run(&r, &l, true);
  rig_close(&r);
  return logits;
}

/* Changes the sign of an expert's last matrix. */
static void turn(random_model *m, int expert) {
  const dt_matrix *down = &m->layer[1].expert[expert].down;
  uint16_t *at = (uint16_t *)((char *)down->source->bytes + down->offset);
  for (int i = 0; i < down->rows * down->cols; i++) at[i] ^= 0x8000;
}

static bool changes(random_model *m, int expert, const float *before) {
  turn(m, expert);
  float *after = logits_of(m);
  bool same = !memcmp(before, after, sizeof *after * ROWS * (size_t)m->desc.shape.vocab);
  free(after);
  turn(m, expert);
  return !same;
}

static void ties_go_to_the_lowest_ids(void **state) {
  (void)state;
  random_model *m = random_parts_new(3, 5);
  const dt_matrix *router = &m->layer[1].router;
  memset((void *)router->source->bytes, 0, (size_t)router->rows * (size_t)router->cols * 4);
  float *before = logits_of(m);
  for (int e = 0; e < RANDOM_EXPERTS; e++) assert_true(changes(m, e, before) == (e < m->desc.shape.chosen));
  free(before);
  random_model_free(m);
}

/* The logit of the last expert is larger than the others, which are equal, in some rows, and smaller in other rows. */
static void a_row_takes_the_largest(void **state) {
  (void)state;
  random_model *m = random_parts_new(3, 5);
  const dt_matrix *router = &m->layer[1].router;
  float *numbers = (float *)router->source->bytes, *last = numbers + (RANDOM_EXPERTS - 1) * router->cols;
  memset(numbers, 0, (size_t)router->rows * (size_t)router->cols * 4);
  for (int c = 0; c < router->cols; c++) last[c] = 1;
  float *before = logits_of(m);
  for (int e = 0; e < RANDOM_EXPERTS; e++) assert_true(changes(m, e, before) == (e < 3 || e == RANDOM_EXPERTS - 1));
  free(before);
  random_model_free(m);
}

/* A correction in GLM's router that lifts the last expert above the others makes every row choose it, with the weight
 * that it has without the correction. */
static void a_correction_only_chooses(void **state) {
  (void)state;
  random_model *m = random_parts_new(6, 5);
  const dt_matrix *router = &m->layer[1].router, *correction = &m->layer[1].router_correction;
  float *by = (float *)correction->source->bytes;
  memset((void *)router->source->bytes, 0, (size_t)router->rows * (size_t)router->cols * 4);
  memset(by, 0, RANDOM_EXPERTS * sizeof *by);
  float *before = logits_of(m);
  for (int e = 0; e < RANDOM_EXPERTS; e++) assert_true(changes(m, e, before) == (e < m->desc.shape.chosen));
  free(before);
  by[RANDOM_EXPERTS - 1] = 0.25f;
  before = logits_of(m);
  for (int e = 0; e < RANDOM_EXPERTS; e++) assert_true(changes(m, e, before) == (e < 2 || e == RANDOM_EXPERTS - 1));
  by[RANDOM_EXPERTS - 1] = 0.5f;
  float *after = logits_of(m);
  assert_memory_equal(before, after, sizeof *after * ROWS * (size_t)m->desc.shape.vocab);
  free(before), free(after);
  random_model_free(m);
}

/* A change to a model. */
typedef struct {
  dt_model_desc desc;
  dt_layer layer[RANDOM_LAYERS];
} changed;

static void check_changed(random_model *m, void (*change)(changed *), const char *message) {
  changed c = {.desc = m->desc};
  memcpy(c.layer, m->layer, sizeof c.layer);
  c.desc.layer = c.layer;
  change(&c);
  if (message)
    fails(check_model(&c.desc, &err), DT_EINPUT, message);
  else
    ok(check_model(&c.desc, &err));
}

static void nothing(changed *c) { (void)c; }
static void none_chosen(changed *c) { c->desc.shape.chosen = 0; }
static void all_chosen(changed *c) { c->desc.shape.chosen = RANDOM_EXPERTS; }
static void more_chosen(changed *c) { c->desc.shape.chosen = RANDOM_EXPERTS + 1; }
static void many(changed *c) { c->desc.shape.experts = DT_EXPERTS + 1; }
static void no_width(changed *c) { c->desc.shape.expert_inter = 0; }
static void parallel(changed *c) { c->desc.shape.parallel_residual = true; }
static void no_gates(changed *c) { c->desc.shape.gated = false, c->layer[0].gate.source = NULL; }
static void short_router(changed *c) { c->layer[1].router.rows--; }
static void no_router(changed *c) { c->layer[1].router.source = NULL; }
static void half_an_mlp(changed *c) { c->layer[1].up = c->layer[0].up; }
static void with_dense(changed *c) {
  half_an_mlp(c), c->layer[1].gate = c->layer[0].gate, c->layer[1].down = c->layer[0].down;
}
static void norm_of_no_mlp(changed *c) { c->layer[1].mlp_norm = c->layer[1].norm2; }
static void gate_of_no_mlp(changed *c) { c->layer[1].mlp_gate = dt_some_rows(c->layer[1].router, 0, 1); }
static void gated(changed *c) { with_dense(c), gate_of_no_mlp(c); }
static void two_gates(changed *c) { gated(c), c->layer[1].mlp_gate = dt_some_rows(c->layer[1].router, 0, 2); }
static void norm_of_no_router(changed *c) { c->layer[1].expert_norm = c->layer[1].norm2; }
static void short_correction(changed *c) { c->layer[1].router_correction = c->layer[1].norm2; }
static void short_sinks(changed *c) { c->layer[0].sinks = c->layer[1].norm2; }
static void wide_bias(changed *c) { c->layer[1].expert[2].up_bias = c->layer[1].norm2; }
static void clamped(changed *c) { c->desc.shape.act = DT_ACT_CLAMPED; }
static void clamped_without_gates(changed *c) { clamped(c), no_gates(c); }
static void narrow(changed *c) { c->layer[1].expert[4].down.cols--; }

static void models_that_are_none_are_refused(void **state) {
  (void)state;
  random_model *m = random_parts_new(3, 5);
  check_changed(m, nothing, NULL);
  check_changed(m, all_chosen, NULL);
  check_changed(m, none_chosen,
                "model: layer 1: a row chooses 0 of 7 experts of 27 numbers; expected 1 to 512 experts");
  check_changed(m, more_chosen, "model: layer 1: a row chooses 8 of 7 experts");
  check_changed(m, many, "model: layer 1: a row chooses 3 of 513 experts");
  check_changed(m, no_width, "model: layer 1: a row chooses 3 of 7 experts of 0 numbers");
  check_changed(m, parallel, "with gates and a sequential residual");
  check_changed(m, no_gates, "with gates and a sequential residual");
  check_changed(m, short_router, "layer 1: router is 6 x 100, expected 7 x 100");
  check_changed(m, no_router, "layer 1: no router");
  check_changed(m, half_an_mlp, "layer 1: experts with a part of an MLP, expected all or none of it");
  check_changed(m, with_dense, NULL);
  check_changed(m, norm_of_no_mlp, "layer 1: experts with a part of an MLP");
  check_changed(m, gate_of_no_mlp, "layer 1: experts with a part of an MLP");
  check_changed(m, gated, NULL);
  check_changed(m, two_gates, "layer 1: gate of the MLP is 2 x 100, expected 1 x 100");
  check_changed(m, norm_of_no_router, "layer 1: norms of experts and of their router, expected both or none");
  check_changed(m, short_correction, "layer 1: router correction is 100 x 1, expected 7 x 1");
  check_changed(m, short_sinks, "layer 0: sinks is 100 x 1, expected 9 x 1");
  check_changed(m, clamped, NULL);
  check_changed(m, clamped_without_gates, "model: a clamped activation without a gate");
  check_changed(m, narrow, "layer 1: expert's down is 100 x 26, expected 100 x 27");
  check_changed(m, wide_bias, "layer 1: expert's up bias is 100 x 1, expected 27 x 1");
  random_model_free(m);
}

static void nobody_gathers(dt_ranks *ranks, void *numbers, const int *bytes, const int *offset) {
  (void)ranks, (void)numbers, (void)bytes, (void)offset;
}

static void ranks_refuse_them_in_one_line(void **state) {
  (void)state;
  random_model *m = random_parts_new(3, 5);
  dt_ranks ranks = {.rank = 0, .count = 2, .gather = nobody_gathers};
  dt_backend *b = NULL;
  dt_weights *w = NULL;
  ok(dt_cpu_ops.open(&(dt_backend_options){.threads = 1, .ranks = &ranks}, &b, &err));
  m->desc.path = "model";
  fails(dt_cpu_ops.upload(b, &m->desc, NULL, &w, &err), DT_EINPUT,
        "model: a model with experts cannot be split across ranks; run dtrun without mpirun");
  dt_cpu_ops.close(b);
  random_model_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ties_go_to_the_lowest_ids),     cmocka_unit_test(a_row_takes_the_largest),
      cmocka_unit_test(a_correction_only_chooses),     cmocka_unit_test(models_that_are_none_are_refused),
      cmocka_unit_test(ranks_refuse_them_in_one_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
