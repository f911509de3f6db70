/* The checks that every backend makes on its caller's arguments: see check.h. */
#include "backend/check.h"

#include <stdio.h>

static dt_status check_rows(const dt_rows *rows, dt_limits limits, dt_error *err) {
  if (rows->n < 1) return dt_fail(err, DT_EINPUT, "forward: %d rows, at least 1 is needed", rows->n);
  for (int i = 0; i < rows->n; i++) {
    const int32_t *path = rows->path + (size_t)i * (size_t)rows->path_stride;
    int length = rows->path_len[i], prefix = rows->prefix[i], position = rows->position[i];
    if (rows->token[i] < 0 || rows->token[i] >= limits.vocab)
      return dt_fail(err, DT_EINPUT, "forward: row %d: token %d, the vocabulary has %d", i, rows->token[i],
                     limits.vocab);
    if (position < 0 || position >= limits.context)
      return dt_fail(err, DT_ECONTEXT, "forward: row %d: position %d, the model has %d", i, position, limits.context);
    if (rows->sequence[i] < 0 || rows->sequence[i] >= limits.sequences)
      return dt_fail(err, DT_EINPUT, "forward: row %d: sequence %d, the cache has %d", i, rows->sequence[i],
                     limits.sequences);
    if (length < 1 || length > rows->path_stride || prefix < 0 || prefix > limits.slots ||
        (rows->blocks ? position < prefix || position >= prefix + length : position != prefix + length - 1) ||
        position >= limits.slots || path[position - prefix] != rows->slot[i])
      return dt_fail(err, DT_EINPUT, "forward: row %d: prefix %d and path of %d do not end at position %d in slot %d",
                     i, prefix, length, position, rows->slot[i]);
    for (int j = 0; j < length; j++)
      if (path[j] < 0 || path[j] >= limits.slots)
        return dt_fail(err, DT_EINPUT, "forward: row %d: slot %d, the cache has %d", i, path[j], limits.slots);
    const int expected = rows->position[0] + i;
    if (rows->prompt && (position != expected || rows->slot[i] != expected || rows->sequence[i] != rows->sequence[0]))
      return dt_fail(err, DT_EINPUT, "forward: row %d of a prompt: position %d in slot %d, both must be %d", i,
                     position, rows->slot[i], expected);
    if (rows->prompt && length != 1)
      return dt_fail(err, DT_EINPUT, "forward: row %d of a prompt: a path of %d slots, its own alone is expected", i,
                     length);
  }
  return DT_OK;
}

static dt_status check_out(const dt_rows *rows, const dt_out *out, dt_limits limits, dt_error *err) {
  for (int j = 0; j < out->n; j++)
    if (out->row[j] < 0 || out->row[j] >= rows->n || (j && out->row[j] <= out->row[j - 1]))
      return dt_fail(err, DT_EINPUT, "forward: result %d is of row %d, expected rising rows below %d", j, out->row[j],
                     rows->n);
  for (int j = 0; j < out->n && out->given; j++)
    if (out->given[j] < 0 || out->given[j] >= limits.vocab)
      return dt_fail(err, DT_EINPUT, "forward: result %d is wanted of id %d, the vocabulary has %d", j, out->given[j],
                     limits.vocab);
  if (out->want != DT_WANT_TOPK && out->want != DT_WANT_BOTH) return DT_OK;
  if (out->k < 1 || out->k > limits.top)
    return dt_fail(err, DT_EINPUT, "forward: %d candidates, 1 to %d are possible", out->k, limits.top);
  if (out->want == DT_WANT_TOPK && (out->vocab < 1 || out->vocab > limits.vocab))
    return dt_fail(err, DT_EINPUT, "forward: candidates among %d ids, the model has %d", out->vocab, limits.vocab);
  return DT_OK;
}

dt_status check_pass(const dt_rows *rows, const dt_out *out, dt_limits limits, dt_error *err) {
  dt_status status = check_rows(rows, limits, err);
  return status == DT_OK && out ? check_out(rows, out, limits, err) : status;
}

