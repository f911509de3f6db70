#include "pair/account.h"
#include "model/model.h"
#include "pair/backends.h"
#include "split/split.h"
#include "system/min_max.h"
#include "system/need.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_CONTEXT = 512 }; /* a shorter one is no remedy */

typedef struct {
  const dt_pair *pair;
  const dt_model_desc *desc;
  size_t left;
  bool drafts; /* the model is the pair's draft */
} asked;

static size_t all_of(const dt_memory *m) { return m->weights + m->caches + m->scratch; }

/* Computes what the model and a session take. */
static dt_status needs_of(const asked *a, int context, dt_memory *needs, dt_error *err) {
  const dt_pair *p = a->pair;
  const int slots = target_slots(context);
  dt_status s = p->ops->account(p->backend, a->desc, 1, a->drafts ? draft_slots(context) : slots, needs, err);
  if (!s && p->target) {
    needs->caches += p->ops->cache_bytes(p->target, slots);
    needs->scratch += p->ops->scratch_bytes(p->target, 1, slots);
  }
  return s;
}

/* Returns the largest context that fits, at most `context`; 0: none does. */
static int most_that_fits(const asked *a, int context) {
  int fits = 0, below = context + 1;
  dt_memory needs;
  while (below - fits > 1) {
    int middle = fits + (below - fits) / 2;
    if (!needs_of(a, middle, &needs, NULL) && all_of(&needs) <= a->left)
      fits = middle;
    else
      below = middle;
  }
  return fits;
}

/* Returns the largest number of last layers that fit if the CPU computes the others; 0: none does, or the model cannot
 * be split there. */
static int layers_that_fit(const asked *a, int most, int context) {
  const dt_pair *p = a->pair;
  const bool is_split = p->ops == &dt_split_ops;
  dt_model_desc d = *a->desc;
  asked part = *a;
  if (!is_split) part.desc = &d, d.part.enters = true;
  for (int n = most; n > 0 && !p->target && !(d.shape.inputs && !is_split); n--) {
    dt_memory needs;
    d.shape.layers = n, d.layer = a->desc->layer + (a->desc->shape.layers - n);
    if (is_split)
      split_put_layers(p->backend, n);
    else if (d.layer[0].keys_of) /* of a layer before it */
      return 0;
    if (!needs_of(&part, context, &needs, NULL) && all_of(&needs) <= a->left) return n;
  }
  return 0;
}

/* Returns the smallest number of first layers whose experts must be on the host so that the rest fits; 0: none helps.
 */
static int experts_that_must_go(const asked *a, int context) {
  const int layers = a->desc->shape.layers;
  dt_layer *layer = malloc(sizeof *layer * (size_t)layers);
  dt_model_desc d = *a->desc;
  asked apart = *a;
  int found = 0;
  apart.desc = &d, d.layer = layer;
  if (layer) memcpy(layer, a->desc->layer, sizeof *layer * (size_t)layers);
  for (int n = 1; layer && n <= layers && !found && d.shape.experts && !d.shape.inputs && !a->pair->target; n++) {
    dt_memory needs;
    layer[n - 1].apart = layer[n - 1].expert != NULL;
    if (layer[n - 1].apart && !needs_of(&apart, context, &needs, NULL) && all_of(&needs) <= a->left) found = n;
  }
  free(layer);
  return found;
}

static int context_of(const dt_model_desc *d, int context) {
  return dt_min(context ? context : DT_CONTEXT, d->shape.context);
}

size_t account_draft(const dt_pair *p, const dt_model_desc *d, int context) {
  const asked a = {p, d, 0, true};
  dt_memory needs = {0};
  return p->ops->account && !needs_of(&a, context_of(d, context), &needs, NULL) ? all_of(&needs) : 0;
}

void account_choose_layers(dt_pair *p, const dt_model_desc *d, int context) {
  const size_t left = p->ops->bytes_free(p->backend);
  const asked a = {p, d, left > p->reserved ? left - p->reserved : 0, false};
  split_put_layers(p->backend, dt_max(layers_that_fit(&a, d->shape.layers, context_of(d, context)), 1));
}

