/* Where the characters after a state lead: see uniform.h. */
#include "grammar/uniform.h"

enum { UNKNOWN = -2 };
enum { LEAST = 16 }; /* minimum number of characters of one byte of a set */

/* The state that all bytes of a range lead to, or all characters with these bytes and `more` after them, if *to is
 * UNKNOWN; otherwise they must lead to *to. False: they differ. */
static bool range_leads(states *s, int32_t from, int low, int high, int more, int32_t *to) {
  const rules *r = &s->rules;
  int32_t last = UNKNOWN;
  for (int c = r->class_of[low]; c <= r->class_of[high]; c++) {
    int32_t next = states_step(s, from, r->byte_of[c]);
    if (next == last) continue;
    last = next;
    if (more && next != STATES_NOWHERE) {
      if (!range_leads(s, next, 0x80, 0xBF, more - 1, to)) return false;
      continue;
    }
    if (*to != UNKNOWN && next != *to) return false;
    *to = next;
  }
  return true;
}

/* The same for all characters of several bytes. */
static bool wides_lead(states *s, int32_t from, int32_t *to) {
  const rules *r = &s->rules;
  for (int i = 0; i < ALIKE_WIDE; i++) {
    const alike_wide *w = &alike_wides[i];
    for (int c = r->class_of[w->low]; c <= r->class_of[w->high]; c++) {
      int32_t next = states_step(s, from, r->byte_of[c]);
      if (next == STATES_NOWHERE ? *to != UNKNOWN && *to != next
                                 : !range_leads(s, next, w->second_low, w->second_high, w->more, to))
        return false;
      if (next == STATES_NOWHERE) *to = next;
    }
  }
  return true;
}

bool uniform_leads(states *s, int32_t from, const alike_set *set, int32_t *to) {
  *to = UNKNOWN;
  for (int b = 0; b < ALIKE_BYTES; b++) {
    if (!set->has[b]) continue;
    int end = b;
    while (end + 1 < ALIKE_BYTES && set->has[end + 1]) end++;
    if (!range_leads(s, from, b, end, 0, to)) return false;
    b = end;
  }
  return !set->wide || wides_lead(s, from, to);
}

/* Makes the set that JSON strings have of one that has more, since its tokens are known. */
static void narrow(alike_set *set) {
  const alike_set json = alike_json();
  for (int b = 0; b < ALIKE_BYTES; b++)
    if (json.has[b] && !set->has[b]) return;
  if (set->wide) *set = json;
}

bool uniform_set(states *s, int32_t from, alike_set *set) {
  const rules *r = &s->rules;
  int32_t to[ALIKE_BYTES], best = STATES_NOWHERE, wide;
  int most = 0, classes = r->class_of[ALIKE_BYTES - 1] + 1;
  int size[ALIKE_BYTES] = {0};
  for (int b = 0; b < ALIKE_BYTES; b++) size[r->class_of[b]]++;
  for (int c = 0; c < classes; c++) to[c] = states_step(s, from, r->byte_of[c]);
  for (int b = 0; b < classes; b++) {
    int n = 0;
    if (to[b] == STATES_NOWHERE || to[b] == best) continue;
    for (int c = b; c < classes; c++) n += to[c] == to[b] ? size[c] : 0;
    if (n > most) most = n, best = to[b];
  }
  if (most < LEAST) return false;
  for (int b = 0; b < ALIKE_BYTES; b++) set->has[b] = to[r->class_of[b]] == best;
  wide = best;
  set->wide = wides_lead(s, from, &wide);
  narrow(set);
  return true;
}
