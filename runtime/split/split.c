/* A target on two backends: see split.h. */
#include "split/split.h"
#include "tree/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST, DEVICE, PARTS };

struct dt_backend {
  const dt_backend_ops *ops[PARTS];
  dt_backend *part[PARTS];
  int device_layers;
  char description[600];
};

/* A model without a part on the host is whole on the device. */
struct dt_weights {
  dt_backend *backend;
  dt_weights *part[PARTS];
  int hidden, layers, chosen;
  float *stream; /* [rows][hidden] what leaves the first part in a pass */
  int rows;
};

struct dt_cache {
  dt_weights *weights;
  dt_cache *part[PARTS];
};

struct dt_snapshot {
  dt_backend *backend;
  dt_snapshot *part[PARTS];
};

/* Calls a function of a part's backend. */
#define OF(b, i, call) (b)->ops[i]->call

/* ---- the device -------------------------------------------------------------------------------------------------- */

/* Types that both backends have, by the device's names. */
static const char *const CACHE_DTYPES[] = {"16-bit", "q8", NULL};
static const char *const NONE[] = {NULL};

static bool both_present(void) { return true; }

static void both_close(dt_backend *b) {
  for (int i = 0; i < PARTS; i++)
    if (b->part[i]) OF(b, i, close(b->part[i]));
  free(b);
}

static dt_status both_open(const dt_backend_options *options, dt_backend **out, dt_error *err) {
  dt_backend *b = calloc(1, sizeof *b);
  if (!b) return dt_fail_memory(err, "a backend", sizeof *b);
  b->ops[HOST] = options->host, b->ops[DEVICE] = options->device, b->device_layers = options->device_layers;
  dt_backend_options of[PARTS] = {*options, *options};
  const bool rounds = options->cache_dtype && !strcmp(options->cache_dtype, "q8");
  of[HOST].cache_dtype = rounds ? "q8" : NULL; /* the host's first type has 16 bits */
  of[HOST].packed = NULL;                      /* packed weights are those of a whole model */
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++) status = OF(b, i, open(&of[i], &b->part[i], err));
  if (status == DT_OK)
    *out = b;
  else
    both_close(b);
  return status;
}

static const char *both_describe(const dt_backend *b) { return b->description; }

static size_t both_bytes_free(const dt_backend *b) { return OF(b, DEVICE, bytes_free(b->part[DEVICE])); }

static double both_read_bandwidth(dt_backend *b) { return OF(b, DEVICE, read_bandwidth(b->part[DEVICE])); }

