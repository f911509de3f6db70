/* The parts of a layer that only some families have, on the CUDA backend: windows, caps, sinks, scales, norms after the
 * blocks, norms of all heads together, two rotations or none. Logits are near the CPU's, and the bits are those of
 * plain decoding. test_golden_logits.c compares the families themselves with transformers. */
#include "cpu.h"
#include "cuda_exact.h"
#include "random_parts.h"

typedef struct {
  const char *name;
  int shape; /* 4: F16; 5: BF16, and its heads are normalized */
  void (*add)(random_model *);
} parts;

static const parts all_parts[] = {
    {"as Gemma 2", 4, random_gemma},   {"as Gemma 3", 5, random_gemma}, {"as OLMo", 4, random_olmo},
    {"as OLMo, BF16", 5, random_olmo}, {"sinks", 4, random_sinks},      {"sinks, BF16", 5, random_sinks},
    {"as Gemma 4", 4, NULL},           {"as Gemma 4, BF16", 5, NULL},
};
enum { PARTS = sizeof all_parts / sizeof *all_parts };

/* The next one after i; the emulated device is slow, and has time for those in F16 only. */
static int next_of(int i) { return i + (emulated ? 2 : 1); }

static random_model *model_of(const parts *p) {
  if (!p->add) return random_gemma4(p->shape == 4 ? DT_F16 : DT_BF16, 7);
  model_shape shape = cuda_shape(p->shape);
  random_model *m = random_model_new(&shape, 7);
  p->add(m);
  return m;
}

/* rounding_of is for two layers. */
static double rounding_for(const random_model *m) { return rounding_of(m->dtype) * m->desc.shape.layers / 2; }

/* Compares the logits of a text of `n` tokens, and of a tree after it. The keys of a row are in several parts, and
 * windows begin in the last one, in the one before, or earlier. */
static void check_near_the_cpu(const parts *p, int n, dt_window window) {
  random_model *m = model_of(p);
  rig cpu = rig_open(&dt_cpu_ops, NULL, 2, &m->desc, 1, n + 60),
      gpu = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, n + 60);
  cpu.window = gpu.window = window;
  uint64_t seed = 3;
  row_list text = {0}, tree = {0};
  for (int i = 0; i < n; i++) row_add_plain(&text, 0, (int32_t)(random_next(&seed) % (uint32_t)gpu.vocab), i);
  row_add_tree(&tree, 0, n, 20, 5);
  for (int part = 0; part < 2; part++) {
    row_list *l = part ? &tree : &text;
    float *expected = rig_run(&cpu, l, true), *got = rig_run(&gpu, l, true);
    double d = logits_difference(got, expected, (size_t)l->n * (size_t)gpu.vocab);
    double most = rounding_for(m);
    print_message("%s, %s: the logits differ by %.2g of their size\n", p->name, part ? "tree" : "text", d);
    if (d > most) fail_msg("%s, part %d: the logits differ by %g of their size, at most %g", p->name, part, d, most);
    free(expected), free(got);
  }
  rig_close(&cpu), rig_close(&gpu);
  random_model_free(m);
}

static void logits_are_those_of_the_cpu(void **state) {
  (void)state;
  for (int i = 0; i < PARTS; i = next_of(i)) check_near_the_cpu(&all_parts[i], 290, ALL);
  check_near_the_cpu(&all_parts[0], 140, (dt_window){5, 3});  /* a window of the pass, narrower than the layer's, */
  check_near_the_cpu(&all_parts[2], 140, (dt_window){90, 3}); /* and a wider one */
}

/* Rows of a tree stand on both sides of a border between parts, so that some of them skip a part and others do not. */
static void a_row_has_the_bits_of_plain_decoding_in_every_batch(void **state) {
  (void)state;
  static const int prefixes[PARTS] = {131, 250, 161, 128, 274, 1, 131, 130};
  for (int i = 0; i < PARTS; i = next_of(i)) {
    if (MOST < 64 && i > 2) break;
    random_model *m = model_of(&all_parts[i]);
    check_prefix(&m->desc, i == 2 ? "q8" : NULL, prefixes[i], emulated ? 40 : NODES, emulated,
                 i == 1 ? (dt_window){20, 4} : ALL);
    random_model_free(m);
  }
}

static void a_text_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  for (int i = 0; i < PARTS; i += 2) {
    if (MOST < 64 && i > 0) break;
    random_model *m = model_of(&all_parts[i]);
    check_text(&m->desc, i == 2 ? "q8" : NULL);
    random_model_free(m);
  }
}

enum { CHUNK = 512, END = CHUNK + 19 };

static void run_prompt(rig *r, int sequence, int n) {
  int32_t token[END];
  for (int i = 0; i < n; i++) token[i] = i * 13 % 89;
  dt_rows rows = text_rows(token, sequence, 0, n);
  rows.prompt = true;
  ok(r->ops->forward(r->weights, r->cache, &rows, NULL, &err));
}

static void run_token(rig *r, int sequence, int at, float *logits) {
  dt_rows rows = text_rows(&(int32_t){at * 13 % 89}, sequence, at, 1);
  dt_out out = {.want = DT_WANT_LOGITS, .n = 1, .row = (int32_t[]){0}, .logits = logits};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
}

/* A whole chunk of a prompt is multiplied in another way than other rows. The logits after it are near the CPU's, and
 * do not depend on whether the rest of the prompt was in its pass or was decoded. */
