/* Models with delta layers: what is refused, and how deep trees may be. Their results are compared in test_delta_trees,
 * test_golden_logits, test_heads, test_continue and exact.quantized. */
#include "backend/check.h"
#include "backend/delta_rows.h"
#include "cpu.h"
#include "gguf_edit.h"
#include "golden_logits.h"
#include "model/model.h"
#include "unit.h"

#include "dtrun.h"

#include <stdlib.h>

#define FILE_OF SOURCE_DIR "/tests/golden/logits/gguf_qwen35/model.gguf"

/* A model description that a test may change. */
typedef struct {
  model *m;
  dt_model_desc desc;
  dt_layer *layer;
} opened;

static opened open_model(void) {
  opened o;
  ok(model_open(FILE_OF, &o.m, &err));
  o.desc = *model_desc(o.m);
  size_t bytes = (size_t)o.desc.shape.layers * sizeof *o.layer;
  o.layer = malloc(bytes);
  memcpy(o.layer, o.desc.layer, bytes);
  o.desc.layer = o.layer;
  return o;
}

static void close_model(opened *o) {
  model_close(o->m);
  free(o->layer);
}

static void layers_that_do_not_fit_are_refused(void **state) {
  (void)state;
  opened o = open_model();
  dt_layer *l = o.layer;
  dt_shape *s = &o.desc.shape;
  ok(check_model(&o.desc, &err));
#define WITH(place, value, part)                                                                                       \
  do {                                                                                                                 \
    __typeof__(place) before = place;                                                                                  \
    place = value;                                                                                                     \
    fails(check_model(&o.desc, &err), DT_EINPUT, part);                                                                \
    place = before;                                                                                                    \
  } while (0)
  WITH(s->delta_key_heads, 0, "layer 0: 4 delta value heads of 32 numbers with 0 key heads of 16 are not possible");
  WITH(s->delta_key_heads, 3, "layer 0: 4 delta value heads of 32 numbers with 3 key heads of 16 are not possible");
  WITH(s->delta_key_dim, 8, "with 2 key heads of 8 are not");
  WITH(s->delta_key_dim, 24, "with 2 key heads of 24 are not");
  WITH(s->delta_value_dim, 0, "delta value heads of 0 numbers");
  WITH(s->delta_value_dim, 40, "delta value heads of 40 numbers");
  WITH(s->delta_value_dim, 16, "o is 64 x 128, expected 64 x 64");
  WITH(l[0].keys_of, 1, "layer 0: it cannot read the keys of layer 0");
  WITH(l[0].delta_conv, (dt_matrix){0}, "layer 0: no delta's convolution");
  WITH(l[0].delta_decay, l[0].norm1, "delta's decay is 64 x 1, expected 4 x 1");
  WITH(l[0].k, l[3].k, "layer 0: it has keys or values");
  WITH(l[0].delta, false, "layer 0: no q");
  WITH(l[3].delta, true, "layer 3: ");
  WITH(l[3].q_gate, l[3].k, "layer 3: q gate is 64 x 64, expected 128 x 64");
  close_model(&o);
}

/* Checks row 0 of a pass, at this position in this slot. Its prefix is text in slots of the same numbers; its path
 * begins with slot `first` and continues with the slots from the prefix on. */
static dt_status check_row(int position, int slot, int prefix, int first, dt_error *err) {
  int32_t token = 5, sequence = 0, path[128], length = position - prefix + 1;
  for (int i = 0; i < length; i++) path[i] = first + i;
  path[length - 1] = slot;
  return delta_check(&(dt_rows){.n = 1,
                                .token = &token,
                                .position = &position,
                                .sequence = &sequence,
                                .slot = &slot,
                                .prefix = &prefix,
                                .path = path,
                                .path_len = &length,
                                .path_stride = length},
                     err);
}

