/* Models of random shapes on the CUDA backend: sizes of heads and groups, widths that no tile divides, types of
 * weights, and the parts that some families have. Rows of trees have the bits of plain decoding, and the logits of
 * models in 16 bits are near the CPU's.
 *
 *   test_cuda_shapes [SEED [COUNT]]     these seeds only */
#include "cpu.h"
#include "cuda_exact.h"
#include "random_parts.h"

static uint64_t first_seed = 1;
static int seeds = 15;

static int pick(uint64_t *seed, const int *from, int n) { return from[random_next(seed) % (uint32_t)n]; }
#define PICK(...) pick(seed, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
#define CHANCE(N) (random_next(seed) % (N) == 0)

/* Block types need rows of whole blocks of 32 numbers. */
static model_shape random_shape(uint64_t *seed) {
  static const int types[] = {DT_F16,  DT_F16,  DT_F16,  DT_BF16, DT_BF16,   DT_Q4_0,
                              DT_Q4_1, DT_Q5_0, DT_Q8_0, DT_Q5_1, DT_IQ4_NL, DT_MXFP4};
  model_shape s = {.name = "random", .layers = 2, .norm = CHANCE(3) ? DT_NORM_LAYER : DT_NORM_RMS};
  s.dtype = (dt_dtype)pick(seed, types, sizeof types / sizeof *types);
  const bool blocks = s.dtype != DT_F16 && s.dtype != DT_BF16;
  s.head_dim =
      blocks ? PICK(32, 64, 96, 128) : PICK(2, 4, 6, 16, 18, 24, 30, 32, 48, 64, 66, 80, 100, 128, 130, 256, 512);
  const int group = PICK(1, 1, 2, 3, 4, 5, 7, 8, 16);
  s.kv_heads = group > 4 || s.head_dim > 100 ? 1 : PICK(1, 2, 3);
  s.heads = s.kv_heads * group;
  s.hidden = blocks ? PICK(32, 96, 160) : PICK(20, 52, 64, 100, 132);
  s.inter = blocks ? PICK(32, 96, 224) : PICK(17, 50, 64, 131);
  s.rotary_dims = s.head_dim > 128 ? PICK(0, 64, 128) : CHANCE(3) ? s.head_dim / 4 * 2 : s.head_dim;
  s.vocab = PICK(97, 130, 515);
  s.gated = CHANCE(2), s.biased = CHANCE(3), s.biased_qkv = CHANCE(4), s.normed_heads = CHANCE(4);
  s.parallel = CHANCE(4);
  s.act = CHANCE(2) ? DT_ACT_SILU : CHANCE(2) ? DT_ACT_GELU_TANH : DT_ACT_GELU_ERF;
  return s;
}

/* Returns a model with or without the parts of a family. */
static random_model *random_family(uint64_t *seed, model_shape s, const char **family) {
  enum { PLAIN, GEMMA, OLMO, SINKS, EXPERTS, DELTA };
  int parts = PICK(PLAIN, GEMMA, OLMO, SINKS, EXPERTS, DELTA);
  const bool blocks = s.dtype != DT_F16 && s.dtype != DT_BF16;
  if (parts == GEMMA || parts == OLMO) s.parallel = s.biased = false;
  if (parts == EXPERTS) s.parallel = s.biased = false, s.gated = true;
  if (parts == DELTA) s.parallel = false;
  if (parts == OLMO) s.normed_heads = false;
  if (parts == SINKS) s.gated = true;
  random_model *m = random_model_new(&s, random_next(seed));
  if (parts == GEMMA) random_gemma(m);
  if (parts == OLMO) random_olmo(m);
  if (parts == SINKS) random_sinks(m);
  if (parts == EXPERTS) {
    m->desc.shape.act = DT_ACT_SILU;
    random_experts(m, PICK(0, 1), blocks ? PICK(32, 64) : PICK(7, 27, 50), CHANCE(2), CHANCE(2));
  }
  if (parts == DELTA) random_delta(m, PICK(16, 48, 128, 256), PICK(16, 48, 80), CHANCE(2));
  *family =
      (const char *const[]){"plain", "as Gemma", "as OLMo", "with sinks", "with experts", "with delta layers"}[parts];
  return m;
}

/* Compares the logits after a text. Quantized weights have other activations on the CPU. */
static void check_near_the_cpu(const random_model *m, int n, uint64_t seed) {
  rig cpu = rig_open(&dt_cpu_ops, NULL, 2, &m->desc, 1, n), gpu = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, n);
  row_list text = {0};
  for (int i = 0; i < n; i++) row_add_plain(&text, 0, (int32_t)(random_next(&seed) % (uint32_t)gpu.vocab), i);
  float *expected = rig_run(&cpu, &text, true), *got = rig_run(&gpu, &text, true);
  double d = logits_difference(got, expected, (size_t)n * (size_t)gpu.vocab), most = 4 * rounding_of(m->dtype);
  if (d > most) fail_msg("the logits differ by %g of their size, at most %g", d, most);
  free(expected), free(got);
  rig_close(&cpu), rig_close(&gpu);
}

static void a_row_has_the_bits_of_plain_decoding_whatever_the_shape(void **state) {
  (void)state;
  for (int i = 0; i < seeds; i++) {
    uint64_t state_of = first_seed + (uint64_t)i, *seed = &state_of;
    const char *family;
    const model_shape s = random_shape(seed);
    random_model *m = random_family(seed, s, &family);
    const char *caches = CHANCE(3) ? "q8" : NULL;
    const int prefix = PICK(1, 5, 31, 60, 126, 129, 140);
    const dt_window window = CHANCE(4) ? (dt_window){PICK(3, 40, 130), 2} : ALL;
    print_message(
        "seed %d: %s, %s, hidden %d, %d heads of %d over %d, rotation %d, inner %d, %s caches, prefix %d, window %d\n",
        (int)first_seed + i, family, dt_type_of(s.dtype)->name, s.hidden, s.heads, s.head_dim, s.kv_heads,
        s.rotary_dims, s.inter, caches ? caches : "16-bit", prefix, window.last);
    check_prefix(&m->desc, caches, prefix, 34, true, window);
    const bool alike =
        s.dtype == DT_F16 || s.dtype == DT_BF16; /* but rounding may change which experts a row chooses */
    if (alike && !m->desc.shape.experts) check_near_the_cpu(m, 40, state_of);
    random_model_free(m);
  }
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10), seeds = argc > 2 ? atoi(argv[2]) : 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_row_has_the_bits_of_plain_decoding_whatever_the_shape)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
