/* Loads weights into panels. The code that lays them out runs twice: once to measure the memory, and once to allocate
 * and fill it. */
#include "chunk.h"
#include "delta_layer.h"
#include "internal.h"
#include "packed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state of an upload. After the first error, which it keeps, nothing more is loaded. */
typedef struct {
  dt_weights *w;
  const dt_model_desc *desc;
  const dt_head_desc *head; /* NULL: the model is not a head */
  const cpu_format *asked;  /* the format to which larger matrices are rounded; NULL: they keep their types */
  const cpu_format *output; /* the same for the output matrix */
  int activations;          /* bits to which quantized matrices round x: 8 or 16 */
  packed_key key;           /* of all that the weights' memory depends on; complete after the first of two layouts */
  bool kept;                /* the weights are there: they were kept by an earlier start */
  dt_status status;
  dt_error *err;
} builder;

static bool is_filling(const builder *b) { return b->w->weights_arena.base && !b->kept && b->status == DT_OK; }

/* Tells the key of what will be stored. */
static void note(builder *b, const void *bytes, size_t n) {
  if (!b->w->weights_arena.base) packed_key_add(&b->key, bytes, n);
}
static void note_matrix(builder *b, const dt_matrix *m) {
  static const dt_matrix none = {0};
  if (!b->w->weights_arena.base) packed_key_add_matrix(&b->key, m ? m : &none);
}

/* Loads a vector of the model, with room up to a multiple of 16 numbers. Returns NULL if the model does not have it. */
static float *take_vector(builder *b, const dt_matrix *source) {
  note_matrix(b, source);
  if (!source->source) return NULL;
  float *v = cpu_take(&b->w->weights_arena, (size_t)cpu_round_up(source->rows, 16) * sizeof *v);
  if (is_filling(b)) b->status = dt_read_vector(source, v, b->err);
  return v;
}

static bool is_cross_attention(const dt_head_desc *head) { return head && head->kind == DT_HEAD_CROSS_ATTENTION; }

static keys_of_layer keys_of(const dt_weights *w, int i) {
  const cpu_layer *l = &w->layer[i];
  return (keys_of_layer){l->k.data, l->window > 0, l->shape.kv_heads, l->shape.head_dim};
}

