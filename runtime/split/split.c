/* A target on several backends: see split.h. */
#include "split/split.h"
#include "system/min_max.h"
#include "tree/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST, PARTS = 1 + SPLIT_DEVICES };

struct dt_backend {
  const dt_backend_ops *ops[PARTS]; /* NULL: there are fewer devices */
  dt_backend *part[PARTS];
  int device_layers, host_experts;
  char description[1200];
};

/* A part without layers is NULL. A draft is whole on one device. */
struct dt_weights {
  dt_backend *backend;
  dt_weights *part[PARTS];
  dt_weights *halves;   /* on the host: the second halves of the devices' layers that are apart; NULL: there are none */
  int first[PARTS + 1]; /* part i has the layers first[i]..first[i + 1] - 1 */
  int hidden, layers, chosen;
  float *stream; /* [rows][hidden] what leaves a part in a pass */
  int rows;
};

struct dt_cache {
  dt_weights *weights;
  dt_cache *part[PARTS];
  dt_cache *halves; /* without rows: a pass needs one */
};

struct dt_snapshot {
  dt_backend *backend;
  dt_snapshot *part[PARTS];
};

/* Calls a function of a part's backend. */
#define OF(b, i, call) (b)->ops[i]->call

/* ---- the backends ------------------------------------------------------------------------------------------------ */

/* Types that both backends have, by the device's names. */
static const char *const CACHE_DTYPES[] = {"16-bit", "q8", NULL};
static const char *const NONE[] = {NULL};

static bool all_present(void) { return true; }

static void close_all(dt_backend *b) {
  for (int i = 0; i < PARTS; i++)
    if (b->part[i]) OF(b, i, close(b->part[i]));
  free(b);
}

static dt_status open_all(const dt_backend_options *options, dt_backend **out, dt_error *err) {
  dt_backend *b = calloc(1, sizeof *b);
  if (!b) return dt_fail_memory(err, "a backend", sizeof *b);
  const bool rounds = options->cache_dtype && !strcmp(options->cache_dtype, "q8");
  dt_status status = DT_OK;
  b->device_layers = options->device_layers, b->host_experts = options->host_experts;
  for (int i = 0; i <= dt_max(options->devices, 1) && status == DT_OK; i++) {
    dt_backend_options of = *options;
    b->ops[i] = i == HOST ? options->host : options->device;
    if (i == HOST) of.cache_dtype = rounds ? "q8" : NULL; /* the host's first type has 16 bits */
    of.packed = NULL;                                     /* packed weights are those of a whole model */
    of.device_index = i - 1;
    status = OF(b, i, open(&of, &b->part[i], err));
  }
  if (status == DT_OK)
    *out = b;
  else
    close_all(b);
  return status;
}

dt_status split_check_devices(int gpus, dt_error *err) {
  if (gpus >= 0 && gpus <= SPLIT_DEVICES) return DT_OK;
  return dt_fail(err, DT_EINPUT, "gpus: %d is out of range: 1..%d", gpus, SPLIT_DEVICES);
}

void split_put_layers(dt_backend *b, int device_layers) { b->device_layers = device_layers; }

static const char *describe_all(const dt_backend *b) { return b->description; }

static bool is_device(const dt_backend *b, int i) { return i > HOST && i < PARTS && b->part[i]; }

static size_t split_bytes_free(const dt_backend *b) {
  size_t all = 0;
  for (int i = 1; is_device(b, i); i++) {
    const size_t of = OF(b, i, bytes_free(b->part[i]));
    all = of == SIZE_MAX || all == SIZE_MAX ? SIZE_MAX : all + of;
  }
  return all;
}

static double split_read_bandwidth(dt_backend *b) { return OF(b, 1, read_bandwidth(b->part[1])); }

