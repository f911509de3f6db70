/* Promise 1 on the CPU backend: the bits of a row do not depend on the rows next to it, on its index among them, on the
 * slots of its keys, or on the number of threads. The reference is plain decoding, one row at a time on one thread.
 *
 *   test_cpu_exact [quick]      quick (in scripts/test and under an emulator): a few numbers of rows after one prefix;
 *                               of the bundled pair only the draft */
#include "cpu.h"
#include "kernels.h"
#include "model/model.h"
#include "random_parts.h"
#include "rig.h"
#include "tree_case.h"
static const dt_holding as_it_is = {0};
static bool quick;
static dt_window seen; /* of all passes */

/* Whether batches of n rows are checked. */
static bool is_checked(int n, bool few) {
  if (few) return n == 1 || n == 2 || n == 5 || n == 16 || n == 33 || n == 65 || n == NODES;
  return n <= 65 || n == 128 || n == NODES;
}

/* Checks every n up to 64 and some larger ones, every row of each, with one and two threads; after the first prefix
 * also with three, which share heads and panels unevenly. Under sanitizers and emulators, which are slow, it checks
 * only a few n and prefixes. */
static void check_model(const dt_model_desc *desc, const char *cache_dtype, dt_holding how, const int *prefixes,
                        int prefix_count) {
#if defined(__SANITIZE_ADDRESS__)
  const bool few = true;
  if (prefix_count > 3) prefix_count = 3;
#else
  const bool few = quick;
#endif
  if (quick) prefix_count = 1;
  const int nodes = quick ? 65 : NODES;
  for (int p = 0; p < prefix_count; p++) {
    int slots = prefixes[p] + SPREAD;
    dt_backend_options options = {.threads = 1, .cache_dtype = cache_dtype};
    rig plain = rig_open_rounded(&dt_cpu_ops, options, desc, how, 2, slots);
    plain.window = seen;
    tree_case t;
    decode_plainly(&plain, &t, prefixes[p], nodes, (uint64_t)p + 1);
    for (; options.threads <= (p == 0 ? 3 : 2); options.threads++) {
      rig r = rig_open_rounded(&dt_cpu_ops, options, desc, how, 1, slots);
      r.window = seen;
      ok(r.ops->restore(r.cache, 0, t.prefix_rows, &err));
      for (int n = 1; n <= nodes; n++)
        if (is_checked(n, few)) check_batch(&r, &t, n, (uint64_t)n);
      rig_close(&r);
    }
    tree_case_free(&plain, &t);
    rig_close(&plain);
  }
}

static void a_row_has_the_bits_of_plain_decoding_in_every_batch(void **state) {
  (void)state;
  /* Attention takes 16 positions at a time; trees reach 23 further. */
  const int prefixes[] = {16, 300, 1, 15, 17, 63, 255};
  for (int s = 0; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 7);
    check_model(&m->desc, "f32", as_it_is, prefixes, (int)(sizeof prefixes / sizeof *prefixes));
    check_model(&m->desc, s % 2 ? "f16" : "q8", as_it_is, prefixes, 1);
    const dt_holding rounded = {.dtype = s % 4 == 1 ? "q8" : "q4", .activations = s % 8 > 4 ? "16" : "8"};
    if (s % 2 == 1) check_model(&m->desc, NULL, rounded, prefixes, 1);
    random_model_free(m);
  }
}

static void so_it_has_with_windows_caps_norms_of_all_kinds_and_experts(void **state) {
  (void)state;
  const int prefixes[] = {16, 300, 1, 37};
  for (int part = 0; part < RANDOM_PARTS; part++) {
    random_model *m = random_parts_new(part, 7);
    check_model(&m->desc, "f32", as_it_is, prefixes, (int)(sizeof prefixes / sizeof *prefixes));
    check_model(&m->desc, part ? "f16" : "q8", as_it_is, prefixes, 2);
    check_model(&m->desc, NULL, (dt_holding){.dtype = "q8", .activations = "8"}, prefixes, 1);
    random_model_free(m);
  }
}

