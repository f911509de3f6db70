/* Records reads: see witness.h. */
#include "ranks/witness.h"

#include <stdlib.h>
#include <string.h>

enum { OUTER = 7 };

int witness_matrices(const dt_model_desc *d) { return d->shape.layers * DT_LAYER_MATRICES + OUTER; }

const dt_matrix *witness_matrix(const dt_model_desc *d, int i) {
  const dt_matrix *outer[OUTER] = {&d->embed,        &d->final_norm,  &d->final_norm_bias, &d->unembed,
                                   &d->inputs_embed, &d->inputs_proj, &d->inputs_norm};
  int in_layers = i - OUTER;
  return in_layers < 0 ? outer[i]
                       : (const dt_matrix *)&d->layer[in_layers / DT_LAYER_MATRICES] + in_layers % DT_LAYER_MATRICES;
}

static void note(witness *w, witness_record record) {
  pthread_mutex_lock(&w->lock);
  if (w->n == w->room) {
    size_t room = w->room ? 2 * w->room : 1024;
    witness_record *more = realloc(w->record, room * sizeof *more);
    if (more) w->record = more, w->room = room;
    w->lost |= !more;
  }
  if (w->n < w->room) w->record[w->n++] = record;
  pthread_mutex_unlock(&w->lock);
}

static void look(void *context, const dt_source *source, uint64_t offset, const void *bytes, size_t n) {
  witness *w = context;
  for (size_t at = 0, some; at < n; at += some) {
    some = n - at < WITNESS_MOST ? n - at : WITNESS_MOST;
    note(w, (witness_record){offset + at, (uint32_t)some, (uint32_t)(source - w->source),
                             keyed_of(w->key, (const char *)bytes + at, some)});
  }
}

/* The copy of a source that records its reads. */
static const dt_source *watched(witness *w, const dt_source *given, const dt_source **known) {
  int i = 0;
  while (i < w->sources && known[i] != given) i++;
  if (i == w->sources) known[i] = given, w->source[w->sources++] = *given;
  return &w->source[i];
}

dt_status witness_open(const dt_model_desc *d, witness *out, dt_error *err) {
  size_t n = (size_t)witness_matrices(d), layers = (size_t)d->shape.layers;
  *out = (witness){.desc = *d, .lock = PTHREAD_MUTEX_INITIALIZER};
  const dt_source **known = calloc(n, sizeof *known);
  out->source = calloc(n, sizeof *out->source);
  out->layer = calloc(layers + 1, sizeof *out->layer);
  dt_status status = DT_OK;
  if (!known || !out->source || !out->layer) {
    status = dt_fail_memory(err, "what ranks compare", n * sizeof *out->source);
  } else {
    if (layers) memcpy(out->layer, d->layer, layers * sizeof *out->layer);
    out->desc.layer = out->layer;
    for (size_t i = 0; i < n; i++) {
      dt_matrix *m = (dt_matrix *)witness_matrix(&out->desc, (int)i); /* a matrix of the copies, which are ours */
      if (m->source) m->source = watched(out, m->source, known);
    }
  }
  free(known);
  return status;
}

void witness_begin(witness *w) {
  w->watch = (source_watch){look, w};
  for (int i = 0; i < w->sources; i++) w->source[i].watch = &w->watch;
}

void witness_close(witness *w) {
  pthread_mutex_destroy(&w->lock);
  free(w->record), free(w->source), free(w->layer);
}
