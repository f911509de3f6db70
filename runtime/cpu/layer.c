/* A layer with a parallel residual, and one with a sequential residual. Between phases the team waits at a barrier, and
 * ranks that share the model exchange their parts. */
#include "chunk.h"

#include <string.h>

/* Normalizes the rows of x. If there are few, each thread computes all of them for itself; otherwise they are shared
 * out. */
static const float *normalize(const cpu_chunk *c, int which, const float *weight, const float *bias) {
  const dt_weights *w = c->p->w;
  float *own = w->scratch.own + ((size_t)c->me->thread * 2 + (size_t)which) * CPU_OWN_ROWS * w->scratch.ldx;
  float *shared = w->scratch.normed + (size_t)which * CPU_ROWS * w->scratch.ldx;
  int first = 0, last = c->n;
  float *y = c->n <= CPU_OWN_ROWS ? own : shared;
  if (y == shared) cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++)
    w->backend->kernels->norm(w->shape.norm, w->scratch.x + (size_t)r * w->scratch.ldx, weight, bias, w->shape.hidden,
                              w->shape.norm_eps, y + (size_t)r * w->scratch.ldx);
  return y;
}

static void wait_for_norms(const cpu_chunk *c) {
  if (c->n > CPU_OWN_ROWS) cpu_wait(c->me);
}

static cpu_product to_heads(const dt_weights *w, const cpu_matrix *m, const float *x, size_t ldx, int at) {
  return (cpu_product){m, x, ldx, CPU_STORE, w->scratch.qkv + at, w->scratch.ldqkv};
}

static cpu_product to_inner(const dt_weights *w, const cpu_layer *l, const float *x) {
  return (cpu_product){&l->up,
                       x,
                       w->scratch.ldx,
                       w->shape.gated ? CPU_GATE : CPU_ACTIVATE,
                       cpu_inner_of(w) + l->mine.inter.first,
                       w->scratch.ldcat};
}

/* A product whose result is added to the residual stream. If a norm or a mix comes in between, it goes to normed;
 * otherwise the product itself adds it. */
static cpu_product to_residual(const dt_weights *w, const cpu_matrix *m, const float *x, bool apart) {
  float *to = apart ? w->scratch.normed : w->scratch.x;
  return (cpu_product){m, x, w->scratch.ldcat, apart ? CPU_STORE : CPU_ADD, to + w->mine.hidden.first, w->scratch.ldx};
}

/* The same for the product that ends attention or the MLP of a layer. */
static cpu_product to_end(const dt_weights *w, const cpu_layer *l, bool mlp) {
  const bool apart = l->mix[mlp].data || (mlp ? l->down_norm : l->o_norm);
  return to_residual(w, mlp ? &l->down : &l->o, mlp ? cpu_inner_of(w) : w->scratch.cat, apart);
}

static void end_residual(const cpu_chunk *c, const float *norm) {
  const dt_weights *w = c->p->w;
  int first, last;
  cpu_gather(c, norm ? CPU_ADDED : CPU_STREAM);
  if (!norm) return;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) {
    float *x = w->scratch.x + (size_t)r * w->scratch.ldx, *added = w->scratch.normed + (size_t)r * w->scratch.ldx;
    w->backend->kernels->norm(w->shape.norm, added, norm, NULL, w->shape.hidden, w->shape.norm_eps, added);
    for (int i = 0; i < w->shape.hidden; i++) x[i] += w->residual_scale * added[i];
  }
  cpu_wait(c->me);
}

static void end_block(const cpu_chunk *c, const cpu_layer *l, bool mlp) {
  if (l->mix[mlp].data)
    cpu_gather(c, CPU_ADDED), cpu_add_mixed(c, l, mlp);
  else
    end_residual(c, mlp ? l->down_norm : l->o_norm);
}

/* x += o(attention(norm1(x))) + down(act(up(norm2(x)))); one product computes o and down together. */
void cpu_parallel_layer(const cpu_chunk *c, int layer) {
  const dt_weights *w = c->p->w;
  const cpu_layer *l = &w->layer[layer];
  const float *x1 = normalize(c, 0, l->norm1, l->norm1_bias);
  const float *x2 = normalize(c, 1, l->norm2, l->norm2_bias);
  wait_for_norms(c);
  const cpu_product in[] = {to_heads(w, &l->q, x1, w->scratch.ldx, 0),
                            to_heads(w, &l->k, x1, w->scratch.ldx, w->scratch.keys_at),
                            to_heads(w, &l->v, x1, w->scratch.ldx, w->scratch.values_at), to_inner(w, l, x2)};
  cpu_multiply(c, in, 4);
  cpu_gather(c, CPU_INNER);
  cpu_attend(c, layer, false);
  cpu_gather(c, CPU_ATTENDED);
  const cpu_product out = to_residual(w, &l->o, w->scratch.cat, false);
  cpu_multiply(c, &out, 1);
  end_residual(c, NULL);
}

