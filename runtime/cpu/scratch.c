/* Lays out a model's scratch memory: the rows of a chunk between the phases of a pass. Called twice, like upload.c's
 * functions: to measure it and to allocate it. */
#include "internal.h"

static void build_delta_scratch(dt_weights *w) {
  cpu_arena *a = &w->scratch_arena;
  const cpu_deltas *d = &w->delta;
  cpu_delta_rows *r = &w->scratch.delta;
  r->in = cpu_take(a, CPU_ROWS * d->ldin * sizeof(float));
  r->z = cpu_take(a, CPU_ROWS * d->ldz * sizeof(float));
  r->a = cpu_take(a, CPU_ROWS * d->ldrates * sizeof(float));
  r->b = cpu_take(a, CPU_ROWS * d->ldrates * sizeof(float));
}

static void build_routes(dt_weights *w) {
  cpu_arena *a = &w->scratch_arena;
  const dt_shape *s = &w->shape;
  cpu_scratch *k = &w->scratch;
  cpu_routes *r = &k->routes;
  size_t pairs = CPU_ROWS * (size_t)s->chosen;
  r->ldlogits = (size_t)cpu_round_up(s->experts, CPU_PANEL);
  r->ldinner = (size_t)cpu_round_up(s->expert_inter, CPU_PANEL) + 16;
  r->step = (r->ldinner > k->ldx ? r->ldinner : k->ldx) * sizeof(float);
  if (k->prepared_bytes > r->step) r->step = k->prepared_bytes;
  r->logits = cpu_take(a, CPU_ROWS * r->ldlogits * sizeof(float));
  r->id = cpu_take(a, pairs * sizeof *r->id);
  r->weight = cpu_take(a, pairs * sizeof *r->weight);
  r->place = cpu_take(a, (size_t)w->backend->threads * pairs * sizeof *r->place);
  r->rows = cpu_take(a, pairs * r->step);
  r->inner = cpu_take(a, pairs * r->ldinner * sizeof(float));
  r->out = cpu_take(a, pairs * k->ldx * sizeof(float));
  r->dense = cpu_take(a, CPU_ROWS * k->ldx * sizeof(float));
  r->gate = cpu_take(a, CPU_ROWS * CPU_PANEL * sizeof(float));
}

