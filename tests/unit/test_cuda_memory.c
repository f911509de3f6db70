/* What a model takes on a device is known before its weights are read, and is what it then takes. Embeddings take
 * memory of the host only. */
#include "cuda_device.h"
#include "pair/account.h"
#include "rig.h"
#include "session/room.h"

/* Makes all reads of the model's weights fail. */
static void make_unreadable(random_model *m) {
  for (int i = 0; i < m->count; i++) m->owned[i].size = 0;
}

static void check_account(const model_shape *shape, const char *caches, bool tied, int sequences, int slots) {
  random_model *m = random_model_new(shape, 5);
  dt_source bytes[sizeof m->owned / sizeof *m->owned];
  memcpy(bytes, m->owned, sizeof bytes);
  if (tied) m->desc.unembed = m->desc.embed;
  dt_backend *b = NULL;
  dt_weights *w = NULL;
  dt_cache *c = NULL;
  dt_memory account;
  ok(dt_cuda_ops.open(&(dt_backend_options){.threads = 1, .cache_dtype = caches}, &b, &err));
  make_unreadable(m);
  ok(dt_cuda_ops.account(b, &m->desc, sequences, slots, &account, &err));
  dt_memory held = dt_cuda_ops.memory(b);
  assert_int_equal(held.weights + held.caches + held.scratch + held.host, 0);
  fails(dt_cuda_ops.upload(b, &m->desc, NULL, &w, &err), DT_EINPUT, "random");
  memcpy(m->owned, bytes, sizeof bytes);

  ok(dt_cuda_ops.upload(b, &m->desc, NULL, &w, &err));
  ok(dt_cuda_ops.create_cache(w, sequences, slots, &c, &err));
  held = dt_cuda_ops.memory(b);
  assert_int_equal(held.weights, account.weights);
  assert_int_equal(held.caches, account.caches);
  assert_int_equal(held.scratch, account.scratch);
  assert_int_equal(held.host, account.host);
  assert_int_equal(held.host, 2 * (size_t)shape->vocab * (size_t)shape->hidden);
#if defined(CUDA_EMU)
  assert_int_equal(emu_allocated(), account.weights + account.caches + account.scratch);
#endif
  dt_cuda_ops.free_cache(c);
  dt_cuda_ops.free_weights(w);
  held = dt_cuda_ops.memory(b);
  assert_int_equal(held.weights + held.caches + held.scratch + held.host, 0);
  dt_cuda_ops.close(b);
  random_model_free(m);
}

static void a_model_takes_what_its_account_says(void **state) {
  (void)state;
  for (int i = 0; i < RANDOM_SHAPES; i += emulated ? 3 : 1) {
    model_shape shape = cuda_shape(i);
    if (i % 2)
      check_account(&shape, "q8", true, 3, 300);
    else
      check_account(&shape, NULL, false, 1, 40);
  }
}

/* With more ids, a device takes as many more bytes as the output matrix has for them. */
static void embeddings_take_no_memory_of_the_device(void **state) {
  (void)state;
  enum { MORE = 1600 };
  for (int tied = 0; tied < 2; tied++) {
    dt_memory of[2];
    for (int i = 0; i < 2; i++) {
      model_shape shape = cuda_shape(7); /* Q4_K */
      shape.vocab = 160 + MORE * i;
      random_model *m = random_model_new(&shape, 1);
      if (tied) m->desc.unembed = m->desc.embed;
      assert_int_equal(m->desc.unembed.dtype, tied ? DT_Q4_K : DT_Q6_K);
      rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, 8);
      of[i] = r.ops->memory(r.backend);
      rig_close(&r);
      random_model_free(m);
    }
    size_t numbers = (size_t)MORE * 512, biases = (size_t)MORE / 2 * 8;
    assert_int_equal(of[1].weights - of[0].weights, numbers / 8 * (tied ? 5 : 7) + biases);
    assert_int_equal(of[1].host - of[0].host, 2 * numbers);
  }
}

#if defined(CUDA_EMU)
enum { MARGIN = 256 << 20 }; /* left to what has no size in advance */

static void set_free(size_t bytes) { emu_faults((faults){1, bytes + MARGIN, -1, 0}); }

/* A pair without models, and the bundled models. */
typedef struct {
  dt_pair pair;
  model *target, *draft;
} desk;

static desk desk_open(void) {
  desk d = {.pair = {.ops = &dt_cuda_ops, .cache_dtype = "16-bit"}};
  ok(dt_cuda_ops.open(&(dt_backend_options){.threads = 1}, &d.pair.backend, &err));
  ok(model_open(SOURCE_DIR "/models/mini-target", &d.target, &err));
  ok(model_open(SOURCE_DIR "/models/mini-draft", &d.draft, &err));
  return d;
}

static void desk_close(desk *d) {
  if (d->pair.target) dt_cuda_ops.free_weights(d->pair.target);
  dt_cuda_ops.close(d->pair.backend);
  model_close(d->target), model_close(d->draft);
  assert_int_equal(emu_allocated(), 0);
  emu_faults((faults){1, (size_t)1 << 40, -1, 0});
}

/* What a model takes with a session of one sequence. */
static dt_memory account_of(const desk *d, const model *m, int context) {
  dt_memory account;
  ok(dt_cuda_ops.account(d->pair.backend, model_desc(m), 1, target_slots(context), &account, &err));
  return account;
}

static size_t bytes_of(dt_memory m) { return m.weights + m.caches + m.scratch; }