static dt_memory memory_of_all(const dt_backend *b) {
  const dt_memory host = OF(b, HOST, memory(b->part[HOST]));
  dt_memory all = {.host = host.weights + host.caches + host.scratch};
  for (int i = 1; is_device(b, i); i++) {
    const dt_memory of = OF(b, i, memory(b->part[i]));
    all.weights += of.weights, all.caches += of.caches, all.scratch += of.scratch, all.host += of.host;
    all.on_device = of.on_device;
  }
  return all;
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

/* Divides `layers` among the devices in proportion to their free memory; first[1] is set. */
static void divide(const dt_backend *b, int layers, int *first) {
  double of[PARTS] = {0}, all = 0, before = 0;
  for (int i = 1; is_device(b, i); i++) all += of[i] = (double)OF(b, i, bytes_free(b->part[i]));
  for (int i = 1; i < PARTS; i++) {
    before += of[i];
    first[i + 1] = first[1] + (all > 0 ? (int)(layers * (before / all) + 0.5) : layers);
  }
}

/* The device on which a draft is. */
static int emptiest(const dt_backend *b) {
  int best = 1;
  for (int i = 2; is_device(b, i); i++)
    if (OF(b, i, bytes_free(b->part[i])) > OF(b, best, bytes_free(b->part[best]))) best = i;
  return best;
}

/* Plans which part has which layers. A target (whose description has the path of its files) is split, a draft is not.
 */
static void plan(const dt_backend *b, const dt_model_desc *d, int first[PARTS + 1]) {
  const int layers = d->shape.layers, on_devices = b->device_layers ? dt_min(b->device_layers, layers) : layers;
  first[HOST] = 0, first[1] = d->path ? layers - on_devices : 0;
  if (d->path) {
    divide(b, on_devices, first);
    return;
  }
  const int on = emptiest(b);
  for (int i = 1; i <= PARTS; i++) first[i] = i > on ? layers : 0;
}

/* Whether the device's layer `l` has its experts on the host. */
static bool is_apart(const dt_backend *b, const dt_model_desc *d, int l) {
  return d->path && l < b->host_experts && d->layer[l].expert;
}

/* Refuses to cut a model between a layer and the keys that it reads. */
static dt_status check_cut(const dt_model_desc *d, int first, dt_error *err) {
  for (int l = first; l < d->shape.layers; l++)
    if (d->layer[l].keys_of && d->layer[l].keys_of <= first)
      return dt_fail(err, DT_EINPUT,
                     "gpu_layers: layer %d reads the keys of layer %d, so that both must be on one backend: at most %d "
                     "layers or at least %d on the GPU",
                     l + 1, d->layer[l].keys_of, d->shape.layers - l - 1, d->shape.layers - d->layer[l].keys_of + 1);
  return DT_OK;
}

static bool any_apart(const dt_backend *b, const dt_model_desc *d, int first) {
  bool any = false;
  for (int l = first; l < d->shape.layers; l++) any |= is_apart(b, d, l);
  return any;
}

bool split_is_whole(const dt_backend *b, const dt_model_desc *d) {
  int first[PARTS + 1];
  plan(b, d, first);
  return first[1] == 0 && first[2] == d->shape.layers && !b->host_experts;
}

/* Refuses a model whose parts need something of each other apart from the stream. */
static dt_status check_split(const dt_backend *b, const dt_model_desc *d, const int *first, dt_error *err) {
  const bool moves_experts = b->host_experts && d->path;
  dt_status status = DT_OK;
  bool splits = moves_experts;
  for (int i = 0; i < PARTS; i++) splits |= first[i] > 0 && first[i] < d->shape.layers;
  if (splits && d->shape.inputs)
    return dt_fail(err, DT_EINPUT,
                   "gpu_layers: each layer of this model reads inputs of its own, so that two backends "
                   "cannot share it: --backend cpu, or --backend cuda");
  if (moves_experts && !any_apart(b, d, first[1]))
    return dt_fail(err, DT_EINPUT, "cpu_experts: %s, so that the option has no effect",
                   d->shape.experts ? "the layers on the GPU that it names have no experts" : "the model has none");
  for (int i = 0; i < PARTS && status == DT_OK; i++) status = check_cut(d, first[i], err);
  return status;
}

/* A description of some layers of a model. */
typedef struct {
  dt_model_desc desc;
  dt_layer *layer; /* owned */
} some_layers;

/* Describes the layers first..end-1, on the host or on a device. Layers that read the keys of others count these from
 * the first one. */
static dt_status describe_layers(const dt_backend *b, const dt_model_desc *whole, int first, int end, bool on_device,
                                 some_layers *out, dt_error *err) {
  const size_t bytes = (size_t)(end - first) * sizeof(dt_layer);
  *out = (some_layers){*whole, malloc(bytes)};
  if (!out->layer) return dt_fail_memory(err, "layers of a model", bytes);
  memcpy(out->layer, whole->layer + first, bytes);
  for (int l = 0; l < end - first; l++) {
    if (out->layer[l].keys_of) out->layer[l].keys_of -= first;
    if (on_device) out->layer[l].apart |= is_apart(b, whole, first + l);
  }
  out->desc.layer = out->layer, out->desc.shape.layers = end - first, out->desc.path = NULL;
  out->desc.part = (dt_part){.enters = first > 0, .leaves = end < whole->shape.layers};
  return DT_OK;
}

/* What the devices need. The host's memory is not limited here. */
static dt_status account_all(dt_backend *b, const dt_model_desc *d, int sequences, int slots, dt_memory *out,
                             dt_error *err) {
  int first[PARTS + 1];
  plan(b, d, first);
  *out = (dt_memory){.on_device = true};
  dt_status status = check_split(b, d, first, err);
  for (int i = 1; is_device(b, i) && status == DT_OK && b->ops[i]->account; i++) {
    some_layers of = {0};
    dt_memory needs = {0};
    if (first[i] == first[i + 1]) continue;
    status = describe_layers(b, d, first[i], first[i + 1], true, &of, err);
    if (status == DT_OK) status = OF(b, i, account(b->part[i], &of.desc, sequences, slots, &needs, err));
    out->weights += needs.weights, out->caches += needs.caches, out->scratch += needs.scratch, out->host += needs.host;
    free(of.layer);
  }
  return status;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static void split_free_weights(dt_weights *w) {
  for (int i = 0; i < PARTS; i++)
    if (w->part[i]) OF(w->backend, i, free_weights(w->part[i]));
  if (w->halves) OF(w->backend, HOST, free_weights(w->halves));
  free(w->stream);
  free(w);
}

static dt_status upload_part(dt_weights *w, int i, const dt_model_desc *d, const dt_holding *how, dt_error *err) {
  const dt_backend *b = w->backend;
  some_layers of;
  if (w->first[i] == w->first[i + 1]) return DT_OK;
  dt_status status = describe_layers(b, d, w->first[i], w->first[i + 1], i != HOST, &of, err);
  if (status == DT_OK) status = OF(b, i, upload(b->part[i], &of.desc, how, &w->part[i], err));
  free(of.layer);
  return status;
}

static dt_status upload_halves(dt_weights *w, const dt_model_desc *d, const dt_holding *how, dt_error *err) {
  const dt_backend *b = w->backend;
  some_layers of;
  if (!any_apart(b, d, w->first[1])) return DT_OK;
  dt_status status = describe_layers(b, d, 0, d->shape.layers, true, &of, err);
  for (int l = 0; status == DT_OK && l < w->first[1]; l++) of.layer[l].apart = false;
  of.desc.part = (dt_part){.enters = true, .leaves = true, .halves = true};
  if (status == DT_OK) status = OF(b, HOST, upload(b->part[HOST], &of.desc, how, &w->halves, err));
  free(of.layer);
  return status;
}

/* Names the devices first: a host that waits for them is not busy with something else. */
static void name_parts(const dt_weights *w) {
  dt_backend *b = w->backend;
  char *text = b->description;
  const size_t size = sizeof b->description;
  size_t used = 0;
  const char *host = OF(b, HOST, describe(b->part[HOST]));
  for (int i = 1; i < PARTS; i++) {
    if (!w->part[i]) continue;
    used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", OF(b, i, describe(b->part[i])));
    if (w->first[i + 1] - w->first[i] < w->layers)
      used += (size_t)snprintf(text + used, size - used, " (layers %d to %d)", w->first[i] + 1, w->first[i + 1]);
  }
  if (w->halves)
    used += (size_t)snprintf(text + used, size - used, " with experts of layers %d to %d on %s", w->first[1] + 1,
                             dt_min(b->host_experts, w->layers), host);
  if (w->part[HOST]) snprintf(text + used, size - used, " after %s (layers 1 to %d)", host, w->first[1]);
}

static dt_status split_upload(dt_backend *b, const dt_model_desc *d, const dt_holding *how, dt_weights **out,
                              dt_error *err) {
  dt_weights *w = calloc(1, sizeof *w);
  if (!w) return dt_fail_memory(err, "a model", sizeof *w);
  *w = (dt_weights){.backend = b, .hidden = d->shape.hidden, .layers = d->shape.layers, .chosen = d->shape.chosen};
  plan(b, d, w->first);
  dt_status status = check_split(b, d, w->first, err);
  for (int i = 0; i < PARTS && status == DT_OK; i++) status = upload_part(w, i, d, how, err);
  if (status == DT_OK) status = upload_halves(w, d, how, err);
  if (status != DT_OK) {
    split_free_weights(w);
    return status;
  }
  if (d->path) name_parts(w);
  *out = w;
  return DT_OK;
}

/* The part that has all layers; 0: there is none. */
static int whole_part(const dt_weights *w) {
  for (int i = 1; i < PARTS; i++)
    if (w->first[i + 1] - w->first[i] == w->layers) return i;
  return 0;
}

/* A head reads streams of its target, which must be on one device. */
static dt_status split_upload_head(dt_backend *b, const dt_head_desc *head, const dt_holding *how, dt_weights *target,
                                   dt_weights **out, dt_error *err) {
  const int on = whole_part(target);
  if (!on || !b->ops[on]->upload_head)
    return dt_fail(err, DT_EINPUT,
                   "head: it reads streams of all layers of its target, which must then be on one GPU (or --backend "
                   "cpu)");
  dt_weights *w = calloc(1, sizeof *w);
  if (!w) return dt_fail_memory(err, "a head", sizeof *w);
  *w = (dt_weights){.backend = b, .layers = 1};
  for (int i = on; i < PARTS; i++) w->first[i + 1] = 1;
  dt_status status = OF(b, on, upload_head(b->part[on], head, how, target->part[on], &w->part[on], err));
  if (status == DT_OK)
    *out = w;
  else
    split_free_weights(w);
  return status;
}

static const char *split_weight_dtype(const dt_weights *w) {
  const char *all = w->halves ? OF(w->backend, HOST, weight_dtype(w->halves)) : NULL;
  for (int i = 0; i < PARTS; i++) {
    const char *of = w->part[i] ? OF(w->backend, i, weight_dtype(w->part[i])) : all;
    all = !all || (of && !strcmp(of, all)) ? of : "mixed";
  }
  return all;
}

static const char *split_weight_activations(const dt_weights *w) {
  const dt_weights *on_host = w->part[HOST] ? w->part[HOST] : w->halves;
  return on_host ? OF(w->backend, HOST, weight_activations(on_host)) : NULL;
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

/* Sizes are those on the devices, where memory is scarce. */
static size_t split_cache_bytes(const dt_weights *w, int slots) {
  size_t all = 0;
  for (int i = 1; i < PARTS; i++)
    if (w->part[i]) all += OF(w->backend, i, cache_bytes(w->part[i], slots));
  return all;
}

static size_t split_scratch_bytes(const dt_weights *w, int sequences, int slots) {
  size_t all = 0;
  for (int i = 1; i < PARTS; i++)
    if (w->part[i] && w->backend->ops[i]->scratch_bytes)
      all += OF(w->backend, i, scratch_bytes(w->part[i], sequences, slots));
  return all;
}

static void split_free_cache(dt_cache *c) {
  if (!c) return;
  for (int i = 0; i < PARTS; i++)
    if (c->part[i]) OF(c->weights->backend, i, free_cache(c->part[i]));
  if (c->halves) OF(c->weights->backend, HOST, free_cache(c->halves));
  free(c);
}

static dt_status split_create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  dt_cache *c = calloc(1, sizeof *c);
  if (!c) return dt_fail_memory(err, "a cache", sizeof *c);
  c->weights = w;
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++)
    if (w->part[i]) status = OF(w->backend, i, create_cache(w->part[i], sequences, slots, &c->part[i], err));
  if (w->halves && status == DT_OK)
    status = OF(w->backend, HOST, create_cache(w->halves, sequences, slots, &c->halves, err));
  if (status == DT_OK)
    *out = c;
  else
    split_free_cache(c);
  return status;
}

static dt_status move_rows(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++)
    if (c->part[i]) status = OF(c->weights->backend, i, move(c->part[i], sequence, from, to, n, err));
  return status;
}

