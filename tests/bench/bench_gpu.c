/* Measurements on a GPU that need more than a comparison of passes (bench_limit does that). gpu.sh runs them.
 *
 *   bench_gpu prompts SHAPE TYPE LENGTH...   a prompt of each length: whole chunks by cuBLASLt, if it is installed, and
 *                                            by our own kernels
 *   bench_gpu memory SHAPE TYPE ROWS         a session with the largest context that fits, then passes of new shapes,
 *                                            each with a graph, of up to ROWS rows; a prompt, whose library takes
 *                                            memory, too; and the first pass again
 *   bench_gpu loading SHAPE TYPE...          the seconds that a model takes to load, by parts
 *
 * -b BACKEND goes before these (default: cuda). SHAPE is one of shapes.h, TYPE the type of its matrices: F16, Q4_K, ...
 * Prints lines of CSV as soon as they are known. Exit status 1: a pass failed; the line says where. */
#include "leaf_rows.h"
#include "pair/backends.h"
#include "session/room.h"
#include "shapes.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 512, MOST_CONTEXT = 1 << 20, FEW_IDS = 256, READ_BYTES = 32 << 20 };

static dt_error err;

static void must(dt_status status) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_gpu: %s\n", err.message);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *room(size_t bytes) {
  void *p = calloc(1, bytes);
  if (!p) fprintf(stderr, "bench_gpu: out of memory\n"), exit(1);
  return p;
}

static shape_model *shape_of(const char *name, const char *type) {
  shape_model *shape = shape_model_new(name, dt_type_named(type));
  if (!shape)
    fprintf(stderr, "bench_gpu: there is no shape %s with type %s, or memory does not suffice\n", name, type), exit(2);
  return shape;
}

/* ---- a pass ------------------------------------------------------------------------------------------------------ */

typedef struct {
  const dt_backend_ops *ops;
  dt_weights *weights;
  dt_cache *cache;
  int vocab;
} subject;

/* Runs a text of n rows from the beginning: as a prompt, or as the rows of a tree are computed. */
static dt_status run_text(const subject *s, int n, bool as_prompt) {
  int32_t *all = room((size_t)n * 4 * sizeof *all), *token = all, *at = all + n, *zero = at + n, *one = zero + n;
  for (int i = 0; i < n; i++) token[i] = i * 7 % FEW_IDS, at[i] = i, one[i] = 1;
  dt_rows rows = leaf_rows(n, token, at, zero, at, at, one);
  rows.prompt = as_prompt;
  dt_status status = s->ops->forward(s->weights, s->cache, &rows, NULL, &err);
  free(all);
  return status;
}

/* A pass over a tree of n leaves after `prefix` positions, which wants these results of the first `wanted` leaves. */
typedef struct {
  int prefix, n, wanted;
  dt_want want;
  bool sampled;
} tree_pass;

static dt_status run_pass(const subject *s, tree_pass p) {
  enum { MOST = 288, TOP = 32 };
  static const dt_sampling nucleus = {.seed = 1, .temp = 1.0f, .top_p = 0.9f};
  static int32_t token[MOST], position[MOST], zero[MOST], slot[MOST], one[MOST], index[MOST], best[MOST],
      id[MOST * TOP];
  static float logp[MOST * TOP], own[MOST], confidence[MOST], entropy[MOST];
  for (int i = 0; i < p.n; i++)
    token[i] = i * 7 % FEW_IDS, position[i] = p.prefix, slot[i] = p.prefix + i, one[i] = 1, index[i] = i;
  dt_rows rows = leaf_rows(p.n, token, position, zero, slot, position, one);
  dt_out out = {.want = p.want,
                .n = p.wanted,
                .row = index,
                .sampling = p.sampled ? &nucleus : NULL,
                .argmax = best,
                .logp = own,
                .k = TOP,
                .vocab = s->vocab,
                .top_id = id,
                .top_logp = logp,
                .confidence = confidence,
                .entropy = entropy};
  return s->ops->forward(s->weights, s->cache, &rows, &out, &err);
}

/* ---- prompts ----------------------------------------------------------------------------------------------------- */

static void time_prompt(const subject *s, const char *shape, const char *type, int length, bool as_prompt) {
  must(run_text(s, length < 2 * CHUNK ? length : 2 * CHUNK, as_prompt)); /* loads what the passes need */
  double start = now();
  must(run_text(s, length, as_prompt));
  double seconds = now() - start;
  printf("prompt,%s,%s,%d,%s,%.1f,%.0f\n", shape, type, length, as_prompt ? "cublaslt" : "own kernels", seconds * 1e3,
         length / seconds);
}

