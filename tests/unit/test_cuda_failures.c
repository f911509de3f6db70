/* What the CUDA backend reports when it cannot do what is asked: one line each, which offers the CPU backend by name,
 * and nothing stays allocated. Devices that fail are emulated; the other tests also run on a GPU. */
#include "cuda_device.h"
#include "golden_logits.h"
#include "model/head.h"
#include "model/model.h"
#include "rig.h"

static void models_it_cannot_compute_are_refused(void **state) {
  (void)state;
  dt_backend *b = NULL;
  dt_weights *w = NULL;
  random_model *f32 = random_model_new(&random_shapes[2], 1);
  ok(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
  fails(dt_cuda_ops.upload(b, &f32->desc, NULL, &w, &err), DT_EINPUT,
        "but some of this model's are F32 (--backend cpu supports any)");
  random_model_free(f32);
  model_shape odd = cuda_shape(0);
  odd.head_dim = 81;
  random_model *m = random_model_new(&odd, 1);
  fails(dt_cuda_ops.upload(b, &m->desc, NULL, &w, &err), DT_EINPUT,
        "but this model's have 81 (--backend cpu supports any)");
  random_model_free(m);
  model_shape wide = cuda_shape(3);
  wide.hidden = 8200;
  m = random_model_new(&wide, 1);
  fails(dt_cuda_ops.upload(b, &m->desc, NULL, &w, &err), DT_EINPUT,
        "a hidden size up to 8192, but this model's is 8200 (--backend cpu supports any)");
  random_model_free(m);
  dt_cuda_ops.close(b);
  fails(dt_cuda_ops.open(&(dt_backend_options){.variant = "fast", .threads = 1}, &b, &err), DT_EINPUT,
        "no variant 'fast'");
  fails(dt_cuda_ops.open(&(dt_backend_options){.cache_dtype = "f16", .threads = 1}, &b, &err), DT_EINPUT,
        "caches: the CUDA backend does not support the type 'f16'");
}

/* Golden models of types that it lacks, and some that are accepted. */
static void families_that_it_does_not_compute_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *says;
  } families[] = {{"qwen35_moe", "but some of this model's are F32 (--backend cpu supports any)"},
                  {"mixtral", "but some of this model's are F32 (--backend cpu supports any)"},
                  {"gguf_qwen35", NULL},
                  {"gemma4", NULL},
                  {"gpt_oss", NULL},
                  {"glm4_moe", NULL},
                  {"gguf_gemma4_inputs", NULL},
                  {"phi4", NULL},
                  {"qwen3", NULL},
                  {"llama_biases", NULL}};
  dt_backend *b = NULL;
  ok(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    golden g = golden_read(families[i].name);
    model *m = NULL;
    dt_weights *w = NULL;
    ok(model_open(g.model, &m, &err));
    if (families[i].says) {
      fails(dt_cuda_ops.upload(b, model_desc(m), NULL, &w, &err), DT_EINPUT, families[i].says);
    } else {
      ok(dt_cuda_ops.upload(b, model_desc(m), NULL, &w, &err));
      dt_cuda_ops.free_weights(w);
    }
    model_close(m);
    golden_free(&g);
  }
  dt_cuda_ops.close(b);
}

/* Gemma 4's assistants read the keys of a layer with a window, and this target has none. */
static void heads_without_keys_to_read_are_refused(void **state) {
  (void)state;
  size_t size;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden/heads", "cross_attention.json", &size), *folder = temp_folder();
  cJSON *cases = cJSON_Parse(text);
  model_shape shape = cuda_shape(2);
  shape.hidden = 60, shape.vocab = 107;
  random_model *m = random_model_new(&shape, 1);
  dt_backend *b = NULL;
  dt_weights *target = NULL, *w = NULL;
  head *h = NULL;
  formula_checkpoint(folder, cJSON_GetObjectItem(cases->child, "head"));
  ok(head_open(folder, &(dt_rope){0}, &m->desc.shape, NULL, &h, &err));
  ok(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
  ok(dt_cuda_ops.upload(b, &m->desc, NULL, &target, &err));
  fails(dt_cuda_ops.upload_head(b, head_desc(h), &(dt_holding){0}, target, &w, &err), DT_EINPUT,
        "head: layer 0 needs a target layer with a window, but the target has none");
  dt_cuda_ops.free_weights(target);
  dt_cuda_ops.close(b);
  head_close(h);
  random_model_free(m);
  temp_remove(folder);
  cJSON_Delete(cases);
  free(text);
}

/* The tables of angles are as long as a session's context, and not as long as the model's. */
static void a_model_of_a_long_context_takes_no_more_memory(void **state) {
  (void)state;
  static const int contexts[] = {64, 1010000};
  model_shape shape = cuda_shape(5);
  random_model *m = random_model_new(&shape, 1);
  dt_memory held[2];
  for (int i = 0; i < 2; i++) {
    m->desc.shape.context = contexts[i];
    rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 64);
    held[i] = r.ops->memory(r.backend);
    rig_close(&r);
  }
  assert_int_equal(held[0].weights, held[1].weights);
  assert_int_equal(held[0].scratch, held[1].scratch);
  random_model_free(m);
}

