/* A table that outlives a run: see memory.h. Its entries lie one after another in a space of their own, so that its
 * memory is bounded, whatever a policy does, and can be freed at once. Removed entries leave holes; when the end of the
 * space is reached, the remaining entries are moved together. */
#include "lookup/memory.h"
#include "system/hash.h"
#include "system/os.h"

#include <stdlib.h>
#include <string.h>

#define UNIT sizeof(uint64_t) /* bytes of a unit; an entry's place is the number of units before it */
#define NOWHERE UINT32_MAX
#define GONE (UINT32_MAX - 1)

typedef struct {
  uint64_t hash;
  uint32_t next; /* place of the next entry in its chain, or NOWHERE; GONE: a hole */
  uint32_t key_len, value_len;
  unsigned char bytes[]; /* the key, then the value */
} entry;

static entry *entry_at(const memory_table *t, uint32_t place) { return (entry *)(t->space + place * UNIT); }

/* The size of an entry that the policy sees; it is more than the entry takes here. */
static size_t cost(size_t key_len, size_t value_len) { return MEMORY_ENTRY + key_len + value_len; }

static size_t size_of(size_t key_len, size_t value_len) {
  return (offsetof(entry, bytes) + key_len + value_len + UNIT - 1) / UNIT * UNIT;
}

static uint64_t hash_of(const memory_table *t, memory_bytes key) {
  uint64_t hash = hash_bytes(t->seed, key.bytes, key.len);
  return hash ^ hash >> 29;
}

/* The link to the entry with that key, or the link where a new entry would be added. */
static uint32_t *find(const memory_table *t, memory_bytes key, uint64_t hash) {
  uint32_t *link = &t->slot[hash & (t->slots - 1)];
  for (entry *e; *link != NOWHERE; link = &e->next) {
    e = entry_at(t, *link);
    if (e->hash == hash && e->key_len == key.len && !memcmp(e->bytes, key.bytes, key.len)) break;
  }
  return link;
}

/* Moves all entries together and rebuilds the chains. */
static void gather(memory_table *t) {
  size_t to = 0;
  memset(t->slot, 0xff, t->slots * sizeof *t->slot); /* NOWHERE */
  for (size_t from = 0, size; from < t->end; from += size) {
    entry *e = (entry *)(t->space + from);
    size = size_of(e->key_len, e->value_len);
    if (e->next == GONE) continue;
    uint32_t *link = &t->slot[e->hash & (t->slots - 1)];
    e->next = *link;
    *link = (uint32_t)(to / UNIT);
    memmove(t->space + to, e, size);
    to += size;
  }
  t->end = to;
}

/* Makes room for one more entry without long chains. False: out of memory. */
static bool widen(memory_table *t) {
  if (t->n < t->slots) return true;
  if (!t->space) {
    t->space = os_map(MEMORY_SPACE, true);
    if (!t->space) return false;
  }
  size_t slots = t->slots ? 2 * t->slots : 64;
  uint32_t *slot = realloc(t->slot, slots * sizeof *slot);
  if (!slot) return false;
  if (!t->slots && !os_random(&t->seed, sizeof t->seed)) t->seed = HASH_START;
  t->slot = slot, t->slots = slots;
  gather(t);
  return true;
}

bool memory_get(const memory_table *t, memory_bytes key, memory_bytes *value) {
  uint32_t place = t->n ? *find(t, key, hash_of(t, key)) : NOWHERE;
  if (place == NOWHERE) return false;
  const entry *e = entry_at(t, place);
  *value = (memory_bytes){e->bytes + e->key_len, e->value_len};
  return true;
}

static void take_out(memory_table *t, uint32_t *link) {
  entry *e = entry_at(t, *link);
  *link = e->next;
  e->next = GONE;
  t->used -= cost(e->key_len, e->value_len);
  if (--t->n == 0) t->end = 0;
}

void memory_drop(memory_table *t, memory_bytes key) {
  uint32_t *link = t->n ? find(t, key, hash_of(t, key)) : NULL;
  if (link && *link != NOWHERE) take_out(t, link);
}

bool memory_set(memory_table *t, memory_bytes key, memory_bytes value) {
  if (key.len > MEMORY_BYTES || value.len > MEMORY_BYTES || !widen(t)) return false;
  uint64_t hash = hash_of(t, key);
  uint32_t *link = find(t, key, hash);
  const entry *there = *link == NOWHERE ? NULL : entry_at(t, *link);
  size_t before = there ? cost(there->key_len, there->value_len) : 0, size = size_of(key.len, value.len);
  if (t->used - before + cost(key.len, value.len) > MEMORY_BYTES) return false;
  if (t->end + size > MEMORY_SPACE) {
    gather(t);
    link = find(t, key, hash);
    if (t->end + size > MEMORY_SPACE) return false;
  }
  if (*link != NOWHERE) take_out(t, link);
  entry *e = (entry *)(t->space + t->end);
  *e = (entry){hash, *link, (uint32_t)key.len, (uint32_t)value.len};
  memcpy(e->bytes, key.bytes, key.len);
  memcpy(e->bytes + key.len, value.bytes, value.len);
  *link = (uint32_t)(t->end / UNIT);
  t->n++;
  t->end += size;
  t->used += cost(key.len, value.len);
  return true;
}

bool memory_forget(memory_table *t) {
  bool held = t->space != NULL;
  if (held) os_unmap(t->space, MEMORY_SPACE);
  free(t->slot);
  *t = (memory_table){0};
  return held;
}
