#include "pair/account.h"
#include "system/min_max.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_CONTEXT = 512 }; /* a shorter one is no remedy */

typedef struct {
  const dt_pair *pair;
  const dt_model_desc *desc;
  size_t left;
} asked;

static size_t all_of(const dt_memory *m) { return m->weights + m->caches + m->scratch; }

/* Computes what the model and a session take. */
static dt_status needs_of(const asked *a, int context, dt_memory *needs, dt_error *err) {
  const dt_pair *p = a->pair;
  int slots = target_slots(context);
  dt_status s = p->ops->account(p->backend, a->desc, 1, slots, needs, err);
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

/* Returns the number of last layers that fit if the CPU computes the others; 0: none does, or the model cannot be
 * split. */
static int layers_that_fit(const asked *a, int context) {
  dt_model_desc d = *a->desc;
  asked part = *a;
  part.desc = &d, d.part = DT_LAST_LAYERS;
  for (int n = d.shape.layers - 1; n > 0 && !a->pair->target && !d.shape.inputs; n--) {
    dt_memory needs;
    d.shape.layers = n, d.layer = a->desc->layer + (a->desc->shape.layers - n);
    if (d.layer[0].keys_of) return 0; /* of a layer before it */
    if (!needs_of(&part, context, &needs, NULL) && all_of(&needs) <= a->left) return n;
  }
  return 0;
}

/* Names what would fit. A cache in q8 takes 9 bits a number at most. */
static void name_remedy(const asked *a, const dt_memory *needs, int context, char *text, size_t size) {
  int fits = most_that_fits(a, context), used = 0;
  *text = '\0';
  if (fits >= LEAST_CONTEXT) used += snprintf(text, size, "-c %d fits, ", fits);
  bool wide = strcmp(a->pair->cache_dtype, "q8") != 0;
  if (wide && all_of(needs) - needs->caches + needs->caches / 16 * 9 <= a->left)
    used += snprintf(text + used, size - (size_t)used, "--cache-dtype q8 fits, ");
  int layers = layers_that_fit(a, context);
  if (layers) snprintf(text + used, size - (size_t)used, "--gpu-layers %d fits, ", layers);
}

dt_status account_fits(const dt_pair *p, const dt_model_desc *d, const char *path, int context, dt_error *err) {
  if (!p->ops->account) return DT_OK;
  const double gib = 1 << 30;
  const asked a = {p, d, p->ops->bytes_free(p->backend)};
  dt_memory needs;
  char remedy[96];
  context = dt_min(context ? context : DT_CONTEXT, d->shape.context);
  dt_status s = needs_of(&a, context, &needs, err);
  if (s || all_of(&needs) <= a.left) return s;
  name_remedy(&a, &needs, context, remedy, sizeof remedy);
  return dt_fail(err, DT_ENOMEM,
                 "out of GPU memory: %s with a context of %d needs %.3g GiB (weights %.3g, caches %.3g, scratch %.3g), "
                 "%.3g GiB are free (%s--backend cpu uses the host's memory)",
                 path, context, (double)all_of(&needs) / gib, (double)needs.weights / gib, (double)needs.caches / gib,
                 (double)needs.scratch / gib, (double)a.left / gib, remedy);
}
