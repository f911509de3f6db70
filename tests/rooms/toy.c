/* A synthetic family: names of its own, a sequential residual, nothing optional. */
#include "model/family.h"

static dt_status read(const keys *k, config *c) {
  dt_shape *s = &c->shape;
  dt_status status = config_int(k, "n_vocab", NULL, CONFIG_MAX_SIZE, &s->vocab);
  if (!status) status = config_int(k, "n_embd", NULL, CONFIG_MAX_SIZE, &s->hidden);
  if (!status) status = config_int(k, "n_layer", NULL, CONFIG_MAX_LAYERS, &s->layers);
  if (!status) status = config_int(k, "n_head", NULL, CONFIG_MAX_SIZE, &s->heads);
  if (!status) status = config_rotation(k, "theta", 10000, &c->rotation);
  s->kv_heads = s->heads;
  s->head_dim = s->rotary_dims = status ? 0 : s->hidden / s->heads;
  s->inter = 2 * s->hidden;
  s->context = 64;
  s->norm = DT_NORM_RMS;
  s->norm_eps = 1e-5f;
  s->act = DT_ACT_SILU;
  return status;
}

static void find(finder *f, const config *c, dt_model_desc *d, dt_layer *layers) {
  int H = c->shape.hidden, I = c->shape.inter;
  d->embed = d->unembed = find_matrix(f, c->shape.vocab, H, "toy.tokens", NULL);
  for (f->layer = 0; f->layer < c->shape.layers; f->layer++)
    layers[f->layer] = (dt_layer){.norm1 = find_vector(f, H, "toy.%d.scale.a", NULL),
                                  .q = find_matrix(f, H, H, "toy.%d.query", NULL),
                                  .k = find_matrix(f, H, H, "toy.%d.key", NULL),
                                  .v = find_matrix(f, H, H, "toy.%d.value", NULL),
                                  .o = find_matrix(f, H, H, "toy.%d.mix", NULL),
                                  .norm2 = find_vector(f, H, "toy.%d.scale.b", NULL),
                                  .up = find_matrix(f, I, H, "toy.%d.wide", NULL),
                                  .down = find_matrix(f, H, I, "toy.%d.narrow", NULL)};
  d->final_norm = find_vector(f, H, "toy.scale", NULL);
}

extern const family toy;
const family toy = {"toy", "ToyForCausalLM", NULL, "", read, find, NULL};
