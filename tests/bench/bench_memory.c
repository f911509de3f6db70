/* What models take on a GPU, and the largest context that then fits, from the headers of their files: the
 * numbers that decide whether dtrun loads a model there (pair/account.h). Weights are not read, so sparse files do
 * (shaped_gguf.py).
 *
 *   bench_memory FILE.gguf...
 *
 * On the emulated device, CUDA_EMU_FAULTS='1 25.2e9 -1' makes a card with that much free memory. Prints a row of a
 * table in Markdown for each file, in GB; caches are those of a context of 8192 positions, or of the model's. */
#include "model/model.h"
#include "pair/account.h"
#include "pair/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 8192 };

static dt_error err;

static void must(dt_status status) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_memory: %s\n", err.message);
  exit(1);
}

typedef struct {
  dt_backend *backend;
  const dt_backend_ops *ops;
} device;

static device open_device(const char *caches) {
  dt_backend_options options = {.threads = 1, .cache_dtype = caches};
  device d = {.ops = backend_find("cuda", &options.variant, &err)};
  if (!d.ops) must(err.status);
  must(d.ops->open(&options, &d.backend, &err));
  return d;
}

static dt_memory account(const device *on, const dt_model_desc *d, int context) {
  dt_memory m;
  must(on->ops->account(on->backend, d, 1, target_slots(context), &m, &err));
  return m;
}

static size_t bytes_of(dt_memory m) { return m.weights + m.caches + m.scratch; }

/* The largest context that fits; 0: none does. */
static int most_that_fits(const device *on, const dt_model_desc *d) {
  int fits = 0, below = d->shape.context + 1;
  while (below - fits > 1) {
    int middle = fits + (below - fits) / 2;
    *(bytes_of(account(on, d, middle)) <= on->ops->bytes_free(on->backend) ? &fits : &below) = middle;
  }
  return fits;
}

static void print_row(const char *path, const device *wide, const device *q8) {
  model *m = NULL;
  must(model_open(path, &m, &err));
  const dt_model_desc *d = model_desc(m);
  int context = d->shape.context < CONTEXT ? d->shape.context : CONTEXT;
  dt_memory in16 = account(wide, d, context), in8 = account(q8, d, context);
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  printf("| %.*s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %d | %d | %d |\n", (int)(strlen(name) - strlen(".gguf")),
         name, (double)in16.weights * 1e-9, (double)in16.host * 1e-9, (double)in16.caches * 1e-9,
         (double)in8.caches * 1e-9, (double)in16.scratch * 1e-9, (double)bytes_of(in16) * 1e-9, most_that_fits(wide, d),
         most_that_fits(q8, d), d->shape.context);
  model_close(m);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: bench_memory FILE.gguf...\n", stderr);
    return 2;
  }
  device wide = open_device("16-bit"), q8 = open_device("q8");
  printf("%.2f GB are free, beside what is left to the driver.\n\n", (double)wide.ops->bytes_free(wide.backend) * 1e-9);
  puts("| model | weights | embeddings, on the host | caches | in q8 | scratch | all on the device | largest context | "
       "in q8 | the model's |");
  puts("|---|---|---|---|---|---|---|---|---|---|");
  for (int i = 1; i < argc; i++) print_row(argv[i], &wide, &q8);
  wide.ops->close(wide.backend), q8.ops->close(q8.backend);
  return 0;
}
