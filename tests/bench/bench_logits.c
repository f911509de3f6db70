/* A model's logits after every token of some texts, for kl.py.
 *
 * bench_logits MODEL [WEIGHTS [BACKEND [ACTIVATIONS [CACHE]]]] <ids >logits
 *
 * Each line of ids is a text. Its logits, [tokens][vocab] in f32, are written to standard output one text after the
 * other. The prompt is computed as the rows of a tree are, at most 64 at a time. WEIGHTS, ACTIVATIONS and CACHE are the
 * values of --weights, --activations and --cache-dtype; weights '-' means unchanged. */
#include "leaf_rows.h"
#include "model/model.h"
#include "pair/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, ROWS = 64 };

static void must(dt_status status, const dt_error *err) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_logits: %s\n", err->message);
  exit(1);
}

static void check(int fine, const char *what) {
  if (fine) return;
  fprintf(stderr, "bench_logits: %s\n", what);
  exit(1);
}

/* Reads the ids of a line. */
static int read_text(char *line, int32_t ids[MOST]) {
  int n = 0;
  for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
    check(n < MOST, "a text has more than 4096 tokens");
    ids[n++] = (int32_t)strtol(word, NULL, 10);
  }
  return n;
}

int main(int argc, char **argv) {
  check(argc > 1, "usage: bench_logits MODEL [WEIGHTS [BACKEND [ACTIVATIONS [CACHE]]]] <ids >logits");
  static int32_t ids[MOST], at[MOST], one[MOST], zero[MOST], row[ROWS];
  const char *variant = NULL;
  const dt_holding how = {.dtype = argc > 2 && strcmp(argv[2], "-") ? argv[2] : NULL,
                          .activations = argc > 4 ? argv[4] : NULL};
  dt_error err;
  model *m;
  dt_backend *backend;
  dt_weights *weights;
  dt_cache *cache;
  const dt_backend_ops *ops = backend_find(argc > 3 ? argv[3] : "cpu", &variant, &err);
  must(ops ? DT_OK : DT_EINPUT, &err);
  dt_backend_options options = {.variant = variant, .threads = 2, .cache_dtype = argc > 5 ? argv[5] : NULL};
  must(ops->open(&options, &backend, &err), &err);
  must(model_open(argv[1], &m, &err), &err);
  size_t vocab = (size_t)model_desc(m)->shape.vocab;
  must(ops->upload(backend, model_desc(m), &how, &weights, &err), &err);
  model_close(m);
  must(ops->create_cache(weights, 1, MOST, &cache, &err), &err);
  float *logits = malloc(ROWS * vocab * sizeof *logits);
  check(logits != NULL, "out of memory");
  for (int i = 0; i < MOST; i++) at[i] = i, one[i] = 1;
  for (int i = 0; i < ROWS; i++) row[i] = i;
  char *line = NULL;
  size_t size = 0;
  while (getline(&line, &size, stdin) > 0) {
    for (int first = 0, count, n = read_text(line, ids); first < n; first += count) {
      count = n - first < ROWS ? n - first : ROWS;
      dt_rows rows = leaf_rows(count, ids + first, at + first, zero, at + first, at + first, one);
      dt_out out = {.want = DT_WANT_LOGITS, .n = count, .row = row, .logits = logits};
      must(ops->forward(weights, cache, &rows, &out, &err), &err);
      check(fwrite(logits, sizeof *logits * vocab, (size_t)count, stdout) == (size_t)count, "cannot write the logits");
    }
    fflush(stdout);
  }
  free(line), free(logits);
  ops->free_cache(cache), ops->free_weights(weights), ops->close(backend);
  return 0;
}