/* A model with a context that does not fit is refused in a line that names one that does. With that context the model
 * loads, and its session opens. */
static void a_model_that_does_not_fit_is_refused_before_it_is_loaded(void **state) {
  (void)state;
  enum { FITS = 1500 };
  desk d = desk_open();
  dt_cache *c = NULL;
  const dt_model_desc *desc = model_desc(d.target);
  set_free(bytes_of(account_of(&d, d.target, FITS)));
  fails(account_fits(&d.pair, desc, "M", 0, &err), DT_ENOMEM, "out of GPU memory: M with a context of 2048 needs 0.");
  fails(
      account_fits(&d.pair, desc, "M", 0, &err), DT_ENOMEM,
      "GiB are free (-c 1500 fits, --cache-dtype q8 fits, --gpu-layers 4 fits, --backend cpu uses the host's memory)");
  fails(account_fits(&d.pair, desc, "M", FITS + 1, &err), DT_ENOMEM, "M with a context of 1501 needs 0.");
  d.pair.cache_dtype = "q8";
  fails(account_fits(&d.pair, desc, "M", 0, &err), DT_ENOMEM, "(-c 1500 fits, --gpu-layers 4 fits, --backend cpu uses");
  assert_int_equal(emu_allocated(), 0);
  ok(account_fits(&d.pair, desc, "M", FITS, &err));
  ok(dt_cuda_ops.upload(d.pair.backend, desc, NULL, &d.pair.target, &err));
  fails(caches_fit(&d.pair, 1, FITS + 1, false, &err), DT_EINPUT, "a context of 1500 fits");
  ok(caches_fit(&d.pair, 1, FITS, false, &err));
  ok(dt_cuda_ops.create_cache(d.pair.target, 1, target_slots(FITS), &c, &err));
  assert_int_equal(emu_allocated(), bytes_of(account_of(&d, d.target, FITS)));
  dt_cuda_ops.free_cache(c);
  desk_close(&d);

  d = desk_open();
  set_free(account_of(&d, d.target, FITS).weights);
  fails(account_fits(&d.pair, model_desc(d.target), "M", 0, &err), DT_ENOMEM,
        "GiB are free (--backend cpu uses the host's memory)");
  desk_close(&d);
}

/* The draft's line counts the caches of both models. */
static void a_draft_that_does_not_fit_is_refused_before_it_is_loaded(void **state) {
  (void)state;
  desk d = desk_open();
  dt_memory draft;
  ok(dt_cuda_ops.account(d.pair.backend, model_desc(d.draft), 1, draft_slots(2048), &draft, &err));
  const size_t both = bytes_of(account_of(&d, d.target, 2048)) + bytes_of(draft);
  ok(dt_cuda_ops.upload(d.pair.backend, model_desc(d.target), NULL, &d.pair.target, &err));
  set_free(both - 512);
  fails(account_fits(&d.pair, model_desc(d.draft), "D", 0, &err), DT_ENOMEM, "D with a context of 2048 needs 0.");
  set_free(both);
  ok(account_fits(&d.pair, model_desc(d.draft), "D", 0, &err));
  desk_close(&d);
}

/* Files without a NaN can still give one where 16 bits are too few. */
static void a_nan_names_the_cpu_as_a_remedy(void **state) {
  (void)state;
  desk d = desk_open();
  fails(pair_gave_nan(&d.pair, 7, &err), DT_EDEVICE,
        "returned NaN at position 7: if its numbers are too large for the GPU's 16 bits, --backend cpu can compute it");
  desk_close(&d);
}
#endif

/* What a model takes with the experts of its first n layers on the host. */
static size_t bytes_apart(const desk *d, const model *m, int n, int context) {
  dt_model_desc desc = *model_desc(m);
  dt_layer layer[8];
  dt_memory account;
  memcpy(layer, desc.layer, sizeof *layer * (size_t)desc.shape.layers);
  for (int i = 0; i < n; i++) layer[i].apart = true;
  desc.layer = layer;
  ok(dt_cuda_ops.account(d->pair.backend, &desc, 1, target_slots(context), &account, &err));
  return bytes_of(account);
}

static void experts_that_must_leave_the_device_are_named(void **state) {
  (void)state;
  enum { CONTEXT = 64 };
  model *m;
  desk d = desk_open();
  ok(model_open(SOURCE_DIR "/tests/golden/logits/gguf_gpt_oss/model.gguf", &m, &err));
  set_free(bytes_apart(&d, m, 2, CONTEXT));
  fails(account_fits(&d.pair, model_desc(m), "M", CONTEXT, &err), DT_ENOMEM,
        "--cpu-experts 2 fits, --backend cpu uses");
  set_free(bytes_apart(&d, m, 2, CONTEXT) - 1);
  fails(account_fits(&d.pair, model_desc(m), "M", CONTEXT, &err), DT_ENOMEM,
        "--cpu-experts 3 fits, --backend cpu uses");
  model_close(m);
  desk_close(&d);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_model_takes_what_its_account_says),
    cmocka_unit_test(embeddings_take_no_memory_of_the_device),
#if defined(CUDA_EMU)
    cmocka_unit_test(a_model_that_does_not_fit_is_refused_before_it_is_loaded),
    cmocka_unit_test(experts_that_must_leave_the_device_are_named),
    cmocka_unit_test(a_draft_that_does_not_fit_is_refused_before_it_is_loaded),
    cmocka_unit_test(a_nan_names_the_cpu_as_a_remedy),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
