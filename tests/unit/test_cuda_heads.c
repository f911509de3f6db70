/* What the CUDA backend stores of its rows for a draft head. The test uses the simplest of heads: it multiplies the
 * stream that enters a layer by the target's output matrix. test_heads runs whole heads on the backend. */
#include "cpu.h"
#include "cuda.h"
#include "cuda_device.h"
#include "random_parts.h"
#include "rig.h"

enum { CHUNK = 512, LENGTH = CHUNK + 9, SEQUENCES = 2 };

typedef struct {
  rig target;
  dt_weights *head;
  dt_cache *cache; /* the head's cache */
} tapped;

static dt_head_desc plainest(const random_model *m, int layer) {
  const dt_shape *s = &m->desc.shape;
  return (dt_head_desc){.model.shape = {.vocab = s->vocab,
                                        .hidden = s->hidden,
                                        .inter = s->hidden,
                                        .heads = 1,
                                        .kv_heads = 1,
                                        .context = s->context,
                                        .norm = DT_NORM_RMS},
                        .kind = DT_HEAD_MEDUSA,
                        .taps = 1,
                        .tap = {layer},
                        .distances = 1,
                        .output = {m->desc.unembed}};
}

static tapped open_tapped(const dt_backend_ops *ops, const random_model *m, int layer) {
  tapped t = {.target = {.ops = ops, .vocab = m->desc.shape.vocab}};
  dt_head_desc head = plainest(m, layer);
  ok(ops->open(&(dt_backend_options){.threads = 1}, &t.target.backend, &err));
  ok(ops->upload(t.target.backend, &m->desc, NULL, &t.target.weights, &err));
  ok(ops->upload_head(t.target.backend, &head, &(dt_holding){0}, t.target.weights, &t.head, &err));
  ok(ops->create_cache(t.target.weights, SEQUENCES, LENGTH, &t.target.cache, &err));
  ok(ops->create_cache(t.head, SEQUENCES, LENGTH, &t.cache, &err));
  return t;
}

static void close_tapped(tapped *t) {
  t->target.ops->free_cache(t->cache);
  t->target.ops->free_weights(t->head);
  rig_close(&t->target);
}

static dt_rows text(int sequence, int first, int n, bool prompt) {
  static int32_t token[LENGTH];
  for (int i = 0; i < n; i++) token[i] = (first + i) * 13 % 89;
  dt_rows rows = text_rows(token, sequence, first, n);
  rows.prompt = prompt;
  return rows;
}

/* What the head computes from the features in these slots; malloc'd. */
static float *guesses(tapped *t, int sequence, const int32_t *slot, int n) {
  row_list l = {0};
  int32_t all[MAX_ROWS];
  for (int i = 0; i < n; i++) all[i] = i, row_add_plain(&l, sequence, 0, slot[i]);
  dt_rows rows = rows_of(&l);
  rows.features = t->target.cache;
  float *logits = malloc((size_t)n * (size_t)t->target.vocab * sizeof *logits);
  dt_out out = {.want = DT_WANT_LOGITS, .n = n, .row = all, .logits = logits};
  ok(t->target.ops->forward(t->head, t->cache, &rows, &out, &err));
  return logits;
}

/* Does this for the rows of a prompt's chunk, for the rest of the prompt and for a tree, after they have been moved,
 * saved and restored in another sequence, each time together with their keys and values. */
