/* Every variant of the CPU backend that this machine can run gives the same bits as the plain C variant.
 *
 *   test_cpu_isa [quick]      quick (in scripts/test and under an emulator): caches and weights are of each type in
 *                             turn; of the bundled pair only the draft */
#include "cpu.h"
#include "kernels.h"
#include "model/model.h"
#include "random_parts.h"
#include "rig.h"

static const dt_holding as_it_is = {0};
static bool quick;

enum { PROMPT = 37, TREE = 21, K = 8 };

/* All results of a run on a variant. */
typedef struct {
  float *logits;
  int32_t id[TREE][K], best[TREE];
  float logp[TREE][K], confidence[TREE], entropy[TREE];
  void *slot[PROMPT + TREE];
  size_t slot_bytes;
} outcome;

static outcome run_variant(const char *variant, const char *cache_dtype, dt_holding how, const dt_model_desc *desc) {
  outcome o = {0};
  dt_backend_options options = {.variant = variant, .threads = 1, .cache_dtype = cache_dtype};
  rig r = rig_open_rounded(&dt_cpu_ops, options, desc, how, 1, PROMPT + TREE);
  row_list prompt = {0}, tree = {0};
  int32_t all[TREE], path[TREE];
  for (int p = 0; p < PROMPT; p++) row_add_plain(&prompt, 0, p * 31 % r.vocab, p);
  rig_run(&r, &prompt, false);
  for (int i = 0; i < TREE; i++) { /* a chain of 7 nodes, and 14 leaves below it */
    int chain = i < 7 ? i + 1 : i % 7 + 1;
    for (int d = 0; d < chain; d++) path[d] = PROMPT + d;
    path[i < 7 ? chain - 1 : chain] = PROMPT + i;
    row_add(&tree, 0, i * 17 % r.vocab, PROMPT, path, i < 7 ? chain : chain + 1);
    all[i] = i;
  }
  dt_rows rows = rows_of(&tree);
  o.logits = rig_run(&r, &tree, true);
  for (int i = 0; i < TREE * r.vocab; i++) assert_true(isfinite(o.logits[i]));
  dt_out top = {.want = DT_WANT_TOPK,
                .n = TREE,
                .row = all,
                .k = K,
                .vocab = r.vocab,
                .top_id = &o.id[0][0],
                .top_logp = &o.logp[0][0],
                .confidence = o.confidence,
                .entropy = o.entropy};
  ok(r.ops->forward(r.weights, r.cache, &rows, &top, &err));
  dt_out best = {.want = DT_WANT_ARGMAX, .n = TREE, .row = all, .argmax = o.best};
  ok(r.ops->forward(r.weights, r.cache, &rows, &best, &err));
  int32_t both_id[TREE][K], both_best[TREE];
  float both_logp[TREE][K];
  dt_out both = {.want = DT_WANT_BOTH,
                 .n = TREE,
                 .row = all,
                 .argmax = both_best,
                 .k = K,
                 .top_id = &both_id[0][0],
                 .top_logp = &both_logp[0][0]};
  ok(r.ops->forward(r.weights, r.cache, &rows, &both, &err));
  assert_memory_equal(both_best, o.best, sizeof o.best);
  assert_memory_equal(both_id, o.id, sizeof o.id);
  assert_memory_equal(both_logp, o.logp, sizeof o.logp);
  for (int s = 0; s < PROMPT + TREE; s++) o.slot[s] = rig_slot(&r, 0, s, &o.slot_bytes);
  rig_close(&r);
  return o;
}

static void free_outcome(outcome *o) {
  free(o->logits);
  for (int s = 0; s < PROMPT + TREE; s++) free(o->slot[s]);
}

static void compare_variants(const dt_model_desc *desc, const char *cache_dtype, dt_holding how, const char *name) {
  outcome plain = run_variant("scalar", cache_dtype, how, desc);
  for (int i = 1; cpu_variant(i); i++) {
    outcome o = run_variant(cpu_variant(i)->name, cache_dtype, how, desc);
    if (memcmp(o.logits, plain.logits, sizeof(float) * TREE * (size_t)desc->shape.vocab))
      fail_msg("%s: the logits of %s differ from those of scalar", name, cpu_variant(i)->name);
    for (int s = 0; s < PROMPT + TREE; s++)
      if (memcmp(o.slot[s], plain.slot[s], o.slot_bytes))
        fail_msg("%s: slot %d of %s differs from that of scalar", name, s, cpu_variant(i)->name);
    assert_memory_equal(o.id, plain.id, sizeof o.id);
    assert_memory_equal(o.best, plain.best, sizeof o.best);
    assert_memory_equal(o.logp, plain.logp, sizeof o.logp);
    assert_memory_equal(o.confidence, plain.confidence, sizeof o.confidence);
    assert_memory_equal(o.entropy, plain.entropy, sizeof o.entropy);
    free_outcome(&o);
  }
  free_outcome(&plain);
}

/* Compares with each type of caches, or only with the one whose turn it is. */
static void compare_in_caches(const dt_model_desc *desc, int turn, const char *name) {
  for (int i = 0; dt_cpu_ops.cache_dtypes[i]; i++)
    if (!quick || turn % CPU_CACHES == i) compare_variants(desc, dt_cpu_ops.cache_dtypes[i], as_it_is, name);
}

static void all_variants_give_the_same_bits_on_every_kind_of_layer(void **state) {
  (void)state;
  for (int s = 0; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 3);
    const dt_holding rounded[] = {
        {.dtype = s % 2 ? "q8" : "q4", .activations = "16"}, {.dtype = "q8"}, {.dtype = "q4"}};
    compare_in_caches(&m->desc, s, random_shapes[s].name);
    for (int i = 0; i < 3; i++)
      if (!quick || s % 3 == i) compare_variants(&m->desc, "f32", rounded[i], random_shapes[s].name);
    random_model_free(m);
  }
}

static void all_variants_give_the_same_bits_with_windows_caps_norms_of_all_kinds_and_experts(void **state) {
  (void)state;
  for (int part = 0; part < RANDOM_PARTS; part++) {
    random_model *m = random_parts_new(part, 3);
    compare_in_caches(&m->desc, part, random_part_names[part]);
    compare_variants(&m->desc, "f32", (dt_holding){.dtype = "q8"}, random_part_names[part]);
    random_model_free(m);
  }
}

static void all_variants_give_the_same_bits_on_the_bundled_pair(void **state) {
  (void)state;
  const char *folders[] = {SOURCE_DIR "/models/mini-draft", SOURCE_DIR "/models/mini-target"};
  for (int i = 0; i < (quick ? 1 : 2); i++) {
    model *m = NULL;
    ok(model_open(folders[i], &m, &err));
    compare_in_caches(model_desc(m), 0, folders[i]);
    model_close(m);
  }
}

int main(int argc, char **argv) {
  quick = argc > 1 && strcmp(argv[1], "quick") == 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_variants_give_the_same_bits_on_every_kind_of_layer),
      cmocka_unit_test(all_variants_give_the_same_bits_with_windows_caps_norms_of_all_kinds_and_experts),
      cmocka_unit_test(all_variants_give_the_same_bits_on_the_bundled_pair),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
