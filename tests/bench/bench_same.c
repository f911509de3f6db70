/* The share of loading that ranks spend on comparing copies of their own:
 * bench_same [-r RANKS] [-t THREADS] [-n ROUNDS] MODEL COPY.
 *
 * RANKS (2) ranks of THREADS (1) threads are threads of this one process, so that no waiting in MPI is counted; rank 0
 * loads MODEL, all others COPY. A round loads them once as they are loaded (compared) and once without same.h (plain), in
 * an order that changes from round to round (21). CSV:
 *   same,MODEL,ranks,rounds,plain_ms,compared_ms,share,plain_cpu_ms,compared_cpu_ms,cpu_share
 * Medians over all rounds; cpu: of all ranks together, user and system, which other programs disturb least. A share is the
 * median of (compared - plain) / plain of the same round. The files are read once before, so that both find them in memory. */
#include "../unit/thread_ranks.h"
#include "cpu/cpu.h"
#include "model/model.h"
#include "ranks/same.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROUNDS = 1000 };

typedef struct {
  const char *path[2]; /* rank 0's, that of all others */
  int threads;
  bool compared;
} load;

static void must(dt_status status, const dt_error *why) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_same: %s\n", why->message);
  exit(1);
}

/* As ranks/call.c uploads. */
static void load_here(dt_ranks *ranks, void *context) {
  const load *l = context;
  dt_error err;
  model *m;
  same *s = NULL;
  dt_backend *backend;
  dt_weights *weights;
  const char *path = l->path[ranks->rank > 0];
  must(dt_cpu_ops.open(&(dt_backend_options){.threads = l->threads, .ranks = ranks}, &backend, &err), &err);
  must(model_open(path, &m, &err), &err);
  dt_model_desc desc = *model_desc(m);
  desc.path = path;
  if (l->compared) {
    must(same_open(ranks, &desc, l->threads, &s, &err), &err);
    must(same_files(s, &err), &err);
  }
  must(dt_cpu_ops.upload(backend, s ? same_desc(s) : &desc, NULL, &weights, &err), &err);
  if (s) {
    must(same_was_seen(s, &err), &err);
    must(same_weights(s, &err), &err);
  }
  same_close(s);
  dt_cpu_ops.free_weights(weights);
  dt_cpu_ops.close(backend);
  model_close(m);
}

static double wall_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double cpu_ms(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-3;
}

static void timed(load *l, int ranks, bool compared, double *wall, double *cpu) {
  l->compared = compared;
  double w = wall_ms(), c = cpu_ms();
  run_ranks(ranks, load_here, l);
  *wall = wall_ms() - w, *cpu = cpu_ms() - c;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *of, int n) {
  qsort(of, (size_t)n, sizeof *of, by_size);
  return of[n / 2];
}

int main(int argc, char **argv) {
  static double took[2][MOST_ROUNDS], cpu[2][MOST_ROUNDS], share[MOST_ROUNDS], cpu_share[MOST_ROUNDS];
  int ranks = 2, rounds = 21;
  load l = {.threads = 1};
  for (int option; (option = getopt(argc, argv, "r:t:n:")) != -1;) {
    if (option == 'r') ranks = atoi(optarg);
    if (option == 't') l.threads = atoi(optarg);
    if (option == 'n') rounds = atoi(optarg);
    if (option == '?') return 2;
  }
  if (argc - optind != 2 || ranks < 2 || ranks > MOST_RANKS || rounds < 1 || rounds > MOST_ROUNDS)
    return fprintf(stderr, "bench_same: expected [-r 2..%d] [-t THREADS] [-n 1..%d] MODEL COPY\n", MOST_RANKS,
                   MOST_ROUNDS),
           2;
  l.path[0] = argv[optind], l.path[1] = argv[optind + 1];
  timed(&l, ranks, true, &took[0][0], &cpu[0][0]); /* counts for nothing */
  for (int i = 0; i < rounds; i++) {
    for (int k = 0; k < 2; k++) {
      int compared = (i + k) % 2;
      timed(&l, ranks, compared, &took[compared][i], &cpu[compared][i]);
    }
    share[i] = took[1][i] / took[0][i] - 1, cpu_share[i] = cpu[1][i] / cpu[0][i] - 1;
  }
  double plain = median(took[0], rounds), compared = median(took[1], rounds);
  double plain_cpu = median(cpu[0], rounds), compared_cpu = median(cpu[1], rounds);
  printf("same,%s,%d,%d,%.1f,%.1f,%.4f,%.1f,%.1f,%.4f\n", l.path[0], ranks, rounds, plain, compared,
         median(share, rounds), plain_cpu, compared_cpu, median(cpu_share, rounds));
  return 0;
}