static dt_memory both_memory(const dt_backend *b) {
  const dt_memory host = OF(b, HOST, memory(b->part[HOST]));
  dt_memory all = OF(b, DEVICE, memory(b->part[DEVICE]));
  all.host += host.weights + host.caches + host.scratch;
  return all;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static void both_free_weights(dt_weights *w) {
  for (int i = 0; i < PARTS; i++)
    if (w->part[i]) OF(w->backend, i, free_weights(w->part[i]));
  free(w->stream);
  free(w);
}

/* Refuses a model whose parts need something of each other apart from the stream. */
static dt_status check_split(const dt_model_desc *d, int first, dt_error *err) {
  if (d->shape.inputs)
    return dt_fail(err, DT_EINPUT,
                   "gpu_layers: each layer of this model reads inputs of its own, so that two backends "
                   "cannot share it: --backend cpu, or --backend cuda");
  for (int i = first; i < d->shape.layers; i++)
    if (d->layer[i].keys_of && d->layer[i].keys_of <= first)
      return dt_fail(err, DT_EINPUT,
                     "gpu_layers: layer %d reads the keys of layer %d, so that both must be on one backend: at most %d "
                     "layers or at least %d on the GPU",
                     i + 1, d->layer[i].keys_of, d->shape.layers - i - 1, d->shape.layers - d->layer[i].keys_of + 1);
  return DT_OK;
}

/* Uploads the layers first..end-1. Layers that read the keys of others count these from the part's first one. */
static dt_status upload_part(dt_weights *w, int i, const dt_model_desc *whole, const dt_holding *how, int first,
                             int end, dt_error *err) {
  const dt_backend *b = w->backend;
  const size_t bytes = (size_t)(end - first) * sizeof(dt_layer);
  dt_model_desc d = *whole;
  dt_layer *layer = malloc(bytes ? bytes : 1);
  if (!layer) return dt_fail_memory(err, "layers of a model", bytes);
  memcpy(layer, whole->layer + first, bytes);
  for (int l = 0; l < end - first; l++)
    if (layer[l].keys_of) layer[l].keys_of -= first;
  d.layer = layer, d.shape.layers = end - first, d.path = NULL;
  d.part = end - first == whole->shape.layers ? DT_WHOLE : i == HOST ? DT_FIRST_LAYERS : DT_LAST_LAYERS;
  dt_status status = OF(b, i, upload(b->part[i], &d, how, &w->part[i], err));
  free(layer);
  return status;
}

/* The first layer that the device has. A target (whose description has the path of its files) is split, a draft is
 * not. */
static int first_on_device(const dt_backend *b, const dt_model_desc *d) {
  const int first = d->shape.layers - b->device_layers;
  return d->path && first > 0 ? first : 0;
}

static dt_status both_upload(dt_backend *b, const dt_model_desc *d, const dt_holding *how, dt_weights **out,
                             dt_error *err) {
  const int layers = d->shape.layers, first = first_on_device(b, d);
  dt_weights *w = calloc(1, sizeof *w);
  if (!w) return dt_fail_memory(err, "a model", sizeof *w);
  *w = (dt_weights){.backend = b, .hidden = d->shape.hidden, .layers = layers, .chosen = d->shape.chosen};
  dt_status status = check_split(d, first, err);
  if (status == DT_OK && first) status = upload_part(w, HOST, d, how, 0, first, err);
  if (status == DT_OK) status = upload_part(w, DEVICE, d, how, first, layers, err);
  if (status != DT_OK) {
    both_free_weights(w);
    return status;
  }
  if (d->path) {
    const char *host = OF(b, HOST, describe(b->part[HOST])), *device = OF(b, DEVICE, describe(b->part[DEVICE]));
    if (first) /* the device is first: a host that waits for it is not busy with something else */
      snprintf(b->description, sizeof b->description, "%s (layers %d to %d) after %s (layers 1 to %d)", device,
               first + 1, layers, host, first);
    else
      snprintf(b->description, sizeof b->description, "%s", device);
  }
  *out = w;
  return DT_OK;
}

/* What the device needs. The host's memory is not limited here. */
static dt_status both_account(dt_backend *b, const dt_model_desc *d, int sequences, int slots, dt_memory *out,
                              dt_error *err) {
  dt_model_desc part = *d;
  const int first = first_on_device(b, d);
  dt_status status = check_split(d, first, err);
  if (status != DT_OK || !b->ops[DEVICE]->account) return *out = (dt_memory){0}, status;
  if (first) part.part = DT_LAST_LAYERS, part.layer += first, part.shape.layers -= first;
  return OF(b, DEVICE, account(b->part[DEVICE], &part, sequences, slots, out, err));
}

static const char *both_weight_dtype(const dt_weights *w) {
  const char *device = OF(w->backend, DEVICE, weight_dtype(w->part[DEVICE]));
  const char *host = w->part[HOST] ? OF(w->backend, HOST, weight_dtype(w->part[HOST])) : device;
  return strcmp(host, device) ? "mixed" : device;
}

static const char *both_weight_activations(const dt_weights *w) {
  return w->part[HOST] ? OF(w->backend, HOST, weight_activations(w->part[HOST])) : NULL;
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

static size_t both_cache_bytes(const dt_weights *w, int slots) {
  return OF(w->backend, DEVICE, cache_bytes(w->part[DEVICE], slots));
}

static size_t both_scratch_bytes(const dt_weights *w, int sequences, int slots) {
  if (!w->backend->ops[DEVICE]->scratch_bytes) return 0;
  return OF(w->backend, DEVICE, scratch_bytes(w->part[DEVICE], sequences, slots));
}

static void both_free_cache(dt_cache *c) {
  if (!c) return;
  for (int i = 0; i < PARTS; i++)
    if (c->part[i]) OF(c->weights->backend, i, free_cache(c->part[i]));
  free(c);
}

static dt_status both_create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  dt_cache *c = calloc(1, sizeof *c);
  if (!c) return dt_fail_memory(err, "a cache", sizeof *c);
  c->weights = w;
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++)
    if (w->part[i]) status = OF(w->backend, i, create_cache(w->part[i], sequences, slots, &c->part[i], err));
  if (status == DT_OK)
    *out = c;
  else
    both_free_cache(c);
  return status;
}

static dt_status both_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++)
    if (c->part[i]) status = OF(c->weights->backend, i, move(c->part[i], sequence, from, to, n, err));
  return status;
}

