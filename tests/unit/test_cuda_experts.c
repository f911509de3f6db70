/* Experts on the CUDA backend: the logits and the choice of experts are near the CPU's, and the bits are those of plain
 * decoding, whatever other rows choose the same experts. test_golden_logits compares families with transformers. */
#include "cpu.h"
#include "cuda_exact.h"
#include "random_parts.h"

static void after_a_dense_layer(random_model *m) { random_experts(m, 1, 27, false, false); }

typedef struct {
  const char *name;
  void (*add)(random_model *);
} kind;

static const kind kinds[] = {{"as Qwen3", after_a_dense_layer},
                             {"as gpt-oss", random_gpt_oss},
                             {"as GLM-4.5", random_glm},
                             {"as Gemma 4", random_gemma4_experts},
                             {"as Qwen3.5, but dense", random_gated_experts}};
enum { KINDS = sizeof kinds / sizeof *kinds, QUANTIZED = 4 /* of random_part_names */ };

static random_model *model_of(const kind *k, int which) {
  model_shape shape = cuda_shape(which);
  random_model *m = random_model_new(&shape, 7);
  k->add(m);
  return m;
}

/* What a pass says of its rows. */
typedef struct {
  float *logits;
  int32_t *id; /* [rows][layers][chosen] */
  int read;
} said;

static said run(rig *r, const dt_shape *s, const row_list *l) {
  said of = {malloc(sizeof(float) * (size_t)(l->n * r->vocab)),
             malloc(sizeof(int32_t) * (size_t)(l->n * s->layers * s->chosen)), 0};
  int32_t all[MAX_ROWS];
  for (int i = 0; i < l->n; i++) all[i] = i;
  dt_rows rows = rows_of(l);
  dt_out out = {
      .want = DT_WANT_LOGITS, .n = l->n, .row = all, .logits = of.logits, .experts = of.id, .experts_read = &of.read};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  return of;
}

static int distinct(const said *of, const dt_shape *s, int rows) {
  int n = 0;
  for (int layer = 0; layer < s->layers; layer++) {
    bool seen[DT_EXPERTS] = {false};
    for (int i = 0; i < rows * s->chosen; i++) {
      int id = of->id[(i / s->chosen * s->layers + layer) * s->chosen + i % s->chosen];
      if (id >= 0 && !seen[id]) seen[id] = true, n++;
    }
  }
  return n;
}

/* The logits are near each other up to the first row that chooses other experts, which rounding may cause: the rows
 * after it see its keys. */
static void compare(const char *name, random_model *m, double most) {
  enum { LENGTH = 40, TREE = 24 };
  const dt_shape *s = &m->desc.shape;
  rig cpu = rig_open_rounded(&dt_cpu_ops, (dt_backend_options){.threads = 2}, &m->desc, (dt_holding){.dtype = "f32"}, 1,
                             LENGTH + 60),
      gpu = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, LENGTH + 60);
  uint64_t seed = 3;
  row_list part[2] = {0};
  for (int i = 0; i < LENGTH; i++) row_add_plain(&part[0], 0, (int32_t)(random_next(&seed) % (uint32_t)gpu.vocab), i);
  row_add_tree(&part[1], 0, LENGTH, TREE, 5);
  int same = 0, near = 0, rows = 0, ids = s->layers * s->chosen;
  double worst = 0;
  for (int p = 0; p < 2; p++) {
    said expected = run(&cpu, s, &part[p]), got = run(&gpu, s, &part[p]);
    assert_int_equal(got.read, distinct(&got, s, part[p].n));
    for (int i = 0; i < part[p].n; i++, rows++) {
      bool agree = !memcmp(expected.id + i * ids, got.id + i * ids, sizeof(int32_t) * (size_t)ids);
      same += agree;
      if (same <= rows) continue; /* an earlier row did not agree, or this one does not */
      size_t at = (size_t)(i * gpu.vocab);
      worst = fmax(worst, logits_difference(got.logits + at, expected.logits + at, (size_t)gpu.vocab));
      near++;
    }
    free(expected.logits), free(expected.id), free(got.logits), free(got.id);
  }
  print_message("%s: %d of %d rows choose the same experts; the logits of %d differ by %.2g of their size\n", name,
                same, rows, near, worst);
  if (same < rows * 9 / 10 || near < 5)
    fail_msg("%s: only %d of %d rows choose the same experts, %d before the first that does not", name, same, rows,
             near);
  if (worst > most) fail_msg("%s: the logits differ by %g of their size, at most %g", name, worst, most);
  rig_close(&cpu), rig_close(&gpu);
  random_model_free(m);
}

static void logits_and_experts_are_those_of_the_cpu(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    compare(kinds[i].name, model_of(&kinds[i], 4), 3 * rounding_of(DT_F16));
    if (!emulated || i == 0) compare("BF16", model_of(&kinds[i], 5), 3 * rounding_of(DT_BF16));
  }
}

/* Up to 16 rows, groups have 8 pairs at most, and from 32 rows on 32. */
static void a_row_has_the_bits_of_plain_decoding_in_every_batch(void **state) {
  (void)state;
  for (int i = 0; i < KINDS && (MOST >= 64 || i < 1); i++) {
    random_model *m = model_of(&kinds[i], 4);
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
  random_model *m = model_of(&kinds[0], 4);
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
  random_model *m = model_of(&kinds[2], 4);
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
    of[widened] = run(&r, &m->desc.shape, &l);
    rig_close(&r);
  }
  assert_memory_equal(of[0].logits, of[1].logits, sizeof(float) * (size_t)(l.n * m->desc.shape.vocab));
  for (int i = 0; i < 2; i++) free(of[i].logits), free(of[i].id);
  random_model_free(m);
}

/* Experts whose logits are equal: the choice is that of the lowest ids, which the weights show, too. */
static void ties_go_to_the_lowest_ids(void **state) {
  (void)state;
  random_model *m = model_of(&kinds[0], 4);
  const dt_shape *s = &m->desc.shape;
  const dt_matrix *router = &m->layer[1].router;
  memset((void *)router->source->bytes, 0, (size_t)router->rows * (size_t)router->cols * sizeof(float));
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 9);
  row_list l = {0};
  for (int i = 0; i < 9; i++) row_add_plain(&l, 0, i * 13 % 89, i);
  said got = run(&r, s, &l);
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

/* A GPU refuses experts in a layer of a head, such as GLM's MTP layer. */
static void heads_with_experts_are_refused(void **state) {
  (void)state;
  random_model *m = model_of(&kinds[0], 4);
  const int h = m->desc.shape.hidden;
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 9);
  dt_head_desc head = {.model = m->desc,
                       .kind = DT_HEAD_EAGLE,
                       .taps = 1,
                       .tap = {m->desc.shape.layers},
                       .fc = random_matrix(m, h, 2 * h, 0.1f, 0.0f)};
  head.model.shape.layers = 1, head.model.layer = &m->layer[1];
  dt_weights *w = NULL;
  fails(dt_cuda_ops.upload_head(r.backend, &head, NULL, r.weights, &w, &err), DT_EINPUT,
        "head: it has experts, which a GPU does not compute (--backend cpu does)");
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
      cmocka_unit_test(heads_with_experts_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