#if defined(CUDA_EMU)
static const faults sound = {1, (size_t)1 << 40, -1, 0};

static void no_device_is_said_at_once(void **state) {
  (void)state;
  dt_backend *b = NULL;
  emu_faults((faults){0, 0, -1, 0});
  assert_false(dt_cuda_ops.present());
  fails(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err), DT_EDEVICE, "no CUDA-capable device");
  fails(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err), DT_EDEVICE, "--backend cpu");
  emu_faults((faults){-1, 0, -1, 0});
  fails(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err), DT_EDEVICE, "driver version is insufficient");
  emu_faults(sound);
}

/* Whatever does not fit (the model, its scratch memory, the cache), all memory is given back. */
static void a_full_device_fails_the_load_or_the_session(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 1);
  size_t steps[] = {1 << 10, 1 << 17, 1 << 20, 8 << 20};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    dt_backend *b = NULL;
    dt_weights *w = NULL;
    emu_faults((faults){1, steps[i], -1, 0});
    ok(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
    fails(dt_cuda_ops.upload(b, &m->desc, NULL, &w, &err), DT_ENOMEM, "out of GPU memory");
    assert_int_equal(emu_allocated(), 0);
    dt_cuda_ops.close(b);
  }
  emu_faults(sound);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 8);
  dt_cache *c = NULL;
  size_t before = emu_allocated();
  ok(r.ops->create_cache(r.weights, 1, 1000, &c, &err));
  size_t needed = emu_allocated() - before;
  r.ops->free_cache(c);
  for (size_t part = 0; part < 8; part++) {
    emu_faults((faults){1, before + needed * part / 8, -1, 0});
    fails(r.ops->create_cache(r.weights, 1, 1000, &c, &err), DT_ENOMEM, "--backend cpu");
    assert_int_equal(emu_allocated(), before);
  }
  emu_faults((faults){1, before + needed, -1, 0});
  ok(r.ops->create_cache(r.weights, 1, 1000, &c, &err));
  r.ops->free_cache(c);
  rig_close(&r);
  emu_faults(sound);
  random_model_free(m);
}

enum { MOST_WANTED = 33, KINDS = 7 };
static const int counts[] = {1, 9, 17, MOST_WANTED};

/* Runs a pass over rows of a text, some of which are wanted. Returns an id for each of these, or nothing. */
static void run_kind(rig *r, int rows, int some, int kind, int32_t *ids) {
  enum { K = 2 };
  static const dt_want want[KINDS] = {DT_WANT_ARGMAX, DT_WANT_ARGMAX, DT_WANT_ARGMAX, DT_WANT_BOTH,
                                      DT_WANT_BOTH,   DT_WANT_TOPK,   DT_WANT_LOGITS};
  int32_t top_id[MOST_WANTED * K], wanted[MOST_WANTED];
  float logp[MOST_WANTED], top_logp[MOST_WANTED * K], confidence[MOST_WANTED], entropy[MOST_WANTED];
  const dt_sampling sampling = {.temp = 0.8f, .seed = 3, .top_k = 5};
  const dt_adjustment shift = {.id = 7, .bias = 0.5f, .repeat = 1};
  dt_row_adjustments adjusted[MOST_WANTED];
  float *logits = malloc(sizeof *logits * MOST_WANTED * (size_t)r->vocab);
  row_list l = {0};
  for (int p = 0; p < counts[rows]; p++) row_add_plain(&l, 0, p, p);
  for (int i = 0; i < MOST_WANTED; i++) wanted[i] = i, adjusted[i] = (dt_row_adjustments){.text = &shift, .n_text = 1};
  dt_rows pass = rows_of(&l);
  dt_out out = {.want = want[kind],
                .n = counts[some],
                .row = wanted,
                .k = K,
                .vocab = r->vocab,
                .argmax = ids,
                .logits = logits,
                .top_id = top_id,
                .top_logp = top_logp,
                .confidence = confidence,
                .entropy = entropy};
  if (kind == 1 || kind == 4) out.sampling = &sampling;
  if (kind == 2) out.adjustments = adjusted;
  if (kind == 3) out.logp = logp;
  ok(r->ops->forward(r->weights, r->cache, &pass, &out, &err));
  free(logits);
}

