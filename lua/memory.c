/* Tables that outlive a run: see memory.h. */
#include "memory.h"

#include "hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct memory_entry {
  memory_entry *next;
  uint64_t hash;
  uint32_t key_len, value_len;
  unsigned char bytes[]; /* the key, then the value */
};

struct dtl_memory {
  policy_memory policy[MEMORY_POLICIES];
  long turn;
};

/* ---- one table ------------------------------------------------------------------------------------------------------------ */

static size_t cost(size_t key_len, size_t value_len) { return MEMORY_ENTRY + key_len + value_len; }

/* Where the entry with that key hangs, or would. */
static memory_entry **find(const memory_table *t, memory_bytes key, uint64_t hash) {
  memory_entry **at = &t->slot[hash & (t->slots - 1)];
  while (*at && ((*at)->hash != hash || (*at)->key_len != key.len || memcmp((*at)->bytes, key.bytes, key.len)))
    at = &(*at)->next;
  return at;
}

static uint64_t hash_of(const memory_table *t, memory_bytes key) {
  uint64_t hash = hash_bytes(t->seed, key.bytes, key.len);
  return hash ^ hash >> 29;
}

/* Room for one more without long chains. False: out of memory. */
static bool widen(memory_table *t) {
  if (t->n < t->slots) return true;
  size_t slots = t->slots ? 2 * t->slots : 64;
  memory_entry **slot = calloc(slots, sizeof *slot);
  if (!slot) return false;
  if (!t->slots && getrandom(&t->seed, sizeof t->seed, GRND_NONBLOCK) != (ssize_t)sizeof t->seed) t->seed = HASH_START;
  for (size_t i = 0; i < t->slots; i++)
    for (memory_entry *e = t->slot[i], *next; e; e = next) {
      next = e->next;
      e->next = slot[e->hash & (slots - 1)];
      slot[e->hash & (slots - 1)] = e;
    }
  free(t->slot);
  t->slot = slot, t->slots = slots;
  return true;
}

bool memory_get(const memory_table *t, memory_bytes key, memory_bytes *value) {
  const memory_entry *e = t->n ? *find(t, key, hash_of(t, key)) : NULL;
  if (e) *value = (memory_bytes){e->bytes + e->key_len, e->value_len};
  return e != NULL;
}

static void take_out(memory_table *t, memory_entry **at) {
  memory_entry *e = *at;
  *at = e->next;
  t->n--;
  t->used -= cost(e->key_len, e->value_len);
  free(e);
}

void memory_drop(memory_table *t, memory_bytes key) {
  memory_entry **at = t->n ? find(t, key, hash_of(t, key)) : NULL;
  if (at && *at) take_out(t, at);
}

bool memory_set(memory_table *t, memory_bytes key, memory_bytes value) {
  if (!widen(t)) return false;
  uint64_t hash = hash_of(t, key);
  memory_entry **at = find(t, key, hash);
  size_t before = *at ? cost((*at)->key_len, (*at)->value_len) : 0;
  if (key.len > MEMORY_BYTES || value.len > MEMORY_BYTES || t->used - before + cost(key.len, value.len) > MEMORY_BYTES)
    return false;
  memory_entry *e = malloc(sizeof *e + key.len + value.len);
  if (!e) return false;
  *e = (memory_entry){.hash = hash, .key_len = (uint32_t)key.len, .value_len = (uint32_t)value.len};
  memcpy(e->bytes, key.bytes, key.len);
  memcpy(e->bytes + key.len, value.bytes, value.len);
  if (*at) take_out(t, at);
  e->next = *at, *at = e;
  t->n++;
  t->used += cost(key.len, value.len);
  return true;
}

static void forget_table(memory_table *t) {
  for (size_t i = 0; i < t->slots; i++)
    while (t->slot[i]) take_out(t, &t->slot[i]);
  free(t->slot);
  *t = (memory_table){0};
}

/* ---- those of a pair -------------------------------------------------------------------------------------------------------- */

static void forget(policy_memory *p) {
  forget_table(&p->table);
  corpus_forget(&p->outputs);
  *p = (policy_memory){0};
}

dtl_memory *dtl_memory_open(void) { return calloc(1, sizeof(dtl_memory)); }

void dtl_memory_forget(dtl_memory *memory) {
  for (int i = 0; i < MEMORY_POLICIES; i++) forget(&memory->policy[i]);
}

void dtl_memory_close(dtl_memory *memory) {
  if (memory) dtl_memory_forget(memory);
  free(memory);
}

policy_memory *memory_of(dtl_memory *memory, uint64_t source) {
  policy_memory *found = &memory->policy[0];
  for (int i = 0; i < MEMORY_POLICIES; i++) {
    policy_memory *p = &memory->policy[i];
    if (p->turn && p->source == source) {
      found = p;
      break;
    }
    if (p->turn < found->turn) found = p;
  }
  if (!found->turn || found->source != source) forget(found);
  found->source = source;
  found->turn = ++memory->turn;
  return found;
}
