/* Added tokens: a trie over bytes. See added_tokens.h. */
#include "text/added_tokens.h"

#include "text/char_class.h"
#include "text/utf8.h"

#include <stdlib.h>

/* The child of a node (-1: the table of first bytes) for a byte; makes it if there is none. 0: out of memory. */
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
  set->nodes[made] = (added_node){.sibling = parent < 0 ? 0 : head, .token.id = -1, .byte = byte};
  if (parent < 0)
    set->first[byte] = made;
  else
    set->nodes[parent].child = made;
  return made;
}

dt_status added_insert(added_tokens *set, const char *string, size_t len, added_token token, dt_error *err) {
  int32_t node = -1;
  for (size_t i = 0; i < len; i++) {
    node = child_of(set, node, (unsigned char)string[i]);
    if (!node) return dt_fail_memory(err, "added tokens", len * sizeof(added_node));
  }
  set->nodes[node].token = token;
  return DT_OK;
}

void added_free(added_tokens *set) {
  free(set->nodes);
  *set = (added_tokens){0};
}

/* The length of the longest token that begins at s; 0: none. */
static size_t longest_at(const added_tokens *set, const char *s, size_t n, added_token *token) {
  size_t longest = 0;
  int32_t node = set->first[(unsigned char)s[0]];
  for (size_t i = 1; node; i++) {
    if (set->nodes[node].token.id >= 0) {
      longest = i;
      *token = set->nodes[node].token;
    }
    if (i == n) break;
    node = set->nodes[node].child;
    while (node && set->nodes[node].byte != (unsigned char)s[i]) node = set->nodes[node].sibling;
  }
  return longest;
}

size_t added_at(const added_tokens *set, const char *bytes, size_t n, added_token *token) {
  *token = (added_token){.id = -1};
  return n ? longest_at(set, bytes, n, token) : 0;
}

/* The character that begins at `at`. */
static int32_t character_at(const char *s, size_t n, size_t at, size_t *len) {
  utf8_next(s + at, n - at, len);
  return utf8_code_point(s + at, *len);
}

/* The character that ends at `at` > 0. */
static int32_t character_before(const char *s, size_t at, size_t *len) {
  *len = 1;
  while ((s[at - *len] & 0xC0) == 0x80) ++*len;
  return utf8_code_point(s + at - *len, *len);
}

static bool is_single_word(const char *s, size_t n, size_t from, size_t to) {
  size_t len;
  return !(from > 0 && char_is_word(character_before(s, from, &len))) &&
         !(to < n && char_is_word(character_at(s, n, to, &len)));
}

/* How many bytes from `at` on a token may have: up to the next plain range. 0: the byte is plain. */
static size_t reach(const added_text *text, size_t at, added_match *m) {
  while (m->range < text->n_plain && text->plain[m->range].end <= at) m->range++;
  size_t end = m->range < text->n_plain ? text->plain[m->range].begin : text->n;
  return end > at ? end - at : 0;
}

bool added_next(const added_tokens *set, const added_text *text, added_match *m) {
  const char *s = text->bytes;
  const size_t n = text->n;
  if (set->n == 0) return false;
  for (size_t i = m->search, len; i < n; i += len) {
    added_token token = {.id = -1};
    const size_t most = set->first[(unsigned char)s[i]] ? reach(text, i, m) : 0;
    len = most ? longest_at(set, s + i, most, &token) : 0;
    size_t from = i, to = i + len, space;
    if (len == 0) len = 1;
    if (token.id < 0 || (token.single_word && !is_single_word(s, n, from, to))) continue;
    m->search = to;
    while (token.lstrip && from > m->to && char_is_white_space(character_before(s, from, &space))) from -= space;
    while (token.rstrip && to < n && char_is_white_space(character_at(s, n, to, &space))) to += space;
    m->from = from;
    m->to = to;
    m->id = token.id;
    return true;
  }
  return false;
}
