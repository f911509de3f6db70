/* Models with extreme shapes and values, used through the public API. Whatever they compute, random trees give what
 * plain decoding gives, token by token, and end where it ends. */
#include "random_model.h"

#include "cpu.h"
#include "pair/pair.h"

#include <math.h>

static const model_shape SHAPES[] = {
    {"one of everything", 1, 1, 1, 1, 1, 1, 1, 0, DT_F32, DT_NORM_LAYER, DT_ACT_GELU_ERF, true, false, true, true,
     false, false},
    {"hidden 1", 40, 1, 2, 1, 1, 2, 3, 2, DT_F32, DT_NORM_RMS, DT_ACT_SILU, false, true, false, false, false, false},
    {"hidden 2, f16", 35, 2, 1, 2, 1, 1, 1, 0, DT_F16, DT_NORM_RMS, DT_ACT_SILU, false, true, false, false, false,
     false},
    {"3 heads of 5 on one", 33, 7, 2, 3, 1, 5, 9, 4, DT_F32, DT_NORM_RMS, DT_ACT_SILU, false, true, false, false, true,
     true},
    {"7 heads of 3", 50, 17, 1, 7, 7, 3, 13, 2, DT_F32, DT_NORM_LAYER, DT_ACT_GELU_TANH, true, false, true, true, false,
     false},
    {"5 heads of 1", 2, 31, 2, 5, 5, 1, 1, 0, DT_BF16, DT_NORM_LAYER, DT_ACT_GELU_ERF, false, false, true, false, false,
     false},
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void put(const dt_matrix *m, int i, float x) {
  char *bytes = (char *)m->source->bytes + m->offset;
  uint32_t bits;
  memcpy(&bits, &x, 4);
  uint16_t bf16 = (uint16_t)(bits >> 16), f16 = isnan(x) ? 0x7e00 : isinf(x) ? 0x7c00 : x == 0 ? 0 : 0x7bff;
  if (m->dtype == DT_F32) memcpy(bytes + 4 * i, &x, 4);
  if (m->dtype == DT_BF16) memcpy(bytes + 2 * i, &bf16, 2);
  if (m->dtype == DT_F16) f16 |= (uint16_t)(bits >> 16 & 0x8000), memcpy(bytes + 2 * i, &f16, 2);
}

static void fill(const dt_matrix *m, float x) {
  for (int i = 0; i < m->rows * m->cols; i++) put(m, i, x);
}

static void ordinary(random_model *m) { (void)m; }
static void equal_logits(random_model *m) { fill(&m->desc.unembed, 0); }
static void nan_after_the_last_token(random_model *m) {
  put(&m->desc.embed, (m->desc.shape.vocab - 1) * m->desc.shape.hidden, NAN);
}
static void nan_everywhere(random_model *m) { fill(&m->desc.final_norm, NAN); }
static void nan_keys(random_model *m) { put(&m->layer[0].k, 0, NAN); }
/* Some rows have numbers larger than f16 can store, and some larger than 8 bits can store. */
static void large_cached_values(random_model *m) { put(&m->layer[0].v, 0, 1e8f); }
static void an_infinite_logit(random_model *m) { put(&m->desc.unembed, 0, INFINITY); }
static void infinities_that_meet(random_model *m) {
  fill(&m->layer[0].up, INFINITY);
  fill(&m->layer[0].down, -INFINITY);
}
static void huge_values(random_model *m) {
  fill(&m->desc.embed, 3e38f);
  fill(&m->layer[0].down, -3e38f);
}
static void huge_logits(random_model *m) {
  for (int i = 0; i < m->desc.unembed.rows * m->desc.unembed.cols; i++)
    put(&m->desc.unembed, i, i % 2 ? 3e38f : -3e38f);
}
static void nothing_but_zeros(random_model *m) {
  fill(&m->desc.embed, 0);
  fill(&m->desc.final_norm, 0);
}

static void (*const EDITS[])(random_model *) = {
    ordinary,    equal_logits,      nan_after_the_last_token, nan_everywhere,
    nan_keys,    an_infinite_logit, infinities_that_meet,     huge_values,
    huge_logits, nothing_but_zeros, large_cached_values};
enum { N_SHAPES = sizeof SHAPES / sizeof *SHAPES, N_EDITS = sizeof EDITS / sizeof *EDITS };

/* ---- a pair of them ---------------------------------------------------------------------------------------------- */

typedef struct {
  dt_pair pair;
  random_model *target, *draft;
} models;

static void load(models *m, random_model **out, const model_shape *shape, int context, void (*edit)(random_model *),
                 uint64_t seed, dt_weights **weights, dt_model_info *info) {
  random_model *made = *out = random_model_new(shape, seed);
  made->desc.shape.context = context;
  edit(made);
  *info = (dt_model_info){.path = shape->name, .vocab = shape->vocab, .context = context, .layers = shape->layers};
  ok(m->pair.ops->upload(m->pair.backend, &made->desc, NULL, weights, &err));
}

static bool open_models(models *m, const char *variant, const char *caches, const model_shape *shape, int context,
                        void (*edit_target)(random_model *), void (*edit_draft)(random_model *)) {
  dt_backend_options options = {.variant = variant, .threads = 1, .cache_dtype = caches};
  *m = (models){.pair = {.ops = &dt_cpu_ops, .cache_dtype = caches, .threads = 1}};
  if (dt_cpu_ops.open(&options, &m->pair.backend, NULL)) return false;
  load(m, &m->target, shape, context, edit_target, 3, &m->pair.target, &m->pair.target_info);
  load(m, &m->draft, shape, context, edit_draft, 4, &m->pair.draft.weights, &m->pair.draft.info);
  return true;
}

static void close_models(models *m) {
  if (m->pair.idle) m->pair.free_idle(m->pair.idle);
  m->pair.ops->free_weights(m->pair.target);
  m->pair.ops->free_weights(m->pair.draft.weights);
  m->pair.ops->close(m->pair.backend);
  random_model_free(m->target);
  random_model_free(m->draft);
}

/* ---- runs of it -------------------------------------------------------------------------------------------------- */

enum { MOST = 64 };
typedef struct {
  int n;
  int32_t token[MOST];
  dt_status status; /* DT_OK, or the error of the verify pass that ended the run */
  dt_error failure;
  int accepted;
} outcome;

static void grow(dt_session *s, uint64_t *seed) {
  dt_tree *t = dt_seq_tree(s, 0);
  int first, last, v;
  for (int turn = (int)(random_next(seed) % 5); turn > 0; turn--) {
    int u = (int)(random_next(seed) % (uint32_t)t->nodes);
    if (random_next(seed) % 3) {
      ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = u}, 1, &err));
      ok(dt_tree_branch(t, u, 1 + (int)(random_next(seed) % 4), &first, &last, &err));
    } else
      ok(dt_tree_add(t, u, (int32_t)(random_next(seed) % (uint32_t)t->vocab), -1, &v, &err));
  }
  ok(dt_tree_keep_best(t, (int)(random_next(seed) % 20), &err));
}

