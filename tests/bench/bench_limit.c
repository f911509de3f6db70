/* How close passes are to the limit of the machine:
 * bench_limit [-b BACKEND] [-t THREADS] [-v VARIANT] [-s SECONDS] [-q TYPE] [-w TYPE] [-c CONTEXT] [-k] [-a] [-p] [-r]
 * MODEL...
 *
 * MODEL is a folder, or the name of a shape (shapes.h: pythia-70m, pythia-2.8b, ..), which gives a model of random
 * numbers. Prints CSV with a line per model, pass, context and number of rows. A pass must read the weights except for
 * the input embedding, and the keys and values of its context. The limit is the bandwidth of a streaming sum over
 * memory by the same threads, measured before and after each model's passes; `share` is the first divided by the
 * second. A share above 1 means that the model, or a part of it, stays in a cache. All passes of a model take turns,
 * and each follows one of its kind that is not counted, so that a slow minute of the machine affects all of them
 * equally. The rows of a pass are those of a tree: a common prefix, and a path slot for each row.
 *
 *   verify   argmax of every row
 *   draft    32 candidates of every row
 *   sampled  a token of every row, sampled with top-p at temperature 1
 *   prompt   keys and values only
 *   text     on a GPU: the same rows, not marked as a prompt, so computed as those of a tree
 *   split    a verify pass of one row by operation: how much less it takes if the model has no more than 32 inner
 *            columns (a block of the type), 256 ids or one layer, or if the context has 16 positions. "matrices": qkv
 *            and output, with norms and barriers; "pass": the rest
 *
 * -b: the backend, as for dtrun --backend (cpu)
 * -s: seconds for the passes of each model (20), and the same again for the split
 * -q Q4_K, ..: the matrices of shapes have blocks of this type (F16)
 * -w q8, -w q4: weights are rounded to this type
 * -c: the longest context, more than 512 (2048); for a model at most its own
 * -k: only verify passes with caches of each type that the backend supports ("verify f16"), alternating
 * -a: the same for activations ("verify 8"), with 1 to 64 rows, and a prompt
 * -p: passes only, without the split
 * -r: only verify passes of 1, 8 and 16 rows at the longest context, and of numbers of rows around which the kernels of
 *     a GPU change */
#include "leaf_rows.h"
#include "model/model.h"
#include "pair/backends.h"
#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROWS = 512, PROMPT_ROWS = 512, MOST_REPEATS = 1000, CANDIDATES = 32, MOST_CASES = 32, MOST_LAYERS = 256 };
enum { FEW_INNER = 32, FEW_IDS = 256, FEW_POSITIONS = 16 };

static dt_error err;
static const char *weights_dtype; /* the type to which weights are rounded; NULL: they are not */
static int longest = 2048;        /* longest context */

static void must(dt_status status) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_limit: %s\n", err.message);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* A model on the backend, with a cache of one sequence. */
typedef struct {
  const dt_backend_ops *ops;
  dt_weights *weights;
  dt_cache *cache;
  int vocab, context;
} subject;

/* One kind of pass, and the seconds of each of its runs. A prompt begins at position 0. */
typedef struct {
  const char *pass;
  const subject *on;
  dt_want want;
  bool prompt, sampled;
  int context, rows;
  int n;
  double took[MOST_REPEATS];
} pass_case;

static pass_case pass_of(const char *pass, const subject *on, dt_want want, int context, int rows) {
  return (pass_case){.pass = pass, .on = on, .want = want, .context = context, .rows = rows};
}

static void run(const pass_case *c) {
  static const dt_sampling nucleus = {.seed = 1, .temp = 1.0f, .top_p = 0.9f};
  int32_t token[MOST_ROWS], position[MOST_ROWS], prefix[MOST_ROWS], slot[MOST_ROWS], one[MOST_ROWS];
  int32_t zero[MOST_ROWS] = {0}, index[MOST_ROWS], best[MOST_ROWS];
  static int32_t id[MOST_ROWS * CANDIDATES];
  static float logp[MOST_ROWS * CANDIDATES], confidence[MOST_ROWS], entropy[MOST_ROWS];
  for (int i = 0; i < c->rows; i++) {
    token[i] = i * 7 % FEW_IDS, index[i] = i, one[i] = 1, slot[i] = c->context + i;
    prefix[i] = position[i] = c->want == DT_WANT_NOTHING ? c->context + i : c->context;
  }
  dt_rows rows = leaf_rows(c->rows, token, position, zero, slot, prefix, one);
  rows.prompt = c->prompt;
  dt_out out = {.want = c->want,
                .n = c->rows,
                .row = index,
                .sampling = c->sampled ? &nucleus : NULL,
                .argmax = best,
                .k = CANDIDATES,
                .vocab = c->on->vocab,
                .top_id = id,
                .top_logp = logp,
                .confidence = confidence,
                .entropy = entropy};
  must(c->on->ops->forward(c->on->weights, c->on->cache, &rows, &out, &err));
}

