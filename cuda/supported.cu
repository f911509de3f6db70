/* What this backend does not compute, in one line that suggests the CPU backend. */
#include "supported.cuh"

#include "delta.cuh"
#include "format.cuh"

static dt_status check_sizes(const dt_model_desc *d, const char *whose, dt_error *err) {
  const dt_shape *s = &d->shape;
  for (int i = 0; i < s->layers; i++) {
    int dim = dt_shape_of(s, &d->layer[i]).head_dim;
    if (dim % 2 == 0 && dim <= MAX_HEAD) continue;
    return dt_fail(
        err, DT_EINPUT,
        "the CUDA backend supports heads of an even size up to %d, but this %s's have %d (--backend cpu supports any)",
        (int)MAX_HEAD, whose, dim);
  }
  if (s->delta_value_heads && s->delta_key_dim > DELTA_KEYS)
    return dt_fail(err, DT_EINPUT,
                   "the CUDA backend supports delta layers with keys of up to %d numbers, but this %s's have %d "
                   "(--backend cpu supports any)",
                   (int)DELTA_KEYS, whose, s->delta_key_dim);
  if (s->hidden > MAX_HIDDEN)
    return dt_fail(err, DT_EINPUT,
                   "the CUDA backend supports a hidden size up to %d, but this %s's is %d (--backend cpu supports any)",
                   (int)MAX_HIDDEN, whose, s->hidden);
  return DT_OK;
}

/* A model whose matrices are all BF16 is computed in BF16, any other in F16. */
static dt_status check_types(const dt_model_desc *d, number *format, dt_error *err) {
  dt_dtype type = d->embed.dtype;
  bool known = format_of(type, format);
  const auto look = [&](const dt_matrix &m) {
    number other = *format;
    if (m.source && !format_of(m.dtype, &other)) known = false, type = m.dtype;
    if (other == F16) *format = F16;
  };
  look(d->unembed);
  for (int i = 0; i < d->shape.layers; i++) {
    const dt_layer half = d->layer[i].apart ? dt_first_half(&d->layer[i]) : d->layer[i], *l = &half;
    for (const dt_matrix *m :
         {&l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down, &l->q_gate, &l->delta_in, &l->delta_z})
      look(*m);
    for (const dt_matrix *m : {&l->delta_a, &l->delta_b}) { /* small: numbers of 32 bits are rounded */
      number other;
      if (format_of(m->dtype, &other)) look(*m);
    }
    for (int e = 0; l->expert && e < d->shape.experts; e++)
      for (const dt_matrix *m : {&l->expert[e].gate, &l->expert[e].up, &l->expert[e].down}) look(*m);
  }
  if (!known)
    return dt_fail(err, DT_EINPUT,
                   "the CUDA backend supports matrices in F16 or BF16 and quantized ones, but some of this model's "
                   "are %s (--backend cpu supports any)",
                   dt_type_of(type)->name);
  return check_sizes(d, "model", err);
}

dt_status check_supported(const dt_model_desc *d, number *format, dt_error *err) {
  dt_status status = check_model(d, err);
  if (status == DT_OK && d->part.halves)
    status = dt_fail(err, DT_EINPUT, "model: a GPU computes whole layers or their first halves, not the second ones");
  if (status == DT_OK) status = check_plain(d, "a GPU", err);
  return status == DT_OK ? check_types(d, format, err) : status;
}

/* Kinds of heads that draft_head.cu does not compute. */
static dt_status check_kind(const dt_head_desc *head, dt_error *err) {
  for (int i = 0; i < head->model.shape.layers; i++)
    if (head->model.layer[i].backward != head->model.layer[0].backward)
      return dt_fail(err, DT_EINPUT,
                     "head: only some of its layers look backward, which a GPU does not compute "
                     "(--backend cpu does)");
  if (head->model.shape.mix_taps || (head->kind == DT_HEAD_BLOCK && head->post.source))
    return dt_fail(err, DT_EINPUT, "head: a DFlash2 head, which a GPU does not compute (--backend cpu does)");
  return DT_OK;
}

dt_status check_asked(const dt_holding *how, dt_error *err) {
  const char *asked = !how ? nullptr : how->dtype ? how->dtype : how->output;
  return asked ? dt_fail(err, DT_EINPUT, "weights: the CUDA backend cannot convert weights to the type '%.40s'", asked)
               : DT_OK;
}

dt_status check_head_supported(const dt_head_desc *head, const dt_weights *target, dt_error *err) {
  dt_status status = check_head(head, &target->shape, err);
  if (status == DT_OK) status = check_plain(&head->model, "a GPU", err);
  if (status == DT_OK) status = check_kind(head, err);
  if (status == DT_OK) status = check_layers_read(head, target, target->shape.layers, cuda_keys_of, err);
  return status == DT_OK ? check_sizes(&head->model, "draft head", err) : status;
}
