/* The kernels of delta layers: rows have the same bits alone and together, in every variant, and agree with the
 * recurrence of a state in double precision:
 *   S = e^g S; u = beta (v - S k); S = S + k u; y = S q. */
#include "kernels.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 128, NODES = CPU_DELTA_TOGETHER, ROW = 2 * MOST + 1, TEXT = DT_DELTA_ROWS };

typedef double state[MOST][MOST];

/* A token: a row of the ring, and the inputs from which it is computed. */
typedef struct {
  float ring[ROW], q[MOST], k[MOST], v[MOST], y[MOST], strength;
} token;

/* A text, and nodes after it. The parent of node i is an earlier node or, if -1, the text. */
typedef struct {
  cpu_delta_head h;
  float base[MOST * MOST];
  bool zero; /* the state at the beginning of the text is zero */
  int n, parent[NODES];
  token text[TEXT], node[NODES];
} tree;

static float uniform(uint64_t *random) { return (float)(random_next(random) & 0xffffff) / 8388608.0f - 1.0f; }

static void draw_token(const cpu_delta_head *h, uint64_t *random, token *t) {
  float q = 0, k = 0;
  for (int i = 0; i < h->key_dim; i++) {
    t->q[i] = uniform(random), t->k[i] = uniform(random);
    q += t->q[i] * t->q[i], k += t->k[i] * t->k[i];
  }
  for (int i = 0; i < h->key_dim; i++) {
    t->q[i] /= sqrtf(q), t->k[i] /= sqrtf(k);
    t->ring[h->key_at + (size_t)i] = t->k[i];
  }
  for (int i = 0; i < h->value_dim; i++) t->v[i] = uniform(random);
  t->ring[h->rate_at] = -0.2f * (1 + uniform(random)) / 2;
  t->strength = (1 + uniform(random)) / 2;
}

static void draw(tree *t, uint64_t *random, int keys, int values, int n, const int *parent) {
  t->h = (cpu_delta_head){keys, values, 0, (size_t)keys, (size_t)(keys + values)};
  t->n = n;
  t->zero = n % 2;
  for (int i = 0; i < keys * values; i++) t->base[i] = uniform(random);
  for (int i = 0; i < TEXT; i++) draw_token(&t->h, random, &t->text[i]);
  for (int i = 0; i < NODES; i++) draw_token(&t->h, random, &t->node[i]), t->parent[i] = parent[i];
}

static cpu_delta_row row_of(tree *t, token *own, int node, const float **seen) {
  cpu_delta_row r = {own->q, own->k, own->v, own->strength, seen, 0, own->ring, own->y};
  int path[NODES], depth = 0;
  int text = node < 0 ? (int)(own - t->text) : t->n;
  for (; r.n < text; r.n++) seen[r.n] = t->text[r.n].ring;
  for (int p = node < 0 ? -1 : t->parent[node]; p >= 0; p = t->parent[p]) path[depth++] = p;
  while (depth > 0) seen[r.n++] = t->node[path[--depth]].ring;
  return r;
}

/* Computes all tokens, the nodes in calls of `together` rows. */
static void compute(const cpu_kernels *kernels, tree *t, int together) {
  const float *base = t->zero ? NULL : t->base, *seen[NODES][DT_DELTA_ROWS];
  for (int i = 0; i < t->n; i++) {
    cpu_delta_row row = row_of(t, &t->text[i], -1, seen[0]);
    kernels->delta_rows(&t->h, base, &row, 1);
  }
  for (int i = 0; i < NODES; i += together) {
    cpu_delta_row row[NODES];
    int n = NODES - i < together ? NODES - i : together;
    for (int r = 0; r < n; r++) row[r] = row_of(t, &t->node[i + r], i + r, seen[r]);
    kernels->delta_rows(&t->h, base, row, n);
  }
}

static void step(const cpu_delta_head *h, state s, const token *t, double *y) {
  double decay = exp(t->ring[h->rate_at]);
  for (int j = 0; j < h->value_dim; j++) {
    double seen = 0;
    for (int i = 0; i < h->key_dim; i++) s[i][j] *= decay, seen += s[i][j] * t->k[i];
    double u = t->strength * (t->v[j] - seen);
    y[j] = 0;
    for (int i = 0; i < h->key_dim; i++) s[i][j] += t->k[i] * u, y[j] += s[i][j] * t->q[i];
  }
}