/* seed 0 means plain decoding. */
static outcome generate(dt_pair *pair, const dt_sampling *sampling, uint64_t seed) {
  outcome o = {0};
  bool trees = seed > 0;
  dt_session *s;
  int seq = 0;
  int32_t prompt = 0;
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .use_draft = trees}, &s, &err));
  ok(dt_seq_start(s, 0, &prompt, 1, &(dt_seq_options){.max_tokens = 20, .sampling = *sampling}, &err));
  while (!o.status && dt_seq_finish(s, 0) == DT_RUNNING) {
    dt_verdict v;
    dt_committed c;
    ok(dt_rollback(s, 0, &err));
    if (trees) grow(s, &seed);
    o.status = dt_verify_tree(s, &seq, 1, &v, &o.failure);
    if (o.status) break;
    ok(dt_commit(s, &seq, 1, random_next(&seed) % 3 ? 0 : DT_COMMIT_REBUILD, &c, &err));
    o.accepted += c.accepted;
  }
  o.n = dt_seq_length(s, 0);
  memcpy(o.token, dt_seq_tokens(s, 0), (size_t)o.n * sizeof *o.token);
  dt_session_close(s);
  return o;
}

static const dt_sampling SAMPLINGS[] = {{0},
                                        {.seed = 5, .temp = 1},
                                        {.seed = 6, .temp = 0.001f, .top_p = 0.5f},
                                        {.seed = 7, .temp = 100, .top_k = 3, .min_p = 0.1f}};