dt_status check_streams(dt_part part, const dt_rows *rows, dt_error *err) {
  if (!rows->entering == !part.enters && !rows->leaving == !part.leaves) return DT_OK;
  return dt_fail(err, DT_EINPUT,
                 "forward: a stream enters the later parts of a model, and leaves the earlier ones; this part %s",
                 part.enters && part.leaves ? "takes one and leaves one"
                 : part.enters              ? "takes one"
                 : part.leaves              ? "leaves one"
                                            : "has none");
}

dt_status check_features(const dt_rows *rows, int distances, const dt_limits *given, dt_error *err) {
  if (distances && (!given || rows->distance < 0 || rows->distance >= distances))
    return dt_fail(err, DT_EINPUT, "forward: a Medusa head guesses at distances 0 to %d from features, not at %d",
                   distances - 1, rows->distance);
  for (int i = 0; i < rows->n; i++) {
    if (!given && rows->position[i] == 0)
      return dt_fail(err, DT_EINPUT, "forward: row %d of a head begins a text and has no feature", i);
    if (given && (rows->sequence[i] >= given->sequences || rows->slot[i] >= given->slots))
      return dt_fail(
          err, DT_EINPUT,
          "forward: row %d reads the feature of sequence %d, slot %d; the cache has %d x %d (sequences x slots)", i,
          rows->sequence[i], rows->slot[i], given->sequences, given->slots);
  }
  return DT_OK;
}

dt_status check_reading(const dt_rows *rows, const dt_limits *given, dt_error *err) {
  if (!given || rows->distance < 0)
    return dt_fail(err, DT_EINPUT,
                   "forward: a cross-attention head needs the target's cache and a distance of at least 0, not %d",
                   rows->distance);
  for (int i = 0; i < rows->n; i++) {
    if (rows->sequence[i] >= given->sequences || rows->position[i] < 1 || rows->position[i] > given->slots)
      return dt_fail(
          err, DT_EINPUT,
          "forward: row %d sees %d rows of sequence %d of the target; the cache has %d x %d (sequences x slots)", i,
          rows->position[i], rows->sequence[i], given->sequences, given->slots);
    if (rows->distance && rows->path_len[i] < 2)
      return dt_fail(err, DT_EINPUT, "forward: row %d of a cross-attention head follows no row", i);
  }
  return DT_OK;
}

int layer_read(const dt_weights *target, int layers, bool windowed, layer_describer *describe) {
  for (int of = layers - 1; of >= 0; of--) {
    const keys_of_layer there = describe(target, of);
    if (there.own && there.windowed == windowed) return of;
  }
  return -1;
}

dt_status check_layers_read(const dt_head_desc *head, const dt_weights *target, int layers, layer_describer *describe,
                            dt_error *err) {
  const dt_model_desc *m = &head->model;
  for (int i = 0; head->kind == DT_HEAD_CROSS_ATTENTION && i < m->shape.layers; i++) {
    const dt_shape own = dt_shape_of(&m->shape, &m->layer[i]);
    const bool windowed = m->layer[i].window > 0;
    const int of = layer_read(target, layers, windowed, describe);
    if (of < 0)
      return dt_fail(err, DT_EINPUT, "head: layer %d needs a target layer %s a window, but the target has none", i,
                     windowed ? "with" : "without");
    const keys_of_layer there = describe(target, of);
    if (there.kv_heads != own.kv_heads || there.head_dim != own.head_dim)
      return dt_fail(err, DT_EINPUT,
                     "head: layer %d needs %d key heads of %d numbers, but the target's layer %d has %d of %d", i,
                     own.kv_heads, own.head_dim, of, there.kv_heads, there.head_dim);
  }
  return DT_OK;
}