static void prompts(const dt_backend_ops *ops, dt_backend *b, const char *name, const char *type, char **lengths,
                    int n) {
  shape_model *shape = shape_of(name, type);
  subject s = {.ops = ops, .vocab = shape->desc.shape.vocab};
  shape->desc.shape.context = MOST_CONTEXT;
  must(ops->upload(b, &shape->desc, NULL, &s.weights, &err));
  puts("prompt,shape,type,tokens,way,ms,tokens_per_s");
  for (int i = 0; i < n; i++) {
    int length = atoi(lengths[i]);
    if (length < 1) fprintf(stderr, "bench_gpu: '%s' is not a valid length\n", lengths[i]), exit(2);
    must(ops->create_cache(s.weights, 1, length, &s.cache, &err));
    for (int own = 0; own < 2; own++) time_prompt(&s, name, type, length, !own);
    ops->free_cache(s.cache);
  }
  ops->free_weights(s.weights);
  shape_model_free(shape);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The largest context whose caches fit, according to a session. */
static int largest_context(const dt_pair *pair) {
  int fits = 0, below = MOST_CONTEXT;
  while (below - fits > 1) {
    int middle = fits + (below - fits) / 2;
    *(caches_fit(pair, 1, middle, false, &err) ? &below : &fits) = middle;
  }
  return fits;
}

static double megabytes_free(const subject *s, const dt_backend *b) { return (double)s->ops->bytes_free(b) * 1e-6; }

/* Reports how a pass went. Returns false if it failed. */
static bool went(const subject *s, const dt_backend *b, const char *what, tree_pass p, dt_status status) {
  printf("memory,%s,%d,%d,%d,%d%s,%.1f,%s\n", what, p.prefix, p.n, p.wanted, (int)p.want, p.sampled ? " sampled" : "",
         megabytes_free(s, b), status ? err.message : "ran");
  return status == DT_OK;
}

static bool run_shapes(const subject *s, const dt_backend *b, int context, int most) {
  static const int prefixes[] = {0, 200, 2000, 8000, 30000, 100000}, rows[] = {1, 9, 17, 33, 65, 145, 288};
  static const dt_want wants[] = {DT_WANT_ARGMAX, DT_WANT_TOPK, DT_WANT_BOTH};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
      for (int k = 0; k < 4 && rows[j] <= most && prefixes[i] + rows[j] < context; k++) {
        tree_pass p = {prefixes[i], rows[j], k == 3 ? 1 : rows[j], wants[k % 3], k == 3};
        if (!went(s, b, "new shape", p, run_pass(s, p))) return false;
      }
  return true;
}

static int memory(const dt_backend_ops *ops, dt_backend *b, const char *name, const char *type, int most) {
  shape_model *shape = shape_of(name, type);
  subject s = {.ops = ops, .vocab = shape->desc.shape.vocab};
  shape->desc.shape.context = MOST_CONTEXT;
  must(ops->upload(b, &shape->desc, NULL, &s.weights, &err));
  dt_pair pair = {.ops = ops, .backend = b, .target = s.weights, .target_info = {.path = shape->desc.path}};
  int context = largest_context(&pair);
  printf("# %.1f MB are free; the largest context that fits is %d\n", megabytes_free(&s, b), context);
  must(ops->create_cache(s.weights, 1, target_slots(context), &s.cache, &err));
  puts("memory,pass,prefix,rows,wanted,want,mb_free,how");
  const tree_pass first = {context / 2, 1, 1, DT_WANT_ARGMAX, false};
  bool fine = went(&s, b, "first", first, run_pass(&s, first)) && run_shapes(&s, b, context, most);
  int length = context < 2 * CHUNK ? context : 2 * CHUNK;
  const tree_pass prompt = {.n = length};
  fine &= went(&s, b, "prompt", prompt, run_text(&s, length, true)); /* even after a failure */
  fine &= went(&s, b, "first again", first, run_pass(&s, first));
  ops->free_cache(s.cache);
  ops->free_weights(s.weights);
  shape_model_free(shape);
  return !fine;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Seconds to upload the model with this number of layers, and with all of its ids or only FEW_IDS. */
static double upload_seconds(const dt_backend_ops *ops, dt_backend *b, const shape_model *shape, int layers, bool all) {
  dt_model_desc d = shape->desc;
  dt_weights *w;
  d.shape.layers = layers;
  if (!all && d.shape.vocab > FEW_IDS) {
    d.shape.vocab = FEW_IDS;
    d.embed = shape_few_rows(d.embed, FEW_IDS), d.unembed = shape_few_rows(d.unembed, FEW_IDS);
  }
  double start = now();
  must(ops->upload(b, &d, NULL, &w, &err));
  double seconds = now() - start;
  ops->free_weights(w);
  return seconds;
}

static double weights_of(const dt_matrix *m) { return m->source ? (double)m->rows * m->cols : 0; }

static double weights_of_layer(const dt_layer *l) {
  const dt_matrix *all[] = {&l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down};
  double sum = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sum += weights_of(all[i]);
  return sum;
}

/* Seconds only to read the rows of a matrix, which here means to copy them from memory. */
static double read_seconds(const dt_matrix *m) {
  size_t row = dt_row_bytes(m->dtype, (size_t)m->cols);
  int most = (int)(READ_BYTES / row);
  void *to = room(READ_BYTES);
  double start = now();
  for (int r = 0, n; r < m->rows; r += n) {
    n = m->rows - r < most ? m->rows - r : most;
    must(dt_read_rows(m, r, n, to, &err));
  }
  double seconds = now() - start;
  free(to);
  return seconds;
}

static void load(const dt_backend_ops *ops, dt_backend *b, const char *name, const char *type) {
  enum { LONG = 40 }; /* seconds: if the whole takes longer, only the parts are measured */
  shape_model *shape = shape_of(name, type);
  int layers = shape->desc.shape.layers;
  const dt_matrix *unembed = &shape->desc.unembed;
  upload_seconds(ops, b, shape, 1, false); /* the device's first load takes longer */
  double one = upload_seconds(ops, b, shape, 1, false), two = upload_seconds(ops, b, shape, 2, false);
  double ids = upload_seconds(ops, b, shape, 1, true) - one, each = two - one, rest = one - each;
  double layer = weights_of_layer(shape->layer);
  printf("loading,%s,%s,a layer,%.3f,%.2f\n", name, type, each, each / layer * 1e9);
  printf("loading,%s,%s,embeddings and output,%.3f,%.2f\n", name, type, ids, ids / (2 * weights_of(unembed)) * 1e9);
  printf("loading,%s,%s,first kernels and memory,%.3f,\n", name, type, rest);
  printf("loading,%s,%s,reading the output alone,%.3f,%.2f\n", name, type, read_seconds(unembed),
         read_seconds(unembed) / weights_of(unembed) * 1e9);
  double sum = each * layers + ids + rest;
  printf("loading,%s,%s,sum of the parts,%.3f,\n", name, type, sum);
  if (sum < LONG) printf("loading,%s,%s,whole,%.3f,\n", name, type, upload_seconds(ops, b, shape, layers, true));
  shape_model_free(shape);
}

static void loading(const dt_backend_ops *ops, dt_backend *b, const char *name, char **types, int n) {
  puts("loading,shape,type,part,seconds,ns_per_weight");
  for (int i = 0; i < n; i++) load(ops, b, name, types[i]);
}

int main(int argc, char **argv) {
  dt_backend_options options = {.threads = 1};
  const char *name = "cuda";
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc > 2 && !strcmp(argv[1], "-b")) name = argv[2], argv += 2, argc -= 2;
  const char *question = argc > 3 ? argv[1] : "";
  bool asks_prompts = !strcmp(question, "prompts") && argc > 4, asks_memory = !strcmp(question, "memory") && argc == 5,
       asks_loading = !strcmp(question, "loading");
  if (!asks_prompts && !asks_memory && !asks_loading) {
    fputs(
        "usage: bench_gpu [-b BACKEND] prompts SHAPE TYPE LENGTH... | memory SHAPE TYPE ROWS | loading SHAPE TYPE...\n",
        stderr);
    return 2;
  }
  const dt_backend_ops *ops = backend_find(name, &options.variant, &err);
  if (!ops) must(err.status);
  dt_backend *b;
  must(ops->open(&options, &b, &err));
  printf("# %s\n", ops->describe(b));
  int status = 0;
  if (asks_prompts) prompts(ops, b, argv[2], argv[3], argv + 4, argc - 4);
  if (asks_memory) status = memory(ops, b, argv[2], argv[3], atoi(argv[4]));
  if (asks_loading) loading(ops, b, argv[2], argv + 3, argc - 3);
  ops->close(b);
  return status;
}