static float *run_texts(const dt_backend_ops *ops, const random_model *m, int layer) {
  static const int32_t slots[] = {0, 100, 255, 256, CHUNK - 1, CHUNK, LENGTH - 4, LENGTH - 3, LENGTH - 2};
  enum { SLOTS = sizeof slots / sizeof *slots };
  tapped t = open_tapped(ops, m, layer);
  rig plain = rig_open(ops, NULL, 1, &m->desc, 1, LENGTH);
  dt_rows rows = text(0, 0, LENGTH - 4, true);
  ok(ops->forward(t.target.weights, t.target.cache, &rows, NULL, &err));
  ok(ops->forward(plain.weights, plain.cache, &rows, NULL, &err));
  row_list tree = {0};
  row_add(&tree, 0, 7, LENGTH - 4, (int32_t[]){LENGTH - 4}, 1);
  row_add(&tree, 0, 8, LENGTH - 4, (int32_t[]){LENGTH - 4, LENGTH - 2}, 2);
  row_add(&tree, 0, 9, LENGTH - 4, (int32_t[]){LENGTH - 4, LENGTH - 2, LENGTH - 1}, 3);
  free(rig_run(&t.target, &tree, true)), free(rig_run(&plain, &tree, true));
  const int32_t from[] = {LENGTH - 2, LENGTH - 1}, to[] = {LENGTH - 3, LENGTH - 2};
  ok(ops->move(t.target.cache, 0, from, to, 2, &err));
  ok(ops->move(plain.cache, 0, from, to, 2, &err));
  dt_snapshot *taken;
  ok(ops->snapshot(t.target.cache, 0, LENGTH - 1, &taken, &err));
  ok(ops->restore(t.target.cache, 1, taken, &err));
  ops->free_snapshot(taken);
  for (int i = 0; i < SLOTS; i++) {
    size_t len, plain_len, again_len;
    void *with = rig_slot(&t.target, 0, slots[i], &len), *without = rig_slot(&plain, 0, slots[i], &plain_len);
    void *again = rig_slot(&t.target, 1, slots[i], &again_len);
    assert_true(len > plain_len && len == again_len);
    assert_memory_equal(with, without, plain_len);
    assert_memory_equal(with, again, len);
    free(with), free(without), free(again);
  }
  float *said = guesses(&t, 1, slots, SLOTS);
  said = realloc(said, (SLOTS + 1) * (size_t)t.target.vocab * sizeof *said);
  float *end = rig_run(&plain, &tree, true); /* the target's own logits after the tree's last row */
  memcpy(said + SLOTS * (size_t)t.target.vocab, end + 2 * (size_t)t.target.vocab, (size_t)t.target.vocab * sizeof *end);
  free(end);
  rig_close(&plain), close_tapped(&t);
  return said;
}

/* `add` adds parts to the model; NULL: none. */
static void check_shape(model_shape shape, void (*add)(random_model *), int layer) {
  enum { SAID = 9 };
  random_model *m = random_model_new(&shape, 7);
  if (add) add(m);
  size_t vocab = (size_t)shape.vocab;
  float *expected = run_texts(&dt_cpu_ops, m, layer), *got = run_texts(&dt_cuda_ops, m, layer);
  double d = logits_difference(got, expected, SAID * vocab), most = 2 * rounding_of(shape.dtype);
  if (d > most)
    fail_msg("%s, layer %d: the guesses differ by %g of their size, at most %g", shape.name, layer, d, most);
  /* From the stream after the final norm, the head must get the target's own logits, to the bit. */
  if (layer == shape.layers + 1) assert_memory_equal(got + (SAID - 1) * vocab, got + SAID * vocab, vocab * sizeof *got);
  free(expected), free(got);
  random_model_free(m);
}

static void caches_keep_what_enters_every_layer(void **state) {
  (void)state;
  for (int layer = 0; layer <= cuda_shape(3).layers + 1; layer++) check_shape(cuda_shape(3), NULL, layer);
  check_shape(cuda_shape(1), NULL, 1);
  check_shape(cuda_shape(1), NULL, 3);
  for (int layer = 0; layer <= 2; layer++) check_shape(cuda_shape(4), random_gemma, layer);
}

/* What a head with norms before its layer, as an MTP layer has them, computes after a text, whose rows read the
 * target's features, and one row later, from its own feature; malloc'd. */
static float *run_normed(const dt_backend_ops *ops, const random_model *m, const dt_head_desc *head) {
  enum { N = 20 };
  rig target = {.ops = ops, .vocab = m->desc.shape.vocab};
  dt_weights *weights;
  dt_cache *cache;
  ok(ops->open(&(dt_backend_options){.threads = 1}, &target.backend, &err));
  ok(ops->upload(target.backend, &m->desc, NULL, &target.weights, &err));
  ok(ops->upload_head(target.backend, head, &(dt_holding){0}, target.weights, &weights, &err));
  ok(ops->create_cache(target.weights, 1, N + 1, &target.cache, &err));
  ok(ops->create_cache(weights, 1, N + 1, &cache, &err));
  float *logits = malloc(2 * (size_t)target.vocab * sizeof *logits);
  dt_rows rows = text(0, 0, N, false);
  ok(ops->forward(target.weights, target.cache, &rows, NULL, &err));
  rows.features = target.cache;
  dt_out out = {.want = DT_WANT_LOGITS, .n = 1, .row = (int32_t[]){N - 1}, .logits = logits};
  ok(ops->forward(weights, cache, &rows, &out, &err));
  rows = text(0, N, 1, false);
  out.row = (int32_t[]){0}, out.logits = logits + target.vocab;
  ok(ops->forward(weights, cache, &rows, &out, &err));
  ops->free_cache(cache), ops->free_weights(weights);
  rig_close(&target);
  return logits;
}