dt_status check_slots(const char *what, int sequence, const int32_t *slot, int n, dt_limits limits, dt_error *err) {
  if (sequence < 0 || sequence >= limits.sequences)
    return dt_fail(err, DT_EINPUT, "%s: sequence %d, the cache has 0 to %d", what, sequence, limits.sequences - 1);
  for (int i = 0; i < n; i++)
    if (slot[i] < 0 || slot[i] >= limits.slots)
      return dt_fail(err, DT_EINPUT, "%s: slot %d, the cache has 0 to %d", what, slot[i], limits.slots - 1);
  return DT_OK;
}

static dt_status check_matrix(const dt_matrix *m, int rows, int cols, bool optional, const char *name, int layer,
                              dt_error *err) {
  char where[32] = "";
  if (layer >= 0) snprintf(where, sizeof where, "layer %d: ", layer);
  if (!m->source) return optional ? DT_OK : dt_fail(err, DT_EINPUT, "model: %sno %s", where, name);
  if (m->rows != rows || m->cols != cols || m->group < 1 || m->stride < m->group)
    return dt_fail(err, DT_EINPUT, "model: %s%s is %d x %d, expected %d x %d", where, name, m->rows, m->cols, rows,
                   cols);
  if (cols % dt_type_of(m->dtype)->numbers)
    return dt_fail(err, DT_EINPUT, "model: %s%s has rows of %d, which are no whole blocks of %s", where, name, cols,
                   dt_type_of(m->dtype)->name);
  return DT_OK;
}

typedef struct {
  const dt_matrix *m;
  int rows, cols;
  bool optional;
  const char *name;
} expectation;

static dt_status check_all(const expectation *all, size_t n, int layer, dt_error *err) {
  dt_status status = DT_OK;
  for (size_t i = 0; status == DT_OK && i < n; i++)
    status = check_matrix(all[i].m, all[i].rows, all[i].cols, all[i].optional, all[i].name, layer, err);
  return status;
}

static dt_status check_experts(const dt_shape *s, const dt_layer *l, int layer, dt_error *err) {
  if (s->parallel_residual || !s->gated || s->chosen < 1 || s->chosen > s->experts || s->experts > DT_EXPERTS ||
      s->expert_inter < 1)
    return dt_fail(err, DT_EINPUT,
                   "model: layer %d: a row chooses %d of %d experts of %d numbers; expected 1 to %d experts, with "
                   "gates and a sequential residual",
                   layer, s->chosen, s->experts, s->expert_inter, DT_EXPERTS);
  bool up = l->up.source, other = l->mlp_norm.source || l->experts_norm.source || l->mlp_gate.source;
  if (up != (l->gate.source != NULL) || up != (l->down.source != NULL) || (other && !up))
    return dt_fail(err, DT_EINPUT, "model: layer %d: experts with a part of an MLP, expected all or none of it", layer);
  if (!l->expert_norm.source != !l->router_norm.source)
    return dt_fail(err, DT_EINPUT, "model: layer %d: norms of experts and of their router, expected both or none",
                   layer);
  dt_status status = DT_OK;
  for (int i = 0; status == DT_OK && i < s->experts; i++) {
    const dt_expert *e = &l->expert[i];
    const expectation all[] = {{&e->gate, s->expert_inter, s->hidden, false, "expert's gate"},
                               {&e->up, s->expert_inter, s->hidden, false, "expert's up"},
                               {&e->down, s->hidden, s->expert_inter, false, "expert's down"},
                               {&e->gate_bias, s->expert_inter, 1, true, "expert's gate bias"},
                               {&e->up_bias, s->expert_inter, 1, true, "expert's up bias"},
                               {&e->down_bias, s->hidden, 1, true, "expert's down bias"}};
    status = check_all(all, sizeof all / sizeof *all, layer, err);
  }
  return status;
}

static dt_status check_heads(const dt_shape *s, dt_error *err) {
  if (s->heads % s->kv_heads)
    return dt_fail(err, DT_EINPUT, "model: %d heads cannot share %d key heads", s->heads, s->kv_heads);
  if (s->rotary_dims < 0 || s->rotary_dims > s->head_dim || s->rotary_dims % 2)
    return dt_fail(err, DT_EINPUT, "model: %d rotary dimensions, expected an even number up to %d", s->rotary_dims,
                   s->head_dim);
  return DT_OK;
}