/* A part may keep fewer rows than another one; all then keep none. */
static int keep_rows(dt_cache *c, int sequence, int rows) {
  const dt_backend *b = c->weights->backend;
  int kept = rows;
  for (int i = 0; i < PARTS; i++)
    if (c->part[i] && b->ops[i]->keep) kept = OF(b, i, keep(c->part[i], sequence, kept));
  for (int i = 0; i < PARTS && kept < rows; i++)
    if (c->part[i] && b->ops[i]->keep) OF(b, i, keep(c->part[i], sequence, kept));
  return kept;
}

static void split_free_snapshot(dt_snapshot *s) {
  if (!s) return;
  for (int i = 0; i < PARTS; i++)
    if (s->part[i]) OF(s->backend, i, free_snapshot(s->part[i]));
  free(s);
}

static dt_status copy_rows(const dt_cache *c, int sequence, int n, dt_snapshot **out, dt_error *err) {
  dt_snapshot *s = calloc(1, sizeof *s);
  if (!s) return dt_fail_memory(err, "a snapshot", sizeof *s);
  s->backend = c->weights->backend;
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++)
    if (c->part[i]) status = OF(s->backend, i, snapshot(c->part[i], sequence, n, &s->part[i], err));
  if (status == DT_OK)
    *out = s;
  else
    split_free_snapshot(s);
  return status;
}

