/* The CUDA backend compared with the CPU backend, which is tested against the formulas: logits differ by no more than
 * 16-bit activations explain, with every option of a layer. Runs on an emulated device or on the GPU. */
#include "cpu.h"
#include "cuda.h"
#include "cuda_device.h"
#include "random_model.h"
#include "rig.h"

/* Runs a prompt in several passes, then a small tree. `times`: wide rows add up more rounding errors, so they may
 * differ by this multiple. */
static void check_shape(model_shape shape, double times, dt_window window) {
  random_model *m = random_model_new(&shape, 7);
  rig cpu = rig_open(&dt_cpu_ops, NULL, 2, &m->desc, 1, 200), gpu = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 200);
  cpu.window = gpu.window = window;
  uint64_t seed = 3;
  row_list prompt = {0}, tree = {0};
  for (int p = 0; p < 140; p++) row_add_plain(&prompt, 0, (int32_t)(random_next(&seed) % (uint32_t)shape.vocab), p);
  row_add(&tree, 0, 5, 140, (int32_t[]){150}, 1);
  row_add(&tree, 0, 6, 140, (int32_t[]){150, 144}, 2);
  row_add(&tree, 0, 7, 140, (int32_t[]){150, 161}, 2);
  row_add(&tree, 0, 8, 140, (int32_t[]){150, 161, 142}, 3);
  for (int part = 0; part < 2; part++) {
    row_list *l = part ? &tree : &prompt;
    float *expected = rig_run(&cpu, l, true), *got = rig_run(&gpu, l, true);
    double d = logits_difference(got, expected, (size_t)l->n * (size_t)shape.vocab),
           most = times * rounding_of(shape.dtype);
    if (d > most) fail_msg("%s, part %d: the logits differ by %g of their size, at most %g", shape.name, part, d, most);
    free(expected), free(got);
  }
  rig_close(&cpu), rig_close(&gpu);
  random_model_free(m);
}

static const dt_window ALL = {0};

static void logits_are_those_of_the_cpu(void **state) {
  (void)state;
  for (int s = 0; s < PLAIN_SHAPES; s++) check_shape(cuda_shape(s), 1, ALL);
}

/* The logits of a text (malloc'd), from a backend that stores keys and values in this type. */
static float *logits_held(const dt_backend_ops *ops, const char *caches, const dt_model_desc *desc, int *n) {
  rig r = rig_open_with(ops, (dt_backend_options){.threads = 2, .cache_dtype = caches}, desc, 1, 140);
  uint64_t seed = 3;
  row_list l = {0};
  for (int p = 0; p < 140; p++) row_add_plain(&l, 0, (int32_t)(random_next(&seed) % (uint32_t)r.vocab), p);
  float *logits = rig_run(&r, &l, true);
  *n = l.n * r.vocab;
  rig_close(&r);
  return logits;
}

/* Two roundings make its logits differ from those of the CPU with f32 caches, independently of each other: activations
 * are rounded to 16 bits, and caches to q8. Each is measured without the other. */
static void caches_in_q8_cost_what_they_cost_on_the_cpu(void **state) {
  (void)state;
  for (int s = 0; s < PLAIN_SHAPES; s++) {
    model_shape shape = cuda_shape(s);
    random_model *m = random_model_new(&shape, 7);
    int n;
    float *plain = logits_held(&dt_cpu_ops, "f32", &m->desc, &n), *q8 = logits_held(&dt_cpu_ops, "q8", &m->desc, &n);
    float *narrow = logits_held(&dt_cuda_ops, NULL, &m->desc, &n),
          *both = logits_held(&dt_cuda_ops, "q8", &m->desc, &n);
    double d = logits_difference(both, plain, (size_t)n);
    double most = hypot(logits_difference(q8, plain, (size_t)n), logits_difference(narrow, plain, (size_t)n));
    if (d > 1.1 * most) fail_msg("%s: the logits differ by %g of their size, expected %g", shape.name, d, most);
    free(plain), free(q8), free(narrow), free(both);
    random_model_free(m);
  }
}

/* The attention needs more shared memory than a kernel gets by default, and multiplies 256 dimensions of values at a
 * time. */
static void the_widest_heads_are_computed(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  shape.heads = 2;
  for (shape.head_dim = 256; shape.head_dim <= 512; shape.head_dim *= 2) check_shape(shape, 1, ALL);
  shape.head_dim = 300;
  check_shape(shape, 1, ALL);
}

/* Each thread of a norm has several columns. */
static void wide_rows_are_computed(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  shape.hidden = 1100;
  check_shape(shape, 2, ALL);
}

/* The rows have positions up to 142, so the window may hide all of the first 128 keys, which one warp or all warps of a
 * block process. */
static void a_window_hides_the_same_keys(void **state) {
  (void)state;
  check_shape(cuda_shape(3), 1, (dt_window){9, 0});
  check_shape(cuda_shape(3), 1, (dt_window){1, 4});
  check_shape(cuda_shape(1), 1, (dt_window){20, 50});
}

/* The keys of rows form 7 to 9, and 16 or 17, parts of 128. A thread loads eight parts at a time. */
static void rows_of_many_parts_are_computed(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__)
  static const int wanted[] = {895, 896, 1023, 1024};
#else
  static const int wanted[] = {895, 896, 1023, 1024, 2047, 2048};
#endif
  enum { SLOTS = 2049 };
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 7);
  m->desc.shape.context = SLOTS;
  rig cpu = rig_open(&dt_cpu_ops, NULL, 2, &m->desc, 1, SLOTS),
      gpu = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, SLOTS);
  uint64_t seed = 3;
  int at = 0;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    while (at <= wanted[i]) {
      row_list l = {0};
      do row_add_plain(&l, 0, (int32_t)(random_next(&seed) % (uint32_t)shape.vocab), at++);
      while (at < wanted[i] && l.n < MAX_ROWS);
      bool last = at > wanted[i];
      float *expected = rig_run(&cpu, &l, last), *got = rig_run(&gpu, &l, last);
      double d = last ? logits_difference(got, expected, (size_t)l.n * (size_t)shape.vocab) : 0;
      if (d > rounding_of(shape.dtype)) fail_msg("position %d: the logits differ by %g of their size", wanted[i], d);
      free(expected), free(got);
    }
  }
  rig_close(&cpu), rig_close(&gpu);
  random_model_free(m);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(logits_are_those_of_the_cpu),   cmocka_unit_test(caches_in_q8_cost_what_they_cost_on_the_cpu),
      cmocka_unit_test(the_widest_heads_are_computed), cmocka_unit_test(wide_rows_are_computed),
      cmocka_unit_test(a_window_hides_the_same_keys),  cmocka_unit_test(rows_of_many_parts_are_computed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