/* Checks the sizes and settings of layer i, apart from its matrices. */
static dt_status check_own(const dt_model_desc *d, int i, const dt_shape *s, bool cross_attention, dt_error *err) {
  const dt_layer *l = &d->layer[i];
  if (l->kv_heads < 0 || l->head_dim < 0 || l->inter < 0 || s->kv_heads > d->shape.kv_heads ||
      s->head_dim > d->shape.head_dim || s->inter > d->shape.inter)
    return dt_fail(err, DT_EINPUT, "model: layer %d: more heads or numbers than the shape has", i);
  if (cross_attention && !l->keys_of) return dt_fail(err, DT_EINPUT, "head: layer %d: expected no keys of its own", i);
  if (!cross_attention && (l->keys_of < 0 || l->keys_of > i || (l->keys_of && d->layer[l->keys_of - 1].keys_of)))
    return dt_fail(err, DT_EINPUT, "model: layer %d: it cannot read the keys of layer %d", i, l->keys_of - 1);
  if (l->keys_of && !cross_attention) {
    const dt_shape of = dt_shape_of(&d->shape, &d->layer[l->keys_of - 1]);
    if (of.head_dim != s->head_dim || of.kv_heads != s->kv_heads)
      return dt_fail(err, DT_EINPUT, "model: layer %d: the keys of layer %d have another shape", i, l->keys_of - 1);
  }
  if (l->delta && (s->delta_key_heads < 1 || s->delta_value_heads % s->delta_key_heads || s->delta_key_dim < 16 ||
                   s->delta_key_dim % 16 || s->delta_value_dim < 16 || s->delta_value_dim % 16 || l->keys_of ||
                   s->parallel_residual || cross_attention))
    return dt_fail(err, DT_EINPUT,
                   "model: layer %d: %d delta value heads of %d numbers with %d key heads of %d are not possible", i,
                   s->delta_value_heads, s->delta_value_dim, s->delta_key_heads, s->delta_key_dim);
  if (l->window < 0)
    return dt_fail(err, DT_EINPUT, "model: layer %d: a window of %d, expected at least 1, or 0 for none", i, l->window);
  if (s->parallel_residual && (l->o_norm.source || l->down_norm.source))
    return dt_fail(err, DT_EINPUT, "model: layer %d: norms after a parallel residual", i);
  if (s->parallel_residual && (l->kv_heads || l->head_dim || l->inter || l->keys_of || s->inputs || l->scale.source))
    return dt_fail(err, DT_EINPUT,
                   "model: layer %d: its own sizes, shared keys, inputs or a scale with a parallel residual", i);
  if (s->wide_norms && l->keys_of)
    return dt_fail(err, DT_EINPUT, "model: layer %d: norms of all heads together, but no keys", i);
  return check_heads(s, err);
}

/* `in`: width of the input of q, k and v; `normed`: the layer has a first norm; `cross_attention`: it reads a target's
 * keys. */