static void rows_that_reach_too_far_are_refused(void **state) {
  (void)state;
  assert_int_equal(delta_base_of(95), 0); /* bases are 64 to 95 positions before a row */
  assert_int_equal(delta_base_of(96), 32);
  assert_int_equal(delta_base_of(127), 32);
  assert_int_equal(delta_base_of(128), 64);
  ok(check_row(100, 32 + 511, 100, 0, &err));
  fails(check_row(100, 32 + 512, 100, 0, &err), DT_EINPUT,
        "(position 100, slot 544): delta layers need each of the text's first 32");
  ok(check_row(0, 5000, 0, 0, &err)); /* it reads no other row */
  ok(check_row(100, 100, 31, 31, &err));
  ok(check_row(100, 100, 32, 200, &err));
  fails(check_row(100, 100, 31, 200, &err), DT_EINPUT, "rows in the slot with its own number");
}

/* Checks that there is room for a chain of this many nodes, and no more. */
static void expect_deepest(dt_session *s, int wanted, int deepest) {
  static const int32_t prompt[] = {3, 1, 4};
  int u = 0;
  ok(dt_seq_start(s, 0, prompt, 3, &(dt_seq_options){.max_tokens = wanted, .ignore_eos = true}, &err));
  for (int depth = 1; depth <= deepest; depth++) ok(dt_tree_add(dt_seq_tree(s, 0), u, 5, 0, &u, &err));
  ok(dt_tree_add(dt_seq_tree(s, 0), u, 5, 0, &u, &err));
  assert_int_equal(u, -1);
}

static void trees_have_64_levels_at_most(void **state) {
  (void)state;
  dt_pair *pair;
  dt_session *s;
  dt_pair_info info;
  ok(dt_pair_open(&(dt_pair_options){.target = FILE_OF}, &pair, &err));
  dt_pair_describe(pair, &info);
  assert_int_equal(info.target.deepest, 64);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 200}, &s, &err));
  expect_deepest(s, 64, 63); /* one token less than wanted */
  expect_deepest(s, 65, 64);
  expect_deepest(s, 66, 64);
  dt_session_close(s);
  dt_pair_close(pair);
}

