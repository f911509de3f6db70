/* Prompts on the CUDA backend. Whole chunks of a prompt are computed in another way than other rows. The results are
 * close to the CPU backend's and have the same bits in every run, and what follows them is as in plain decoding. */
#include "cpu.h"
#include "cuda.h"
#include "cuda_device.h"
#include "rig.h"

enum { CHUNK = 512, REST = 21, LENGTH = CHUNK + REST, LONGER = CHUNK + LENGTH, NEXT = 1 };

/* Rows for tokens from `first` on of the same text in a sequence. */
static dt_rows some_text(int sequence, int first, int n, bool prompt) {
  static int32_t token[LONGER + NEXT];
  for (int i = 0; i < n; i++) token[i] = (first + i) * 13 % 89;
  dt_rows rows = text_rows(token, sequence, first, n);
  rows.prompt = prompt;
  return rows;
}

static void run_text(rig *r, int sequence, int first, int n, bool prompt, dt_out *out) {
  dt_rows rows = some_text(sequence, first, n, prompt);
  ok(r->ops->forward(r->weights, r->cache, &rows, out, &err));
}

/* The logits of the row after the prompt; malloc'd. */
static float *logits_behind(rig *r) {
  float *logits = malloc(sizeof *logits * (size_t)r->vocab);
  dt_out out = {.want = DT_WANT_LOGITS, .n = 1, .row = (int32_t[]){0}, .logits = logits};
  run_text(r, 0, LENGTH, NEXT, false, &out);
  return logits;
}

static bool same_slots(rig *a, int a_sequence, rig *b, int b_sequence, int first, int end) {
  bool same = true;
  for (int p = first; p < end && same; p++) {
    size_t len;
    void *x = rig_slot(a, a_sequence, p, &len), *y = rig_slot(b, b_sequence, p, &len);
    same = !memcmp(x, y, len);
    free(x), free(y);
  }
  return same;
}

static void check_logits_behind(model_shape shape, const char *caches, double most) {
  random_model *m = random_model_new(&shape, 7);
  dt_backend_options options = {.threads = 2, .cache_dtype = caches};
  rig cpu = rig_open_with(&dt_cpu_ops, options, &m->desc, 1, LENGTH + NEXT),
      gpu = rig_open_with(&dt_cuda_ops, options, &m->desc, 1, LENGTH + NEXT);
  run_text(&cpu, 0, 0, LENGTH, true, NULL), run_text(&gpu, 0, 0, LENGTH, true, NULL);
  float *expected = logits_behind(&cpu), *got = logits_behind(&gpu);
  double d = logits_difference(got, expected, (size_t)shape.vocab);
  if (d > most) fail_msg("%s: the logits differ by %g of their size, at most %g", shape.name, d, most);
  free(expected), free(got);
  rig_close(&cpu), rig_close(&gpu);
  random_model_free(m);
}

static void logits_behind_a_long_prompt_are_those_of_the_cpu(void **state) {
  (void)state;
  for (int s = 0; s < PLAIN_SHAPES; s++) check_logits_behind(cuda_shape(s), NULL, rounding_of(cuda_shape(s).dtype));
  check_logits_behind(cuda_shape(5), "q8", 0.02); /* some codes differ by one: see test_cuda_forward.c */
}

/* Whatever the device did in between. Since the bits differ from those of the tree's rows, the chunk is really computed
 * in another way. */
static void a_prompt_has_the_same_bits_each_time(void **state) {
  (void)state;
  model_shape shape = cuda_shape(0);
  random_model *m = random_model_new(&shape, 8);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 3, LENGTH);
  run_text(&r, 0, 0, LENGTH, true, NULL);
  run_text(&r, 1, 0, LENGTH, false, NULL);
  run_text(&r, 2, 0, LENGTH, true, NULL);
  assert_true(same_slots(&r, 0, &r, 2, 0, LENGTH));
  assert_false(same_slots(&r, 0, &r, 1, 0, CHUNK));
  rig_close(&r);
  random_model_free(m);
}

