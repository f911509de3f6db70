/* A chain of rows, each of which begins with the first candidate of the row before, in one call: it has the bits of passes one by
 * one, between which the host reads the candidates. */
#include "cuda_device.h"
#include "rig.h"

enum { TOP = 5, LENGTH = 40, SLOTS = 200, FIRST = 3 }; /* FIRST: rows of the chain's first pass */

typedef struct {
  int32_t id[LENGTH][TOP];
  float logp[LENGTH][TOP], own[LENGTH][TOP], confidence[LENGTH], entropy[LENGTH];
} guesses;

/* Results of n rows from `first` on go to the guesses from `at` on. */
static dt_out wanted(guesses *g, int at, const int32_t *row, int n, int vocab, const dt_sampling *sampling) {
  return (dt_out){.want = DT_WANT_TOPK,
                  .n = n,
                  .row = row,
                  .sampling = sampling,
                  .k = TOP,
                  .vocab = vocab,
                  .top_id = g->id[at],
                  .top_logp = g->logp[at],
                  .top_own = g->own[at],
                  .confidence = g->confidence + at,
                  .entropy = g->entropy + at};
}

/* FIRST rows of a text of `before` tokens, and n behind them on a path that begins with its last, in slots that leave gaps. */
static row_list chain_rows(int before, int n) {
  row_list l = {0};
  int32_t path[ROW_PATH];
  for (int i = 0; i < FIRST; i++) row_add_plain(&l, 0, 7 + i, before - FIRST + i);
  for (int i = 0; i < n; i++) {
    path[i] = before + (i ^ 1);
    row_add(&l, 0, 0, before, path, i + 1);
  }
  return l;
}

static void one_by_one(rig *r, const row_list *l, int n, const dt_sampling *sampling, guesses *g) {
  row_list some = *l;
  some.n = FIRST;
  dt_rows rows = rows_of(&some);
  dt_out out = wanted(g, 0, (int32_t[]){FIRST - 1}, 1, r->vocab, sampling);
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  for (int i = 0; i < n; i++) {
    row_list one = {0};
    int32_t token = g->id[i][0] < 0 ? 0 : g->id[i][0];
    row_add(&one, 0, token, l->prefix[FIRST + i], l->path[FIRST + i], l->path_len[FIRST + i]);
    rows = rows_of(&one);
    out = wanted(g, i + 1, (int32_t[]){0}, 1, r->vocab, sampling);
    ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  }
}

static void at_once(rig *r, const row_list *l, int n, const dt_sampling *sampling, guesses *g) {
  int32_t row[LENGTH];
  for (int i = 0; i <= n; i++) row[i] = FIRST - 1 + i;
  dt_rows rows = rows_of(l);
  rows.chain = n;
  dt_out out = wanted(g, 0, row, n + 1, r->vocab, sampling);
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
}

static void fill(rig *r, int n) {
  row_list l = {0};
  for (int p = 0; p < n; p++) row_add_plain(&l, 0, p * 13 % 89, p);
  rig_run(r, &l, false);
}

/* Behind `before` tokens, in a cache of so many slots. */
static void check_chain(const random_model *m, int slots, int before, int n, dt_sampling sampling) {
  rig a = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, slots), b = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, slots);
  static guesses expected, got;
  memset(&expected, 0, sizeof expected), memset(&got, 0, sizeof got);
  row_list l = chain_rows(before, n);
  fill(&a, before - FIRST), fill(&b, before - FIRST);
  one_by_one(&a, &l, n, &sampling, &expected);
  at_once(&b, &l, n, &sampling, &got);
  if (memcmp(&got, &expected, sizeof got)) fail_msg("a chain of %d behind %d tokens differs from passes", n, before);
  for (int p = 0; p < before + (n + 1) / 2 * 2 && p < slots; p++) {
    size_t len, same;
    void *x = rig_slot(&a, 0, p, &len), *y = rig_slot(&b, 0, p, &same);
    assert_memory_equal(x, y, len);
    free(x), free(y);
  }
  at_once(&b, &l, n, &sampling, &got); /* its graphs are there, and its rows */
  assert_memory_equal(&got, &expected, sizeof got);
  rig_close(&a), rig_close(&b);
}

