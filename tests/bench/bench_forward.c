/* What a pass costs: bench_forward [-t THREADS] [-v VARIANT] [-r REPEATS] [-k CANDIDATES] FOLDER...
 * CSV, one line per model, context and number of rows: median and best microseconds, bytes a pass must read (weights
 * without the input embedding, and the keys and values of the context), GB/s at the median, share of the bandwidth of a
 * streaming sum measured in the same run. Rows are a tree's: one prefix, each its own path slot. */
#include "cpu.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROWS = 64, MOST_REPEATS = 1000 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(dt_status status, const dt_error *err) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_forward: %s\n", err->message);
  exit(1);
}

static double bytes_of(const dt_matrix *m) {
  return m->data ? (double)m->rows * m->cols * (m->dtype == DT_F32 ? 4 : 2) : 0;
}

/* The matrices; norms and biases are too small to count. */
static double weight_bytes(const dt_model_desc *d) {
  double sum = bytes_of(&d->unembed);
  for (int i = 0; i < d->layers; i++) {
    const dt_layer *l = &d->layer[i];
    const dt_matrix *all[] = {&l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) sum += bytes_of(all[j]);
  }
  return sum;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  dt_backend_options options = {.variant = NULL, .threads = 2};
  int repeats = 200, k = 0, option;
  while ((option = getopt(argc, argv, "t:v:r:k:")) != -1) {
    if (option == 't') options.threads = atoi(optarg);
    if (option == 'v') options.variant = optarg;
    if (option == 'r') repeats = atoi(optarg);
    if (option == 'k') k = atoi(optarg);
  }
  if (optind == argc || repeats < 1 || repeats > MOST_REPEATS || k < 0 || k > 32) {
    fprintf(stderr,
            "usage: bench_forward [-t THREADS] [-v VARIANT] [-r REPEATS, at most %d] [-k CANDIDATES] FOLDER...\n",
            MOST_REPEATS);
    return 2;
  }
  const dt_backend_ops *ops = &dt_cpu_ops;
  dt_error err = {0};
  dt_backend *backend;
  must(ops->open(&options, &backend, &err), &err);
  double bandwidth = ops->read_bandwidth(backend);
  printf("# %s, %d threads, streaming sum %.1f GB/s\n", ops->describe(backend), options.threads, bandwidth * 1e-9);
  printf("model,context,rows,want,median_us,best_us,read_mb,gb_per_s,share\n");
  for (; optind < argc; optind++) {
    model *m;
    must(model_open(argv[optind], &m, &err), &err);
    const dt_model_desc *d = model_desc(m);
    dt_weights *weights;
    dt_cache *cache;
    must(ops->upload(backend, d, &weights, &err), &err);
    must(ops->create_cache(weights, 1, 1024 + MOST_ROWS, &cache, &err), &err);
    const int contexts[] = {128, 512, 1024}, counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    int32_t token[1024], position[1024], slot[1024], zero[1024] = {0}, one[1024], index[MOST_ROWS], best[MOST_ROWS];
    int32_t id[MOST_ROWS * 32];
    float logp[MOST_ROWS * 32], confidence[MOST_ROWS], entropy[MOST_ROWS];
    for (int i = 0; i < 1024; i++) token[i] = i * 7 % d->vocab, position[i] = slot[i] = i, one[i] = 1;
    dt_rows prompt = {d->context < 1024 ? d->context : 1024, token, position, zero, slot, position, slot, one, 1};
    double start = now();
    must(ops->forward(weights, cache, &prompt, NULL, &err), &err);
    printf("# %s: prompt of %d tokens in %.1f ms\n", argv[optind], prompt.n, (now() - start) * 1e3);
    for (size_t c = 0; c < sizeof contexts / sizeof *contexts; c++)
      for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        int context = contexts[c], rows_n = counts[n];
        if (context >= d->context) continue;
        double took[MOST_REPEATS];
        int32_t prefix[MOST_ROWS];
        for (int i = 0; i < rows_n; i++) prefix[i] = position[i] = context, slot[i] = context + i, index[i] = i;
        dt_rows rows = {rows_n, token, position, zero, slot, prefix, slot, one, 1};
        dt_out out = {.want = k ? DT_WANT_TOPK : DT_WANT_ARGMAX,
                      .n = rows_n,
                      .row = index,
                      .argmax = best,
                      .k = k,
                      .vocab = d->vocab,
                      .top_id = id,
                      .top_logp = logp,
                      .confidence = confidence,
                      .entropy = entropy};
        for (int r = -5; r < repeats; r++) {
          start = now();
          must(ops->forward(weights, cache, &rows, &out, &err), &err);
          if (r >= 0) took[r] = now() - start;
        }
        qsort(took, (size_t)repeats, sizeof *took, by_size);
        double bytes = weight_bytes(d) + 8.0 * d->layers * d->kv_heads * d->head_dim * context;
        double rate = bytes / took[repeats / 2];
        printf("%s,%d,%d,%s,%.1f,%.1f,%.2f,%.1f,%.2f\n", argv[optind], context, rows_n, k ? "topk" : "argmax",
               took[repeats / 2] * 1e6, took[0] * 1e6, bytes * 1e-6, rate * 1e-9, rate / bandwidth);
      }
    ops->free_cache(cache);
    ops->free_weights(weights);
    model_close(m);
  }
  ops->close(backend);
  return 0;
}
