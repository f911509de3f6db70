/* Added tokens: a trie over bytes. See added_tokens.h. */
#include "added_tokens.h"

#include <stdlib.h>

/* The child of this node (-1: the table of first bytes) for a byte, made when it is not there; 0 when out of memory. */
static int32_t child_of(added_tokens *set, int32_t parent, unsigned char byte) {
  int32_t head = parent < 0 ? set->first[byte] : set->nodes[parent].child;
  for (int32_t i = head; i; i = set->nodes[i].sibling)
    if (set->nodes[i].byte == byte) return i;
  if (set->n + 1 >= set->capacity) {
    int32_t capacity = set->capacity ? set->capacity * 2 : 64;
    added_node *nodes = realloc(set->nodes, (size_t)capacity * sizeof *nodes);
    if (!nodes) return 0;
    set->nodes = nodes;
    set->capacity = capacity;
  }
  int32_t made = ++set->n;
  set->nodes[made] = (added_node){.sibling = parent < 0 ? 0 : head, .id = -1, .byte = byte};
  if (parent < 0)
    set->first[byte] = made;
  else
    set->nodes[parent].child = made;
  return made;
}

dt_status added_insert(added_tokens *set, const char *token, size_t len, int32_t id, dt_error *err) {
  int32_t node = -1;
  for (size_t i = 0; i < len; i++) {
    node = child_of(set, node, (unsigned char)token[i]);
    if (!node) return dt_fail_memory(err, "added tokens", len * sizeof(added_node));
  }
  set->nodes[node].id = id;
  return DT_OK;
}

void added_free(added_tokens *set) {
  free(set->nodes);
  *set = (added_tokens){0};
}

/* The longest token that begins at s; 0: none. */
static size_t longest_at(const added_tokens *set, const char *s, size_t n, int32_t *id) {
  size_t longest = 0;
  int32_t node = set->first[(unsigned char)s[0]];
  for (size_t i = 1; node; i++) {
    if (set->nodes[node].id >= 0) {
      longest = i;
      *id = set->nodes[node].id;
    }
    if (i == n) break;
    node = set->nodes[node].child;
    while (node && set->nodes[node].byte != (unsigned char)s[i]) node = set->nodes[node].sibling;
  }
  return longest;
}

bool added_find(const added_tokens *set, const char *s, size_t n, size_t from, size_t *at, size_t *len, int32_t *id) {
  if (set->n == 0) return false;
  for (size_t i = from; i < n; i++) {
    if (!set->first[(unsigned char)s[i]]) continue;
    *len = longest_at(set, s + i, n - i, id);
    if (*len > 0) {
      *at = i;
      return true;
    }
  }
  return false;
}