/* Between the first and the most recent keys, whole sixteens are not read: none, one or many, and past the prefix. */
static void so_it_has_if_rows_see_a_window(void **state) {
  (void)state;
  const dt_window windows[] = {{40, 4}, {70, 0}, {17, 33}, {3, 16}, {280, 4}};
  const int prefixes[] = {300, 63};
  for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
    random_model *m = w % 2 ? random_parts_new(0, 7) : random_model_new(&random_shapes[w], 7);
    seen = windows[w];
    check_model(&m->desc, w % 2 ? "f16" : "f32", as_it_is, prefixes, 2);
    random_model_free(m);
  }
  seen = (dt_window){0};
}

static void so_it_has_on_the_bundled_pair(void **state) {
  (void)state;
  const int prefixes[] = {33, 100};
  const char *folders[] = {SOURCE_DIR "/models/mini-draft", SOURCE_DIR "/models/mini-target"};
  for (int i = 0; i < (quick ? 1 : 2); i++) {
    model *m = NULL;
    ok(model_open(folders[i], &m, &err));
    check_model(model_desc(m), "f16", as_it_is, prefixes, i ? 1 : 2);
    check_model(model_desc(m), i ? "f32" : "q8", as_it_is, prefixes, 2 - i);
    for (int fine = 0; fine < 2; fine++)
      check_model(model_desc(m), NULL, (dt_holding){.dtype = i ? "q4" : "q8", .activations = fine ? "16" : "8"},
                  prefixes, 1);
    model_close(m);
  }
}

/* The keys and values of the first layer do not depend on the type of caches: in any type they are the f32 ones,
 * rounded. */
static void check_rounded(const char *type, const cpu_cache_type *held) {
  for (int s = 0; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 6);
    rig r[2];
    row_list l = {0};
    for (int p = 0; p < 5; p++) row_add_plain(&l, 0, p * 7, p);
    for (int rounded = 0; rounded < 2; rounded++) {
      dt_backend_options options = {.threads = 2, .cache_dtype = rounded ? type : "f32"};
      r[rounded] = rig_open_with(&dt_cpu_ops, options, &m->desc, 1, 8);
      rig_run(&r[rounded], &l, false);
    }
    int dim = (m->desc.shape.head_dim + 15) / 16 * 16, heads = 2 * m->desc.shape.kv_heads;
    size_t bytes = held->row_bytes(dim), all = (size_t)(heads * m->desc.shape.layers) * bytes;
    assert_int_equal(dt_cpu_ops.cache_bytes(r[1].weights, 8), 8 * all);
    for (int p = 0; p < 5; p++) {
      size_t len, rounded_len;
      float *rows = rig_slot(&r[0], 0, p, &len);
      char *rounded = rig_slot(&r[1], 0, p, &rounded_len), *expected = malloc(bytes);
      assert_int_equal(rounded_len, all);
      for (int h = 0; h < heads; h++) {
        held->write(rows + h * dim, dim, expected);
        assert_memory_equal(rounded + (size_t)h * bytes, expected, bytes);
      }
      free(rows), free(rounded), free(expected);
    }
    rig_close(&r[0]), rig_close(&r[1]);
    random_model_free(m);
  }
}

static void rows_in_other_types_are_those_in_f32_rounded(void **state) {
  (void)state;
  for (int i = 0; i < CPU_CACHES; i++) check_rounded(cpu_variant(0)->cache[i]->name, cpu_variant(0)->cache[i]);
}

