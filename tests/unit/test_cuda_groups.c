/* A block of attention computes several heads together if they share their keys. They get the same bits as heads with
 * keys of their own: a model is compared with itself with a copy of the key and value head for each query head. In that
 * model no two heads share a block. */
#include "cuda_device.h"
#include "rig.h"

#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
static const int counts[] = {1, 3, 17, 64}; /* rows of one sequence in a pass */
enum { SHAPES = 3 };
#else
static const int counts[] = {1, 2, 3, 4, 5, 16, 17, 64};
enum { SHAPES = 8 };
#endif
enum { COUNTS = sizeof counts / sizeof *counts, SLOTS = 330 };

/* Repeats each group of `height` rows `times` times. */
static dt_matrix repeated(random_model *m, dt_matrix of, int height, int times) {
  size_t row = dt_row_bytes(of.dtype, (size_t)of.cols), bytes = (size_t)of.rows * row, head = (size_t)height * row;
  char *data = malloc(bytes * (size_t)times);
  for (size_t at = 0; at < bytes * (size_t)times; at += head)
    memcpy(data + at, (const char *)of.source->bytes + at / head / (size_t)times * head, head);
  dt_source *source = &m->owned[m->count++];
  *source = source_of_memory("repeated", data, bytes * (size_t)times);
  int rows = of.rows * times;
  return (dt_matrix){.source = source, .dtype = of.dtype, .rows = rows, .cols = of.cols, .group = rows, .stride = rows};
}

static random_model *ungrouped(const model_shape *shape, uint64_t seed) {
  random_model *m = random_model_new(shape, seed);
  int times = shape->heads / shape->kv_heads;
  for (int i = 0; i < shape->layers; i++) {
    dt_matrix *of[] = {&m->layer[i].k, &m->layer[i].v, &m->layer[i].k_bias, &m->layer[i].v_bias};
    for (int p = 0; p < (shape->biased_qkv ? 4 : 2); p++) *of[p] = repeated(m, *of[p], shape->head_dim, times);
  }
  m->desc.shape.kv_heads = shape->heads;
  return m;
}

/* Runs a pass in both models and compares the logits of its rows. */
static void expect_same(rig *grouped, rig *apart, const row_list *l, const char *what) {
  float *got = rig_run(grouped, l, true), *expected = rig_run(apart, l, true);
  size_t row = sizeof *got * (size_t)grouped->vocab;
  for (int i = 0; i < l->n; i++) {
    for (int v = 0; v < grouped->vocab; v++) assert_true(isfinite(expected[i * grouped->vocab + v]));
    if (memcmp((char *)got + (size_t)i * row, (char *)expected + (size_t)i * row, row))
      fail_msg("%s, %d rows: the logits of row %d differ from those of heads with keys of their own", what, l->n, i);
  }
  free(got), free(expected);
}

/* Uses two sequences, after 126 and 250 positions: a tree of n rows and n rows of a text in one pass, and then vice
 * versa. */
static void check_shape(model_shape shape, dt_window window) {
  static const int before[2] = {126, 250};
  random_model *m = random_model_new(&shape, 31), *copies = ungrouped(&shape, 31);
  rig grouped = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, SLOTS);
  rig apart = rig_open(&dt_cuda_ops, NULL, 1, &copies->desc, 2, SLOTS);
  grouped.window = apart.window = window;
  char what[80];
  snprintf(what, sizeof what, "%d heads, %d of keys", shape.heads, shape.kv_heads);
  for (int s = 0; s < 2; s++) {
    row_list text = {0};
    for (int p = 0; p < before[s]; p++) row_add_plain(&text, s, (p * 13 + s) % 90, p);
    expect_same(&grouped, &apart, &text, what);
  }
  for (int i = 0; i < 2 * COUNTS; i++) {
    row_list l = {0};
    int n = counts[i / 2], tree = i % 2;
    row_add_tree(&l, tree, before[tree], n, (uint64_t)n);
    for (int p = 0; p < n; p++) row_add_plain(&l, 1 - tree, p * 17 % 90, before[1 - tree] + p);
    expect_same(&grouped, &apart, &l, what);
  }
  rig_close(&grouped), rig_close(&apart);
  random_model_free(m), random_model_free(copies);
}

/* With 64 rows in each of two sequences, the rows of a tree share work within a part of the keys. */
static void heads_of_a_group_have_the_bits_of_heads_alone(void **state) {
  (void)state;
  static const int heads[8][3] = {{10, 5, 40}, {20, 5, 16}, {8, 1, 128}, {3, 1, 64},
                                  {6, 1, 32},  {10, 2, 24}, {14, 2, 16}, {12, 1, 80}};
  for (int i = 0; i < SHAPES; i++) {
    model_shape shape = cuda_shape(i % 2 ? 4 : 2); /* F16 with biases, or BF16 */
    shape.layers = 1, shape.heads = heads[i][0], shape.kv_heads = heads[i][1];
    shape.head_dim = shape.rotary_dims = heads[i][2];
    check_shape(shape, i == 1 ? (dt_window){40, 3} : (dt_window){0});
  }
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(heads_of_a_group_have_the_bits_of_heads_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