static subject subject_open(const dt_backend_ops *ops, dt_backend *backend, const dt_model_desc *d,
                            const char *activations) {
  subject s = {.ops = ops, .vocab = d->shape.vocab, .context = d->shape.context < longest ? d->shape.context : longest};
  must(ops->upload(backend, d, &(dt_holding){.dtype = weights_dtype, .activations = activations}, &s.weights, &err));
  must(ops->create_cache(s.weights, 1, longest + MOST_ROWS, &s.cache, &err));
  for (int at = 0; at < s.context; at += PROMPT_ROWS) {
    int rows = s.context - at < PROMPT_ROWS ? s.context - at : PROMPT_ROWS;
    pass_case prompt = pass_of("prompt", &s, DT_WANT_NOTHING, at, rows);
    prompt.prompt = at == 0;
    run(&prompt);
  }
  return s;
}

static void subject_close(subject *s) {
  s->ops->free_cache(s->cache);
  s->ops->free_weights(s->weights);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Runs all cases alternately until the time is over, at least three times; if `seconds` is 0, once, without warming up.
 * Afterwards the times of each case are sorted. */
static void measure(pass_case *cases, int count, double seconds) {
  double end = now() + seconds;
  int least = seconds > 0 ? 3 : 1;
  for (int round = 0; round < MOST_REPEATS && (round < least || now() < end); round++)
    for (int i = 0; i < count; i++) {
      pass_case *c = &cases[i];
      if (seconds > 0) run(c);
      double start = now();
      run(c);
      c->took[c->n++] = now() - start;
    }
  for (int i = 0; i < count; i++) qsort(cases[i].took, (size_t)cases[i].n, sizeof(double), by_size);
}

static double median(const pass_case *c) { return c->took[c->n / 2]; }

/* ---- the lines --------------------------------------------------------------------------------------------------- */

static double bytes_of(const dt_matrix *m) {
  return m->source ? (double)m->rows * m->cols *
                         (weights_dtype ? 1.0 : (double)dt_row_bytes(m->dtype, (size_t)m->cols) / m->cols)
                   : 0;
}

/* The bytes of the matrices; norms, biases and scales are too small to matter. */
static double weight_bytes(const dt_model_desc *d) {
  double sum = bytes_of(&d->unembed);
  for (int i = 0; i < d->shape.layers; i++) {
    const dt_layer *l = &d->layer[i];
    const dt_matrix *all[] = {&l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) sum += bytes_of(all[j]);
  }
  return sum;
}

static double number_bytes(const char *cache_dtype) {
  return strcmp(cache_dtype, "f32") == 0 ? 4 : strcmp(cache_dtype, "q8") == 0 ? 34.0 / 32 : 2;
}

static void print_passes(const char *name, const dt_model_desc *d, const pass_case *cases, int count, double bandwidth,
                         double key_bytes) {
  for (int i = 0; i < count; i++) {
    const pass_case *c = &cases[i];
    double bytes =
        weight_bytes(d) + 2 * key_bytes * d->shape.layers * d->shape.kv_heads * d->shape.head_dim * c->context;
    if (c->want == DT_WANT_NOTHING) bytes -= bytes_of(&d->unembed);
    double rate = bytes / median(c);
    printf("%s,%s,%d,%d,%d,%.1f,%.1f,%.2f,%.1f,%.2f,%.2f\n", name, c->pass, c->context, c->rows, c->n, median(c) * 1e6,
           c->took[0] * 1e6, bytes * 1e-6, c->rows / median(c), rate * 1e-9, rate / bandwidth);
  }
}

static void time_passes(const char *name, const dt_model_desc *d, const subject *s, double bandwidth, double key_bytes,
                        double seconds) {
  static pass_case cases[MOST_CASES];
  const int contexts[] = {128, 256, 512, 1024, longest - 1}, rows_of[] = {1, 2, 4, 8, 16, 32, 64, 128, 257};
  int count = 0;
  memset(cases, 0, sizeof cases);
  for (int i = 0; i < 9; i++) cases[count++] = pass_of("verify", s, DT_WANT_ARGMAX, 512, rows_of[i]);
  for (int rows = 1; rows <= 16; rows *= 2) cases[count++] = pass_of("draft", s, DT_WANT_TOPK, 512, rows);
  for (int i = 0; i < 5; i++)
    if (contexts[i] < s->context && contexts[i] != 512)
      for (int rows = 1; rows <= 16; rows *= 16)
        cases[count++] = pass_of("verify", s, DT_WANT_ARGMAX, contexts[i], rows);
  for (int rows = 1; rows <= 8; rows *= 8) {
    cases[count] = pass_of("sampled", s, DT_WANT_ARGMAX, 512, rows);
    cases[count++].sampled = true;
  }
  cases[count] = pass_of("prompt", s, DT_WANT_NOTHING, 0, PROMPT_ROWS);
  cases[count++].prompt = true;
  if (strcmp(s->ops->name, "cpu")) cases[count++] = pass_of("text", s, DT_WANT_NOTHING, 0, PROMPT_ROWS);
  measure(cases, count, seconds);
  print_passes(name, d, cases, count, bandwidth, key_bytes);
}

static void time_rows(const char *name, const dt_model_desc *d, const subject *s, double bandwidth, double key_bytes,
                      double seconds) {
  static pass_case cases[MOST_CASES];
  static const int few[] = {1, 8, 16}, rows[] = {1, 2, 4, 8, 16, 32, 64, 65, 80, 96, 128, 257};
  enum { FEW = sizeof few / sizeof *few, ROWS = sizeof rows / sizeof *rows };
  for (int i = 0; i < FEW; i++) cases[i] = pass_of("verify", s, DT_WANT_ARGMAX, s->context - 1, few[i]);
  measure(cases, FEW, seconds / 3);
  print_passes(name, d, cases, FEW, bandwidth, key_bytes);
  for (int i = 0; i < ROWS; i++) cases[i] = pass_of("verify", s, DT_WANT_ARGMAX, 512, rows[i]);
  measure(cases, ROWS, seconds);
  print_passes(name, d, cases, ROWS, bandwidth, key_bytes);
}

/* Compares types of caches, with few rows at long contexts, where caches matter most. The name of the type follows the
 * name of the pass. */
static void compare_caches(const char *name, const dt_model_desc *d, const dt_backend_ops *ops,
                           dt_backend_options options, double seconds) {
  static pass_case cases[MOST_CASES];
  const int contexts[] = {longest / 4, longest / 2, longest - 1};
  enum { TYPES = 3 };
  dt_backend *backend[TYPES] = {NULL};
  subject on[TYPES];
  char pass[TYPES][32];
  int types = 0;
  memset(cases, 0, sizeof cases);
  for (; types < TYPES && ops->cache_dtypes[types]; types++) {
    options.cache_dtype = ops->cache_dtypes[types];
    snprintf(pass[types], sizeof pass[types], "verify %s", options.cache_dtype);
    must(ops->open(&options, &backend[types], &err));
    on[types] = subject_open(ops, backend[types], d, NULL);
  }
  int count = 0;
  for (int type = 0; type < types; type++)
    for (int i = 0; i < 3; i++)
      for (int rows = 1; rows <= 8; rows *= 8)
        if (contexts[i] < on[type].context)
          cases[count++] = pass_of(pass[type], &on[type], DT_WANT_ARGMAX, contexts[i], rows);

  double bandwidth = ops->read_bandwidth(backend[0]);
  measure(cases, count, seconds);
  for (int type = 0; type < types; type++) {
    print_passes(name, d, cases + type * count / types, count / types, bandwidth,
                 number_bytes(ops->cache_dtypes[type]));
    subject_close(&on[type]);
    ops->close(backend[type]);
  }
}

/* Compares definitions of activations. The name of the definition follows the name of the pass. */
static void compare_activations(const char *name, const dt_model_desc *d, const dt_backend_ops *ops,
                                dt_backend *backend, double seconds) {
  static pass_case cases[MOST_CASES];
  subject on[2];
  char pass[2][2][32];
  int count = 0, kinds = 0;
  memset(cases, 0, sizeof cases);
  for (; kinds < 2 && ops->activations[kinds]; kinds++) {
    on[kinds] = subject_open(ops, backend, d, ops->activations[kinds]);
    snprintf(pass[kinds][0], sizeof pass[kinds][0], "verify %s", ops->activations[kinds]);
    snprintf(pass[kinds][1], sizeof pass[kinds][1], "prompt %s", ops->activations[kinds]);
    for (int rows = 1; rows <= 64; rows *= 2)
      cases[count++] = pass_of(pass[kinds][0], &on[kinds], DT_WANT_ARGMAX, 512, rows);
    cases[count] = pass_of(pass[kinds][1], &on[kinds], DT_WANT_NOTHING, 0, PROMPT_ROWS);
    cases[count++].prompt = true;
  }
  double bandwidth = ops->read_bandwidth(backend);
  measure(cases, count, seconds);
  print_passes(name, d, cases, count, bandwidth, number_bytes(ops->cache_dtypes[0]));
  for (int i = 0; i < kinds; i++) subject_close(&on[i]);
}

/* A model with less of something. Its rows are views of the whole model's rows; their contents do not matter here. */
typedef struct {
  dt_model_desc desc;
  dt_layer layer[MOST_LAYERS];
} cut_model;

static void cut_inner(cut_model *m) {
  int block = dt_type_of(m->layer[0].down.dtype)->numbers, inner = block > FEW_INNER ? block : FEW_INNER;
  m->desc.shape.inter = inner;
  for (int i = 0; i < m->desc.shape.layers; i++) {
    dt_layer *l = &m->layer[i];
    l->up = shape_few_rows(l->up, inner), l->up_bias = shape_few_rows(l->up_bias, inner);
    l->gate = shape_few_rows(l->gate, inner), l->gate_bias = shape_few_rows(l->gate_bias, inner);
    l->down.cols = inner;
  }
}

static void cut_ids(cut_model *m) {
  m->desc.shape.vocab = FEW_IDS;
  m->desc.embed = shape_few_rows(m->desc.embed, FEW_IDS), m->desc.unembed = shape_few_rows(m->desc.unembed, FEW_IDS);
}

static void cut_layers(cut_model *m) { m->desc.shape.layers = 1; }

/* How many seconds less a pass of one row takes on the cut model, alternating with the whole one. *whole: the seconds
 * on the whole model. */
static double saved_by(void (*cut)(cut_model *), dt_backend *backend, const dt_model_desc *d, const subject *s,
                       double seconds, double *whole) {
  static cut_model m;
  static pass_case cases[2];
  m.desc = *d;
  memcpy(m.layer, d->layer, (size_t)d->shape.layers * sizeof *d->layer);
  m.desc.layer = m.layer;
  cut(&m);
  subject less = subject_open(s->ops, backend, &m.desc, NULL);
  cases[0] = pass_of("split", s, DT_WANT_ARGMAX, 512, 1);
  cases[1] = pass_of("split", &less, DT_WANT_ARGMAX, 512, 1);
  measure(cases, 2, seconds);
  subject_close(&less);
  *whole = median(&cases[0]);
  return median(&cases[0]) - median(&cases[1]);
}

static void split_pass(const char *name, dt_backend *backend, const dt_model_desc *d, const subject *s,
                       double seconds) {
  static pass_case cases[2];
  if (d->shape.layers < 2 || d->shape.layers > MOST_LAYERS || s->context <= 512) return;
  double whole;
  double mlp = saved_by(cut_inner, backend, d, s, seconds / 4, &whole);
  double logits = saved_by(cut_ids, backend, d, s, seconds / 4, &whole);
  double layers = saved_by(cut_layers, backend, d, s, seconds / 4, &whole) * d->shape.layers / (d->shape.layers - 1);
  cases[0] = pass_of("split", s, DT_WANT_ARGMAX, 512, 1);
  cases[1] = pass_of("split", s, DT_WANT_ARGMAX, FEW_POSITIONS, 1);
  measure(cases, 2, seconds / 4);
  double attention = median(&cases[0]) - median(&cases[1]);
  const struct {
    const char *operation;
    double seconds;
  } part[] = {{"mlp", mlp},
              {"matrices", layers - mlp - attention},
              {"attention", attention},
              {"logits", logits},
              {"pass", whole - layers - logits}};
  for (size_t i = 0; i < sizeof part / sizeof *part; i++)
    printf("%s,split %s,512,1,,%.1f,,,,,%.2f\n", name, part[i].operation, part[i].seconds * 1e6,
           part[i].seconds / whole);
}

static void time_all(const char *name, const dt_model_desc *d, const dt_backend_ops *ops, dt_backend *backend,
                     double seconds, bool splits, bool rows_only) {
  subject s = subject_open(ops, backend, d, NULL);
  double bandwidth = ops->read_bandwidth(backend);
  (rows_only ? time_rows : time_passes)(name, d, &s, bandwidth, number_bytes(ops->cache_dtypes[0]), seconds);
  printf("# streaming sum %.1f GB/s before the passes of %s, %.1f GB/s after\n", bandwidth * 1e-9, name,
         ops->read_bandwidth(backend) * 1e-9);
  if (splits) split_pass(name, backend, d, &s, seconds);
  subject_close(&s);
}

static void describe_processor(void) {
  char line[256], name[256] = "unknown processor";
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "model name : %255[^\n]", name) == 1) break;
  if (file) fclose(file);
  printf("# %s, %ld cores, last-level cache of %ld MB (as reported)\n", name, sysconf(_SC_NPROCESSORS_ONLN),
         sysconf(_SC_LEVEL3_CACHE_SIZE) >> 20);
}

