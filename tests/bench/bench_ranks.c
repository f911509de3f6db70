/* What sharing a model across ranks costs and gains: mpirun -n R bench_ranks [-t THREADS] [-s SECONDS] MODEL...
 *
 * MODEL is a folder or file, or the name of a shape (shapes.h). Prints CSV:
 *   pass,MODEL,rows,whole_ms,shared_ms,ratio,gathers,kilobytes,gather_ms
 *     medians of alternating passes, at a context of 512
 *     whole: rank 0 alone, with as many threads as all ranks together; shared: R ranks with THREADS (1) threads each;
 *     ratio: whole / shared, so above 1 is faster; kilobytes: the data of all gathers of a pass; gather_ms: the time of
 *     rank 0 in gathers, which includes waiting for slower ranks
 *   gather,bytes,us        the median of a gather of this many bytes in all, one after the other
 *   bandwidth,GB/s         a streaming sum over memory by rank 0 with the threads of all ranks
 * All ranks run this program. To use TCP instead of shared memory, as between machines: mpirun --mca btl tcp,self. */
#include "cpu/cpu.h"
#include "leaf_rows.h"
#include "model/model.h"
#include "ranks/mpi.h"
#include "shapes.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONTEXT = 512, MOST_ROWS = 64, MOST_ROUNDS = 200, GATHERS = 400, LARGEST = 1 << 20, MOST_RANKS = 16 };

static dt_error err;

static void must(dt_status status) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_ranks: %s\n", err.message);
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

/* ---- gathers that are timed -------------------------------------------------------------------------------------- */

typedef struct {
  dt_ranks ranks; /* must be first, since the backend sees only this member */
  dt_ranks *real;
  double seconds, bytes;
  long count;
} timed_ranks;

static void gather(dt_ranks *ranks, void *data, const int *bytes, const int *offset) {
  timed_ranks *t = (timed_ranks *)(void *)ranks;
  double start = now();
  t->real->gather(t->real, data, bytes, offset);
  t->seconds += now() - start;
  t->count++;
  for (int i = 0; i < ranks->count; i++) t->bytes += bytes[i];
}

static dt_ranks *join_ranks(void) {
  char path[PATH_MAX + 32];
  ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
  while (n > 0 && path[n - 1] != '/') n--;
  snprintf(path + n, sizeof path - (size_t)n, "dtrun-mpi.so");
  void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  dt_mpi_join_fn *join = NULL;
  if (module) *(void **)&join = dlsym(module, DT_MPI_JOIN);
  if (!join) fprintf(stderr, "bench_ranks: cannot open %s; is Open MPI installed?\n", path), exit(1);
  return join();
}