static dt_status check_layer(const dt_model_desc *d, int i, int in, bool normed, bool cross_attention, dt_error *err) {
  const dt_shape own = dt_shape_of(&d->shape, &d->layer[i]), *s = &own;
  const dt_layer *l = &d->layer[i];
  bool delta = l->delta, reads = l->keys_of != 0 || delta;
  int values = s->delta_value_heads * s->delta_value_dim;
  int mixed = 2 * s->delta_key_heads * s->delta_key_dim + values;
  int attention = s->heads * s->head_dim, keys = s->kv_heads * s->head_dim;
  const expectation all[] = {
      {&l->norm1, s->hidden, 1, !normed || l->o_norm.source, "norm1"},
      {&l->norm1_bias, s->hidden, 1, true, "norm1 bias"},
      {&l->norm2, s->hidden, 1, l->down_norm.source != NULL, "norm2"},
      {&l->norm2_bias, s->hidden, 1, true, "norm2 bias"},
      {&l->o_norm, s->hidden, 1, true, "norm after o"},
      {&l->down_norm, s->hidden, 1, true, "norm after down"},
      {&l->q, attention, in, delta, "q"},
      {&l->q_gate, attention, in, true, "q gate"},
      {&l->q_bias, attention, 1, true, "q bias"},
      {&l->k, keys, in, reads, "k"},
      {&l->k_bias, keys, 1, true, "k bias"},
      {&l->v, keys, in, reads, "v"},
      {&l->v_bias, keys, 1, true, "v bias"},
      {&l->q_norm, s->wide_norms ? attention : s->head_dim, 1, true, "q norm"},
      {&l->k_norm, s->wide_norms ? keys : s->head_dim, 1, true, "k norm"},
      {&l->o, s->hidden, delta ? values : attention, false, "o"},
      {&l->delta_in, mixed, s->hidden, !delta, "delta's in"},
      {&l->delta_z, values, s->hidden, !delta, "delta's z"},
      {&l->delta_a, s->delta_value_heads, s->hidden, !delta, "delta's a"},
      {&l->delta_b, s->delta_value_heads, s->hidden, !delta, "delta's b"},
      {&l->delta_conv, mixed, DT_DELTA_TAPS, !delta, "delta's convolution"},
      {&l->delta_decay, s->delta_value_heads, 1, !delta, "delta's decay"},
      {&l->delta_shift, s->delta_value_heads, 1, !delta, "delta's shift"},
      {&l->delta_norm, s->delta_value_dim, 1, !delta, "delta's norm"},
      {&l->o_bias, s->hidden, 1, true, "o bias"},
      {&l->sinks, s->heads, 1, true, "sinks"},
      {&l->router, s->experts, s->hidden, !l->expert, "router"},
      {&l->router_bias, s->experts, 1, true, "router bias"},
      {&l->router_correction, s->experts, 1, true, "router correction"},
      {&l->expert_scale, s->experts, 1, true, "scale of experts"},
      {&l->mlp_norm, s->hidden, 1, true, "norm after the MLP"},
      {&l->experts_norm, s->hidden, 1, true, "norm after the experts"},
      {&l->expert_norm, s->hidden, 1, true, "norm of experts"},
      {&l->router_norm, s->hidden, 1, true, "norm of the router"},
      {&l->mlp_gate, 1, s->hidden, true, "gate of the MLP"},
      {&l->up, s->inter, s->hidden, l->expert != NULL, "up"},
      {&l->up_bias, s->inter, 1, true, "up bias"},
      {&l->gate, s->inter, s->hidden, true, "gate"},
      {&l->gate_bias, s->inter, 1, true, "gate bias"},
      {&l->down, s->hidden, s->inter, l->expert != NULL, "down"},
      {&l->down_bias, s->hidden, 1, true, "down bias"},
      {&l->input_gate, s->inputs, s->hidden, !s->inputs, "input gate"},
      {&l->input_out, s->hidden, s->inputs, !s->inputs, "input out"},
      {&l->input_norm, s->hidden, 1, !s->inputs, "input norm"},
      {&l->scale, 1, 1, true, "scale"},
      {&l->attention_mix, 2 * s->mix_taps * s->mix_groups, s->hidden, !s->mix_taps, "mix around attention"},
      {&l->attention_mix_base, 2 * s->mix_taps * s->hidden, 1, !s->mix_taps, "mix around attention"},
      {&l->mlp_mix, 2 * s->mix_taps * s->mix_groups, s->hidden, !s->mix_taps, "mix around the MLP"},
      {&l->mlp_mix_base, 2 * s->mix_taps * s->hidden, 1, !s->mix_taps, "mix around the MLP"},
  };
  dt_status status = check_own(d, i, s, cross_attention, err);
  if (status) return status;
  if (l->expert) {
    status = check_experts(s, l, i, err);
    if (status) return status;
  } else if (s->gated != (l->gate.source != NULL))
    return dt_fail(err, DT_EINPUT, "model: layer %d: %s gate", i, s->gated ? "no" : "an unexpected");
  if (reads && (l->k.source || l->v.source || l->k_bias.source || l->v_bias.source || l->k_norm.source))
    return dt_fail(err, DT_EINPUT, "model: layer %d: it has keys or values, although it reads those of layer %d", i,
                   l->keys_of - 1);
  if (!reads && !l->q_norm.source != !l->k_norm.source)
    return dt_fail(err, DT_EINPUT, "model: layer %d: norms of queries and keys, expected both or none", i);
  return check_all(all, sizeof all / sizeof *all, i, err);
}