int main(int argc, char **argv) {
  dt_backend_options options = {.variant = NULL, .threads = 2};
  const char *backend_name = "cpu", *variant = NULL;
  setvbuf(stdout, NULL, _IOLBF, 0); /* if the program is killed, the lines so far are not lost */
  double seconds = 20;
  dt_dtype shapes_dtype = DT_F16;
  bool caches = false, activations = false, splits = true, rows_only = false;
  for (int option; (option = getopt(argc, argv, "b:t:v:s:q:w:c:kapr")) != -1;) {
    if (option == 't') options.threads = atoi(optarg);
    if (option == 'b') backend_name = optarg;
    if (option == 'v') variant = optarg;
    if (option == 's') seconds = atof(optarg);
    if (option == 'q') shapes_dtype = dt_type_named(optarg);
    if (option == 'w') weights_dtype = optarg;
    if (option == 'c') longest = atoi(optarg);
    if (option == 'k') caches = true;
    if (option == 'a') activations = true;
    if (option == 'p') splits = false;
    if (option == 'r') rows_only = true, splits = false;
    if (option == '?') optind = argc;
  }
  if (optind >= argc || shapes_dtype == DT_TYPES || longest <= 512) {
    fprintf(stderr, "usage: bench_limit [-b BACKEND] [-t THREADS] [-v VARIANT] [-s SECONDS] [-q TYPE] [-w TYPE] "
                    "[-c CONTEXT] [-k] [-a] [-p] [-r] MODEL...\n");
    return 2;
  }
  const dt_backend_ops *ops = backend_find(backend_name, &options.variant, &err);
  if (!ops) must(err.status);
  if (variant) options.variant = variant;
  dt_backend *backend;
  must(ops->open(&options, &backend, &err));
  describe_processor();
  printf("# %s, %d threads, weights %s\n", ops->describe(backend), options.threads,
         weights_dtype ? weights_dtype : "unchanged");
  printf("model,pass,context,rows,repeats,median_us,best_us,read_mb,rows_per_s,gb_per_s,share\n");
  for (; optind < argc; optind++) {
    const char *slash = strrchr(argv[optind], '/'), *name = slash && slash[1] ? slash + 1 : argv[optind];
    shape_model *shape = shape_model_new(argv[optind], shapes_dtype);
    model *m = NULL;
    if (!shape) must(model_open(argv[optind], &m, &err));
    dt_model_desc d = shape ? shape->desc : *model_desc(m);
    if (shape) d.shape.context = longest;
    if (caches)
      compare_caches(name, &d, ops, options, seconds);
    else if (activations)
      compare_activations(name, &d, ops, backend, seconds);
    else
      time_all(name, &d, ops, backend, seconds, splits, rows_only);
    if (shape)
      shape_model_free(shape);
    else
      model_close(m);
  }
  ops->close(backend);
  return 0;
}