/* Graphs take memory that has no size in advance. A cache drops those that were not used for long, all if there is no
 * memory for one more, and does without if there is none at all. No id changes. */
static void graphs_that_do_not_fit_are_done_without(void **state) {
  (void)state;
  enum { MOST_GRAPHS = 64, IDS = 4 * 4 * KINDS * MOST_WANTED };
  static const int room[] = {1000, 3, 0};
  static int32_t ids[3][IDS];
  model_shape shape = cuda_shape(0);
  random_model *m = random_model_new(&shape, 4);
  for (int i = 0; i < 3; i++) {
    rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 40);
    run_kind(&r, 3, 3, 2, ids[i]); /* lists of adjustments get their memory */
    const size_t before = emu_allocated();
    emu_faults((faults){1, before + (size_t)room[i] * EMU_GRAPH, -1, EMU_LARGE_GRAPHS});
    int pass = 0;
    for (int rows = 0; rows < 4; rows++)
      for (int some = 0; some <= rows; some++)
        for (int kind = 0; kind < KINDS; kind++) run_kind(&r, rows, some, kind, ids[i] + MOST_WANTED * pass++);
    const size_t graphs = (emu_allocated() - before) / EMU_GRAPH;
    assert_true(pass > MOST_GRAPHS);
    if (i == 0) assert_int_equal(graphs, MOST_GRAPHS);
    if (i > 0) assert_in_range(graphs, room[i] ? 1 : 0, room[i]);
    assert_non_null(strstr(r.ops->describe(r.backend), room[i] ? "with graphs" : "without graphs"));
    if (!room[i]) assert_non_null(strstr(r.ops->describe(r.backend), "(out of memory)"));
    assert_memory_equal(ids[i], ids[0], sizeof ids[i]);
    rig_close(&r);
    emu_faults(sound);
  }
  random_model_free(m);
}

/* Copies of rows take the host's memory where the device has little left, and hold the same bits. */
static void copies_move_to_the_host_if_the_device_is_full(void **state) {
  (void)state;
  model_shape shape = cuda_shape(0);
  random_model *m = random_model_new(&shape, 4);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, 8);
  row_list rows = {0};
  for (int p = 0; p < 4; p++) row_add_plain(&rows, 0, 10 + p, p);
  rig_run(&r, &rows, false);
  for (int full = 0; full < 2; full++) {
    const size_t before = r.ops->memory(r.backend).caches;
    size_t slot_bytes;
    free(rig_slot(&r, 0, 0, &slot_bytes));
    dt_snapshot *copy;
    emu_faults((faults){1, emu_allocated() + ((size_t)1 << 30) + 4 * slot_bytes - (size_t)full, -1, 0});
    ok(r.ops->snapshot(r.cache, 0, 4, &copy, &err));
    assert_int_equal(r.ops->memory(r.backend).caches == before, full);
    ok(r.ops->restore(r.cache, 1, copy, &err));
    for (int p = 0; p < 4; p++) {
      size_t len;
      void *was = rig_slot(&r, 0, p, &len), *is = rig_slot(&r, 1, p, &len);
      assert_memory_equal(was, is, len);
      free(was), free(is);
    }
    r.ops->free_snapshot(copy);
    assert_int_equal(r.ops->memory(r.backend).caches, before);
  }
  rig_close(&r);
  emu_faults(sound);
  random_model_free(m);
}

/* After the kernel that fails, every call fails at once, and closing still works. */
static void a_device_that_fails_in_mid_run_ends_it(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 1);
  for (int kernel = 0; kernel < 8; kernel++) {
    rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 8);
    row_list l = {0};
    row_add_plain(&l, 0, 1, 0);
    dt_rows rows = rows_of(&l);
    int32_t best;
    dt_out out = {.want = DT_WANT_ARGMAX, .n = 1, .row = &(int32_t){0}, .argmax = &best};
    emu_faults((faults){1, (size_t)1 << 40, kernel, 0});
    fails(r.ops->forward(r.weights, r.cache, &rows, &out, &err), DT_EDEVICE,
          "running a pass: unspecified launch failure");
    fails(r.ops->forward(r.weights, r.cache, &rows, &out, &err), DT_EDEVICE, "--backend cpu");
    rig_close(&r);
    emu_faults(sound);
  }
  random_model_free(m);
}

/* Checks the description of a backend. `refused`: the driver refused something, and the description gives the
 * reason. */
static void expect_said(const dt_backend *b, int used, bool refused) {
  char said[99];
  snprintf(said, sizeof said, ", %s graphs, %s overlap%s", used & EMU_GRAPHS ? "with" : "without",
           used & EMU_DEPENDENT ? "with" : "without", refused ? " (operation not supported)" : "");
  assert_non_null(strstr(dt_cuda_ops.describe(b), said));
}

