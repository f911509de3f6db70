/* Attention alone, compared with the limits of the machine:
 * bench_attention [-t THREADS] [-v VARIANT] [-r ROUNDS] [-c CONTEXT] [-n ROWS]
 *
 * Prints CSV with a line per shape, type of cache, context and number of rows. It measures all layers of a pass: keys
 * and values are written and the heads attend, without the products before and after. `bytes_ms`: a streaming sum over
 * the same keys and values by the same threads, right before. `products_ms`: the multiplications, at the rate of a loop
 * that does nothing else. `share`: the larger of the two, divided by the time. The rows of a pass are those of a tree:
 * a common prefix, and a path slot for each row. Medians of ROUNDS (5). */
#include "cpu/chunk.h"
#include "cpu/cpu.h"
#include "leaf_rows.h"
#include "shapes.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { MOST_ROUNDS = 99, MOST_CONTEXT = 4096, MOST_DIM = 256, FEW = 256 };

static dt_error err;

static void must(dt_status status) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_attention: %s\n", err.message);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *took, int n) {
  qsort(took, (size_t)n, sizeof *took, by_size);
  return took[n / 2];
}

/* ---- multiplications alone --------------------------------------------------------------------------------------- */

enum { CHAINS = 12, STEPS = 1 << 20 };

#ifdef __x86_64__
__attribute__((target("avx512f"))) static float multiply_512(void) {
  __m512 chain[CHAINS], by = _mm512_set1_ps(0.5f);
  for (int i = 0; i < CHAINS; i++) chain[i] = _mm512_set1_ps((float)i);
  for (int step = 0; step < STEPS; step++) {
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) chain[i] = _mm512_fmadd_ps(chain[i], by, by);
  }
  float sum = 0;
  for (int i = 0; i < CHAINS; i++) sum += _mm512_reduce_add_ps(chain[i]);
  return sum;
}

__attribute__((target("avx2,fma"))) static float multiply_256(void) {
  __m256 chain[CHAINS], by = _mm256_set1_ps(0.5f);
  float lane[8], sum = 0;
  for (int i = 0; i < CHAINS; i++) chain[i] = _mm256_set1_ps((float)i);
  for (int step = 0; step < STEPS; step++) {
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) chain[i] = _mm256_fmadd_ps(chain[i], by, by);
  }
  for (int i = 0; i < CHAINS; i++) {
    _mm256_storeu_ps(lane, chain[i]);
    for (int j = 0; j < 8; j++) sum += lane[j];
  }
  return sum;
}
#endif

static volatile float sink; /* keeps the sums from being optimized away */

static void multiply(const cpu_member *me, void *lanes) {
  (void)me;
#ifdef __x86_64__
  sink = *(int *)lanes == 16 ? multiply_512() : multiply_256();
#else
  (void)lanes;
#endif
}