void cpu_lay_out_scratch(dt_weights *w) {
  cpu_arena *a = &w->scratch_arena;
  const dt_shape *s = &w->shape;
  cpu_scratch *k = &w->scratch;
  size_t threads = (size_t)w->backend->threads;
  int dim = cpu_round_up(s->head_dim, 16), keys = cpu_round_up(w->mine.kv_heads.count * dim, CPU_PANEL);
  k->keys_at = cpu_round_up(w->mine.heads.count * dim, CPU_PANEL);
  k->values_at = k->keys_at + keys;
  /* Sixteen more numbers, because rows whose length is a power of two would share a few sets of the L1 cache. */
  k->ldx = (size_t)cpu_round_up(s->hidden, CPU_PANEL) + 16;
  k->ldqkv = (size_t)(k->values_at + keys);
  int inner = s->heads * s->head_dim + cpu_round_up(s->inter, CPU_PANEL), inputs = cpu_round_up(s->inputs, CPU_PANEL);
  k->ldcat = (size_t)(inner > inputs ? inner : inputs) + 16;
  size_t attended = (size_t)cpu_round_up(s->delta_value_heads * s->delta_value_dim, CPU_PANEL) + 16;
  if (k->ldcat < attended) k->ldcat = attended;
  k->ldgates = (size_t)k->keys_at;
  k->ldangles = (size_t)(s->rotary_dims > s->local_dims ? s->rotary_dims : s->local_dims);
  k->ldinputs = (size_t)cpu_round_up(s->layers * w->inputs_dim, CPU_PANEL) + 16;
  k->wide_keys_at = cpu_round_up(s->heads * s->head_dim, 16);
  k->ldwide = (size_t)(k->wide_keys_at + cpu_round_up(s->kv_heads * s->head_dim, 16));
  int blocks = (s->vocab + CPU_LOGIT_BLOCK - 1) / CPU_LOGIT_BLOCK;
  k->x = cpu_take(a, CPU_ROWS * k->ldx * sizeof(float));
  k->normed = cpu_take(a, 2 * CPU_ROWS * k->ldx * sizeof(float));
  k->own = cpu_take(a, threads * 2 * CPU_OWN_ROWS * k->ldx * sizeof(float));
  k->qkv = cpu_take(a, CPU_ROWS * k->ldqkv * sizeof(float));
  k->cat = cpu_take(a, CPU_ROWS * k->ldcat * sizeof(float));
  k->heads = cpu_take(a, threads * CPU_ATTENTION_ROWS * (size_t)dim * sizeof(float));
  k->sums = cpu_take(a, threads * CPU_ROWS * CPU_LOGIT_BLOCK * sizeof(float));
  k->top = cpu_take(a, threads * CPU_ROWS * 2 * sizeof(cpu_top));
  k->parts = cpu_take(a, (size_t)blocks * 2 * CPU_ROWS * sizeof *k->parts);
  k->angles = cpu_take(a, 2 * CPU_ROWS * 2 * k->ldangles * sizeof(float));
  if (s->inputs) {
    k->inputs = cpu_take(a, CPU_ROWS * k->ldinputs * sizeof(float));
    k->own_inputs = cpu_take(a, threads * (size_t)s->layers * (size_t)s->inputs * sizeof(float));
  }
  if (s->wide_norms) k->wide = cpu_take(a, CPU_ROWS * k->ldwide * sizeof(float));
  if (s->experts) build_routes(w);
  if (w->delta.all) build_delta_scratch(w);
  if (s->mix_taps) {
    k->ldmixes = (size_t)cpu_round_up(2 * s->mix_taps * s->mix_groups, CPU_PANEL) + 16;
    k->mixes = cpu_take(a, CPU_ROWS * k->ldmixes * sizeof(float));
    k->mixed = cpu_take(a, CPU_ROWS * k->ldx * sizeof(float));
  }
  if (w->gated) k->gates = cpu_take(a, CPU_ROWS * k->ldgates * sizeof(float));
  k->prepared = cpu_take(a, CPU_PRODUCTS * CPU_ROWS * k->prepared_bytes);
  k->own_prepared = cpu_take(a, threads * CPU_PRODUCTS * CPU_OWN_ROWS * k->prepared_bytes);
  k->ldlogits = (size_t)cpu_round_up(s->vocab, 16);
  const int given = w->head.given > w->head.post_rows ? w->head.given : w->head.post_rows;
  k->ldgiven = (size_t)cpu_round_up(given, CPU_PANEL) + 16;
  k->ldpair =
      (size_t)cpu_round_up(2 * (w->head.kind == DT_HEAD_CROSS_ATTENTION ? w->head.given : s->hidden), CPU_PANEL) + 16;
  if (w->head.target) {
    k->features = cpu_take(a, CPU_ROWS * k->ldgiven * sizeof(float));
    k->pair = cpu_take(a, CPU_ROWS * k->ldpair * sizeof(float));
  }
  k->logits = cpu_take(a, CPU_ROWS * k->ldlogits * sizeof(float));
  k->weight = cpu_take(a, threads * k->ldlogits * sizeof(uint32_t));
  k->adjusted = cpu_take(a, threads * k->ldlogits * sizeof(float));
  if (!w->ranks) return;
  k->wire_numbers = k->ldcat * CPU_ROWS > k->ldlogits ? k->ldcat * CPU_ROWS : k->ldlogits;
  k->wire = cpu_take(a, k->wire_numbers * sizeof(float));
  k->wire_bytes = cpu_take(a, 2 * (size_t)w->ranks->count * sizeof *k->wire_bytes);
}