/* A part may keep fewer rows than the other one; both then keep none. */
static int both_keep(dt_cache *c, int sequence, int rows) {
  const dt_backend *b = c->weights->backend;
  int kept = rows;
  for (int i = 0; i < PARTS; i++)
    if (c->part[i] && b->ops[i]->keep) kept = OF(b, i, keep(c->part[i], sequence, kept));
  for (int i = 0; i < PARTS && kept < rows; i++)
    if (c->part[i] && b->ops[i]->keep) OF(b, i, keep(c->part[i], sequence, kept));
  return kept;
}

static void both_free_snapshot(dt_snapshot *s) {
  if (!s) return;
  for (int i = 0; i < PARTS; i++)
    if (s->part[i]) OF(s->backend, i, free_snapshot(s->part[i]));
  free(s);
}

static dt_status both_snapshot(const dt_cache *c, int sequence, int n, dt_snapshot **out, dt_error *err) {
  dt_snapshot *s = calloc(1, sizeof *s);
  if (!s) return dt_fail_memory(err, "a snapshot", sizeof *s);
  s->backend = c->weights->backend;
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++)
    if (c->part[i]) status = OF(s->backend, i, snapshot(c->part[i], sequence, n, &s->part[i], err));
  if (status == DT_OK)
    *out = s;
  else
    both_free_snapshot(s);
  return status;
}

static dt_status both_restore(dt_cache *c, int sequence, const dt_snapshot *s, dt_error *err) {
  dt_status status = DT_OK;
  for (int i = 0; i < PARTS && status == DT_OK; i++) {
    if (!c->part[i] != !s->part[i]) return dt_fail(err, DT_EINPUT, "restore: the snapshot belongs to another model");
    if (c->part[i]) status = OF(s->backend, i, restore(c->part[i], sequence, s->part[i], err));
  }
  return status;
}

/* The bytes of the host's slot, then those of the device's. */
static dt_status both_read_slot(const dt_cache *c, int sequence, int slot, void **bytes, size_t *len, dt_error *err) {
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

static dt_status both_forward(dt_weights *w, dt_cache *c, const dt_rows *rows, const dt_out *out, dt_error *err) {
  const dt_backend *b = w->backend;
  if (c->weights != w) return dt_fail(err, DT_EINPUT, "forward: the cache belongs to another model");
  if (!w->part[HOST]) return OF(b, DEVICE, forward(w->part[DEVICE], c->part[DEVICE], rows, out, err));
  dt_rows first = *rows, second = *rows;
  dt_status status = make_room(w, rows->n, err);
  first.leaving = w->stream, second.entering = w->stream;
  if (status == DT_OK) status = OF(b, HOST, forward(w->part[HOST], c->part[HOST], &first, NULL, err));
  if (status != DT_OK) return status;
  if (!out) return OF(b, DEVICE, forward(w->part[DEVICE], c->part[DEVICE], &second, NULL, err));
  dt_out wanted = *out; /* the experts of neither part are reported, since their layers have other numbers */
  wanted.experts = NULL, wanted.experts_read = NULL;
  if (out->experts)
    memset(out->experts, -1, (size_t)out->n * (size_t)w->layers * (size_t)w->chosen * sizeof *out->experts);
  return OF(b, DEVICE, forward(w->part[DEVICE], c->part[DEVICE], &second, &wanted, err));
}

const dt_backend_ops dt_split_ops = {
    .name = "split",
    .cache_dtypes = CACHE_DTYPES,
    .weight_dtypes = NONE,
    .activations = NONE,
    .candidates = DT_CANDIDATES,
    .windows = true,
    .present = both_present,
    .open = both_open,
    .close = both_close,
    .describe = both_describe,
    .upload = both_upload,
    .weight_dtype = both_weight_dtype,
    .weight_activations = both_weight_activations,
    .free_weights = both_free_weights,
    .account = both_account,
    .cache_bytes = both_cache_bytes,
    .bytes_free = both_bytes_free,
    .scratch_bytes = both_scratch_bytes,
    .create_cache = both_create_cache,
    .free_cache = both_free_cache,
    .forward = both_forward,
    .move = both_move,
    .keep = both_keep,
    .snapshot = both_snapshot,
    .restore = both_restore,
    .free_snapshot = both_free_snapshot,
    .read_slot = both_read_slot,
    .memory = both_memory,
    .read_bandwidth = both_read_bandwidth,
};
