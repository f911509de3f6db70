/* The slots of one sequence in one model's cache. Row i of the committed text lies in slot i; the rows of a tree lie
 * after the committed text in any order. Plans moves, does not move bytes. Pure. */
#ifndef DT_KV_H
#define DT_KV_H

#include <stdint.h>

typedef struct {
  int rows; /* committed tokens that have a row: slots 0..rows-1 */
  int next; /* the next free slot; >= rows */
  int capacity;
} kv_slots;

void kv_init(kv_slots *kv, int capacity);

/* Begins an iteration, forgetting the rows of the tree before: slots below length are the text's, the tree's begin
 * there. */
void kv_begin(kv_slots *kv, int length);

/* The next free slot for a row of the tree, or -1 when the cache is full. */
int kv_reserve(kv_slots *kv);

/* Gives back the n slots reserved last. */
void kv_give_back(kv_slots *kv, int n);

/* Keeps the rows in slot[0..n) as the rows after the committed ones: plans the moves (from[i] -> to[i], both ascending
 * in i as long as slot is, those in place left out) and counts them committed. Returns the number of moves. */
int kv_keep(kv_slots *kv, const int32_t *slot, int n, int32_t *from, int32_t *to);

#endif