/* Copies this rank's heads of row r from qkv, where each head is padded, to wide, or back. */
static void carry_heads(const dt_weights *w, const cpu_layer *l, int r, cpu_range heads, int at, int wide_at,
                        bool back) {
  size_t n = (size_t)l->shape.head_dim;
  for (int h = 0; h < heads.count; h++) {
    float *in = w->scratch.qkv + (size_t)r * w->scratch.ldqkv + (size_t)at + (size_t)h * (size_t)l->dim;
    float *wide = w->scratch.wide + (size_t)r * w->scratch.ldwide + (size_t)wide_at + (size_t)(heads.first + h) * n;
    memcpy(back ? in : wide, back ? wide : in, n * sizeof *in);
  }
}

/* Normalizes the queries of all heads together, and likewise the keys. */
static void normalize_wide(const cpu_chunk *c, const cpu_layer *l) {
  const dt_weights *w = c->p->w;
  const dt_shape *s = &l->shape;
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) {
    carry_heads(w, l, r, l->mine.heads, 0, 0, false);
    carry_heads(w, l, r, l->mine.kv_heads, w->scratch.keys_at, w->scratch.wide_keys_at, false);
  }
  cpu_gather(c, CPU_QUERIES);
  cpu_gather(c, CPU_KEYS);
  for (int r = first; r < last; r++) {
    float *q = w->scratch.wide + (size_t)r * w->scratch.ldwide, *k = q + w->scratch.wide_keys_at;
    w->backend->kernels->norm(DT_NORM_RMS, q, l->q_norm, NULL, s->heads * s->head_dim, s->norm_eps, q);
    w->backend->kernels->norm(DT_NORM_RMS, k, l->k_norm, NULL, s->kv_heads * s->head_dim, s->norm_eps, k);
    carry_heads(w, l, r, l->mine.heads, 0, 0, true);
    carry_heads(w, l, r, l->mine.kv_heads, w->scratch.keys_at, w->scratch.wide_keys_at, true);
  }
  cpu_wait(c->me);
}

/* Multiplies q, k and v with the first norm of x, with x itself, or with the rows that a draft head prepared. Committed
 * rows of a block head have no queries, and their x is normalized already. */
static void multiply_heads(const cpu_chunk *c, const cpu_layer *l) {
  const dt_weights *w = c->p->w;
  bool paired = w->head.target && w->head.kind == DT_HEAD_EAGLE3;
  const float *x1 = paired ? w->scratch.pair : w->scratch.x;
  size_t ld = paired ? w->scratch.ldpair : w->scratch.ldx;
  const bool keys_only = cpu_keys_only(c);
  if (l->norm1 && !keys_only) {
    x1 = normalize(c, 0, l->norm1, l->norm1_bias);
    wait_for_norms(c);
  }
  if (l->mix[0].data && !keys_only) x1 = cpu_mix(c, l, false, x1);
  cpu_product in[CPU_PRODUCTS];
  int n = 0;
  if (!keys_only) in[n++] = to_heads(w, &l->q, x1, ld, 0);
  if (l->k.data)
    in[n++] = to_heads(w, &l->k, x1, ld, w->scratch.keys_at),
    in[n++] = to_heads(w, &l->v, x1, ld, w->scratch.values_at);
  if (l->q_gate.data) in[n++] = (cpu_product){&l->q_gate, x1, ld, CPU_STORE, w->scratch.gates, w->scratch.ldgates};
  cpu_multiply(c, in, n);
  cpu_wait(c->me);
  if (w->shape.wide_norms) normalize_wide(c, l);
}

/* Attention, or the sums of a delta layer, which cannot be skipped with write_only: its rows in the ring need all of
 * them. */
static void attend(const cpu_chunk *c, int layer, bool write_only) {
  const cpu_layer *l = &c->p->w->layer[layer];
  if (l->delta) {
    const float *x1 = normalize(c, 0, l->norm1, NULL);
    wait_for_norms(c);
    cpu_run_delta(c, layer, x1);
    return;
  }
  multiply_heads(c, l);
  cpu_attend(c, layer, write_only);
}

/* x += norm(out(act(gate(x)) * inputs)); each rank computes the whole gate, which has few numbers */
static void add_inputs(const cpu_chunk *c, const cpu_layer *l, int layer) {
  const dt_weights *w = c->p->w;
  const cpu_product gate = {&l->input_gate, w->scratch.x,   w->scratch.ldx,
                            CPU_ACTIVATE,   w->scratch.cat, w->scratch.ldcat};
  int first, last;
  cpu_multiply(c, &gate, 1);
  cpu_wait(c->me);
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) {
    const float *in = w->scratch.inputs + (size_t)r * w->scratch.ldinputs + (size_t)layer * (size_t)w->inputs_dim;
    for (int i = 0; i < w->shape.inputs; i++) w->scratch.cat[(size_t)r * w->scratch.ldcat + (size_t)i] *= in[i];
  }
  cpu_wait(c->me);
  const cpu_product out = to_residual(w, &l->input_out, w->scratch.cat, l->input_norm != NULL);
  cpu_multiply(c, &out, 1);
  end_residual(c, l->input_norm);
}