static void what_follows_a_long_prompt_is_as_decoded(void **state) {
  (void)state;
  for (int i = 0; i < (MOST < 64 ? 1 : PARTS); i = next_of(i)) {
    random_model *m = model_of(&all_parts[i]);
    rig cpu = rig_open(&dt_cpu_ops, NULL, 2, &m->desc, 1, END + 1),
        gpu = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, END + 1);
    size_t n = (size_t)gpu.vocab;
    float *logits[3];
    for (int j = 0; j < 3; j++) logits[j] = malloc(sizeof(float) * n);
    run_prompt(&cpu, 0, END), run_prompt(&gpu, 0, END), run_prompt(&gpu, 1, CHUNK);
    for (int at = CHUNK; at < END; at++) run_token(&gpu, 1, at, logits[1]);
    run_token(&cpu, 0, END, logits[0]), run_token(&gpu, 0, END, logits[1]), run_token(&gpu, 1, END, logits[2]);
    double d = logits_difference(logits[1], logits[0], n);
    if (d > rounding_for(m)) fail_msg("%s: the logits differ by %g of their size", all_parts[i].name, d);
    assert_memory_equal(logits[1], logits[2], sizeof(float) * n);
    for (int j = 0; j < 3; j++) free(logits[j]);
    rig_close(&cpu), rig_close(&gpu);
    random_model_free(m);
  }
}

/* A row does not read the parts of 128 keys that a window hides from it: a NaN there, which even a weight of zero would
 * pass on, does not reach its logits. In the first layer the NaN may reach the rows that read its part, and in a
 * second those that read the next part. */
static void check_skipped(int layers, int window_of_layers, dt_window window, int lost) {
  enum { LENGTH = 300 };
  model_shape shape = cuda_shape(4);
  shape.layers = layers;
  random_model *m = random_model_new(&shape, 11);
  for (int i = 0; i < shape.layers; i++) m->layer[i].window = window_of_layers;
  ((uint16_t *)m->desc.embed.source->bytes)[5 * shape.hidden + 3] = 0x7e00; /* token 5 */
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, LENGTH);
  r.window = window;
  row_list text = {0};
  for (int i = 0; i < LENGTH; i++) row_add_plain(&text, 0, i == lost ? 5 : 7 + i % 40, i);
  float *logits = rig_run(&r, &text, true);
  int free_from = 128 * (lost / 128 + shape.layers) + window_of_layers + window.last - 1;
  assert_true(free_from < LENGTH);
  for (int i = 0; i < LENGTH; i++) {
    bool is_lost = isnan(logits[(size_t)i * (size_t)shape.vocab]);
    if (i == lost) assert_true(is_lost);
    if (i >= free_from) assert_false(is_lost);
  }
  free(logits);
  rig_close(&r);
  random_model_free(m);
}
static void hidden_parts_are_skipped(void **state) {
  (void)state;
  check_skipped(2, 7, ALL, 100);
  check_skipped(1, 0, (dt_window){7, 4}, 200); /* part 0 has the first keys */
  check_skipped(2, 0, (dt_window){7, 0}, 100); /* no first keys */
}

/* A draft model may have fewer outputs than its layers have inputs, whose products lie in the same memory. */
static void few_outputs_leave_room_for_inputs(void **state) {
  (void)state;
  enum { IDS = 5, LENGTH = 70, K = 3 };
  static const int32_t ids[IDS] = {2, 7, 19, 40, 88};
  random_model *m = random_gemma4(DT_F16, 7);
  dt_model_desc some = m->desc;
  some.ids = ids, some.n_ids = IDS;
  rig whole = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, LENGTH),
      few = rig_open(&dt_cuda_ops, NULL, 1, &some, 1, LENGTH);
  row_list text = {0};
  int32_t all[LENGTH], id[LENGTH][K];
  float logp[LENGTH][K], confidence[LENGTH], entropy[LENGTH];
  for (int i = 0; i < LENGTH; i++) all[i] = i, row_add_plain(&text, 0, i * 13 % 89, i);
  float *logits = rig_run(&whole, &text, true);
  dt_rows rows = rows_of(&text);
  ok(few.ops->forward(few.weights, few.cache, &rows,
                      &(dt_out){.want = DT_WANT_TOPK,
                                .n = LENGTH,
                                .row = all,
                                .k = K,
                                .vocab = few.vocab,
                                .top_id = &id[0][0],
                                .top_logp = &logp[0][0],
                                .confidence = confidence,
                                .entropy = entropy},
                      &err));
  for (int i = 0; i < LENGTH; i++) {
    const float *of = logits + (size_t)i * (size_t)whole.vocab;
    for (int k = 0; k < K; k++) {
      int larger = 0;
      for (int j = 0; j < IDS; j++) larger += of[ids[j]] > of[id[i][k]];
      assert_int_equal(larger, k);
    }
  }
  free(logits);
  rig_close(&whole), rig_close(&few);
  random_model_free(m);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(logits_are_those_of_the_cpu),
      cmocka_unit_test(a_row_has_the_bits_of_plain_decoding_in_every_batch),
      cmocka_unit_test(a_text_has_the_bits_of_plain_decoding),
      cmocka_unit_test(what_follows_a_long_prompt_is_as_decoded),
      cmocka_unit_test(hidden_parts_are_skipped),
      cmocka_unit_test(few_outputs_leave_room_for_inputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