/* The head's layer is complete, with norms and an MLP or, if `add` adds them, experts. */
static void check_normed(void (*add)(random_model *), const char *name) {
  model_shape shape = cuda_shape(4);
  random_model *m = random_model_new(&shape, 7);
  shape.layers = 1;
  random_model *parts = random_model_new(&shape, 8);
  if (add) add(parts);
  const int hidden = shape.hidden;
  size_t n = 2 * (size_t)shape.vocab;
  dt_head_desc head = {.model = parts->desc, .kind = DT_HEAD_EAGLE, .taps = 1, .tap = {m->desc.shape.layers}};
  head.fc = random_matrix(parts, hidden, 2 * hidden, 0.1f, 0);
  head.token_norm = random_matrix(parts, hidden, 1, 0.3f, 1),
  head.feature_norm = random_matrix(parts, hidden, 1, 0.3f, 1);
  head.model.embed = head.model.unembed = (dt_matrix){0};
  for (int norms = 0; norms < 2; norms++) { /* with those of the head; then without them and that of the layer */
    dt_layer layer = parts->layer[0];
    if (norms) layer.norm1 = layer.norm1_bias = head.token_norm = head.feature_norm = (dt_matrix){0};
    head.model.layer = &layer;
    float *expected = run_normed(&dt_cpu_ops, m, &head), *got = run_normed(&dt_cuda_ops, m, &head);
    double d = logits_difference(got, expected, n), most = 2 * rounding_of(shape.dtype);
    if (d > most) fail_msg("%s, norms %d: the guesses differ by %g of their size, at most %g", name, norms, d, most);
    free(expected), free(got);
  }
  random_model_free(m), random_model_free(parts);
}

static void add_experts(random_model *m) { random_experts(m, 0, 27, false, false); }

static void layers_of_the_targets_kind_are_computed(void **state) {
  (void)state;
  check_normed(NULL, "an MLP");
  check_normed(add_experts, "experts");
  check_normed(random_gated_experts, "experts and a gated MLP");
}

enum { TEXT = 300, TREE = 5, LEVELS = 3 };

/* The rows of a level of a tree after TEXT rows of a sequence's text: all have the root's position, and their paths end
 * with the slots of their parent and of themselves. */
static int add_level(row_list *l, int sequence, int level) {
  static const int parent[TREE] = {0, 0, 0, 1, 1}, level_of[TREE] = {0, 1, 1, 2, 2};
  int n = 0;
  for (int u = 0; u < TREE; u++) {
    if (level_of[u] != level) continue;
    n++;
    if (u == 0)
      row_add_plain(l, sequence, 5, TEXT);
    else
      row_add(l, sequence, 10 + u, TEXT - 1, (int32_t[]){TEXT + parent[u], TEXT + u}, 2);
  }
  return n;
}

static void run_level(const dt_backend_ops *ops, dt_weights *head, dt_cache *cache, const dt_cache *target,
                      const row_list *l, int level, float *logits) {
  int32_t all[TREE * SEQUENCES];
  for (int i = 0; i < l->n; i++) all[i] = i;
  dt_rows rows = rows_of(l);
  rows.features = target, rows.distance = level;
  dt_out out = {.want = DT_WANT_LOGITS, .n = l->n, .row = all, .logits = logits};
  ok(ops->forward(head, cache, &rows, &out, &err));
}

/* What a cross-attention head computes for trees after two texts: [SEQUENCES][TREE][vocab], malloc'd. On a GPU, one
 * tree alone must give the same bits. */
static float *run_reading(const dt_backend_ops *ops, const char *caches, const dt_model_desc *desc,
                          const dt_head_desc *head) {
  rig target = {.ops = ops, .vocab = desc->shape.vocab};
  dt_weights *weights;
  dt_cache *cache;
  const size_t vocab = (size_t)target.vocab;
  ok(ops->open(&(dt_backend_options){.threads = 1, .cache_dtype = caches}, &target.backend, &err));
  ok(ops->upload(target.backend, desc, NULL, &target.weights, &err));
  ok(ops->upload_head(target.backend, head, &(dt_holding){0}, target.weights, &weights, &err));
  ok(ops->create_cache(target.weights, SEQUENCES, TEXT, &target.cache, &err));
  ok(ops->create_cache(weights, SEQUENCES, TEXT + TREE, &cache, &err));
  float *logits = malloc(SEQUENCES * TREE * vocab * sizeof *logits), *to = logits;
  for (int seq = 0; seq < SEQUENCES; seq++) {
    int32_t token[TEXT];
    for (int i = 0; i < TEXT; i++) token[i] = (i + 5 * seq) * 13 % 89;
    dt_rows rows = text_rows(token, seq, 0, TEXT);
    ok(ops->forward(target.weights, target.cache, &rows, NULL, &err));
  }
  for (int level = 0; level < LEVELS; level++) {
    row_list both = {0}, second = {0};
    int n = add_level(&both, 0, level);
    add_level(&both, 1, level), add_level(&second, 1, level);
    run_level(ops, weights, cache, target.cache, &both, level, to);
    float *alone = malloc((size_t)n * vocab * sizeof *alone);
    run_level(ops, weights, cache, target.cache, &second, level, alone);
    if (ops == &dt_cuda_ops) assert_memory_equal(alone, to + (size_t)n * vocab, (size_t)n * vocab * sizeof *alone);
    free(alone);
    to += 2 * (size_t)n * vocab;
  }
  ops->free_cache(cache), ops->free_weights(weights);
  rig_close(&target);
  return logits;
}