/* The logits of some rows on a newly opened device, which must report that it uses these of EMU_DEPENDENT and
 * EMU_GRAPHS. */
static float *logits_now(const random_model *m, int used, bool refused) {
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 20);
  expect_said(r.backend, used, refused);
  row_list l = {0};
  for (int p = 0; p < 20; p++) row_add_plain(&l, 0, p, p);
  float *logits = rig_run(&r, &l, true);
  rig_close(&r);
  return logits;
}

/* Graphs and dependent launches: if the device refuses them or the environment forbids them, they are not used. This is
 * reported and changes no bit. */
static void what_only_saves_time_can_be_done_without(void **state) {
  (void)state;
  enum { BOTH = EMU_DEPENDENT | EMU_GRAPHS };
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 1);
  emu_faults(sound);
  float *expected = logits_now(m, BOTH, false);
  size_t bytes = sizeof *expected * 20 * (size_t)shape.vocab;
  assert_int_equal(emu_used() & BOTH, BOTH);
  emu_faults((faults){1, (size_t)1 << 40, -1, EMU_FIRST_IN_GRAPH}); /* every kernel ran before it is captured */
  free(logits_now(m, BOTH, false));
  for (int lacks = 1; lacks <= BOTH; lacks++) {
    emu_faults((faults){1, (size_t)1 << 40, -1, lacks});
    float *got =
        logits_now(m, lacks == EMU_DEPENDENT ? EMU_GRAPHS : 0, true); /* dependent launches are given up first */
    assert_memory_equal(got, expected, bytes);
    free(got);
  }
  const char *names[] = {"DTRUN_NO_PDL", "DTRUN_NO_GRAPH"};
  const int features[] = {EMU_DEPENDENT, EMU_GRAPHS};
  for (int i = 0; i < 2; i++) {
    emu_faults(sound);
    setenv(names[i], "1", 1);
    float *got = logits_now(m, BOTH & ~features[i], false);
    unsetenv(names[i]);
    assert_int_equal(emu_used() & BOTH, BOTH & ~features[i]);
    assert_memory_equal(got, expected, bytes);
    free(got);
  }
  emu_faults(sound);
  free(expected);
  random_model_free(m);
}

static void a_device_that_fails_at_its_first_kernels_ends_the_load(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 1);
  dt_backend *b = NULL;
  dt_weights *w = NULL;
  dt_error said;
  const char *failed = "loading a model"; /* kernels fail first, then also other calls */
  for (int kernel = 0; strstr(failed, "loading a model"); kernel++) {
    ok(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
    emu_faults((faults){1, (size_t)1 << 40, kernel, 0});
    assert_int_equal(dt_cuda_ops.upload(b, &m->desc, NULL, &w, &said), DT_EDEVICE);
    failed = said.message;
    assert_int_equal(emu_allocated(), 0);
    dt_cuda_ops.close(b);
    emu_faults(sound);
  }
  assert_non_null(strstr(failed, "running its first kernels: unspecified launch failure"));
  random_model_free(m);
}

static void a_device_that_fails_at_a_commit_ends_it(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 1);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 8);
  dt_snapshot *s = NULL;
  emu_faults((faults){1, (size_t)1 << 40, 0, 0});
  fails(r.ops->move(r.cache, 0, (int32_t[]){3}, (int32_t[]){2}, 1, &err), DT_EDEVICE, "moving rows of a cache");
  fails(r.ops->snapshot(r.cache, 0, 4, &s, &err), DT_EDEVICE, "start dtrun again, or use --backend cpu");
  rig_close(&r);
  emu_faults(sound);
  random_model_free(m);
}
#endif

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(models_it_cannot_compute_are_refused),
    cmocka_unit_test(families_that_it_does_not_compute_are_refused),
    cmocka_unit_test(heads_without_keys_to_read_are_refused),
    cmocka_unit_test(a_model_of_a_long_context_takes_no_more_memory),
#if defined(CUDA_EMU)
    cmocka_unit_test(no_device_is_said_at_once),
    cmocka_unit_test(a_full_device_fails_the_load_or_the_session),
    cmocka_unit_test(graphs_that_do_not_fit_are_done_without),
    cmocka_unit_test(copies_move_to_the_host_if_the_device_is_full),
    cmocka_unit_test(a_device_that_fails_in_mid_run_ends_it),
    cmocka_unit_test(what_only_saves_time_can_be_done_without),
    cmocka_unit_test(a_device_that_fails_at_its_first_kernels_ends_the_load),
    cmocka_unit_test(a_device_that_fails_at_a_commit_ends_it),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