/* A prompt leaves the same cache whatever the size of its chunks, even with rows of another sequence in between. */
static void a_prompt_pass_has_the_bits_of_plain_decoding(void **state) {
  (void)state;
  enum { LENGTH = 150 };
  for (int s = 0; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 8);
    rig plain = rig_open(&dt_cpu_ops, NULL, 1, &m->desc, 1, LENGTH);
    uint64_t seed = 5;
    int32_t token[LENGTH];
    for (int p = 0; p < LENGTH; p++) {
      row_list l = {0};
      token[p] = (int32_t)(random_next(&seed) % (uint32_t)plain.vocab);
      row_add_plain(&l, 0, token[p], p);
      rig_run(&plain, &l, false);
    }
    for (int threads = 1; threads <= 3; threads++) {
      rig r = rig_open(&dt_cpu_ops, NULL, threads, &m->desc, 2, LENGTH);
      for (int p = 0; p < LENGTH;) {
        row_list l = {0};
        int n = 1 + (int)(random_next(&seed) % 90);
        for (int i = 0; i < n && p < LENGTH; i++, p++) {
          row_add_plain(&l, 0, token[p], p);
          if (p % 3 == 0) row_add_plain(&l, 1, token[p / 3], p / 3);
        }
        rig_run(&r, &l, false);
      }
      for (int p = 0; p < LENGTH; p++) {
        size_t len;
        void *expected = rig_slot(&plain, 0, p, &len);
        for (int sequence = 0; sequence < (p < LENGTH / 3 ? 2 : 1); sequence++) {
          void *chunked = rig_slot(&r, sequence, p, &len);
          assert_memory_equal(expected, chunked, len);
          free(chunked);
        }
        free(expected);
      }
      rig_close(&r);
    }
    rig_close(&plain);
    random_model_free(m);
  }
}

/* Candidates, argmax and logits of the same rows agree, whatever else is wanted, with any number of rows. */
static void results_agree_with_each_other(void **state) {
  (void)state;
  enum { N = 70, K = 32 };
  random_model *m = random_model_new(&random_shapes[0], 9);
  int vocab = m->desc.shape.vocab, shared = vocab - 100;
  float one_logp[N][K], one_confidence[N], one_entropy[N];
  int32_t one_id[N][K], one_best[N];
  for (int threads = 1; threads <= 3; threads++) {
    rig r = rig_open(&dt_cpu_ops, NULL, threads, &m->desc, 1, N);
    row_list l = {0};
    int32_t wanted[N], best[N], id[N][K];
    float logp[N][K], confidence[N], entropy[N];
    int count = 0;
    for (int p = 0; p < N; p++) row_add_plain(&l, 0, p * 13 % vocab, p);
    for (int p = 0; p < N; p += 1 + p % 3) wanted[count++] = p;
    dt_rows rows = rows_of(&l);
    float *logits = rig_run(&r, &l, true);
    ok(r.ops->forward(r.weights, r.cache, &rows,
                      &(dt_out){.want = DT_WANT_ARGMAX, .n = count, .row = wanted, .argmax = best}, &err));
    dt_out top = {.want = DT_WANT_TOPK,
                  .n = count,
                  .row = wanted,
                  .k = K,
                  .vocab = shared,
                  .top_id = &id[0][0],
                  .top_logp = &logp[0][0],
                  .confidence = confidence,
                  .entropy = entropy};
    ok(r.ops->forward(r.weights, r.cache, &rows, &top, &err));
    for (int j = 0; j < count; j++) {
      const float *row = logits + (size_t)wanted[j] * (size_t)vocab;
      int expected = 0;
      for (int i = 1; i < vocab; i++)
        if (row[i] > row[expected]) expected = i;
      assert_int_equal(best[j], expected);
      double sum = 0, plogp = 0;
      for (int i = 0; i < shared; i++) sum += exp((double)row[i]);
      for (int i = 0; i < shared; i++) plogp += exp(row[i]) / sum * (row[i] - log(sum));
      assert_true(fabs(entropy[j] + plogp) < 1e-5);
      assert_true(fabs(confidence[j] - exp(row[id[j][0]]) / sum) < 1e-6);
      for (int i = 0; i < K; i++) {
        assert_true(id[j][i] >= 0 && id[j][i] < shared);
        assert_true(fabs(logp[j][i] - (row[id[j][i]] - log(sum))) < 1e-5);
        int larger = 0; /* exactly i ids come before it */
        for (int v = 0; v < shared; v++) larger += row[v] > row[id[j][i]] || (row[v] == row[id[j][i]] && v < id[j][i]);
        assert_int_equal(larger, i);
      }
    }
    if (threads == 1) {
      memcpy(one_logp, logp, sizeof logp), memcpy(one_id, id, sizeof id), memcpy(one_best, best, sizeof best);
      memcpy(one_confidence, confidence, sizeof confidence), memcpy(one_entropy, entropy, sizeof entropy);
    }
    size_t n = (size_t)count;
    assert_memory_equal(one_logp, logp, n * sizeof *logp);
    assert_memory_equal(one_id, id, n * sizeof *id);
    assert_memory_equal(one_best, best, n * sizeof *best);
    assert_memory_equal(one_confidence, confidence, n * sizeof *confidence);
    assert_memory_equal(one_entropy, entropy, n * sizeof *entropy);
    free(logits);
    rig_close(&r);
  }
  random_model_free(m);
}