static void begin(const tree *t, state s) {
  for (int i = 0; i < t->h.key_dim; i++)
    for (int j = 0; j < t->h.value_dim; j++) s[i][j] = t->zero ? 0 : t->base[i * t->h.value_dim + j];
}

static void expect_near(const float *got, const double *expected, int n) {
  for (int i = 0; i < n; i++)
    if (!(fabs(got[i] - expected[i]) < 2e-5)) fail_msg("number %d: %g, expected %g", i, got[i], expected[i]);
}

static void expect_recurrence(const tree *t) {
  static state behind, s;
  double y[MOST];
  begin(t, behind);
  for (int i = 0; i < t->n; i++) {
    step(&t->h, behind, &t->text[i], y);
    expect_near(t->text[i].y, y, t->h.value_dim);
  }
  for (int i = 0; i < NODES; i++) {
    int path[NODES], depth = 0;
    for (int p = i; p >= 0; p = t->parent[p]) path[depth++] = p;
    memcpy(s, behind, sizeof s);
    while (depth > 0) step(&t->h, s, &t->node[path[--depth]], y);
    expect_near(t->node[i].y, y, t->h.value_dim);
  }
}

static void expect_same(const tree *a, const tree *b) {
  for (int i = 0; i < NODES; i++) {
    assert_memory_equal(a->node[i].ring, b->node[i].ring, sizeof a->node[i].ring);
    assert_memory_equal(a->node[i].y, b->node[i].y, (size_t)a->h.value_dim * sizeof(float));
  }
}

static const int parents[][NODES] = {{-1, 0, 1, 2}, {-1, -1, -1, -1}, {-1, 0, 0, 1}, {-1, 0, -1, 2}};

static void a_row_has_the_same_bits_alone_and_together_and_those_of_a_state(void **unused) {
  (void)unused;
  static const int keys[] = {16, 48, 128}, values[] = {16, 48, 80, 128}, texts[] = {0, 1, 15, 16, 17, 64, TEXT - NODES};
  tree *t = calloc(3, sizeof *t), *first = t + 1, *now = t + 2;
  uint64_t random = 1;
  for (int c = 0; c < 3 * 4 * 7 * 4; c++) {
    const cpu_kernels *kernels;
    draw(t, &random, keys[c % 3], values[c / 3 % 4], texts[c / 12 % 7], parents[c / 84]);
    for (int variant = 0; (kernels = cpu_variant(variant)); variant++)
      for (int together = 1; together <= NODES; together++) {
        bool is_first = variant == 0 && together == 1;
        tree *of = is_first ? first : now;
        memcpy(of, t, sizeof *t);
        compute(kernels, of, together);
        if (is_first) expect_recurrence(of);
        expect_same(of, first);
      }
  }
  free(t);
}

static void a_base_moves_on_as_a_state_does(void **unused) {
  (void)unused;
  static const int keys[] = {16, 48, 128}, values[] = {16, 80, 128};
  static float first[MOST * MOST], now[MOST * MOST];
  static state s;
  tree *t = calloc(1, sizeof *t);
  uint64_t random = 2;
  for (int c = 0; c < 3 * 3 * 2; c++) {
    const cpu_kernels *kernels;
    draw(t, &random, keys[c % 3], values[c / 3 % 3], DT_DELTA_STEP + c / 9, parents[0]);
    for (int variant = 0; (kernels = cpu_variant(variant)); variant++) {
      const float *row[DT_DELTA_STEP];
      float *to = variant ? now : first;
      compute(kernels, t, 1);
      for (int j = 0; j < DT_DELTA_STEP; j++) row[j] = t->text[j].ring;
      kernels->delta_base(&t->h, t->zero ? NULL : t->base, row, to);
      assert_memory_equal(to, first, (size_t)(t->h.key_dim * t->h.value_dim) * sizeof *to);
    }
    double y[MOST];
    begin(t, s);
    for (int j = 0; j < DT_DELTA_STEP; j++) step(&t->h, s, &t->text[j], y);
    for (int i = 0; i < t->h.key_dim; i++) expect_near(first + i * t->h.value_dim, s[i], t->h.value_dim);
  }
  free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_has_the_same_bits_alone_and_together_and_those_of_a_state),
      cmocka_unit_test(a_base_moves_on_as_a_state_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