/* Multiply-add operations of single numbers per second, by all threads together; 0: unknown. */
static double multiplications(const dt_backend *b) {
  int lanes = 0;
#ifdef __x86_64__
  lanes = strstr(b->kernels->name, "avx512") || strstr(b->kernels->name, "amx") ? 16
          : strncmp(b->kernels->name, "avx", 3) == 0                            ? 8
                                                                                : 0;
#endif
  double best = 0;
  for (int i = 0; i < 5 && lanes; i++) {
    double start = now();
    cpu_team_run(b->team, multiply, &lanes);
    double rate = (double)lanes * CHAINS * STEPS * b->threads / (now() - start);
    best = rate > best ? rate : best;
  }
  return best;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

typedef struct {
  dt_weights *w;
  dt_cache *cache;
  int context;
  const dt_rows *rows;
} subject;

static void attend(const cpu_member *me, void *context) {
  const subject *s = context;
  cpu_pass pass = {.w = s->w, .cache = s->cache, .rows = s->rows};
  cpu_chunk c = {.p = &pass, .me = me, .n = s->rows->n};
  int first, last;
  cpu_share(me, c.n, &first, &last);
  cpu_find_angles(&c, first, last);
  cpu_wait(me);
  for (int layer = 0; layer < s->w->shape.layers; layer++) {
    cpu_attend(&c, layer, false);
    cpu_wait(me);
  }
}

static void stream(const cpu_member *me, void *context) {
  const subject *s = context;
  const dt_weights *w = s->w;
  int first, last;
  cpu_share(me, s->context, &first, &last);
  for (int layer = 0; layer < w->shape.layers; layer++)
    for (int part = 0; part < 2; part++)
      for (int head = 0; head < w->mine.kv_heads.count; head++)
        sink = w->backend->kernels->stream((const float *)(const void *)(cpu_rows_of(s->cache, 0, layer, part, head) +
                                                                         (size_t)first * cpu_row_bytes(w, 0)),
                                           (size_t)(last - first) * cpu_row_bytes(w, 0) / sizeof(float));
}

/* Fills keys and values with numbers of about 2^-7, and queries with numbers up to 1/2. */
static void fill(subject *s) {
  const dt_weights *w = s->w;
  uint64_t state = 1;
  size_t bytes = cpu_cache_bytes(w, s->cache->slots), row = cpu_row_bytes(w, 0);
  float numbers[MOST_DIM];
  for (size_t at = 0; at < bytes; at += row) {
    for (int d = 0; d < w->layer[0].dim; d++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      numbers[d] = (state >> 40 & 1 ? 0x1p-7f : -0x1p-7f) * (float)(state >> 41 & 0xff) / 256;
    }
    w->backend->cache_type->write(numbers, w->layer[0].dim, s->cache->data + at);
  }
  for (size_t i = 0; i < CPU_ROWS * w->scratch.ldqkv; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    w->scratch.qkv[i] = (float)(state >> 40 & 0xffff) * 0x1p-16f - 0.5f;
  }
}

static void measure(const char *name, subject *s, const char *type, int count, double rate, int rounds) {
  int32_t position[CPU_ROWS], prefix[CPU_ROWS], slot[CPU_ROWS], one[CPU_ROWS], zero[CPU_ROWS] = {0};
  double took[MOST_ROUNDS], streamed[MOST_ROUNDS];
  const dt_weights *w = s->w;
  for (int i = 0; i < count; i++) one[i] = 1, slot[i] = s->context + i, prefix[i] = position[i] = s->context;
  dt_rows rows = leaf_rows(count, zero, position, zero, slot, prefix, one);
  s->rows = &rows;
  for (int i = -1; i < rounds; i++) {
    double start = now();
    cpu_team_run(w->backend->team, stream, s);
    double middle = now();
    cpu_team_run(w->backend->team, attend, s);
    if (i >= 0) streamed[i] = middle - start, took[i] = now() - middle;
  }
  double time = 1e3 * median(took, rounds), bytes = 1e3 * median(streamed, rounds);
  double numbers = 2.0 * w->shape.layers * w->shape.heads * w->layer[0].dim * (s->context + 1) * count;
  double products = rate > 0 ? 1e3 * numbers / rate : 0;
  printf("%s,%s,%d,%d,%.3f,%.3f,%.3f,%.2f\n", name, type, s->context, count, time, bytes, products,
         time / (bytes > products ? bytes : products));
  fflush(stdout);
}

/* The model of a shape with few inner columns and few ids, which do not matter here. */
static dt_weights *upload(dt_backend *b, const char *name) {
  shape_model *m = shape_model_new(name, DT_F16);
  if (!m) must(dt_fail(&err, DT_EINPUT, "bench_attention: unknown shape %s", name));
  m->desc.shape.inter = m->desc.shape.vocab = FEW;
  dt_matrix *cut[] = {&m->desc.embed, &m->desc.unembed};
  for (int i = 0; i < 2; i++) cut[i]->rows = cut[i]->group = cut[i]->stride = FEW;
  for (int i = 0; i < m->desc.shape.layers; i++) {
    dt_layer *l = &m->layer[i];
    l->up.rows = l->up.group = l->up.stride = l->gate.rows = l->gate.group = l->gate.stride = l->down.cols = FEW;
  }
  dt_weights *w;
  must(dt_cpu_ops.upload(b, &m->desc, NULL, &w, &err));
  w->scale = 1; /* queries are rotated in place again and again */
  shape_model_free(m);
  return w;
}

int main(int argc, char **argv) {
  dt_backend_options options = {.threads = 2};
  const char *names[] = {"smollm2-135m", "qwen2.5-1.5b"};
  int rounds = 5, only_context = 0, only_rows = 0;
  for (int option; (option = getopt(argc, argv, "t:v:r:c:n:")) != -1;) {
    if (option == 't') options.threads = atoi(optarg);
    if (option == 'v') options.variant = optarg;
    if (option == 'r') rounds = atoi(optarg);
    if (option == 'c') only_context = atoi(optarg);
    if (option == 'n') only_rows = atoi(optarg);
    if (option == '?') optind = argc + 1;
  }
  if (optind != argc || rounds < 1 || rounds > MOST_ROUNDS || only_context > MOST_CONTEXT || only_rows > CPU_ROWS) {
    fprintf(stderr,
            "usage: bench_attention [-t THREADS] [-v VARIANT] [-r ROUNDS, up to %d] [-c CONTEXT, up to %d] "
            "[-n ROWS, up to %d]\n",
            MOST_ROUNDS, MOST_CONTEXT, CPU_ROWS);
    return 2;
  }
  printf("shape,caches,context,rows,ms,bytes_ms,products_ms,share\n");
  for (int shape = 0; shape < 2; shape++)
    for (int type = 0; dt_cpu_ops.cache_dtypes[type]; type++) {
      dt_backend *b;
      options.cache_dtype = dt_cpu_ops.cache_dtypes[type];
      must(dt_cpu_ops.open(&options, &b, &err));
      double rate = multiplications(b);
      if (!shape && !type)
        printf("# %s, %d threads, %.1f G multiplications/s\n", dt_cpu_ops.describe(b), b->threads, rate * 1e-9);
      subject s = {.w = upload(b, names[shape])};
      must(dt_cpu_ops.create_cache(s.w, 1, MOST_CONTEXT + CPU_ROWS, &s.cache, &err));
      fill(&s);
      const int contexts[] = {512, 2048, 4096}, rows_of[] = {1, 8, 64};
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          s.context = only_context ? only_context : contexts[i];
          int count = only_rows ? only_rows : rows_of[j];
          if ((i == 0 || !only_context) && (j == 0 || !only_rows))
            measure(names[shape], &s, options.cache_dtype, count, rate, rounds);
        }
      dt_cpu_ops.free_cache(s.cache);
      dt_cpu_ops.free_weights(s.w);
      dt_cpu_ops.close(b);
    }
  return 0;
}