/* Also where the second piece follows rows of the first in a copy. */
static void a_prompt_in_pieces_has_the_same_bits(void **state) {
  (void)state;
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 14);
  m->desc.shape.context = LONGER;
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 3, LONGER);
  dt_snapshot *first;
  run_text(&r, 0, 0, LONGER, true, NULL);
  run_text(&r, 1, 0, CHUNK, true, NULL);
  ok(r.ops->snapshot(r.cache, 1, CHUNK, &first, &err));
  ok(r.ops->restore(r.cache, 2, first, &err));
  run_text(&r, 1, CHUNK, LENGTH, true, NULL);
  run_text(&r, 2, CHUNK, CHUNK, true, NULL), run_text(&r, 2, 2 * CHUNK, REST, false, NULL);
  assert_true(same_slots(&r, 0, &r, 1, 0, LONGER));
  assert_true(same_slots(&r, 0, &r, 2, 0, LONGER));
  r.ops->free_snapshot(first);
  rig_close(&r);
  random_model_free(m);
}

static void check_behind_chunks(const char *caches) {
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 9);
  dt_backend_options options = {.threads = 1, .cache_dtype = caches};
  rig r = rig_open_with(&dt_cuda_ops, options, &m->desc, 2, LENGTH);
  dt_snapshot *chunk;
  run_text(&r, 0, 0, LENGTH, true, NULL);
  ok(r.ops->snapshot(r.cache, 0, CHUNK, &chunk, &err));
  ok(r.ops->restore(r.cache, 1, chunk, &err));
  for (int p = CHUNK; p < LENGTH; p++) run_text(&r, 1, p, 1, false, NULL);
  assert_true(same_slots(&r, 0, &r, 1, 0, LENGTH));
  r.ops->free_snapshot(chunk);
  rig_close(&r);
  random_model_free(m);
}

static void what_follows_the_chunks_is_as_decoded(void **state) {
  (void)state;
  check_behind_chunks(NULL);
  check_behind_chunks("q8");
}

/* Rows of a text share the work of their attention. Here a group of them extends into the third part of 128
 * positions. */
static void a_text_is_as_decoded_however_it_is_cut(void **state) {
  (void)state;
  enum { BEGIN = 248, END = 275 };
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 12);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, END);
  for (int sequence = 0; sequence < 2; sequence++) run_text(&r, sequence, 0, BEGIN, false, NULL);
  run_text(&r, 0, BEGIN, 19, false, NULL), run_text(&r, 0, BEGIN + 19, END - BEGIN - 19, false, NULL);
  for (int p = BEGIN; p < END; p++) run_text(&r, 1, p, 1, false, NULL);
  assert_true(same_slots(&r, 0, &r, 1, 0, END));
  rig_close(&r);
  random_model_free(m);
}

/* Two consecutive rows, the first of which is not in the slot where the second looks for it. */
static void rows_in_other_slots_are_no_text(void **state) {
  (void)state;
  enum { AT = 10, ELSEWHERE = 15 };
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 13);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, ELSEWHERE + 1);
  row_list both = {0}, first = {0}, second = {0};
  for (int sequence = 0; sequence < 2; sequence++) run_text(&r, sequence, 0, AT + 1, false, NULL);
  row_add(&both, 0, 70, AT, (int32_t[]){ELSEWHERE}, 1), row_add_plain(&both, 0, 71, AT + 1);
  row_add(&first, 1, 70, AT, (int32_t[]){ELSEWHERE}, 1), row_add_plain(&second, 1, 71, AT + 1);
  rig_run(&r, &both, false), rig_run(&r, &first, false), rig_run(&r, &second, false);
  assert_true(same_slots(&r, 0, &r, 1, 0, ELSEWHERE + 1));
  rig_close(&r);
  random_model_free(m);
}

/* Rows of 70 numbers do not begin at multiples of 16 bytes. The emulated library refuses them; a GPU's may. */
static void a_model_that_the_library_refuses_is_computed(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  shape.hidden = 70, shape.layers = 2;
  random_model *m = random_model_new(&shape, 10);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, LENGTH);
  run_text(&r, 0, 0, LENGTH, true, NULL);
  run_text(&r, 1, 0, LENGTH, false, NULL);
  if (emulated) assert_true(same_slots(&r, 0, &r, 1, 0, LENGTH));
  rig_close(&r);
  random_model_free(m);
}

