/* Assigns the slots of one sequence in one model's cache. Row i of the committed text is in slot i; the rows of a tree
 * are after the committed text, in any order. These functions only plan moves; they do not move bytes. */
#ifndef DT_KV_H
#define DT_KV_H

#include <stdint.h>

typedef struct {
  int rows; /* committed tokens that have a row: slots 0..rows-1 */
  int next; /* the next free slot; >= rows */
  int capacity;
} kv_slots;

void kv_init(kv_slots *kv, int capacity);

/* Begins an iteration and forgets the rows of the previous tree: slots below `length` belong to the text, and those of
 * the tree begin at `length`. */
void kv_begin(kv_slots *kv, int length);

/* Reserves the next free slot for a row of the tree; -1: the cache is full. */
int kv_reserve(kv_slots *kv);

/* Releases the n slots that were reserved last. */
void kv_give_back(kv_slots *kv, int n);

/* Commits the rows in slot[0..n): they become the rows after the committed ones. Plans the moves from[i] -> to[i],
 * leaving out rows that are in place already, and returns their number. Both lists ascend if `slot` does. */
int kv_keep(kv_slots *kv, const int32_t *slot, int n, int32_t *from, int32_t *to);

#endif