/* Its layers read the keys of the target's last layer with a window, and of its last one without. */
static void a_head_reads_the_targets_keys(void **state) {
  (void)state;
  model_shape shape = cuda_shape(4);
  random_model *m = random_model_new(&shape, 7);
  random_gemma(m);
  const int hidden = shape.hidden;
  model_shape own = shape;
  own.hidden = 40, own.heads = 4, own.inter = 50;
  random_model *parts = random_model_new(&own, 8);
  for (int i = 0; i < own.layers; i++) {
    dt_layer *l = &parts->layer[i];
    l->k = l->v = l->k_bias = l->v_bias = (dt_matrix){0};
    l->keys_of = 1;
  }
  parts->layer[1].window = 7;
  dt_head_desc head = {.model = parts->desc, .kind = DT_HEAD_CROSS_ATTENTION, .taps = 1, .tap = {shape.layers + 1}};
  head.fc = random_matrix(parts, own.hidden, 2 * hidden, 0.1f, 0);
  head.post = random_matrix(parts, hidden, own.hidden, 0.1f, 0);
  head.model.embed = (dt_matrix){0};
  const char *const caches[] = {NULL, "q8"};
  for (int i = 0; i < 2; i++) {
    float *expected = run_reading(&dt_cpu_ops, caches[i], &m->desc, &head),
          *got = run_reading(&dt_cuda_ops, caches[i], &m->desc, &head);
    double d = logits_difference(got, expected, SEQUENCES * TREE * (size_t)shape.vocab),
           most = (i ? 4 : 2) * rounding_of(shape.dtype);
    print_message("caches %s: the guesses differ by %.2g of their size\n", i ? "q8" : "f16", d);
    if (d > most) fail_msg("caches %d: the guesses differ by %g of their size, at most %g", i, d, most);
    free(expected), free(got);
  }
  random_model_free(m), random_model_free(parts);
}

static void heads_it_cannot_compute_are_refused(void **state) {
  (void)state;
  random_model *m = random_model_new(&(model_shape){"", 97, 64, 1, 4, 4, 16, 70, 0, DT_F16, DT_NORM_RMS, DT_ACT_SILU,
                                                    false, true, false, false, false, false},
                                     3);
  random_model *parts = random_model_new(&(model_shape){"", 97, 64, 1, 1, 1, 513, 70, 0, DT_F32, DT_NORM_RMS,
                                                        DT_ACT_SILU, false, true, false, false, false, false},
                                         4);
  const dt_backend_ops *ops = &dt_cuda_ops;
  dt_backend *b;
  dt_weights *w, *none = NULL;
  ok(ops->open(&(dt_backend_options){.threads = 1}, &b, &err));
  ok(ops->upload(b, &m->desc, NULL, &w, &err));
  dt_head_desc head = plainest(m, 1);
  fails(ops->upload_head(b, &head, &(dt_holding){.dtype = "q8"}, w, &none, &err), DT_EINPUT,
        "weights: the CUDA backend cannot convert weights to the type 'q8'");
  head.distances = 17;
  fails(ops->upload_head(b, &head, &(dt_holding){0}, w, &none, &err), DT_EINPUT,
        "17 distances of 0 blocks, 1 to 16 of up to 4");
  dt_layer layer = parts->layer[0];
  dt_matrix fc = random_matrix(parts, 64, 128, 0.1f, 0);
  layer.norm1 = (dt_matrix){0};
  head = (dt_head_desc){.model = parts->desc, .kind = DT_HEAD_EAGLE, .taps = 1, .tap = {2}, .fc = fc};
  head.model.layer = &layer;
  head.model.embed = head.model.unembed = head.model.final_norm = (dt_matrix){0};
  fails(ops->upload_head(b, &head, &(dt_holding){0}, w, &none, &err), DT_EINPUT,
        "heads of an even size up to 512, but this draft head's have 513 (--backend cpu supports any)");
  assert_null(none);
  ops->free_weights(w);
  ops->close(b);
  random_model_free(m), random_model_free(parts);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(caches_keep_what_enters_every_layer), cmocka_unit_test(layers_of_the_targets_kind_are_computed),
      cmocka_unit_test(a_head_reads_the_targets_keys), cmocka_unit_test(heads_it_cannot_compute_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