/* Numbers of a token that all layers read. */
#define CHECK_MOST_INPUTS (1 << 24)

static dt_status check_shape(const dt_shape *s, dt_error *err) {
  if (s->vocab < 1 || s->hidden < 1 || s->layers < 1 || s->heads < 1 || s->kv_heads < 1 || s->head_dim < 1 ||
      s->inter < 1 || s->context < 1)
    return dt_fail(err, DT_EINPUT, "model: every dimension must be at least 1");
  if (s->act == DT_ACT_CLAMPED && !s->gated)
    return dt_fail(err, DT_EINPUT, "model: a clamped activation without a gate");
  if (s->inputs < 0 || (long long)s->inputs * s->layers > CHECK_MOST_INPUTS || s->local_dims < 0)
    return dt_fail(err, DT_EINPUT, "model: %d inputs of a layer, %d rotary dimensions of one with a window", s->inputs,
                   s->local_dims);
  return check_heads(s, err);
}

/* Checks both embeddings and the final norm; a draft head may lack them. */
static dt_status check_ends(const dt_model_desc *d, bool head, dt_error *err) {
  const dt_shape *s = &d->shape;
  int outputs = d->id_rows ? d->unembed.rows : s->vocab;
  dt_status status = check_matrix(&d->embed, s->vocab, s->hidden, head, "embedding", -1, err);
  if (status == DT_OK) status = check_matrix(&d->unembed, outputs, s->hidden, head, "output embedding", -1, err);
  for (int i = 0; status == DT_OK && d->ids && i < d->n_ids; i++) {
    if (d->ids[i] < 0 || d->ids[i] >= s->vocab || (i && d->ids[i] <= d->ids[i - 1]))
      return dt_fail(err, DT_EINPUT, "model: its output has id %d after %d, expected rising ids below %d", d->ids[i],
                     i ? d->ids[i - 1] : -1, s->vocab);
    if (d->id_rows && (d->id_rows[i] < 0 || d->id_rows[i] >= outputs))
      return dt_fail(err, DT_EINPUT, "model: id %d has row %d of its output, which has %d rows", d->ids[i],
                     d->id_rows[i], outputs);
  }
  const expectation inputs[] = {{&d->inputs_embed, s->vocab, s->layers * s->inputs, !s->inputs, "embedding of inputs"},
                                {&d->inputs_proj, s->layers * s->inputs, s->hidden, !s->inputs, "projection of inputs"},
                                {&d->inputs_norm, s->inputs, 1, !s->inputs, "norm of inputs"}};
  if (status == DT_OK) status = check_all(inputs, sizeof inputs / sizeof *inputs, -1, err);
  if (status == DT_OK) status = check_matrix(&d->final_norm, s->hidden, 1, head, "final norm", -1, err);
  return status ? status : check_matrix(&d->final_norm_bias, s->hidden, 1, true, "final norm bias", -1, err);
}

dt_status check_model(const dt_model_desc *d, dt_error *err) {
  dt_status status = check_shape(&d->shape, err);
  if (status == DT_OK) status = check_ends(d, false, err);
  for (int i = 0; status == DT_OK && i < d->shape.layers; i++)
    status = check_layer(d, i, d->shape.hidden, true, false, err);
  return status;
}