static void check_moves(const char *cache_dtype) {
  random_model *m = random_model_new(&random_shapes[1], 10);
  dt_backend_options options = {.threads = 2, .cache_dtype = cache_dtype};
  rig r = rig_open_with(&dt_cpu_ops, options, &m->desc, 2, 40);
  row_list prompt = {0}, tree = {0}, next = {0};
  for (int p = 0; p < 10; p++) row_add_plain(&prompt, 0, p, p), row_add_plain(&prompt, 1, p, p);
  rig_run(&r, &prompt, false);
  row_add(&tree, 0, 50, 10, (int32_t[]){12}, 1);
  row_add(&tree, 0, 51, 10, (int32_t[]){12, 17}, 2);
  row_add(&tree, 0, 52, 10, (int32_t[]){12, 17, 13}, 3);
  row_add_plain(&tree, 1, 50, 10), row_add_plain(&tree, 1, 51, 11);
  rig_run(&r, &tree, false);
  ok(r.ops->move(r.cache, 0, (int32_t[]){12, 17}, (int32_t[]){10, 11}, 2, &err));
  row_add_plain(&next, 0, 53, 12), row_add_plain(&next, 1, 53, 12);
  float *logits = rig_run(&r, &next, true);
  assert_memory_equal(logits, logits + r.vocab, sizeof *logits * (size_t)r.vocab);
  free(logits);
  rig_close(&r);
  random_model_free(m);
}

static void moved_rows_serve_as_if_computed_there(void **state) {
  (void)state;
  for (int i = 0; dt_cpu_ops.cache_dtypes[i]; i++) check_moves(dt_cpu_ops.cache_dtypes[i]);
}

/* A NaN in the weights shows in the results of the rows that it reaches, and only there. */
static void a_nan_is_reported_and_does_not_spread_to_other_rows(void **state) {
  (void)state;
  model_shape shape = random_shapes[2];
  random_model *m = random_model_new(&shape, 11);
  ((float *)m->desc.embed.source->bytes)[5 * shape.hidden + 3] = NAN; /* token 5 */
  for (int threads = 1; threads <= 2; threads++) {
    rig r = rig_open(&dt_cpu_ops, NULL, threads, &m->desc, 3, 8);
    row_list l = {0};
    row_add_plain(&l, 0, 4, 0), row_add_plain(&l, 1, 5, 0), row_add_plain(&l, 2, 6, 0);
    dt_rows rows = rows_of(&l);
    int32_t best[3], id[3][2], all[3] = {0, 1, 2};
    float logp[3][2], confidence[3], entropy[3];
    ok(r.ops->forward(r.weights, r.cache, &rows, &(dt_out){.want = DT_WANT_ARGMAX, .n = 3, .row = all, .argmax = best},
                      &err));
    assert_true(best[0] >= 0 && best[2] >= 0);
    assert_int_equal(best[1], -1);
    dt_out top = {.want = DT_WANT_TOPK,
                  .n = 3,
                  .row = all,
                  .k = 2,
                  .vocab = shape.vocab,
                  .top_id = &id[0][0],
                  .top_logp = &logp[0][0],
                  .confidence = confidence,
                  .entropy = entropy};
    ok(r.ops->forward(r.weights, r.cache, &rows, &top, &err));
    assert_int_equal(id[1][0], -1);
    assert_true(confidence[1] == 0.0f && confidence[0] > 0.0f && confidence[2] > 0.0f);
    assert_int_equal(id[0][0], best[0]);
    rig_close(&r);
  }
  random_model_free(m);
}