/* The target's layer whose keys this layer of a cross-attention head reads. */
static int keys_read(const dt_weights *target, const dt_layer *l) {
  return layer_read(target, target->shape.layers, l->window > 0, keys_of);
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

/* A source of a matrix: weights, an optional bias (NULL: none), and where they go; `only` selects rows (NULL: all). */
typedef struct {
  const dt_matrix *weights, *bias;
  cpu_place to;
  int k0;
  const int32_t *only; /* [outputs] */
} part;

enum { MOST_PARTS = 3 }; /* maximum number of parts of a matrix */

static void note_parts(builder *b, cpu_range outputs, const cpu_matrix *m, const part *parts, int count) {
  const int shape[] = {outputs.first, outputs.count, m->k, m->panels, count};
  note(b, m->format->name, strlen(m->format->name) + 1), note(b, shape, sizeof shape);
  for (int i = 0; i < count; i++) {
    const part *p = &parts[i];
    const int place[] = {p->to.output, p->to.height, p->to.stride, p->k0, p->only != NULL};
    note_matrix(b, p->weights), note_matrix(b, p->bias), note(b, place, sizeof place);
    if (p->only) note(b, p->only, (size_t)outputs.count * sizeof *p->only);
  }
}

static cpu_place whole(const dt_matrix *m) { return (cpu_place){0, m->rows, 0}; }

/* Adds a bias, if the model has one, to the outputs that the rows of its matrix become. */
static void add_bias(builder *b, const cpu_matrix *m, cpu_range mine, const part *p) {
  if (!p->bias || !p->bias->source || b->status != DT_OK) return;
  float *v = malloc((size_t)p->bias->rows * sizeof *v);
  b->status =
      v ? dt_read_vector(p->bias, v, b->err) : dt_fail_memory(b->err, "a bias", (size_t)p->bias->rows * sizeof *v);
  for (int r = 0; b->status == DT_OK && r < p->bias->rows; r++) {
    int output = p->to.output + r / p->to.height * p->to.stride + r % p->to.height - mine.first;
    if (output >= 0 && output < mine.count) m->bias[output] += v[r];
  }
  free(v);
}

/* The format that keeps rows of this type as they are stored; f32 if there is none. */
static const cpu_format *format_taking(const builder *b, dt_dtype dtype) {
  const cpu_format *const *formats = b->w->backend->kernels->format;
  for (int i = 0; i < CPU_FORMATS; i++) {
    const cpu_format *f = formats[i];
    if (f->takes == dtype && (f->activations == 0 || f->activations == b->activations)) return f;
  }
  return formats[0];
}

/* Whether parts are rounded to a type. Their rows must consist of whole blocks of it, and become smaller. */
static bool is_rounded(const dt_type *to, const dt_type *from, const part *parts, int count) {
  for (int i = 0; i < count; i++)
    if (parts[i].weights->cols % to->numbers) return false;
  return to->bytes * from->numbers < from->bytes * to->numbers;
}

/* The format of a matrix made of these parts: the type that the user chose for rounding, if it applies; otherwise the
 * format that keeps all parts as they are stored, or f32. */
static const cpu_format *format_of(const builder *b, const part *parts, int count) {
  const cpu_format *widened = b->w->backend->kernels->format[0], *f = format_taking(b, parts[0].weights->dtype);
  for (int i = 1; i < count; i++)
    if (parts[i].weights->dtype != parts[0].weights->dtype) f = widened;
  if (b->asked == widened) return widened;
  return b->asked && is_rounded(dt_type_of(b->asked->takes), dt_type_of(f->takes), parts, count) ? b->asked : f;
}

/* Builds a matrix with these outputs, which are numbered over all parts together. */
static cpu_matrix build(builder *b, cpu_range outputs, int k, const part *parts, int count) {
  dt_weights *w = b->w;
  cpu_matrix m = {
      .format = format_of(b, parts, count), .k = k, .panels = cpu_round_up(outputs.count, CPU_PANEL) / CPU_PANEL};
  size_t prepared = m.format->prepare ? m.format->prepared_bytes(k) : 0;
  if (prepared > w->scratch.prepared_bytes) w->scratch.prepared_bytes = prepared;
  if (m.format->activations) w->activations = m.format->activations;
  if (!w->stored) w->stored = m.format->name;
  if (!b->asked && strcmp(w->stored, m.format->name)) w->stored = "mixed";
  note_parts(b, outputs, &m, parts, count);
  m.data = cpu_take(&w->weights_arena, (size_t)m.panels * m.format->panel_bytes(k));
  m.bias = cpu_take(&w->weights_arena, (size_t)m.panels * CPU_PANEL * sizeof(float));
  if (!is_filling(b)) return m;
  cpu_piece pieces[MOST_PARTS];
  for (int i = 0; i < count; i++)
    pieces[i] = (cpu_piece){parts[i].weights, parts[i].to, outputs.first, parts[i].k0, parts[i].only, outputs.count};
  b->status = cpu_fill(w->backend, &m, pieces, count, b->err);
  for (int i = 0; i < count; i++) add_bias(b, &m, outputs, &parts[i]);
  return m;
}

/* Builds a matrix whose outputs are heads, each padded. The matrix is empty if the layer does not have it. */
static cpu_matrix build_heads(builder *b, int head_dim, cpu_range heads, const dt_matrix *weights,
                              const dt_matrix *bias) {
  int dim = cpu_round_up(head_dim, 16);
  if (!weights->source) return (cpu_matrix){0};
  return build(b, (cpu_range){heads.first * dim, heads.count * dim}, weights->cols,
               &(part){weights, bias, {0, head_dim, dim}, 0, NULL}, 1);
}

/* Builds the part `mine` of the gates, together with the outputs that they multiply. A bias may be NULL. */
static cpu_matrix build_gated(builder *b, cpu_range mine, const dt_matrix *gate, const dt_matrix *gate_bias,
                              const dt_matrix *up, const dt_matrix *up_bias) {
  const part parts[] = {{gate, gate_bias, {0, 16, CPU_PANEL}, 0, NULL}, {up, up_bias, {16, 16, CPU_PANEL}, 0, NULL}};
  return build(b, (cpu_range){2 * mine.first, 2 * cpu_round_up(mine.count, 16)}, up->cols, parts, 2);
}

static cpu_matrix build_whole(builder *b, const dt_matrix *m) {
  if (!m->source) return (cpu_matrix){0};
  return build(b, (cpu_range){0, m->rows}, m->cols, &(part){m, NULL, whole(m), 0, NULL}, 1);
}

static cpu_matrix build_up(builder *b, const dt_layer *l, cpu_range mine) {
  if (b->w->shape.gated) return build_gated(b, mine, &l->gate, &l->gate_bias, &l->up, &l->up_bias);
  return build(b, mine, l->up.cols, &(part){&l->up, &l->up_bias, whole(&l->up), 0, NULL}, 1);
}

/* Builds a layer's experts. The router and the gate of the MLP are stored in f32, whatever the format of the other
 * matrices. */
static void build_experts(builder *b, const dt_layer *l, cpu_layer *out) {
  const dt_shape *s = &b->w->shape;
  const cpu_format *asked = b->asked;
  b->asked = b->w->backend->kernels->format[0];
  out->router = build(b, (cpu_range){0, s->experts}, s->hidden,
                      &(part){&l->router, &l->router_bias, whole(&l->router), 0, NULL}, 1);
  const cpu_matrix mlp_gate = build_whole(b, &l->mlp_gate);
  b->asked = asked;
  out->expert = cpu_take(&b->w->weights_arena, (size_t)s->experts * sizeof *out->expert);
  for (int i = 0; i < s->experts; i++) {
    const dt_expert *from = &l->expert[i];
    const part down = {&from->down, &from->down_bias, whole(&from->down), 0, NULL};
    cpu_expert e = {
        build_gated(b, (cpu_range){0, s->expert_inter}, &from->gate, &from->gate_bias, &from->up, &from->up_bias),
        build(b, (cpu_range){0, s->hidden}, s->expert_inter, &down, 1)};
    if (out->expert) out->expert[i] = e;
  }
  out->routing = (cpu_routing){.correction = take_vector(b, &l->router_correction),
                               .scale = take_vector(b, &l->expert_scale),
                               .mlp_norm = take_vector(b, &l->mlp_norm),
                               .experts_norm = take_vector(b, &l->experts_norm),
                               .expert_norm = take_vector(b, &l->expert_norm),
                               .router_norm = take_vector(b, &l->router_norm),
                               .mlp_gate = mlp_gate};
}

/* The rows of this rank's value heads. The rows of all value heads, `each` per head, begin at row `first` of the
 * matrix. */
static dt_matrix delta_values(const dt_weights *w, dt_matrix all, int first, int each) {
  const dt_shape *s = &w->shape;
  const cpu_range *keys = &w->delta.keys;
  int of_key = s->delta_tiled ? 1 : s->delta_value_heads / s->delta_key_heads; /* adjacent ones */
  dt_matrix mine = dt_some_rows(all, first + keys->first * of_key * each, w->delta.values * each);
  if (s->delta_tiled) mine.group = keys->count * each, mine.stride = s->delta_key_heads * each;
  return mine;
}

/* This rank's rows of a matrix that has queries, keys and values one after the other. */
typedef struct {
  dt_matrix of[MOST_PARTS];
} delta_rows_of;

static delta_rows_of delta_mixed(const dt_weights *w, dt_matrix all) {
  const dt_shape *s = &w->shape;
  int first = w->delta.keys.first * s->delta_key_dim, count = w->delta.keys.count * s->delta_key_dim;
  int keys = s->delta_key_heads * s->delta_key_dim;
  return (delta_rows_of){{dt_some_rows(all, first, count), dt_some_rows(all, keys + first, count),
                          delta_values(w, all, 2 * keys, s->delta_value_dim)}};
}

static cpu_matrix build_mixed(builder *b, const dt_matrix *in) {
  const delta_rows_of rows = delta_mixed(b->w, *in);
  part parts[MOST_PARTS];
  for (int i = 0, at = 0; i < MOST_PARTS; at += rows.of[i++].rows)
    parts[i] = (part){&rows.of[i], NULL, {at, rows.of[i].rows, 0}, 0, NULL};
  return build(b, (cpu_range){0, b->w->delta.mixed}, in->cols, parts, MOST_PARTS);
}

/* Reads the weights of a convolution's rows and stores them tap by tap. */
static void read_taps(builder *b, dt_matrix rows, float *taps) {
  size_t n = (size_t)rows.rows, ld = b->w->delta.ldin;
  rows.rows *= DT_DELTA_TAPS, rows.group *= DT_DELTA_TAPS, rows.stride *= DT_DELTA_TAPS, rows.cols = 1;
  float *read = malloc(DT_DELTA_TAPS * n * sizeof *read);
  b->status =
      read ? dt_read_vector(&rows, read, b->err) : dt_fail_memory(b->err, "a convolution", DT_DELTA_TAPS * n * 4);
  for (size_t i = 0; b->status == DT_OK && i < DT_DELTA_TAPS * n; i++)
    taps[i % DT_DELTA_TAPS * ld + i / DT_DELTA_TAPS] = read[i];
  free(read);
}

static float *take_taps(builder *b, const dt_matrix *conv) {
  const delta_rows_of rows = delta_mixed(b->w, *conv);
  float *taps = cpu_take(&b->w->weights_arena, DT_DELTA_TAPS * b->w->delta.ldin * sizeof *taps);
  for (int i = 0; i < MOST_PARTS; i++) note_matrix(b, &rows.of[i]);
  for (int i = 0, at = 0; i < MOST_PARTS && is_filling(b); at += rows.of[i++].rows) read_taps(b, rows.of[i], taps + at);
  return taps;
}

static cpu_delta *build_delta(builder *b, const dt_layer *l) {
  dt_weights *w = b->w;
  const dt_shape *s = &w->shape;
  const dt_matrix z = delta_values(w, l->delta_z, 0, s->delta_value_dim), a = delta_values(w, l->delta_a, 0, 1),
                  strength = delta_values(w, l->delta_b, 0, 1), decay = delta_values(w, l->delta_decay, 0, 1),
                  shift = delta_values(w, l->delta_shift, 0, 1);
  cpu_delta *out = cpu_take(&w->weights_arena, sizeof *out);
  note(b, &s->delta_log, sizeof s->delta_log);
  cpu_delta built = {.in = build_mixed(b, &l->delta_in),
                     .z = build_whole(b, &z),
                     .a = build_whole(b, &a),
                     .b = build_whole(b, &strength),
                     .conv = take_taps(b, &l->delta_conv),
                     .decay = take_vector(b, &decay),
                     .shift = take_vector(b, &shift),
                     .norm = take_vector(b, &l->delta_norm),
                     .at = w->delta.all};
  for (int i = 0; s->delta_log && is_filling(b) && i < w->delta.values; i++) built.decay[i] = -expf(built.decay[i]);
  w->delta.all += w->delta.store;
  if (out) *out = built;
  return out;
}

/* Which part of a model, or of a layer, with this shape this rank has. */
static cpu_mine mine_of(const dt_weights *w, const dt_shape *s) {
  return cpu_mine_of(s, w->ranks ? w->ranks->rank : 0, w->ranks ? w->ranks->count : 1);
}

static void build_layer(builder *b, const dt_layer *given, int index, cpu_layer *out) {
  dt_weights *w = b->w;
  const bool halves = b->desc->part.halves;
  const dt_layer half = halves && given->apart ? dt_second_half(given) : (dt_layer){0}, *l = halves ? &half : given;
  const dt_shape own = dt_shape_of(&w->shape, l), *s = &own;
  const cpu_mine part_of = mine_of(w, s), *mine = &part_of;
  const part o = {&l->o, &l->o_bias, whole(&l->o), 0, NULL};
  part down = {&l->down, &l->down_bias, whole(&l->down), 0, NULL};
  cpu_layer built = {.norm1 = take_vector(b, &l->norm1),
                     .norm1_bias = take_vector(b, &l->norm1_bias),
                     .norm2 = take_vector(b, &l->norm2),
                     .norm2_bias = take_vector(b, &l->norm2_bias),
                     .o_norm = take_vector(b, &l->o_norm),
                     .down_norm = take_vector(b, &l->down_norm),
                     .window = l->window,
                     .still = l->still,
                     .backward = l->backward,
                     .shape = own,
                     .mine = part_of,
                     .dim = cpu_round_up(s->head_dim, 16),
                     .keys_of = is_cross_attention(b->head) ? keys_read(w->head.target, l)
                                : l->keys_of                ? l->keys_of - 1
                                                            : index,
                     .cache_at = w->slot_bytes,
                     .q_norm = take_vector(b, &l->q_norm),
                     .k_norm = take_vector(b, &l->k_norm),
                     .v_norm = s->normed_values ? w->ones : NULL,
                     .q = build_heads(b, s->head_dim, mine->heads, &l->q, &l->q_bias),
                     .k = build_heads(b, s->head_dim, mine->kv_heads, &l->k, &l->k_bias),
                     .v = build_heads(b, s->head_dim, mine->kv_heads, &l->v, &l->v_bias),
                     .sinks = take_vector(b, &l->sinks),
                     .q_gate = build_heads(b, s->head_dim, mine->heads, &l->q_gate, NULL),
                     .delta = l->delta ? build_delta(b, l) : NULL,
                     .mix = {build_whole(b, &l->attention_mix), build_whole(b, &l->mlp_mix)},
                     .mix_base = {take_vector(b, &l->attention_mix_base), take_vector(b, &l->mlp_mix_base)},
                     .input_gate = build_whole(b, &l->input_gate),
                     .input_norm = take_vector(b, &l->input_norm),
                     .scale = take_vector(b, &l->scale)};
  if (l->expert) build_experts(b, l, &built);
  if (l->up.source) built.up = build_up(b, l, mine->inter);
  if (l->input_out.source) {
    const part input = {&l->input_out, NULL, whole(&l->input_out), 0, NULL};
    built.input_out = build(b, mine->hidden, s->inputs, &input, 1);
  }
  if (l->delta) w->writing = index + 1;
  if (!l->keys_of && !l->delta && !halves) {
    size_t row = w->backend->cache_type->row_bytes(built.dim);
    w->slot_bytes += 2 * (size_t)mine->kv_heads.count * row;
    w->writing = index + 1;
  }
  if (s->parallel_residual) {
    down.k0 = l->o.cols;
    built.o = build(b, mine->hidden, l->o.cols + s->inter, (const part[]){o, down}, 2);
  } else {
    if (l->o.source) built.o = build(b, mine->hidden, l->o.cols, &o, 1);
    if (l->down.source) built.down = build(b, mine->hidden, s->inter, &down, 1);
  }
  w->gated |= built.q_gate.panels > 0;
  if (out) *out = built;
}

static bool is_same_view(const dt_matrix *a, const dt_matrix *b) {
  return a->source == b->source && a->offset == b->offset && a->dtype == b->dtype;
}

/* Builds a matrix of logits, of which `only` selects rows. */
static cpu_matrix build_output(builder *b, cpu_range outputs, const dt_matrix *m, const int32_t *only) {
  const cpu_format *asked = b->asked;
  b->asked = b->output;
  const cpu_matrix built = build(b, outputs, m->cols, &(part){m, NULL, whole(m), 0, only}, 1);
  b->asked = asked;
  return built;
}

static void build_unembed(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
  if (d->part.leaves) return;
  if (!d->unembed.source) {
    w->unembed = w->head.target->unembed;
    if (w->head.target->scratch.prepared_bytes > w->scratch.prepared_bytes)
      w->scratch.prepared_bytes = w->head.target->scratch.prepared_bytes;
    return;
  }
  w->unembed =
      build_output(b, d->ids ? (cpu_range){0, d->n_ids} : w->mine.ids, &d->unembed, d->id_rows ? d->id_rows : d->ids);
  if (!d->ids) return;
  w->n_ids = d->n_ids;
  w->ids = cpu_take(&w->weights_arena, (size_t)d->n_ids * sizeof *w->ids);
  if (w->ids) memcpy(w->ids, d->ids, (size_t)d->n_ids * sizeof *w->ids);
}

static void build_embed(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
  w->tied = &w->unembed;
  if (!d->embed.source || d->part.enters) return;
  const bool shared = !d->ids && b->output == b->asked && is_same_view(&d->embed, &d->unembed);
  if (shared && !d->part.leaves) return;
  w->embed_dtype = d->embed.dtype;
  size_t row = dt_row_bytes(d->embed.dtype, (size_t)d->embed.cols);
  w->embed = cpu_take(&w->weights_arena, (size_t)w->mine.ids.count * row);
  note_matrix(b, &d->embed), note(b, &w->mine.ids, sizeof w->mine.ids);
  if (is_filling(b)) b->status = cpu_copy_rows(w->backend, &d->embed, w->mine.ids, w->embed, b->err);
}

static void build_inputs(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
  const dt_matrix *table = &d->inputs_embed, *proj = &d->inputs_proj;
  int n = w->shape.inputs;
  if (!n) return;
  w->inputs_dim = cpu_round_up(n, 16);
  w->inputs_dtype = table->dtype;
  w->inputs_embed = cpu_take(&w->weights_arena, (size_t)table->rows * dt_row_bytes(table->dtype, (size_t)table->cols));
  note_matrix(b, table);
  if (is_filling(b)) b->status = cpu_copy_rows(w->backend, table, (cpu_range){0, table->rows}, w->inputs_embed, b->err);
  w->inputs_proj = build(b, (cpu_range){0, w->shape.layers * w->inputs_dim}, proj->cols,
                         &(part){proj, NULL, {0, n, w->inputs_dim}, 0, NULL}, 1);
  w->inputs_norm = take_vector(b, &d->inputs_norm);
}

static void build_medusa(builder *b) {
  const dt_head_desc *d = b->head;
  cpu_head *h = &b->w->head;
  for (int i = 0; i < d->distances; i++) {
    h->output[i] = build_output(b, (cpu_range){0, d->output[i].rows}, &d->output[i], NULL);
    for (int j = 0; j < d->blocks; j++) {
      const part block = {&d->block[i][j], &d->block_bias[i][j], whole(&d->block[i][j]), 0, NULL};
      h->block[i][j] = build(b, (cpu_range){0, d->block[i][j].rows}, d->block[i][j].cols, &block, 1);
    }
  }
}

static void build_head(builder *b) {
  const dt_head_desc *d = b->head;
  cpu_head *h = &b->w->head;
  h->fc = build(b, (cpu_range){0, d->fc.rows}, d->fc.cols, &(part){&d->fc, &d->fc_bias, whole(&d->fc), 0, NULL}, 1);
  if (d->post.source) h->post = build_whole(b, &d->post);
  h->all_norm = take_vector(b, &d->all_norm);
  for (int i = 0; i < d->taps; i++) h->stream_norm[i] = take_vector(b, &d->stream_norm[i]);
  h->token_norm = take_vector(b, &d->token_norm);
  h->feature_norm = take_vector(b, &d->feature_norm);
}

static float *take_angles(builder *b, int dims, const float *freq) {
  size_t pairs = (size_t)dims / 2;
  float *taken = freq ? cpu_take(&b->w->weights_arena, pairs * sizeof *taken) : NULL;
  if (taken) memcpy(taken, freq, pairs * sizeof *taken);
  return taken;
}

static void build_model(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
  if (b->head && b->head->kind == DT_HEAD_MEDUSA) {
    build_medusa(b);
    return;
  }
  const dt_shape *s = &w->shape;
  w->layer = cpu_take(&w->weights_arena, (size_t)s->layers * sizeof *w->layer);
  w->ones = cpu_take(&w->weights_arena, (size_t)cpu_round_up(s->head_dim, 16) * sizeof *w->ones);
  for (int i = 0; w->ones && i < s->head_dim; i++) w->ones[i] = 1;
  w->slot_bytes = w->delta.all = 0;
  for (int i = 0; i < s->layers; i++) build_layer(b, &d->layer[i], i, w->layer ? &w->layer[i] : NULL);
  w->final_norm = take_vector(b, &d->final_norm);
  w->final_norm_bias = take_vector(b, &d->final_norm_bias);
  build_unembed(b);
  build_embed(b);
  build_inputs(b);
  if (b->head) build_head(b);
  w->inv_freq = take_angles(b, s->rotary_dims, d->inv_freq);
  w->local_freq = take_angles(b, s->local_dims ? s->local_dims : s->rotary_dims, d->local_freq);
}

/* Computes how rows, bases and stores of delta layers are laid out, in floats. */
static void lay_out_deltas(dt_weights *w) {
  const dt_shape *s = &w->shape;
  cpu_deltas *d = &w->delta;
  const cpu_range mine = w->mine.delta_keys.count ? w->mine.delta_keys : (cpu_range){0, 1};
  const int heads = mine.count * (s->delta_value_heads / s->delta_key_heads);
  size_t keys = (size_t)mine.count * (size_t)s->delta_key_dim, values = (size_t)heads * (size_t)s->delta_value_dim;
  *d = (cpu_deltas){.keys = mine, .values = heads, .mixed = (int)(2 * keys + values), .keys_at = 2 * keys + values};
  d->deltas_at = d->keys_at + keys;
  d->rates_at = d->deltas_at + values;
  d->ldrates = (size_t)cpu_round_up(heads, CPU_PANEL);
  d->row = d->rates_at + d->ldrates;
  d->base = (size_t)s->delta_key_dim * (size_t)s->delta_value_dim;
  d->bases_at = DT_DELTA_RING * d->row;
  d->tags_at = d->bases_at + (size_t)heads * DT_DELTA_BASES * d->base;
  d->store = d->tags_at + (size_t)cpu_round_up(heads * DT_DELTA_BASES, 16);
  d->ldin = (size_t)cpu_round_up(d->mixed, CPU_PANEL) + 16;
  d->ldz = (size_t)cpu_round_up((int)values, CPU_PANEL) + 16;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static dt_status fill(builder *b) {
  dt_weights *w = b->w;
  dt_backend *backend = w->backend;
  char name[DIGEST_TEXT];
  packed_key_begin(&b->key, backend);
  build_model(b); /* measures the memory */
  digest_end(&b->key.of, name);
  const bool keeps = b->key.possible && !w->ranks && w->weights_arena.used >= PACKED_LEAST;
  cpu_lay_out_scratch(w);
  dt_status status = cpu_arena_open(&w->weights_arena, "the weights", backend->team, &backend->memory.weights, b->err);
  if (status == DT_OK)
    status = cpu_arena_open(&w->scratch_arena, "scratch", backend->team, &backend->memory.scratch, b->err);
  if (status != DT_OK) return status;
  b->kept = keeps && cpu_packed_read(backend, name, &w->weights_arena);
  build_model(b);
  cpu_lay_out_scratch(w);
  if (b->status == DT_OK && keeps && !b->kept) w->writer = cpu_packed_write(backend, name, &w->weights_arena);
  return b->status;
}

#define ASKED(name, type) {#name, DT_##type},
static const struct {
  const char *name;
  dt_dtype type;
} asked_for[] = {CPU_ASKED_LIST(ASKED)};
enum { ASKED_FOR = sizeof asked_for / sizeof *asked_for };

/* Makes caches created from now on store features of this many numbers. A norm may read sixteen numbers past the
 * end. */
static void keep_features(dt_weights *w, int numbers) { w->ldfeature = (size_t)cpu_round_up(numbers, 16) + 16; }

/* The same, with the features of these streams. */
static void keep_streams(dt_weights *w, const int *tap, int taps) {
  memcpy(w->tap, tap, (size_t)taps * sizeof *tap);
  w->taps = taps;
  keep_features(w, taps * w->shape.hidden);
}

/* Finds the format to which matrices are rounded that users call `name`. NULL gives NULL. */
static dt_status find_format(const builder *b, const char *name, const cpu_format **out) {
  int i = 0;
  while (name && i < ASKED_FOR && strcmp(asked_for[i].name, name)) i++;
  if (i == ASKED_FOR)
    return dt_fail(b->err, DT_EINPUT, "weights: the CPU backend does not support the type '%.40s'", name);
  *out = name ? format_taking(b, asked_for[i].type) : NULL;
  return DT_OK;
}

static dt_status find_formats(builder *b, const dt_holding *how) {
  dt_status status = find_format(b, how->dtype, &b->asked);
  b->output = b->asked;
  return status == DT_OK && how->output ? find_format(b, how->output, &b->output) : status;
}

/* Uploads a model or a head that has been checked. */
static dt_status upload(dt_backend *backend, const dt_model_desc *d, const dt_head_desc *head, const dt_weights *target,
                        const dt_holding *how, dt_weights **out, dt_error *err) {
  dt_weights *w = calloc(1, sizeof *w);
  if (!w) return dt_fail_memory(err, "a model", sizeof *w);
  w->backend = backend;
  w->shape = d->shape;
  w->part = d->part;
  w->ranks = d->path ? backend->ranks : NULL;
  w->mine = mine_of(w, &d->shape);
  if (d->shape.delta_value_heads) lay_out_deltas(w);
  w->run_layer = d->shape.parallel_residual ? cpu_parallel_layer : cpu_sequential_layer;
  w->scale = d->shape.attention_scale != 0 ? d->shape.attention_scale
             : d->shape.head_dim           ? (float)(1.0 / sqrt((double)d->shape.head_dim))
                                           : 0.0f;
  w->residual_scale = d->shape.residual_scale != 0 ? d->shape.residual_scale : 1.0f;
  if (head) {
    w->head = (cpu_head){.target = target,
                         .kind = head->kind,
                         .norm_residual = head->norm_residual,
                         .leads = dt_head_leads(head),
                         .post_rows = head->post.rows,
                         .given = head->taps * target->shape.hidden,
                         .distances = head->distances,
                         .blocks = head->blocks};
    if (is_cross_attention(head))
      keep_features(w, w->head.given);
    else if (d->shape.layers && head->kind != DT_HEAD_BLOCK)
      keep_streams(w, (const int[]){d->shape.layers + head->norm_output}, 1);
  }
  builder b = {.w = w, .desc = d, .head = head, .activations = 8, .err = err};
  dt_status status = DT_OK;
  if (how) {
    if (how->activations) b.activations = atoi(how->activations);
    status = find_formats(&b, how);
    if (b.asked) w->stored = how->dtype;
  }
  if (status == DT_OK) status = fill(&b);
  if (status == DT_OK)
    *out = w;
  else
    cpu_free_weights(w);
  return status;
}

dt_status cpu_upload(dt_backend *backend, const dt_model_desc *d, const dt_holding *how, dt_weights **out,
                     dt_error *err) {
  dt_status status = check_model(d, err);
  for (int i = 0; status == DT_OK && i < d->shape.layers; i++)
    if (d->layer[i].apart && !d->part.halves)
      status = dt_fail(err, DT_EINPUT, "model: the CPU backend computes whole layers or their second halves");
  if (status == DT_OK && d->shape.experts && d->path && backend->ranks)
    status =
        dt_fail(err, DT_EINPUT, "model: a model with experts cannot be split across ranks; run dtrun without mpirun");
  return status ? status : upload(backend, d, NULL, NULL, how, out, err);
}

dt_status cpu_upload_head(dt_backend *backend, const dt_head_desc *head, const dt_holding *how, dt_weights *target,
                          dt_weights **out, dt_error *err) {
  dt_status status = check_head(head, &target->shape, err);
  if (status == DT_OK && target->ids)
    status = dt_fail(err, DT_EINPUT, "head: the target is loaded with only %d of its output rows", target->n_ids);
  if (status == DT_OK && target->ranks)
    status = dt_fail(err, DT_EINPUT,
                     "head: it reads rows of the target, which is split across %d ranks; run dtrun without mpirun, "
                     "or use a draft model",
                     target->ranks->count);
  if (status == DT_OK) status = check_layers_read(head, target, target->shape.layers, keys_of, err);
  if (status == DT_OK) status = upload(backend, &head->model, head, target, how, out, err);
  if (status == DT_OK) keep_streams(target, head->tap, head->taps);
  return status;
}

void cpu_free_weights(dt_weights *w) {
  if (!w) return;
  cpu_packed_stop(w->writer);
  cpu_arena_close(&w->weights_arena, &w->backend->memory.weights);
  cpu_arena_close(&w->scratch_arena, &w->backend->memory.scratch);
  free(w);
}