/* Waits for rank 0 without keeping a processor busy. */
static void meet(dt_ranks *ranks) {
  size_t bytes;
  if (ranks->rank)
    free(ranks->listen(ranks, &bytes));
  else
    ranks->tell(ranks, "", 0);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

typedef struct {
  dt_backend *backend;
  dt_weights *weights;
  dt_cache *cache;
} subject;

static void run(const subject *s, int context, int count, bool want) {
  int32_t token[MOST_ROWS], position[MOST_ROWS], slot[MOST_ROWS], one[MOST_ROWS], index[MOST_ROWS], best[MOST_ROWS];
  int32_t zero[MOST_ROWS] = {0}, prefix[MOST_ROWS];
  for (int i = 0; i < count; i++) {
    token[i] = i * 7 % 256, index[i] = i, one[i] = 1, slot[i] = context + i;
    prefix[i] = position[i] = want ? context : context + i;
  }
  dt_rows rows = leaf_rows(count, token, position, zero, slot, prefix, one);
  dt_out out = {.want = DT_WANT_ARGMAX, .n = count, .row = index, .argmax = best};
  must(dt_cpu_ops.forward(s->weights, s->cache, &rows, want ? &out : NULL, &err));
}

/* If ranks is NULL, the model is whole. */
static subject open_subject(dt_model_desc desc, int threads, dt_ranks *ranks) {
  subject s;
  desc.path = ranks ? "shared" : NULL;
  must(dt_cpu_ops.open(&(dt_backend_options){.threads = threads, .ranks = ranks}, &s.backend, &err));
  must(dt_cpu_ops.upload(s.backend, &desc, NULL, &s.weights, &err));
  must(dt_cpu_ops.create_cache(s.weights, 1, CONTEXT + MOST_ROWS, &s.cache, &err));
  for (int at = 0; at < CONTEXT; at += MOST_ROWS) run(&s, at, MOST_ROWS, false);
  return s;
}

static void close_subject(subject *s) {
  dt_cpu_ops.free_cache(s->cache);
  dt_cpu_ops.free_weights(s->weights);
  dt_cpu_ops.close(s->backend);
}

static double timed_pass(const subject *s, int rows) {
  run(s, CONTEXT, rows, true); /* loads the weights into the caches, so that neither run pays for it */
  double start = now();
  run(s, CONTEXT, rows, true);
  return now() - start;
}

/* Runs both alternately. Rank 0 decides whether there is another round; the others follow. */
static void compare(const char *name, const dt_model_desc *desc, int threads, double seconds, timed_ranks *t) {
  dt_ranks *ranks = t->real;
  subject shared = open_subject(*desc, threads, &t->ranks), whole = {0};
  if (ranks->rank == 0) whole = open_subject(*desc, threads * ranks->count, NULL);
  const int rows_of[] = {1, 8, 64};
  for (int i = 0; i < 3; i++) {
    static double alone[MOST_ROUNDS], together[MOST_ROUNDS], gathering[MOST_ROUNDS];
    int n = 0, more[MOST_RANKS] = {1};
    double end = now() + seconds / 3;
    while (more[0]) {
      if (ranks->rank == 0) alone[n] = timed_pass(&whole, rows_of[i]);
      meet(ranks);
      t->seconds = t->bytes = 0, t->count = 0;
      together[n] = timed_pass(&shared, rows_of[i]);
      gathering[n++] = t->seconds / 2; /* for two passes */
      more[0] = n < MOST_ROUNDS && (n < 3 || now() < end);
      int bytes[MOST_RANKS] = {sizeof *more}, offset[MOST_RANKS] = {0};
      ranks->gather(ranks, more, bytes, offset);
    }
    double a = median(alone, n), b = median(together, n);
    if (ranks->rank == 0)
      printf("pass,%s,%d,%.3f,%.3f,%.3f,%ld,%.1f,%.3f\n", name, rows_of[i], a * 1e3, b * 1e3, a / b, t->count / 2,
             t->bytes / 2e3, median(gathering, n) * 1e3);
    fflush(stdout);
  }
  if (ranks->rank == 0) printf("bandwidth,%.1f\n", dt_cpu_ops.read_bandwidth(whole.backend) * 1e-9);
  meet(ranks);
  if (ranks->rank == 0) close_subject(&whole);
  close_subject(&shared);
}

static void time_gathers(dt_ranks *ranks) {
  static char data[LARGEST];
  static double took[GATHERS];
  int bytes[MOST_RANKS], offset[MOST_RANKS];
  for (int size = 4096; size <= LARGEST; size *= 2) {
    for (int i = 0; i < ranks->count; i++) bytes[i] = size / ranks->count, offset[i] = i * bytes[i];
    for (int i = 0; i < GATHERS; i++) {
      double start = now();
      ranks->gather(ranks, data, bytes, offset);
      took[i] = now() - start;
    }
    if (ranks->rank == 0) printf("gather,%d,%.1f\n", size, median(took, GATHERS) * 1e6);
  }
}

int main(int argc, char **argv) {
  int threads = 1;
  double seconds = 20;
  for (int option; (option = getopt(argc, argv, "t:s:")) != -1;) {
    if (option == 't') threads = atoi(optarg);
    if (option == 's') seconds = atof(optarg);
    if (option == '?') return 2;
  }
  dt_ranks *ranks = join_ranks();
  if (ranks->count > MOST_RANKS)
    return fprintf(stderr, "bench_ranks: too many ranks, expected at most %d\n", MOST_RANKS), 1;
  timed_ranks t = {.ranks = {.rank = ranks->rank, .count = ranks->count, .gather = gather}, .real = ranks};
  for (int i = optind; i < argc; i++) {
    shape_model *shape = shape_model_new(argv[i], DT_F16);
    model *m = NULL;
    if (!shape) must(model_open(argv[i], &m, &err));
    compare(argv[i], shape ? &shape->desc : model_desc(m), threads, seconds, &t);
    if (shape) free(shape->numbers), free(shape->ones), free(shape);
    model_close(m);
  }
  time_gathers(ranks);
  ranks->leave(ranks);
  return 0;
}