#if defined(CUDA_EMU)
/* Only long prompts need the library. */
static void without_the_library_a_prompt_is_as_decoded(void **state) {
  (void)state;
  model_shape shape = cuda_shape(0);
  random_model *m = random_model_new(&shape, 10);
  emu_faults((faults){1, (size_t)1 << 40, -1, EMU_CUBLASLT});
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, LENGTH);
  run_text(&r, 1, 0, LENGTH, false, NULL);
  assert_int_equal(emu_used() & EMU_CUBLASLT, 0);
  run_text(&r, 0, 0, LENGTH, true, NULL);
  assert_int_equal(emu_used() & EMU_CUBLASLT, EMU_CUBLASLT);
  assert_true(same_slots(&r, 0, &r, 1, 0, LENGTH));
  rig_close(&r);
  emu_faults((faults){1, (size_t)1 << 40, -1, 0});
  random_model_free(m);
}
#endif

#if defined(CUDA_EMU)
/* A library that cannot be initialized is done without, and the description says so. */
static void a_library_that_fails_at_once_is_done_without(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  shape.layers = 2;
  random_model *m = random_model_new(&shape, 15);
  emu_faults((faults){1, (size_t)1 << 40, -1, EMU_CUBLASLT_BEGINS});
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, LENGTH);
  assert_null(strstr(r.ops->describe(r.backend), "cuBLASLt"));
  run_text(&r, 0, 0, LENGTH, true, NULL);
  run_text(&r, 1, 0, LENGTH, false, NULL);
  assert_non_null(strstr(r.ops->describe(r.backend), ", prompts without cuBLASLt"));
  assert_true(same_slots(&r, 0, &r, 1, 0, LENGTH));
  rig_close(&r);
  emu_faults((faults){1, (size_t)1 << 40, -1, 0});
  random_model_free(m);
}
#endif

static void a_prompt_begins_with_a_chunk(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 11);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 8);
  dt_rows rows = some_text(0, 3, 2, true);
  fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EINPUT,
        "a prompt pass begins at position 3, expected a multiple of 512");
  row_list l = {0};
  rows = some_text(0, 0, 2, true);
  rows.position = (int32_t[]){0, 2}, rows.slot = rows.prefix = rows.path = rows.position;
  fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EINPUT,
        "row 1 of a prompt: position 2 in slot 2, both must be 1");
  row_add_plain(&l, 0, 1, 0), row_add(&l, 0, 2, 0, (int32_t[]){0, 1}, 2);
  rows = rows_of(&l);
  rows.prompt = true;
  fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EINPUT,
        "row 1 of a prompt: a path of 2 slots, its own alone is expected");
  rig_close(&r);
  random_model_free(m);
}

#if defined(CUDA_EMU)
/* It fails in a kernel before the library's first product, in one after it, and in a group's rows. */
static void a_device_that_fails_in_a_prompt_ends_it(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 14);
  for (int kernel = 0; kernel < 5; kernel++) {
    rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, CHUNK);
    dt_rows rows = some_text(0, 0, CHUNK, true);
    emu_faults((faults){1, (size_t)1 << 40, kernel, 0});
    fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EDEVICE,
          "the GPU failed while running a prompt pass");
    fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EDEVICE, "--backend cpu");
    rig_close(&r);
    emu_faults((faults){1, (size_t)1 << 40, -1, 0});
  }
  random_model_free(m);
}
#endif

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(logits_behind_a_long_prompt_are_those_of_the_cpu),
    cmocka_unit_test(a_prompt_has_the_same_bits_each_time),
    cmocka_unit_test(a_prompt_in_pieces_has_the_same_bits),
    cmocka_unit_test(what_follows_the_chunks_is_as_decoded),
    cmocka_unit_test(a_text_is_as_decoded_however_it_is_cut),
    cmocka_unit_test(rows_in_other_slots_are_no_text),
    cmocka_unit_test(a_model_that_the_library_refuses_is_computed),
    cmocka_unit_test(a_prompt_begins_with_a_chunk),
#if defined(CUDA_EMU)
    cmocka_unit_test(without_the_library_a_prompt_is_as_decoded),
    cmocka_unit_test(a_library_that_fails_at_once_is_done_without),
    cmocka_unit_test(a_device_that_fails_in_a_prompt_ends_it),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