/* The logits of tokens 0..n-1 of a text, and the size of the weights in bytes. */
static float *logits_of(const dt_model_desc *desc, int n, size_t *bytes) {
  rig r = rig_open(&dt_cpu_ops, NULL, 2, desc, 1, 16);
  row_list l = {0};
  for (int p = 0; p < n; p++) row_add_plain(&l, 0, 7 * p % r.vocab, p);
  float *logits = rig_run(&r, &l, true);
  *bytes = r.ops->memory(r.backend).weights;
  rig_close(&r);
  return logits;
}

static void tied_embeddings_are_held_once_and_give_the_bits_of_two_copies(void **state) {
  (void)state;
  enum { N = 9 };
  for (int s = 0; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 5);
    size_t twice, once;
    m->desc.unembed = m->desc.embed;
    dt_source copy = *m->desc.embed.source;
    dt_model_desc untied = m->desc;
    untied.unembed.source = &copy;
    float *expected = logits_of(&untied, N, &twice), *got = logits_of(&m->desc, N, &once);
    assert_memory_equal(expected, got, sizeof *got * N * (size_t)random_shapes[s].vocab);
    size_t embedding = dt_row_bytes(m->dtype, (size_t)random_shapes[s].vocab * (size_t)random_shapes[s].hidden);
    if (twice < 2 << 20) assert_int_equal(twice - once, (embedding + 63) / 64 * 64); /* larger ones use huge pages */
    free(expected), free(got);
    random_model_free(m);
  }
}

static void bad_rows_and_options_are_refused(void **state) {
  (void)state;
  random_model *m = random_model_new(&random_shapes[3], 12);
  dt_backend *b = NULL;
  fails(dt_cpu_ops.open(&(dt_backend_options){.variant = "sse9", .threads = 1}, &b, &err), DT_EINPUT, "scalar");
  fails(dt_cpu_ops.open(&(dt_backend_options){.threads = 0}, &b, &err), DT_EINPUT, "threads: got 0");
  rig r = rig_open(&dt_cpu_ops, "scalar", 1, &m->desc, 1, 8);
  assert_string_equal(r.ops->describe(r.backend), "cpu:scalar");
  row_list l = {0};
  row_add_plain(&l, 0, 4, 0);
  dt_rows rows = rows_of(&l);
  l.token[0] = 97;
  fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EINPUT, "row 0: token 97");
  l.token[0] = 4, l.position[0] = 1;
  fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EINPUT, "row 0: prefix 0");
  l.position[0] = RANDOM_CONTEXT;
  fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_ECONTEXT, "position 1024");
  l.position[0] = 0, l.sequence[0] = 1;
  fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EINPUT, "sequence 1");
  l.sequence[0] = 0, l.path[0][0] = l.slot[0] = 8;
  fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EINPUT, "slot 8");
  fails(r.ops->move(r.cache, 0, (int32_t[]){9}, (int32_t[]){1}, 1, &err), DT_EINPUT, "slot 9");
  dt_layer broken[RANDOM_LAYERS];
  memcpy(broken, m->layer, sizeof broken);
  broken[0].down.cols++;
  dt_model_desc desc = m->desc;
  desc.layer = broken;
  dt_weights *w = NULL;
  fails(r.ops->upload(r.backend, &desc, NULL, &w, &err), DT_EINPUT, "layer 0: down");
  rig_close(&r);
  random_model_free(m);
}

int main(int argc, char **argv) {
  quick = argc > 1 && strcmp(argv[1], "quick") == 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_has_the_bits_of_plain_decoding_in_every_batch),
      cmocka_unit_test(so_it_has_with_windows_caps_norms_of_all_kinds_and_experts),
      cmocka_unit_test(so_it_has_if_rows_see_a_window),
      cmocka_unit_test(so_it_has_on_the_bundled_pair),
      cmocka_unit_test(rows_in_other_types_are_those_in_f32_rounded),
      cmocka_unit_test(a_prompt_pass_has_the_bits_of_plain_decoding),
      cmocka_unit_test(results_agree_with_each_other),
      cmocka_unit_test(moved_rows_serve_as_if_computed_there),
      cmocka_unit_test(a_nan_is_reported_and_does_not_spread_to_other_rows),
      cmocka_unit_test(tied_embeddings_are_held_once_and_give_the_bits_of_two_copies),
      cmocka_unit_test(bad_rows_and_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
