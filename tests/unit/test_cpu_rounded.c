/* Weights rounded when they are loaded: the model is, to the bit, the one whose files have them rounded. */
#include "cpu.h"
#include "model/model.h"
#include "random_model.h"
#include "rig.h"

#include <stdio.h>

enum { ROWS = 12, LAYERS = 8 };

/* The logits of some rows; *bytes: what the weights take. malloc'd. */
static float *logits_of(const dt_model_desc *d, const char *dtype, const char *held, size_t *bytes) {
  rig r = rig_open_rounded(&dt_cpu_ops, (dt_backend_options){.threads = 2}, d, (dt_holding){.dtype = dtype}, 1, ROWS);
  row_list all = {0};
  for (int p = 0; p < ROWS; p++) row_add_plain(&all, 0, (p * 37 + 5) % d->shape.vocab, p);
  float *logits = rig_run(&r, &all, true);
  assert_string_equal(r.ops->weight_dtype(r.weights), held);
  *bytes = r.ops->memory(r.backend).weights;
  rig_close(&r);
  return logits;
}

static void assert_same(const float *a, const float *b, const dt_model_desc *d) {
  assert_memory_equal(a, b, ROWS * (size_t)d->shape.vocab * sizeof *a);
}

static dt_source sources[LAYERS * 8 + 1];
static int used;

/* The matrix in blocks of its own, rounded. */
static dt_matrix rounded(const dt_matrix *m, dt_dtype dtype) {
  size_t n = (size_t)m->rows * (size_t)m->cols;
  char *raw = malloc((size_t)m->rows * dt_row_bytes(m->dtype, (size_t)m->cols));
  float *wide = malloc(n * sizeof *wide);
  char *blocks = malloc(dt_row_bytes(dtype, n));
  ok(dt_read_rows(m, 0, m->rows, raw, &err));
  dt_type_of(m->dtype)->decode(raw, n, wide);
  dt_round_to(dtype)(wide, n, blocks);
  free(raw), free(wide);
  sources[used] = source_of_memory("rounded", blocks, dt_row_bytes(dtype, n));
  return (dt_matrix){.source = &sources[used++],
                     .dtype = dtype,
                     .rows = m->rows,
                     .cols = m->cols,
                     .group = m->rows,
                     .stride = m->rows};
}

static void check_bundled(const char *folder, const char *dtype, dt_dtype type) {
  model *m = NULL;
  ok(model_open(folder, &m, &err));
  const dt_model_desc *plain = model_desc(m);
  dt_model_desc d = *plain;
  dt_layer layer[LAYERS];
  assert_true(d.shape.layers <= LAYERS);
  used = 0;
  for (int l = 0; l < d.shape.layers; l++) {
    layer[l] = plain->layer[l];
    dt_matrix *all[] = {&layer[l].q, &layer[l].k, &layer[l].v, &layer[l].o, &layer[l].up, &layer[l].down};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = rounded(all[i], type);
  }
  d.layer = layer;
  d.unembed = rounded(&plain->unembed, type); /* not the embedding, of which a pass reads a row */

  size_t bytes, held_bytes, plain_bytes;
  char held[8];
  snprintf(held, sizeof held, "%s", type == DT_Q8_0 ? "q8_0" : "q4_1");
  float *before = logits_of(&d, NULL, held, &held_bytes), *now = logits_of(plain, dtype, dtype, &bytes);
  float *exact = logits_of(plain, NULL, "f16", &plain_bytes);
  assert_same(before, now, plain);
  assert_true(memcmp(now, exact, ROWS * (size_t)d.shape.vocab * sizeof *now) != 0);
  assert_true(bytes <= held_bytes && bytes < plain_bytes);
  free(before), free(now), free(exact);
  while (used > 0) free((void *)sources[--used].bytes);
  model_close(m);
}

static void a_model_is_the_one_that_was_rounded_before(void **state) {
  (void)state;
  const char *folders[] = {SOURCE_DIR "/models/mini-draft", SOURCE_DIR "/models/mini-target"};
  for (int i = 0; i < 2; i++) {
    check_bundled(folders[i], "q8", DT_Q8_0);
    check_bundled(folders[i], "q4", DT_Q4_1);
  }
}

/* What has as few bits already stays as it is, and so do rows that are no whole blocks. */
static void nothing_is_rounded_to_more_bits_or_to_parts_of_blocks(void **state) {
  (void)state;
  size_t bytes;
  for (int s = 0; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 5);
    const dt_dtype type = random_shapes[s].dtype;
    rig r = rig_open(&dt_cpu_ops, NULL, 1, &m->desc, 1, ROWS);
    char held[16];
    snprintf(held, sizeof held, "%s", r.ops->weight_dtype(r.weights));
    rig_close(&r);
    float *plain = logits_of(&m->desc, NULL, held, &bytes), *q8 = logits_of(&m->desc, "q8", "q8", &bytes);
    float *q4 = logits_of(&m->desc, "q4", "q4", &bytes), *f32 = logits_of(&m->desc, "f32", "f32", &bytes);
    bool is_q8 = !memcmp(plain, q8, ROWS * (size_t)m->desc.shape.vocab * sizeof *plain);
    bool is_q4 = !memcmp(plain, q4, ROWS * (size_t)m->desc.shape.vocab * sizeof *plain);
    bool is_f32 = !memcmp(plain, f32, ROWS * (size_t)m->desc.shape.vocab * sizeof *plain);
    if (type == DT_Q4_1) assert_true(is_q8 && is_q4);
    if (type == DT_Q4_K || type == DT_Q8_0) assert_true(is_q8 && !is_q4); /* the first has matrices in Q6_K */
    assert_true(is_f32 == (dt_type_of(type)->numbers == 1));
    free(plain), free(q8), free(q4), free(f32);
    random_model_free(m);
  }
}

static void an_unknown_type_is_refused(void **state) {
  (void)state;
  random_model *m = random_model_new(&random_shapes[0], 5);
  dt_backend *b;
  dt_weights *w;
  ok(dt_cpu_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
  fails(dt_cpu_ops.upload(b, &m->desc, &(dt_holding){.dtype = "q5"}, &w, &err), DT_EINPUT,
        "weights: the type 'q5' is unknown to the CPU");
  dt_cpu_ops.close(b);
  random_model_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_model_is_the_one_that_was_rounded_before),
      cmocka_unit_test(nothing_is_rounded_to_more_bits_or_to_parts_of_blocks),
      cmocka_unit_test(an_unknown_type_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