dt_status check_plain(const dt_model_desc *d, const char *backend, dt_error *err) {
  const dt_shape *s = &d->shape;
  const char *part = NULL;
  for (int i = 0; i < s->layers && !part; i++) {
    const dt_layer *l = &d->layer[i];
    part = l->scale.source && !l->down_norm.source ? "scales of its layers, but no norms after them"
           : s->normed_values && !l->q_norm.source ? "norms of values, but none of queries"
                                                   : NULL;
  }
  if (!part) return DT_OK;
  return dt_fail(err, DT_EINPUT, "model: it has %s, which %s does not compute (--backend cpu does)", part, backend);
}

static dt_status check_medusa(const dt_head_desc *h, const dt_shape *target, dt_error *err) {
  const dt_shape *s = &h->model.shape;
  if (h->taps * target->hidden != s->hidden || s->inter != s->hidden || s->vocab < 1 || s->context < 1 || s->layers)
    return dt_fail(err, DT_EINPUT, "head: its rows of %d numbers do not match the target's %d", s->hidden,
                   target->hidden);
  if (h->distances < 1 || h->distances > DT_DISTANCES || h->blocks < 0 || h->blocks > DT_BLOCKS)
    return dt_fail(err, DT_EINPUT, "head: %d distances of %d blocks, 1 to %d of up to %d are possible", h->distances,
                   h->blocks, DT_DISTANCES, DT_BLOCKS);
  dt_status status = DT_OK;
  for (int d = 0; status == DT_OK && d < h->distances; d++) {
    status = check_matrix(&h->output[d], s->vocab, s->hidden, false, "output", d, err);
    for (int b = 0; status == DT_OK && b < h->blocks; b++) {
      status = check_matrix(&h->block[d][b], s->hidden, s->hidden, false, "block", d, err);
      if (status == DT_OK) status = check_matrix(&h->block_bias[d][b], s->hidden, 1, true, "block's bias", d, err);
    }
  }
  return status;
}

static dt_status check_cross_attention(const dt_head_desc *h, const dt_shape *target, dt_error *err) {
  const dt_shape *s = &h->model.shape;
  if (h->taps != 1 || s->parallel_residual || s->inputs || s->experts || h->model.embed.source)
    return dt_fail(err, DT_EINPUT, "head: one stream, layers with an MLP, and no embedding of its own are expected");
  if (s->vocab != target->vocab)
    return dt_fail(err, DT_EINPUT, "head: it has %d ids, the target has %d", s->vocab, target->vocab);
  dt_status status = check_ends(&h->model, true, err);
  for (int i = 0; status == DT_OK && i < s->layers; i++) status = check_layer(&h->model, i, s->hidden, true, true, err);
  const expectation all[] = {{&h->model.unembed, s->vocab, s->hidden, false, "output embedding"},
                             {&h->fc, s->hidden, 2 * target->hidden, false, "fc"},
                             {&h->fc_bias, s->hidden, 1, true, "fc bias"},
                             {&h->post, target->hidden, s->hidden, false, "post"}};
  return status ? status : check_all(all, sizeof all / sizeof *all, -1, err);
}

