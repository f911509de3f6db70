/* A hash of each model's logits, of a text and of what follows it, computed by as many ranks as mpirun started:
 *   ranks_logits MODEL...                  prints a line for each
 *   ranks_logits make NAME FOLDER          writes the checkpoint of tests/golden/logits/NAME */
#include "dtrun.h"
#include "dtrun_ranks.h"
#include "golden_logits.h"
#include "model/model.h"
#include "pair/backends.h"
#include "rig.h"

#include <inttypes.h>

static dt_error failure;

enum { TEXT = 100, MORE = 24, TREE = 12 };

static void must(dt_status status) {
  if (status == DT_OK) return;
  fprintf(stderr, "ranks_logits: %s\n", failure.message);
  exit(1);
}

static uint64_t hash_of(uint64_t hash, const float *logits, size_t n) {
  const unsigned char *bytes = (const unsigned char *)logits;
  for (size_t i = 0; i < n * sizeof *logits; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

/* Runs the rows, takes their logits into the hash, and returns the likeliest token of the last one. */
static int32_t take(rig *r, const row_list *l, uint64_t *hash) {
  static int32_t every[MAX_ROWS];
  dt_rows rows = rows_of(l);
  size_t vocab = (size_t)r->vocab;
  float *logits = malloc((size_t)l->n * vocab * sizeof *logits);
  for (int i = 0; i < l->n; i++) every[i] = i;
  must(r->ops->forward(r->weights, r->cache, &rows,
                       &(dt_out){.want = DT_WANT_LOGITS, .n = l->n, .row = every, .logits = logits}, &failure));
  *hash = hash_of(*hash, logits, (size_t)l->n * vocab);
  const float *last = logits + ((size_t)l->n - 1) * vocab;
  int32_t best = 0;
  for (int v = 1; v < r->vocab; v++) best = last[v] > last[best] ? v : best;
  free(logits);
  return best;
}

static void print_hash(const char *path) {
  model *m = NULL;
  rig r = {0};
  uint64_t hash = 0xcbf29ce484222325u;
  const char *variant;
  must(model_open(path, &m, &failure));
  dt_model_desc desc = *model_desc(m);
  desc.path = path;
  r.vocab = desc.shape.vocab;
  if (!(r.ops = backend_find("auto", &variant, &failure))) must(DT_EINPUT);
  must(r.ops->open(&(dt_backend_options){.threads = 1}, &r.backend, &failure));
  must(r.ops->upload(r.backend, &desc, NULL, &r.weights, &failure));
  must(r.ops->create_cache(r.weights, 1, TEXT + MORE + TREE, &r.cache, &failure));
  row_list text = {0}, tree = {0};
  int32_t token, path_of[ROW_PATH];
  for (int p = 0; p < TEXT; p++) row_add_plain(&text, 0, p * 7919 % r.vocab, p);
  token = take(&r, &text, &hash);
  for (int p = TEXT; p < TEXT + MORE; p++) {
    row_list one = {0};
    row_add_plain(&one, 0, token, p);
    token = take(&r, &one, &hash);
  }
  for (int i = 0; i < TREE; i++) { /* two chains */
    int depth = i % (TREE / 2);
    path_of[depth] = TEXT + MORE + i;
    row_add(&tree, 0, (token + i * 31) % r.vocab, TEXT + MORE, path_of, depth + 1);
  }
  take(&r, &tree, &hash);
  printf("%s %016" PRIx64 "\n", path, hash);
  r.ops->free_cache(r.cache);
  r.ops->free_weights(r.weights);
  r.ops->close(r.backend);
  model_close(m);
}

int main(int argc, char **argv) {
  int rank, ranks;
  if (argc == 4 && !strcmp(argv[1], "make")) {
    size_t size;
    char *text = golden_bytes(argv[2], "golden.json", &size);
    cJSON *json = cJSON_Parse(text);
    formula_checkpoint(argv[3], json);
    cJSON_Delete(json);
    free(text);
    return 0;
  }
  must(dt_ranks_join(&rank, &ranks, NULL, &failure));
  for (int i = 1; i < argc && rank == 0; i++) print_hash(argv[i]);
  return 0;
}