static void scale_stream(const cpu_chunk *c, float scale) {
  const dt_weights *w = c->p->w;
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++)
    for (int i = 0; i < w->shape.hidden; i++) w->scratch.x[(size_t)r * w->scratch.ldx + (size_t)i] *= scale;
  cpu_wait(c->me);
}

/* Runs the MLP of a layer that has both an MLP and experts. */
static void run_beside(const cpu_chunk *c, const cpu_layer *l, const float *x) {
  const dt_weights *w = c->p->w;
  const cpu_matrix *gate = &l->routing.mlp_gate;
  const cpu_product in[] = {to_inner(w, l, x), {gate, x, w->scratch.ldx, CPU_STORE, w->scratch.routes.gate, CPU_PANEL}},
                    down = {&l->down,  cpu_inner_of(w),         w->scratch.ldcat,
                            CPU_STORE, w->scratch.routes.dense, w->scratch.ldx};
  cpu_multiply(c, in, gate->data ? 2 : 1);
  cpu_wait(c->me);
  cpu_multiply(c, &down, 1);
  cpu_wait(c->me);
}

/* Multiplies a row of that MLP's output by the sigmoid of its gate. */
static void gate_dense(const dt_weights *w, int r, float *dense) {
  float e[16] = {-w->scratch.routes.gate[(size_t)r * CPU_PANEL]};
  w->backend->kernels->exp(e, 16, e);
  for (int i = 0; i < w->shape.hidden; i++) dense[i] *= 1 / (1 + e[0]);
}

/* Adds that MLP's output to the sum of the experts. The result goes to normed or, if no norm follows, to the stream. */
static void join_beside(const cpu_chunk *c, const cpu_layer *l) {
  const dt_weights *w = c->p->w;
  const dt_shape *s = &w->shape;
  const cpu_kernels *k = w->backend->kernels;
  const float *norm[] = {l->routing.experts_norm, l->routing.mlp_norm};
  int first, last;
  cpu_wait(c->me);
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) {
    float *part[] = {w->scratch.normed + (size_t)r * w->scratch.ldx,
                     w->scratch.routes.dense + (size_t)r * w->scratch.ldx};
    float *x = w->scratch.x + (size_t)r * w->scratch.ldx;
    if (l->routing.mlp_gate.data) gate_dense(w, r, part[1]);
    for (int i = 0; i < 2; i++)
      if (norm[i]) k->norm(s->norm, part[i], norm[i], NULL, s->hidden, s->norm_eps, part[i]);
    for (int i = 0; i < s->hidden; i++) part[0][i] += part[1][i];
    for (int i = 0; i < s->hidden && !l->down_norm; i++) x[i] += w->residual_scale * part[0][i];
  }
}

/* Runs the experts and, if the layer has one, the MLP. x: the rows after norm2. */
static void run_experts(const cpu_chunk *c, const cpu_layer *l, int layer, const float *x) {
  const cpu_routing *by = &l->routing;
  const float *routed = x;
  if (l->up.data) run_beside(c, l, x);
  if (by->expert_norm) {
    x = normalize(c, 1, by->expert_norm, NULL), routed = normalize(c, 0, by->router_norm, NULL);
    wait_for_norms(c);
  }
  cpu_run_experts(c, layer, x, routed);
  if (l->up.data) join_beside(c, l);
}

/* x += down(act(up(norm2(x)))), or experts. Per-layer inputs and a scale follow if the layer has them. */
void cpu_second_half(const cpu_chunk *c, int layer) {
  const dt_weights *w = c->p->w;
  const cpu_layer *l = &w->layer[layer];
  const float *x2 = w->scratch.x;
  if (l->norm2) {
    x2 = normalize(c, 1, l->norm2, l->norm2_bias);
    wait_for_norms(c);
  }
  if (l->mix[1].data) x2 = cpu_mix(c, l, true, x2);
  if (l->expert) {
    run_experts(c, l, layer, x2);
  } else {
    const cpu_product up = to_inner(w, l, x2), down = to_end(w, l, true);
    cpu_multiply(c, &up, 1);
    cpu_gather(c, CPU_INNER);
    cpu_multiply(c, &down, 1);
  }
  end_block(c, l, true);
  if (w->shape.inputs) add_inputs(c, l, layer);
  if (l->scale) scale_stream(c, *l->scale);
}

/* x += o(attention(norm1(x))), then the second half. Each norm may be absent, and each half may end with a norm. */
void cpu_sequential_layer(const cpu_chunk *c, int layer) {
  const dt_weights *w = c->p->w;
  const cpu_layer *l = &w->layer[layer];
  attend(c, layer, false);
  cpu_gather(c, CPU_ATTENDED);
  const cpu_product o = to_end(w, l, false);
  cpu_multiply(c, &o, 1);
  end_block(c, l, false);
  cpu_second_half(c, layer);
}

void cpu_keys_and_values(const cpu_chunk *c, int layer) { attend(c, layer, true); }
