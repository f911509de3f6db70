/* The memory that passes of a model need: activations, logits, and what their kernels exchange. It is shared by all
 * caches of the model; what depends on a context is in cache.cu. */
#include "delta.cuh"
#include "experts.cuh"

/* Numbers of the largest piece of a matrix that a chunk of a prompt is multiplied with. */
static size_t plain_numbers(const dt_weights *w) {
  size_t most = 0;
  for (int i = 0; i < w->shape.layers; i++) {
    const layer &l = w->layers_of[i];
    for (const matrix *m : {&l.in, &l.in_tail, &l.up, &l.out, &l.down}) {
      size_t outputs = (size_t)(m->tiles * 16 < PIECE ? m->tiles * 16 : PIECE);
      size_t numbers = outputs * (size_t)m->steps * 32;
      if (numbers > most) most = numbers;
    }
  }
  return most;
}

static operand take_operand(arena *a, size_t rows, int ld, bool tiled) {
  return {take<uint16_t>(a, rows * (size_t)ld), ld, tiled};
}

static operands take_operands(arena *a, const dt_weights *w, size_t rows, bool tiled) {
  return {take_operand(a, rows, w->ldx, tiled), take_operand(a, rows, w->ldx, tiled),
          take_operand(a, rows, w->ldcat, tiled)};
}

void build_scratch(dt_weights *w) {
  arena *a = &w->scratch_arena;
  draft_head *h = &w->head;
  size_t blocks = (size_t)blocks_of(w->outputs, LOGIT_BLOCK),
         most = h->target ? (size_t)ROWS : (size_t)CHUNK; /* rows */
  w->ldx = round_up(w->shape.hidden, 32);
  w->inputs = take<float>(a, ROWS * (size_t)w->shape.layers * (size_t)w->shape.inputs);
  w->x = take<float>(a, most * (size_t)w->shape.hidden);
  w->pass = take_operands(a, w, ROWS, true);
  w->q = take<uint16_t>(a, most * (size_t)w->shape.heads * (size_t)w->dim);
  if (w->backend->caches == CACHE_Q8) {
    w->fresh_rows = (int)most;
    size_t widest = 0;
    for (int i = 0; i < w->shape.layers; i++) {
      size_t width = (size_t)w->layers_of[i].kv_heads * (size_t)w->layers_of[i].dim;
      if (width > widest) widest = width;
    }
    w->fresh = take<uint16_t>(a, 2 * most * widest);
  }
  int widest = w->shape.hidden; /* of the sums: post computes as many numbers as the target's features have */
  if (h->target && h->target->shape.hidden > widest) widest = h->target->shape.hidden;
  w->partial = take<float>(a, PARTIALS * ROWS * (size_t)widest);
  take_routes(a, w);
  take_deltas(a, w);
  size_t gates = 0; /* of a row */
  for (int i = 0; i < w->shape.layers; i++) {
    size_t numbers = (size_t)w->shape.heads * (size_t)w->layers_of[i].head_dim;
    if (w->layers_of[i].q_gate.tiles && numbers > gates) gates = numbers;
  }
  w->gates = take<float>(a, ROWS * gates);
  if (h->target) {
    h->given = take_operand(a, ROWS, round_up(h->streams * h->target->shape.hidden, 32), true);
    h->pair = take_operand(a, ROWS, round_up(2 * widest, 32), true);
    w->logits = take<float>(a, ROWS * (size_t)w->outputs);
  } else {
    w->chunk = take_operands(a, w, CHUNK, false);
    int inputs = w->shape.layers * w->shape.inputs; /* a draft may have fewer outputs */
    /* A chunk's products lie where the logits do: a chunk needs none. */
    size_t plain = (plain_numbers(w) + 255) & ~(size_t)255, sums = CHUNK * (size_t)PIECE,
           logits = ROWS * (size_t)(w->outputs > inputs ? w->outputs : inputs);
    size_t both = plain * sizeof *w->plain + sums * sizeof *w->sums, alone = logits * sizeof *w->logits;
    w->plain = take<uint16_t>(a, (both > alone ? both : alone) / sizeof *w->plain);
    w->logits = reinterpret_cast<float *>(w->plain);
    w->sums = w->plain ? reinterpret_cast<float *>(w->plain + plain) : nullptr;
  }
  w->parts = take<logit_part>(a, ROWS * blocks);
  w->best = take<uint64_t>(a, ROWS * blocks * TOP);
  w->samples = take<sample_row>(a, ROWS);
  w->log_sums = take<double>(a, ROWS);
}
