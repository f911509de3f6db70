/* Byte-pair encoding: see bpe.h. A word is a linked list of symbols and a heap of candidate merges. An entry of the
 * heap is rank << 32 | place, so that the smallest is the next merge. An entry is stale, and skipped, if the pair that
 * now begins at its place has another rank. */
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

#define NONE (-1)

struct bpe_symbol {
  int32_t id; /* NONE: merged into the symbol before */
  int32_t prev, next;
  int32_t rank, merged; /* of the pair with the next symbol; rank NONE: no merge */
};

static uint32_t place_of(const bpe *b, uint64_t pair) {
  return (uint32_t)((pair * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & b->mask;
}

static uint64_t pair_of(int32_t left, int32_t right) { return (uint64_t)(uint32_t)left << 32 | (uint32_t)right; }

dt_status bpe_init(bpe *b, size_t n_merges, dt_error *err) {
  size_t size = 16;
  while (size < 2 * n_merges) size *= 2;
  b->table = malloc(size * sizeof *b->table);
  if (!b->table) return dt_fail_memory(err, "the tokenizer's merges", size * sizeof *b->table);
  for (size_t i = 0; i < size; i++) b->table[i] = (bpe_merge){.rank = NONE};
  b->mask = (uint32_t)(size - 1);
  return DT_OK;
}

void bpe_free(bpe *b) {
  free(b->table);
  b->table = NULL;
}

void bpe_add_merge(bpe *b, int32_t left, int32_t right, int32_t rank, int32_t merged) {
  uint64_t pair = pair_of(left, right);
  uint32_t i = place_of(b, pair);
  while (b->table[i].rank != NONE && b->table[i].pair != pair) i = (i + 1) & b->mask;
  b->table[i] = (bpe_merge){.pair = pair, .rank = rank, .merged = merged};
}

void bpe_scratch_free(bpe_scratch *scratch) {
  free(scratch->symbols);
  free(scratch->heap);
  *scratch = (bpe_scratch){0};
}

static dt_status reserve(bpe_scratch *scratch, size_t n, dt_error *err) {
  if (n <= scratch->capacity) return DT_OK;
  size_t capacity = n < 64 ? 64 : n + n / 2;
  bpe_scratch_free(scratch);
  scratch->symbols = malloc(capacity * sizeof *scratch->symbols);
  /* n - 1 pairs at first; each of at most n - 1 merges removes one entry and adds two */
  scratch->heap = malloc(2 * capacity * sizeof *scratch->heap);
  if (!scratch->symbols || !scratch->heap) {
    bpe_scratch_free(scratch);
    return dt_fail_memory(err, "the tokenizer's scratch", capacity * sizeof *scratch->symbols);
  }
  scratch->capacity = capacity;
  return DT_OK;
}

static void sift_down(uint64_t *heap, size_t n, size_t i) {
  uint64_t entry = heap[i];
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= n) break;
    if (child + 1 < n && heap[child + 1] < heap[child]) child++;
    if (entry <= heap[child]) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = entry;
}

static void push(uint64_t *heap, size_t n, uint64_t entry) {
  size_t i = n;
  while (i > 0 && heap[(i - 1) / 2] > entry) {
    heap[i] = heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  heap[i] = entry;
}

static uint64_t heap_entry(int32_t rank, int32_t place) { return (uint64_t)(uint32_t)rank << 32 | (uint32_t)place; }

/* Looks up the pair that begins at this symbol. */
static void set_pair(const bpe *b, struct bpe_symbol *symbols, int32_t at) {
  struct bpe_symbol *s = &symbols[at];
  s->rank = NONE;
  if (s->next == NONE) return;
  uint64_t pair = pair_of(s->id, symbols[s->next].id);
  for (uint32_t i = place_of(b, pair); b->table[i].rank != NONE; i = (i + 1) & b->mask)
    if (b->table[i].pair == pair) {
      s->rank = b->table[i].rank;
      s->merged = b->table[i].merged;
      return;
    }
}

dt_status bpe_encode(const bpe *b, bpe_scratch *scratch, int32_t *ids, size_t *n, dt_error *err) {
  dt_status status = reserve(scratch, *n, err);
  if (status != DT_OK) return status;
  struct bpe_symbol *symbols = scratch->symbols;
  uint64_t *heap = scratch->heap;
  size_t n_heap = 0;
  int32_t last = (int32_t)*n - 1;
  if (last < 0) return DT_OK;
  for (int32_t i = 0; i <= last; i++)
    symbols[i] = (struct bpe_symbol){.id = ids[i], .prev = i - 1, .next = i < last ? i + 1 : NONE};
  for (int32_t i = 0; i <= last; i++) {
    set_pair(b, symbols, i);
    if (symbols[i].rank != NONE) heap[n_heap++] = heap_entry(symbols[i].rank, i);
  }
  for (size_t i = n_heap / 2; i-- > 0;) sift_down(heap, n_heap, i);

  while (n_heap > 0) {
    uint64_t top = heap[0];
    heap[0] = heap[--n_heap];
    if (n_heap > 0) sift_down(heap, n_heap, 0);
    int32_t at = (int32_t)(uint32_t)top;
    struct bpe_symbol *left = &symbols[at];
    if (left->id == NONE || left->rank != (int32_t)(top >> 32)) continue;
    struct bpe_symbol *right = &symbols[left->next];
    left->id = left->merged;
    left->next = right->next;
    right->id = NONE;
    if (left->next != NONE) symbols[left->next].prev = at;
    set_pair(b, symbols, at);
    if (left->rank != NONE) push(heap, n_heap++, heap_entry(left->rank, at));
    if (left->prev == NONE) continue;
    set_pair(b, symbols, left->prev);
    if (symbols[left->prev].rank != NONE) push(heap, n_heap++, heap_entry(symbols[left->prev].rank, left->prev));
  }

  size_t count = 0;
  for (int32_t i = 0; i != NONE; i = symbols[i].next) ids[count++] = symbols[i].id;
  *n = count;
  return DT_OK;
}
