/* The first layers of a model as a model of its own: see first_layers in backend.h. It has the whole model's weights
 * and, since the two never run at once, its scratch. */
#include "internal.h"

#include <stdlib.h>

static const char *refusal(const dt_weights *whole) {
  return whole->ranks          ? "ranks share its layers: run it without mpirun"
         : whole->delta.all    ? "it has delta layers, whose rows lie in a ring that is too short for a draft's"
         : whole->shape.inputs ? "its layers read inputs that are laid out for all of them"
                               : NULL;
}

dt_status cpu_first_layers(const dt_weights *whole, int layers, dt_weights **out, dt_error *err) {
  if (layers < 1 || layers >= whole->shape.layers)
    return dt_fail(err, DT_EINPUT, "exit: %d layers of %d are out of range: at least 1, and fewer than all", layers,
                   whole->shape.layers);
  if (refusal(whole))
    return dt_fail(err, DT_EINPUT, "exit: the target's first layers cannot draft: %s", refusal(whole));
  dt_weights *w = malloc(sizeof *w);
  if (!w) return dt_fail_memory(err, "an early exit", sizeof *w);
  *w = *whole;
  w->weights_arena = w->scratch_arena = (cpu_arena){0}; /* the whole model frees them */
  w->shape.layers = layers;
  w->slot_bytes = whole->layer[layers].cache_at;
  w->writing = layers < whole->writing ? layers : whole->writing;
  while (!w->layer[w->writing - 1].k.data) w->writing--;
  w->taps = 0, w->ldfeature = 0;
  *out = w;
  return DT_OK;
}