enum { N_SAMPLINGS = sizeof SAMPLINGS / sizeof *SAMPLINGS };

/* Returns the number of accepted tokens. */
static int compare_runs(const char *variant, const char *caches, const model_shape *shape, int context, int edit,
                        int edit_draft) {
  models m;
  int accepted = 0;
  if (!open_models(&m, variant, caches, shape, context, EDITS[edit], EDITS[edit_draft])) return 0;
  for (int i = 0; i < N_SAMPLINGS; i++) {
    outcome plain = generate(&m.pair, &SAMPLINGS[i], 0);
    assert_true(plain.status == DT_OK || plain.status == DT_EDEVICE);
    for (uint64_t seed = 1; seed <= 3; seed++) {
      outcome tree = generate(&m.pair, &SAMPLINGS[i], seed);
      bool same = tree.status == plain.status && tree.n == plain.n &&
                  memcmp(tree.token, plain.token, (size_t)plain.n * sizeof *plain.token) == 0;
      if (!same)
        fail_msg(
            "%s, %s, %s, context %d, values %d and %d, sampling %d, seed %d: %d tokens and status %d, not %d and %d",
            variant, caches, shape->name, context, edit, edit_draft, i, (int)seed, tree.n, (int)tree.status, plain.n,
            (int)plain.status);
      accepted += tree.accepted;
    }
  }
  close_models(&m);
  return accepted;
}

static void random_trees_give_plain_decodings_tokens(void **state) {
  (void)state;
  static const char *const variants[] = {"scalar", "avx2", "avx512", "neon"};
  int accepted = 0;
  for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
    for (int shape = 0; shape < N_SHAPES; shape++)
      for (int edit = 0; edit < N_EDITS; edit++) {
        const char *const *types = dt_cpu_ops.cache_dtypes;
        accepted += compare_runs(variants[v], types[(edit + shape) % 3], &SHAPES[shape], 40, edit, edit);
        accepted += compare_runs(variants[v], types[(edit + shape + 1) % 3], &SHAPES[shape], 40, edit,
                                 (edit + 1 + shape) % N_EDITS);
      }
  assert_true(accepted > 100);
}

static void values_too_large_for_the_caches_are_told_with_the_remedy(void **state) {
  (void)state;
  for (int type = 0; dt_cpu_ops.cache_dtypes[type]; type++) {
    models m;
    const char *caches = dt_cpu_ops.cache_dtypes[type];
    assert_true(open_models(&m, "scalar", caches, &SHAPES[3], 40, large_cached_values, ordinary));
    outcome o = generate(&m.pair, &SAMPLINGS[0], 0);
    if (strcmp(caches, "f32") == 0) {
      assert_int_equal(o.status, DT_OK);
    } else {
      assert_int_equal(o.status, DT_EDEVICE);
      assert_non_null(strstr(o.failure.message, "--cache-dtype f32 can hold them"));
      assert_non_null(strstr(o.failure.message, caches));
    }
    close_models(&m);
  }
}

static void contexts_of_two_and_three_positions_are_enough(void **state) {
  (void)state;
  for (int context = 2; context <= 3; context++)
    for (int shape = 0; shape < N_SHAPES; shape++) compare_runs("scalar", "f16", &SHAPES[shape], context, 0, 0);
}

static void a_context_of_one_position_is_refused(void **state) {
  (void)state;
  models m;
  dt_session *s;
  assert_true(open_models(&m, "scalar", "f16", &SHAPES[1], 1, ordinary, ordinary));
  fails(dt_session_open(&m.pair, &(dt_session_options){.sequences = 1}, &s, &err), DT_EINPUT,
        "hidden 1 has a context of 1: at least 2 positions are needed");
  close_models(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_trees_give_plain_decodings_tokens),
      cmocka_unit_test(values_too_large_for_the_caches_are_told_with_the_remedy),
      cmocka_unit_test(contexts_of_two_and_three_positions_are_enough),
      cmocka_unit_test(a_context_of_one_position_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