static dt_status restore_rows(dt_cache *c, int sequence, const dt_snapshot *s, dt_error *err) {
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++) {
    if (!c->part[i] != !s->part[i]) return dt_fail(err, DT_EINPUT, "restore: the snapshot belongs to another model");
    if (c->part[i]) status = OF(s->backend, i, restore(c->part[i], sequence, s->part[i], err));
  }
  return status;
}

/* The bytes of the slot in each part, one after the other. */
static dt_status split_read_slot(const dt_cache *c, int sequence, int slot, void **bytes, size_t *len, dt_error *err) {
  char *all = NULL;
  *len = 0;
  for (int i = 0; i < PARTS; i++) {
    void *of = NULL;
    size_t n = 0;
    dt_status status =
        c->part[i] ? OF(c->weights->backend, i, read_slot(c->part[i], sequence, slot, &of, &n, err)) : DT_OK;
    char *more = status == DT_OK && n ? realloc(all, *len + n) : all;
    if (status == DT_OK && n && !more) status = dt_fail_memory(err, "a slot", *len + n);
    if (status == DT_OK && n) memcpy(more + *len, of, n), *len += n;
    all = more ? more : all;
    free(of);
    if (status != DT_OK) return free(all), status;
  }
  *bytes = all;
  return DT_OK;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static dt_status make_room(dt_weights *w, int rows, dt_error *err) {
  if (rows <= w->rows) return DT_OK;
  const size_t bytes = (size_t)rows * (size_t)w->hidden * sizeof *w->stream;
  float *stream = realloc(w->stream, bytes);
  if (!stream) return dt_fail_memory(err, "the streams of a pass", bytes);
  w->stream = stream, w->rows = rows;
  return DT_OK;
}

/* A pass of a part. */
typedef struct {
  dt_cache *c;
  const dt_rows *rows;
  const dt_out *out; /* of the whole pass; NULL: nothing is wanted */
  int part;
  dt_status failed; /* of a second half */
  dt_error *err;
} split_pass;

static bool tells_experts(const split_pass *p) { return p->out && (p->out->experts || p->out->experts_read); }

/* Narrows what is wanted of a pass down to the experts of its rows first..first+n-1. *row: the list of these rows,
 * owned by the caller; NULL, and DT_OK: experts are not wanted. */
static dt_status experts_of_rows(const split_pass *p, int first, int n, int32_t **row, dt_out *out) {
  const dt_weights *w = p->c->weights;
  int from = 0;
  *out = (dt_out){.want = DT_WANT_NOTHING}, *row = NULL;
  if (!tells_experts(p)) return DT_OK;
  while (from < p->out->n && p->out->row[from] < first) from++;
  while (from + out->n < p->out->n && p->out->row[from + out->n] < first + n) out->n++;
  const size_t bytes = sizeof **row * (size_t)dt_max(out->n, 1);
  if (!(*row = malloc(bytes))) return dt_fail_memory(p->err, "results of a pass", bytes);
  for (int i = 0; i < out->n; i++) (*row)[i] = p->out->row[from + i] - first;
  out->row = *row, out->experts_read = p->out->experts_read;
  if (p->out->experts) out->experts = p->out->experts + (size_t)from * (size_t)(w->layers * w->chosen);
  return DT_OK;
}

/* Computes the second half of a device's layer on the host: see dt_rows. */
static void run_second_half(void *context, int layer, int first, int n, float *stream) {
  split_pass *p = context;
  const dt_weights *w = p->c->weights;
  if (p->failed) return;
  dt_rows rows = *p->rows;
  rows.n = n, rows.token += first, rows.position += first, rows.sequence += first, rows.slot += first;
  rows.prefix += first, rows.path += (size_t)first * (size_t)rows.path_stride, rows.path_len += first;
  rows.entering = rows.leaving = stream, rows.layer = w->first[p->part] + layer, rows.prompt = false;
  dt_out experts;
  int32_t *row;
  p->failed = experts_of_rows(p, first, n, &row, &experts);
  if (!p->failed)
    p->failed = OF(w->backend, HOST, forward(w->halves, p->c->halves, &rows, row ? &experts : NULL, p->err));
  free(row);
}

/* Copies the experts that a part says of its layers to those of the whole model. Layers of which it says nothing are
 * left as they are. */
static void add_experts(const split_pass *p, const int32_t *of) {
  const dt_weights *w = p->c->weights;
  const int first = w->first[p->part], layers = w->first[p->part + 1] - first;
  for (int i = 0; i < p->out->n * layers; i++) {
    const int32_t *from = of + (size_t)i * (size_t)w->chosen;
    const int at = i / layers * w->layers + first + i % layers;
    if (*from >= 0) memcpy(p->out->experts + (size_t)at * (size_t)w->chosen, from, sizeof *of * (size_t)w->chosen);
  }
}

/* Runs a part on the stream that the one before it left. */
static dt_status run_part(split_pass *p, bool starts, bool ends) {
  const dt_weights *w = p->c->weights;
  const int i = p->part, layers = w->first[i + 1] - w->first[i];
  dt_rows rows = *p->rows;
  dt_out out = p->out ? *p->out : (dt_out){0};
  int32_t *experts = NULL;
  if (!starts) rows.entering = w->stream;
  if (!ends) rows.leaving = w->stream, out.want = DT_WANT_NOTHING;
  if (w->halves) rows.second_half = run_second_half, rows.context = p;
  if (rows.features) rows.features = rows.features->part[i];
  if (p->out && out.experts && w->chosen && !(starts && ends && !w->halves)) {
    const size_t bytes = sizeof *experts * (size_t)out.n * (size_t)layers * (size_t)w->chosen;
    if (!(experts = malloc(bytes))) return dt_fail_memory(p->err, "the experts of a pass", bytes);
    memset(experts, -1, bytes);
    out.experts = experts;
  }
  dt_status status = OF(w->backend, i, forward(w->part[i], p->c->part[i], &rows, p->out ? &out : NULL, p->err));
  if (status == DT_OK) status = p->failed;
  if (status == DT_OK && experts) add_experts(p, experts);
  free(experts);
  return status;
}

static dt_status split_forward(dt_weights *w, dt_cache *c, const dt_rows *rows, const dt_out *out, dt_error *err) {
  if (c->weights != w) return dt_fail(err, DT_EINPUT, "forward: the cache belongs to another model");
  split_pass p = {c, rows, out && out->n ? out : NULL, 0, DT_OK, err};
  int last = PARTS - 1;
  while (!w->part[last]) last--;
  dt_status status = w->hidden ? make_room(w, rows->n, err) : DT_OK;
  if (status == DT_OK && p.out && out->experts)
    memset(out->experts, -1, (size_t)out->n * (size_t)w->layers * (size_t)w->chosen * sizeof *out->experts);
  bool starts = true;
  for (p.part = 0; p.part <= last && status == DT_OK; p.part++) {
    if (!w->part[p.part]) continue;
    status = run_part(&p, starts, p.part == last);
    starts = false;
  }
  return status;
}

const dt_backend_ops dt_split_ops = {
    .name = "split",
    .cache_dtypes = CACHE_DTYPES,
    .weight_dtypes = NONE,
    .activations = NONE,
    .candidates = DT_CANDIDATES,
    .windows = true,
    .present = all_present,
    .open = open_all,
    .close = close_all,
    .describe = describe_all,
    .upload = split_upload,
    .weight_dtype = split_weight_dtype,
    .weight_activations = split_weight_activations,
    .free_weights = split_free_weights,
    .account = account_all,
    .cache_bytes = split_cache_bytes,
    .bytes_free = split_bytes_free,
    .scratch_bytes = split_scratch_bytes,
    .upload_head = split_upload_head,
    .create_cache = split_create_cache,
    .free_cache = split_free_cache,
    .forward = split_forward,
    .move = move_rows,
    .keep = keep_rows,
    .snapshot = copy_rows,
    .restore = restore_rows,
    .free_snapshot = split_free_snapshot,
    .read_slot = split_read_slot,
    .memory = memory_of_all,
    .read_bandwidth = split_read_bandwidth,
};
