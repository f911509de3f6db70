/* From a checkpoint to the canonical model: see model.h. */
#include "model/model.h"

#include "model/family.h"

#include <stdlib.h>
#include <string.h>

struct model {
  dt_model_desc desc;
  dt_layer *layer;
  dt_expert *expert; /* the experts of all layers; NULL: no layer has any */
  float *inv_freq, *local_freq;
  checkpoint files;
  int32_t eos[MODEL_MAX_EOS];
  int n_eos;
  const char *family;
  int rope_context;
};

_Static_assert(MODEL_MAX_EOS == CONFIG_MAX_EOS, "config's list is copied whole");

/* Sets what the configuration says about single layers and their rotations. */
static dt_status fill_layers(model *m, const config *c, dt_error *err) {
  int dims = c->shape.rotary_dims, local_dims = c->shape.local_dims ? c->shape.local_dims : dims;
  size_t bytes = ((size_t)(dims > local_dims ? dims : local_dims) / 2 + 1) * sizeof *m->inv_freq;
  m->inv_freq = malloc(bytes);
  if (c->two_rotations) m->local_freq = malloc(bytes);
  if (!m->inv_freq || (c->two_rotations && !m->local_freq)) return dt_fail_memory(err, "a model's rotation", bytes);
  rotation_fill(&c->rotation, dims, m->inv_freq);
  if (m->local_freq) rotation_fill(&c->local_rotation, local_dims, m->local_freq);
  size_t experts = (size_t)c->shape.layers * (size_t)c->shape.experts;
  if (experts && !(m->expert = calloc(experts, sizeof *m->expert)))
    return dt_fail_memory(err, "a model's experts", experts * sizeof *m->expert);
  for (int i = 0; i < c->shape.layers; i++) {
    m->layer[i] = config_layer(c, i);
    if (experts && !c->dense[i]) m->layer[i].expert = m->expert + (size_t)i * (size_t)c->shape.experts;
  }
  return DT_OK;
}

static dt_status fill(model *m, dt_error *err) {
  const family *kin;
  config c = {0};
  keys k = checkpoint_keys(&m->files, err);
  dt_status status = family_find(&k, &kin);
  if (status == DT_OK) status = kin->read(&k, &c);
  if (status == DT_OK) status = checkpoint_open_tensors(&m->files, err);
  if (status != DT_OK) return status;
  m->layer = calloc((size_t)c.shape.layers, sizeof *m->layer);
  if (!m->layer) return dt_fail_memory(err, "a model's layers", (size_t)c.shape.layers * sizeof *m->layer);
  if ((status = fill_layers(m, &c, err))) return status;
  c.shape.turn_scale = (float)c.rotation.scale;
  m->desc = (dt_model_desc){.shape = c.shape, .inv_freq = m->inv_freq, .local_freq = m->local_freq, .layer = m->layer};
  memcpy(m->eos, c.eos, sizeof m->eos);
  m->n_eos = c.n_eos;
  m->family = kin->model_type;
  m->rope_context = c.rotation.context;
  finder f = {.from = &m->files, .prefix = "", .rotation = &c.rotation, .err = err};
  kin->find(&f, &c, &m->desc, m->layer);
  if (f.status == DT_OK) find_stretch(&f, c.shape.rotary_dims / 2, m->inv_freq);
  return f.status;
}

dt_status model_open(const char *path, model **out, dt_error *err) { return model_open_turned(path, NULL, out, err); }

dt_status model_open_turned(const char *path, const dt_rope *rope, model **out, dt_error *err) {
  model *m = calloc(1, sizeof *m);
  if (!m) return dt_fail_memory(err, "a model", sizeof *m);
  dt_status status = checkpoint_open(path, &m->files, err);
  if (status != DT_OK) {
    free(m);
    return status;
  }
  if (rope) m->files.rope = *rope;
  status = fill(m, err);
  if (status == DT_OK)
    *out = m;
  else
    model_close(m);
  return status;
}

void model_close(model *m) {
  if (!m) return;
  checkpoint_close(&m->files);
  free(m->inv_freq), free(m->local_freq);
  free(m->layer), free(m->expert);
  free(m);
}

const char *model_family(const model *m) { return m->family; }

int model_rope_context(const model *m) { return m->rope_context; }

const gguf *model_gguf(const model *m) { return m->files.gguf; }

const dt_model_desc *model_desc(const model *m) { return &m->desc; }

const char *model_tensor_at(const model *m, const char *file, uint64_t offset) {
  return m->files.gguf ? gguf_tensor_at(m->files.gguf, file, offset) : st_tensor_at(m->files.weights, file, offset);
}

int model_eos(const model *m, int32_t eos[MODEL_MAX_EOS]) {
  memcpy(eos, m->eos, (size_t)m->n_eos * sizeof *eos);
  return m->n_eos;
}
