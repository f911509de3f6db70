/* Targets that are split between the CPU and GPUs. Experts on the CPU: logits and the choice of experts are near the
 * CPU's, and the bits are those of plain decoding. Layers on several GPUs: the bits are those of one. */
#include "cuda_exact.h"
#include "cuda_routes.h"
#include "split/split.h"
#include "split_text.h"

static rig open_split(const dt_model_desc *desc, dt_backend_options options, int sequences, int slots) {
  dt_model_desc target = *desc;
  target.path = "a target"; /* a draft is not split */
  options.threads = 2, options.host = &dt_cpu_ops, options.device = &dt_cuda_ops;
  return rig_open_with(&dt_split_ops, options, &target, sequences, slots);
}

static void experts_on_the_cpu_give_its_logits(void **state) {
  (void)state;
  for (int i = 0; i < EXPERT_KINDS; i++) {
    random_model *m = expert_model(&expert_kinds[i], 4);
    const int some = i == 1 ? 2 : m->desc.shape.layers; /* gpt-oss: of its first two layers */
    const dt_backend_options options = {.host_experts = some};
    compare_experts(expert_kinds[i].name, m, open_split(&m->desc, options, 1, COMPARED_SLOTS), 3 * rounding_of(DT_F16));
    random_model_free(m);
  }
}

static void experts_on_the_cpu_give_the_bits_of_plain_decoding(void **state) {
  (void)state;
  for (int i = 0; i < EXPERT_KINDS && (MOST >= 64 || i < 1); i++) {
    random_model *m = expert_model(&expert_kinds[i], 4);
    const int prefix = 20;
    const dt_backend_options options = {.host_experts = 99, .device_layers = i == 0 ? 2 : 0};
    check_rigs(open_split(&m->desc, options, 2, prefix + SPREAD), open_split(&m->desc, options, 1, prefix + SPREAD),
               prefix, emulated ? 66 : NODES, emulated);
    random_model_free(m);
  }
}

/* A pass in more than one part, of which each computes other rows on the CPU. */
static void a_long_pass_gives_the_bits_of_short_ones(void **state) {
  (void)state;
  enum { LONG = 300 };
  random_model *m = expert_model(&expert_kinds[0], 4);
  const dt_shape *s = &m->desc.shape;
  rig one = open_split(&m->desc, (dt_backend_options){.host_experts = 99}, 1, LONG),
      r = open_split(&m->desc, (dt_backend_options){.host_experts = 99}, 1, LONG);
  row_list all = {0};
  for (int p = 0; p < LONG; p++) row_add_plain(&all, 0, p * p % 89, p);
  said whole = run_experts(&r, s, &all);
  int read = 0;
  for (int p = 0, n; p < LONG; p += n) {
    n = p % 100 ? 99 : 1;
    row_list some = {0};
    for (int i = 0; i < n; i++) row_add_plain(&some, 0, all.token[p + i], p + i);
    said of = run_experts(&one, s, &some);
    const size_t ids = (size_t)(s->layers * s->chosen);
    assert_memory_equal(of.logits, whole.logits + (size_t)p * (size_t)r.vocab, sizeof(float) * (size_t)(n * r.vocab));
    assert_memory_equal(of.id, whole.id + (size_t)p * ids, sizeof(int32_t) * ids * (size_t)n);
    read += of.read;
    free(of.logits), free(of.id);
  }
  assert_true(whole.read > 0 && read > whole.read);
  free(whole.logits), free(whole.id);
  rig_close(&one), rig_close(&r);
  random_model_free(m);
}

#if defined(CUDA_EMU)
static const faults several = {.devices = 3, .memory = (size_t)1 << 40, .launches = -1},
                    one_device = {.devices = 1, .memory = (size_t)1 << 40, .launches = -1};

static void several_gpus_give_the_bits_of_one(void **state) {
  (void)state;
  emu_faults(several);
  for (int kind = 0; kind < 4; kind++) {
    random_model *m = kind < 2 ? random_parts_new(kind ? 4 : 1, 3) : expert_model(&expert_kinds[kind == 3], 4);
    if (kind == 2) random_delta(m, 32, 48, false);
    rig whole = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, SPLIT_SLOTS);
    float *expected = generate(&whole);
    for (int devices = 2; devices <= 3; devices++) {
      rig r = open_split(&m->desc, (dt_backend_options){.devices = devices}, 2, SPLIT_SLOTS);
      assert_non_null(strstr(r.ops->describe(r.backend), "(layers 1 to "));
      float *found = generate(&r);
      assert_memory_equal(found, expected, sizeof *expected * (size_t)(6 * r.vocab));
      assert_true(r.ops->cache_bytes(r.weights, 100) == whole.ops->cache_bytes(whole.weights, 100));
      free(found);
      rig_close(&r);
    }
    free(expected);
    rig_close(&whole);
    random_model_free(m);
  }
  emu_faults(one_device);
}

static void experts_are_told_of_all_parts(void **state) {
  (void)state;
  emu_faults(several);
  random_model *m = expert_model(&expert_kinds[0], 4);
  const dt_backend_options some[] = {{.devices = 2},
                                     {.device_layers = 1},
                                     {.device_layers = 1, .host_experts = 99},
                                     {.devices = 2, .host_experts = 2}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    compare_experts("split", m, open_split(&m->desc, some[i], 1, COMPARED_SLOTS), 3 * rounding_of(DT_F16));
  random_model_free(m);
  emu_faults(one_device);
}

static void a_gpu_that_is_not_there_is_named(void **state) {
  (void)state;
  dt_backend *b;
  const dt_backend_options options = {.threads = 1, .host = &dt_cpu_ops, .device = &dt_cuda_ops, .devices = 2};
  fails(dt_split_ops.open(&options, &b, &err), DT_EINPUT, "gpus: GPU 2 is wanted, but there is 1");
}
#endif

static void a_model_without_experts_is_refused(void **state) {
  (void)state;
  model_shape shape = cuda_shape(4);
  random_model *m = random_model_new(&shape, 3);
  dt_backend *b;
  dt_weights *w;
  m->desc.path = "a target";
  ok(dt_split_ops.open(
      &(dt_backend_options){.threads = 1, .host = &dt_cpu_ops, .device = &dt_cuda_ops, .host_experts = 3}, &b, &err));
  fails(dt_split_ops.upload(b, &m->desc, &(dt_holding){0}, &w, &err), DT_EINPUT,
        "cpu_experts: the model has none, so that the option has no effect");
  dt_split_ops.close(b);
  random_model_free(m);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(experts_on_the_cpu_give_its_logits),
    cmocka_unit_test(experts_on_the_cpu_give_the_bits_of_plain_decoding),
    cmocka_unit_test(a_long_pass_gives_the_bits_of_short_ones),
#if defined(CUDA_EMU)
    cmocka_unit_test(several_gpus_give_the_bits_of_one),
    cmocka_unit_test(experts_are_told_of_all_parts),
    cmocka_unit_test(a_gpu_that_is_not_there_is_named),
#endif
    cmocka_unit_test(a_model_without_experts_is_refused),
  };
  cuda_device_or_skip();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
