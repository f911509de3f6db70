/* Slots of a cache: see kv.h. */
#include "backend/kv.h"

void kv_init(kv_slots *kv, int capacity) {
  kv->rows = kv->next = 0;
  kv->capacity = capacity;
}

void kv_begin(kv_slots *kv, int length) { kv->next = length; }

int kv_reserve(kv_slots *kv) { return kv->next < kv->capacity ? kv->next++ : -1; }

void kv_give_back(kv_slots *kv, int n) { kv->next -= n; }

int kv_keep(kv_slots *kv, const int32_t *slot, int n, int32_t *from, int32_t *to) {
  int moves = 0;
  for (int i = 0; i < n; i++, kv->rows++)
    if (slot[i] != kv->rows) {
      from[moves] = slot[i];
      to[moves++] = kv->rows;
    }
  kv->next = kv->rows;
  return moves;
}
