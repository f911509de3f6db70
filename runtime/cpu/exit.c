/* An early exit: the first layers of a model as a model of their own (see first_layers in backend.h). It uses the
 * weights of the whole model and also its scratch memory, since the two never run at the same time. */
#include "internal.h"

#include <stdlib.h>

static const char *refusal(const dt_weights *whole) {
  return whole->ranks          ? "its layers are split across ranks; run dtrun without mpirun"
         : whole->delta.all    ? "it has delta layers, whose row buffer has no room for the rows of a draft"
         : whole->shape.inputs ? "its layers read per-layer inputs, which are stored for the whole model only"
                               : NULL;
}

dt_status cpu_first_layers(const dt_weights *whole, int layers, const dt_model_desc *own, const dt_holding *how,
                           dt_weights **out, dt_error *err) {
  if (layers < 1 || layers >= whole->shape.layers)
    return dt_fail(err, DT_EINPUT, "exit: got %d of %d layers, expected at least 1 and fewer than all", layers,
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
  dt_status status = own ? cpu_upload_output(w, own, how, err) : DT_OK;
  if (status == DT_OK)
    *out = w;
  else
    cpu_free_weights(w);
  return status;
}