static dt_status check_block(const dt_head_desc *h, const dt_shape *target, dt_error *err) {
  const dt_shape *s = &h->model.shape;
  if (h->block_rows < 2 || h->block_rows > DT_DISTANCES || h->mask < 0 || h->mask >= s->vocab)
    return dt_fail(err, DT_EINPUT, "head: blocks of %d rows with the mask token %d, expected 2 to %d and one of %d ids",
                   h->block_rows, (int)h->mask, DT_DISTANCES, s->vocab);
  if (s->parallel_residual || s->inputs || s->experts || s->hidden != target->hidden || s->vocab != target->vocab)
    return dt_fail(err, DT_EINPUT,
                   "head: layers with a sequential residual and an MLP, of the target's width %d and %d "
                   "ids, are expected",
                   target->hidden, target->vocab);
  if (h->model.ids && !h->model.unembed.source)
    return dt_fail(err, DT_EINPUT, "head: it lists ids, and has no output of its own");
  if (s->mix_taps < 0 || s->mix_groups < 0 || !s->mix_taps != !s->mix_groups ||
      (s->mix_groups && s->hidden % s->mix_groups))
    return dt_fail(err, DT_EINPUT, "head: mixes of %d taps in %d groups are not possible with %d channels", s->mix_taps,
                   s->mix_groups, s->hidden);
  dt_status status = check_ends(&h->model, true, err);
  for (int i = 0; status == DT_OK && i < s->layers; i++)
    status = check_layer(&h->model, i, s->hidden, true, false, err);
  const expectation all[] = {{&h->fc, s->hidden, h->taps * target->hidden, false, "fc"},
                             {&h->fc_bias, s->hidden, 1, true, "fc bias"},
                             {&h->feature_norm, s->hidden, 1, false, "norm of features"},
                             {&h->before, s->vocab, h->before.cols, true, "what a token adds"},
                             {&h->after, h->after.rows, h->before.cols, !h->before.source, "what is added to a token"},
                             {&h->post, h->before.cols, s->hidden, true, "post"}};
  return status ? status : check_all(all, sizeof all / sizeof *all, -1, err);
}

dt_status check_head(const dt_head_desc *h, const dt_shape *target, dt_error *err) {
  const dt_shape *s = &h->model.shape;
  bool third = h->kind == DT_HEAD_EAGLE3;
  dt_status status = h->kind == DT_HEAD_MEDUSA ? DT_OK : check_shape(s, err);
  if (status) return status;
  if (h->taps < 1 || h->taps > DT_TAPS)
    return dt_fail(err, DT_EINPUT, "head: %d streams, 1 to %d are possible", h->taps, DT_TAPS);
  for (int i = 0; i < h->taps; i++)
    if (h->tap[i] < 0 || h->tap[i] > target->layers + 1)
      return dt_fail(err, DT_EINPUT, "head: it reads what enters layer %d, the target has %d", h->tap[i],
                     target->layers);
  if (h->kind == DT_HEAD_MEDUSA) return check_medusa(h, target, err);
  if (h->kind == DT_HEAD_CROSS_ATTENTION) return check_cross_attention(h, target, err);
  if (h->kind == DT_HEAD_BLOCK) return check_block(h, target, err);
  int given = h->taps * target->hidden;
  if (!h->token_norm.source != !h->feature_norm.source)
    return dt_fail(err, DT_EINPUT, "head: norms of tokens and of features, expected both or none");
  if (s->layers != 1 || s->parallel_residual)
    return dt_fail(err, DT_EINPUT, "head: one layer with a sequential residual is expected");
  if ((!third && given != s->hidden) || (!h->model.embed.source && target->hidden != s->hidden) ||
      (!h->model.unembed.source && (h->model.ids || target->hidden != s->hidden)))
    return dt_fail(err, DT_EINPUT, "head: its rows of %d numbers do not match the target's %d", s->hidden,
                   target->hidden);
  if ((!h->model.embed.source || !h->model.unembed.source) && s->vocab != target->vocab)
    return dt_fail(err, DT_EINPUT, "head: it shares rows of %d ids, the target has %d", s->vocab, target->vocab);
  status = check_ends(&h->model, true, err);
  if (status == DT_OK) status = check_layer(&h->model, 0, third ? 2 * s->hidden : s->hidden, false, false, err);
  const expectation all[] = {
      {&h->fc, s->hidden, third ? given : 2 * s->hidden, false, "fc"},
      {&h->fc_bias, s->hidden, 1, true, "fc bias"},
      {&h->all_norm, given, 1, true, "norm before fc"},
      {&h->token_norm, s->hidden, 1, !third, "norm of tokens"},
      {&h->feature_norm, s->hidden, 1, !third, "norm of features"},
  };
  if (status == DT_OK) status = check_all(all, sizeof all / sizeof *all, -1, err);
  for (int i = 0; status == DT_OK && i < h->taps; i++)
    status = check_matrix(&h->stream_norm[i], target->hidden, 1, true, "norm of a stream", -1, err);
  return status;
}