/* Past 128 positions, where a part of attention ends, and where tokens are drawn; to the last slot of a cache. The longest is more
 * passes than are on their way at once, of which there is room for some 11. */
static void a_chain_has_the_bits_of_passes(void **state) {
  (void)state;
  static const int lengths[] = {0, 1, 2, ROW_PATH};
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 31);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    check_chain(m, SLOTS, 120, lengths[i], (dt_sampling){0});
  check_chain(m, SLOTS, 9, ROW_PATH - 1, (dt_sampling){.temp = 0.8f, .seed = 5});
  check_chain(m, 12 + 8, 12, 8, (dt_sampling){0});
  random_model_free(m);
}

/* Every other id's embedding is NaN: rows behind one read token 0, as its first candidate would be an id that is none. */
static void a_nan_ends_no_chain(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 32);
  for (int id = 21; id < shape.vocab; id += 2) ((uint16_t *)m->desc.embed.source->bytes)[id * shape.hidden] = 0x7e00;
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 1, SLOTS);
  static guesses expected, got;
  row_list l = chain_rows(9, ROW_PATH);
  fill(&r, 6); /* of ids up to 65, so that all candidates are NaN */
  l.token[FIRST - 1] = 21;
  dt_sampling none = {0};
  one_by_one(&r, &l, ROW_PATH, &none, &expected);
  assert_int_equal(expected.id[0][0], -1);
  at_once(&r, &l, ROW_PATH, &none, &got);
  assert_memory_equal(&got, &expected, sizeof got);
  rig_close(&r);
  random_model_free(m);
}

static void refuse(rig *r, const dt_rows *rows, const dt_out *out, const char *why) {
  fails(r->ops->forward(r->weights, r->cache, rows, out, &err), DT_EINPUT, why);
}

static void what_is_no_chain_is_refused(void **state) {
  (void)state;
  model_shape shape = cuda_shape(3);
  random_model *m = random_model_new(&shape, 33);
  rig r = rig_open(&dt_cuda_ops, NULL, 1, &m->desc, 2, SLOTS);
  static guesses g;
  row_list l = chain_rows(9, 2);
  dt_rows rows = rows_of(&l);
  const int32_t all[] = {FIRST - 1, FIRST, FIRST + 1}, others[] = {FIRST - 2, FIRST, FIRST + 1};
  const dt_row_shifts shifts[3] = {{0}};
  dt_out out = wanted(&g, 0, all, 3, r.vocab, NULL), other = out, fewer = out, most = out, shifted = out;
  other.row = others, fewer.n = 2, most.want = DT_WANT_BOTH, shifted.shifts = shifts;
  rows.chain = -1;
  refuse(&r, &rows, &out, "forward: a chain of -1 rows, of 5 it has 0 to 4");
  rows.chain = 5;
  refuse(&r, &rows, &out, "forward: a chain of 5 rows, of 5 it has 0 to 4");
  rows.chain = 2;
  const char *needs = "forward: a chain of 2 rows needs candidates of each and of the row before, unshifted";
  refuse(&r, &rows, NULL, needs);
  refuse(&r, &rows, &other, needs);
  refuse(&r, &rows, &fewer, needs);
  refuse(&r, &rows, &most, needs);
  refuse(&r, &rows, &shifted, needs);
  l.sequence[FIRST] = 1;
  refuse(&r, &rows, &out, "forward: row 3 of a chain does not follow row 2");
  l.sequence[FIRST] = 0;
  rows.chain = 3; /* its first follows */
  out.row = (int32_t[]){FIRST - 2, FIRST - 1, FIRST, FIRST + 1}, out.n = 4;
  ok(r.ops->forward(r.weights, r.cache, &rows, &out, &err));
  rig_close(&r);
  random_model_free(m);
}

int main(void) {
  cuda_device_or_skip();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chain_has_the_bits_of_passes),
      cmocka_unit_test(a_nan_ends_no_chain),
      cmocka_unit_test(what_is_no_chain_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
