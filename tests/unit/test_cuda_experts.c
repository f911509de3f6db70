/* Experts on the CUDA backend: the logits and the choice of experts are near the CPU's, and the bits are those of plain
 * decoding, whatever other rows choose the same experts. test_golden_logits compares families with transformers. */
#include "cuda_exact.h"
#include "cuda_routes.h"

enum { QUANTIZED = 4 /* of random_part_names */ };

static void compare_on_gpu(const char *name, random_model *m, dt_dtype dtype) {
  compare_experts(name, m, rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, COMPARED_SLOTS), 3 * rounding_of(dtype));
  random_model_free(m);
}

static void logits_and_experts_are_those_of_the_cpu(void **state) {
  (void)state;
  for (int i = 0; i < EXPERT_KINDS; i++) {
    compare_on_gpu(expert_kinds[i].name, expert_model(&expert_kinds[i], 4), DT_F16);
    if (!emulated || i == 0) compare_on_gpu("BF16", expert_model(&expert_kinds[i], 5), DT_BF16);
  }
}

/* Up to 16 rows, groups have 8 pairs at most, and from 32 rows on 32. */
static void a_row_has_the_bits_of_plain_decoding_in_every_batch(void **state) {
  (void)state;
  for (int i = 0; i < EXPERT_KINDS && (MOST >= 64 || i < 1); i++) {
    random_model *m = expert_model(&expert_kinds[i], 4);
    check_prefix(&m->desc, NULL, 20, emulated ? 66 : NODES, emulated, ALL);
    random_model_free(m);
  }
  random_model *m = random_parts_new(QUANTIZED, 7);
  check_prefix(&m->desc, "q8", 130, emulated ? 20 : NODES, emulated, ALL);
  random_model_free(m);
}

/* As many experts as a layer may have, and more groups than are multiplied at once: a block takes one after another. */
static void many_groups_have_the_bits_of_plain_decoding(void **state) {
  (void)state;
  enum { MANY = DT_EXPERTS };
  static dt_expert expert[RANDOM_LAYERS][MANY];
  random_model *m = expert_model(&expert_kinds[0], 4);
  dt_shape *s = &m->desc.shape;
  s->experts = MANY, s->chosen = 8;
  for (int i = 1; i < s->layers; i++) {
    dt_layer *l = &m->layer[i];
    for (int e = 0; e < MANY; e++) expert[i][e] = l->expert[e % RANDOM_EXPERTS];
    l->expert = expert[i], l->router = random_in(m, DT_F32, MANY, s->hidden, 0.2f, 0.0f);
  }
  check_prefix(&m->desc, NULL, 9, 9, emulated, ALL);
  random_model_free(m);
}

static void a_text_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  random_model *m = expert_model(&expert_kinds[2], 4);
  check_text(&m->desc, NULL);
  random_model_free(m);
}

/* Codes give the bits of the numbers that they stand for. */
static void packed_experts_have_the_bits_of_widened_ones(void **state) {
  (void)state;
  random_model *m = random_parts_new(QUANTIZED, 7);
  row_list l = {0};
  for (int i = 0; i < 40; i++) row_add_plain(&l, 0, i * 13 % 89, i);
  said of[2];
  for (int widened = 0; widened < 2; widened++) {
    if (widened) setenv("DTRUN_WIDEN", "1", 1);
    rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 40);
    unsetenv("DTRUN_WIDEN");
    of[widened] = run_experts(&r, &m->desc.shape, &l);
    rig_close(&r);
  }
  assert_memory_equal(of[0].logits, of[1].logits, sizeof(float) * (size_t)(l.n * m->desc.shape.vocab));
  for (int i = 0; i < 2; i++) free(of[i].logits), free(of[i].id);
  random_model_free(m);
}

/* Experts whose logits are equal: the choice is that of the lowest ids, which the weights show, too. */
static void ties_go_to_the_lowest_ids(void **state) {
  (void)state;
  random_model *m = expert_model(&expert_kinds[0], 4);
  const dt_shape *s = &m->desc.shape;
  const dt_matrix *router = &m->layer[1].router;
  memset((void *)router->source->bytes, 0, (size_t)router->rows * (size_t)router->cols * sizeof(float));
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 9);
  row_list l = {0};
  for (int i = 0; i < 9; i++) row_add_plain(&l, 0, i * 13 % 89, i);
  said got = run_experts(&r, s, &l);
  for (int i = 0; i < l.n; i++)
    for (int j = 0; j < s->chosen; j++) {
      assert_int_equal(got.id[(i * s->layers + 0) * s->chosen + j], -1); /* a dense layer */
      assert_int_equal(got.id[(i * s->layers + 1) * s->chosen + j], j);
    }
  assert_int_equal(got.read, s->chosen * (s->layers - 1));
  free(got.logits), free(got.id);
  rig_close(&r);
  random_model_free(m);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(logits_and_experts_are_those_of_the_cpu),
      cmocka_unit_test(a_row_has_the_bits_of_plain_decoding_in_every_batch),
      cmocka_unit_test(many_groups_have_the_bits_of_plain_decoding),
      cmocka_unit_test(a_text_has_the_bits_of_plain_decoding),
      cmocka_unit_test(packed_experts_have_the_bits_of_widened_ones),
      cmocka_unit_test(ties_go_to_the_lowest_ids),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