/* Computes the needs of a target on an open backend. */
static dt_status find_needs(const dt_pair *p, const dt_model_desc *d, int context, dt_needs *out, dt_error *err) {
  const asked a = {p, d, p->ops->bytes_free(p->backend), false};
  dt_memory needs;
  dt_status s = needs_of(&a, context, &needs, err);
  if (s) return s;
  *out = (dt_needs){.layers = d->shape.layers,
                    .context = context,
                    .weights = needs.weights,
                    .caches = needs.caches,
                    .scratch = needs.scratch,
                    .host = needs.host,
                    .free = a.left};
  out->gpu_layers = layers_that_fit(&a, d->shape.layers, context);
  split_put_layers(p->backend, 0);
  if (out->gpu_layers < d->shape.layers) out->cpu_experts = experts_that_must_go(&a, context);
  return DT_OK;
}

dt_status dt_pair_needs(const dt_pair_options *o, dt_needs *out, dt_error *err) {
  NEED(o, "options");
  NEED(o->target, "target");
  NEED(out, "out");
  dt_pair p = {0};
  dt_backend_options options = {.threads = 1, .cache_dtype = o->cache_dtype, .devices = o->gpus};
  model *m = NULL;
  dt_status s = split_check_devices(o->gpus, err);
  if (s) return s;
  p.ops = backend_split(NULL, "gpu_layers", &options, err);
  if (!p.ops) return DT_EDEVICE;
  s = model_open_turned(o->target, &o->rope, &m, err);
  if (!s) s = p.ops->open(&options, &p.backend, err);
  if (!s) {
    dt_model_desc d = *model_desc(m);
    d.path = o->target; /* as a target, which may be split */
    s = find_needs(&p, &d, context_of(&d, o->rope.context), out, err);
  }
  if (p.backend) p.ops->close(p.backend);
  model_close(m);
  return s;
}

/* Names what would fit. A cache in q8 takes 9 bits a number at most. */
static void name_remedy(const asked *a, const dt_memory *needs, int context, char *text, size_t size) {
  int fits = most_that_fits(a, context), used = 0;
  *text = '\0';
  if (fits >= LEAST_CONTEXT) used += snprintf(text, size, "-c %d fits, ", fits);
  bool wide = strcmp(a->pair->cache_dtype, "q8") != 0;
  if (wide && all_of(needs) - needs->caches + needs->caches / 16 * 9 <= a->left)
    used += snprintf(text + used, size - (size_t)used, "--cache-dtype q8 fits, ");
  const int layers = a->pair->all_that_fit ? 0 : layers_that_fit(a, a->desc->shape.layers - 1, context);
  if (layers) used += snprintf(text + used, size - (size_t)used, "--gpu-layers %d fits, ", layers);
  const int experts = experts_that_must_go(a, context);
  if (experts) snprintf(text + used, size - (size_t)used, "--cpu-experts %d fits, ", experts);
}

dt_status account_fits(const dt_pair *p, const dt_model_desc *d, const char *path, int context, dt_error *err) {
  if (!p->ops->account) return DT_OK;
  const double gib = 1 << 30;
  const asked a = {p, d, p->ops->bytes_free(p->backend), p->target != NULL};
  dt_memory needs;
  char remedy[120];
  context = context_of(d, context);
  dt_status s = needs_of(&a, context, &needs, err);
  if (s || all_of(&needs) <= a.left) return s;
  name_remedy(&a, &needs, context, remedy, sizeof remedy);
  return dt_fail(err, DT_ENOMEM,
                 "out of GPU memory: %s with a context of %d needs %.3g GiB (weights %.3g, caches %.3g, scratch %.3g), "
                 "%.3g GiB are free (%s--backend cpu uses the host's memory)",
                 path, context, (double)all_of(&needs) / gib, (double)needs.weights / gib, (double)needs.caches / gib,
                 (double)needs.scratch / gib, (double)a.left / gib, remedy);
}