/* The rows of a blank text are copies of one row, in a slot for which the ring stores another row. */
static void a_blank_text_may_be_longer_than_the_ring(void **state) {
  (void)state;
  dt_pair *pair;
  dt_session *s;
  ok(dt_pair_open(&(dt_pair_options){.target = FILE_OF}, &pair, &err));
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 900}, &s, &err));
  for (int n = 511; n <= 800; n += n < 515 ? 1 : 285) {
    int seq = 0;
    dt_verdict v;
    ok(dt_seq_start_blank(s, 0, n, NULL, &err));
    ok(dt_verify_tree(s, &seq, 1, &v, &err));
    assert_true(v.bonus >= 0);
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

static void generate(dt_session *s, int seq, int32_t *tokens, int n) {
  dt_verdict v;
  dt_committed c;
  while (dt_seq_finish(s, seq) == DT_RUNNING) {
    ok(dt_rollback(s, seq, &err));
    ok(dt_verify_tree(s, &seq, 1, &v, &err));
    ok(dt_commit(s, &seq, 1, 0, &c, &err));
  }
  assert_int_equal(dt_seq_length(s, seq), n);
  memcpy(tokens, dt_seq_tokens(s, seq), (size_t)n * sizeof *tokens);
}

/* The rings no longer have the rows of a prefix far before the end of its text. They are computed again. */
static void a_prefix_starts_a_text_wherever_it_was_cut(void **state) {
  (void)state;
  enum { LENGTH = 700, MORE = 20 };
  static int32_t prompt[LENGTH], plain[LENGTH + MORE], found[LENGTH + MORE];
  const dt_seq_options options = {.max_tokens = MORE, .ignore_eos = true};
  dt_pair *pair;
  dt_session *s;
  for (int i = 0; i < LENGTH; i++) prompt[i] = i * i % 251;
  ok(dt_pair_open(&(dt_pair_options){.target = FILE_OF}, &pair, &err));
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 2, .context = 900}, &s, &err));
  for (int n = 60; n < LENGTH; n += 157) {
    dt_prefix *prefix;
    ok(dt_seq_start(s, 0, prompt, n, &options, &err));
    generate(s, 0, plain, n + MORE);
    ok(dt_seq_start(s, 0, prompt, LENGTH, &options, &err));
    ok(dt_prefix_save(s, 0, n, &prefix, &err));
    ok(dt_seq_start_from(s, 1, prefix, &options, &err));
    generate(s, 1, found, n + MORE);
    assert_memory_equal(found, plain, (size_t)(n + MORE) * sizeof *plain);
    dt_prefix_free(prefix);
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

/* Sessions compare this size with the free memory before they open. */
static void what_their_rows_and_states_take_is_told_before(void **state) {
  (void)state;
  enum { SEQUENCES = 4, SLOTS = 300 };
  opened o = open_model();
  dt_backend *b;
  dt_weights *w;
  dt_cache *c;
  ok(dt_cpu_ops.open(&(dt_backend_options){.threads = 1}, &b, &err));
  ok(dt_cpu_ops.upload(b, &o.desc, &(dt_holding){0}, &w, &err));
  size_t told = dt_cpu_ops.cache_bytes(w, SLOTS), without = dt_cpu_ops.cache_bytes(w, 0);
  assert_true(without > 512 * 3 * 368 * sizeof(float)); /* three layers; 368 numbers per row, and states */
  ok(dt_cpu_ops.create_cache(w, SEQUENCES, SLOTS, &c, &err));
  size_t takes = dt_cpu_ops.memory(b).caches;
  assert_true(takes >= SEQUENCES * told);
  assert_true(takes < SEQUENCES * told + ((size_t)2 << 20) + 4096); /* whole huge pages */
  dt_cpu_ops.free_cache(c);
  dt_cpu_ops.free_weights(w);
  dt_cpu_ops.close(b);
  close_model(&o);
}

static void a_target_without_an_mtp_layer_says_so(void **state) {
  (void)state;
  dt_pair *pair;
  fails(dt_pair_open(&(dt_pair_options){.target = FILE_OF, .draft = "mtp"}, &pair, &err), DT_EINPUT,
        "model.gguf has no MTP layer: give another draft, or none");
  fails(dt_pair_open(&(dt_pair_options){.target = SOURCE_DIR "/models/mini-target", .draft = "mtp"}, &pair, &err),
        DT_EINPUT, "mini-target has no MTP layer: give another draft, or none");
  fails(dt_pair_open(&(dt_pair_options){.target = FILE_OF, .draft = "mtp", .head_layers = "1"}, &pair, &err), DT_EINPUT,
        "head_layers: the target's MTP layer always reads the output of its final norm");
}

/* A change: the key of an integer (without its architecture), or a tensor (see edit_tensor). */
typedef struct {
  const char *at, *value;
} change;

/* Opens a file whose MTP layer has experts, after some changes. */
static dt_status open_changed_file(const char *file, const char *family, const change *changes, int n, dt_pair **pair,
                                   dt_error *err) {
  gguf_file f = {0};
  char *folder = temp_folder(), path[512], key[128];
  f.bytes = (unsigned char *)golden_bytes(SOURCE_DIR "/tests/golden/heads", file, &f.size);
  for (int i = 0; i < n; i++) {
    snprintf(key, sizeof key, "%s.%s", family, changes[i].at);
    unsigned char *info = edit_find(&f, key); /* a type and a number */
    if (info)
      memcpy(info + 4, &(uint32_t){(uint32_t)atoi(changes[i].value)}, 4);
    else
      assert_true(edit_tensor(&f, changes[i].at, changes[i].value));
  }
  snprintf(path, sizeof path, "%s/changed.gguf", folder);
  temp_write(folder, "changed.gguf", f.bytes, f.size);
  dt_status status = dt_pair_open(&(dt_pair_options){.target = path, .draft = "mtp"}, pair, err);
  temp_remove(folder);
  free(f.bytes);
  return status;
}

static dt_status open_changed(const change *changes, int n, dt_pair **pair, dt_error *err) {
  return open_changed_file("mtp_moe.gguf", "qwen35moe", changes, n, pair, err);
}

/* The layer may have its own embedding and output. */
static void one_of_glm_is_refused_likewise(void **state) {
  (void)state;
  static const struct {
    change change;
    const char *says; /* NULL: it is accepted */
  } wrong[] = {
      {{"blk.2.nextn.eh_proj.weight", "-"}, "has no MTP layer: give another draft, or none"},
      {{"blk.2.nextn.hnorm.weight", "-"}, "tensor blk.2.nextn.hnorm.weight is missing"},
      {{"blk.2.nextn.embed_tokens.weight", "swap"}, "found shape [32, 258], expected [258, 32] by its keys"},
      {{"blk.2.nextn.shared_head_head.weight", "swap"}, "found shape [32, 258], expected [258, 32] by its keys"},
      {{"blk.2.nextn.embed_tokens.weight", "-"}, NULL},
      {{"blk.2.nextn.shared_head_head.weight", "-"}, NULL},
      {{"blk.2.attn_v.weight", "-"}, "tensor blk.2.attn_v.weight is missing"},
      {{"blk.2.ffn_up_exps.weight", "-"}, "tensor blk.2.ffn_up_exps.weight is missing"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const change *c = &wrong[i].change;
    dt_pair *pair = NULL;
    if (wrong[i].says)
      fails(open_changed_file("mtp_glm.gguf", "glm4moe", c, 1, &pair, &err), DT_EINPUT, wrong[i].says);
    else
      ok(open_changed_file("mtp_glm.gguf", "glm4moe", c, 1, &pair, &err));
    dt_pair_close(pair);
  }
}

static void an_mtp_layer_that_does_not_fit_is_refused(void **state) {
  (void)state;
  static const struct {
    change change;
    const char *says;
  } wrong[] = {
      {{"blk.4.nextn.eh_proj.weight", "-"}, "has no MTP layer: give another draft, or none"},
      {{"blk.4.nextn.eh_proj.weight", "swap"}, "found shape [64, 32], expected [32, 64] by its keys"},
      {{"blk.4.nextn.enorm.weight", "-"}, "tensor blk.4.nextn.enorm.weight is missing"},
      {{"blk.4.nextn.shared_head_norm.weight", "-"}, "tensor blk.4.nextn.shared_head_norm.weight is missing"},
      {{"blk.4.attn_k_norm.weight", "-"}, "tensor blk.4.attn_k_norm.weight is missing"},
      {{"blk.4.ffn_gate_inp.weight", "-"}, "tensor blk.4.ffn_gate_inp.weight is missing"},
      {{"blk.4.ffn_up_exps.weight", "-"}, "tensor blk.4.ffn_up_exps.weight is missing"},
      {{"blk.4.ffn_gate_inp_shexp.weight", "-"}, "tensor blk.4.ffn_gate_inp_shexp.weight is missing"},
      {{"nextn_predict_layers", "2"}, "has no MTP layer"}, /* blk.3 is not an MTP layer */
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    dt_pair *pair;
    fails(open_changed(&wrong[i].change, 1, &pair, &err), DT_EINPUT, wrong[i].says);
  }
}

static void of_several_mtp_layers_the_first_drafts(void **state) {
  (void)state;
  const change more[] = {{"nextn_predict_layers", "2"}, {"block_count", "6"}};
  for (int n = 0; n <= 2; n += 2) {
    dt_pair *pair;
    dt_pair_info info;
    ok(open_changed(more, n, &pair, &err));
    dt_pair_describe(pair, &info);
    assert_string_equal(info.draft_head, n ? "mtp, the first of 2 layers, final norm" : "mtp, final norm");
    dt_pair_close(pair);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_that_do_not_fit_are_refused),
      cmocka_unit_test(rows_that_reach_too_far_are_refused),
      cmocka_unit_test(trees_have_64_levels_at_most),
      cmocka_unit_test(a_blank_text_may_be_longer_than_the_ring),
      cmocka_unit_test(a_prefix_starts_a_text_wherever_it_was_cut),
      cmocka_unit_test(what_their_rows_and_states_take_is_told_before),
      cmocka_unit_test(a_target_without_an_mtp_layer_says_so),
      cmocka_unit_test(an_mtp_layer_that_does_not_fit_is_refused),
      cmocka_unit_test(one_of_glm_is_refused_likewise),
      cmocka_unit_test(of_several_mtp_layers_the_first_drafts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
