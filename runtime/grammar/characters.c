/* Sets of characters: see characters.h. */
#include "grammar/characters.h"

#include <stdlib.h>
#include <string.h>

enum { LAST = 0x10FFFF, FIRST_SURROGATE = 0xD800, LAST_SURROGATE = 0xDFFF };

void characters_add(characters *s, int32_t low, int32_t high) {
  if (s->n == s->room) {
    int room = s->room ? 2 * s->room : 16;
    rules_range *grown = realloc(s->range, (size_t)room * sizeof *grown);
    s->no_memory |= !grown;
    if (!grown) return;
    s->range = grown, s->room = room;
  }
  s->range[s->n++] = (rules_range){low, high};
}

void characters_free(characters *s) {
  free(s->range);
  *s = (characters){0};
}

static int by_low(const void *a, const void *b) {
  const rules_range *x = a, *y = b;
  return (x->low > y->low) - (x->low < y->low);
}

static bool is_surrogate(int32_t c) { return c >= FIRST_SURROGATE && c <= LAST_SURROGATE; }

void characters_tidy(characters *s) {
  int n = 0;
  if (s->n) qsort(s->range, (size_t)s->n, sizeof *s->range, by_low);
  for (int i = 0; i < s->n; i++) {
    rules_range r = s->range[i];
    if (is_surrogate(r.low)) r.low = LAST_SURROGATE + 1;
    if (is_surrogate(r.high)) r.high = FIRST_SURROGATE - 1;
    if (r.low > r.high) continue;
    if (n && r.low <= s->range[n - 1].high + 1) {
      if (r.high > s->range[n - 1].high) s->range[n - 1].high = r.high;
    } else
      s->range[n++] = r;
  }
  s->n = n;
}

void characters_invert(characters *s) {
  int n = s->n;
  int32_t free = 0; /* the first character that no range before has */
  characters_add(s, LAST + 1, LAST + 1);
  for (int i = 0; i <= n && !s->no_memory; i++) {
    rules_range taken = s->range[i];
    s->range[i] = (rules_range){free, taken.low - 1}; /* without a character if they touch */
    free = taken.high + 1;
  }
  characters_tidy(s);
}

/* ---- spelling ---------------------------------------------------------------------------------------------------- */

bool characters_escaped(int32_t c) { return c < 0x20 || c == '"' || c == '\\'; }

void characters_put_one(int32_t c, FILE *out) {
  if (c >= 0x20 && c < 0x7F && !strchr("\"\\[]^-", c))
    putc(c, out);
  else
    fprintf(out, c < 0x100 ? "\\x%02X" : c < 0x10000 ? "\\u%04X" : "\\U%08X", (unsigned)c);
}

static void put_range(int32_t low, int32_t high, FILE *out) {
  characters_put_one(low, out);
  if (high > low + 1) putc('-', out);
  if (high > low) characters_put_one(high, out);
}

static bool has(const characters *s, int32_t c) {
  for (int i = 0; i < s->n && s->range[i].low <= c; i++)
    if (c <= s->range[i].high) return true;
  return false;
}

/* A class of the characters within some ranges; false: none is, and nothing was written. */
static bool put_within(const characters *s, const rules_range *within, int n, FILE *out) {
  int parts = 0;
  for (int k = 0; k < n; k++)
    for (int i = 0; i < s->n && s->range[i].low <= within[k].high; i++) {
      int32_t low = s->range[i].low, high = s->range[i].high;
      if (low < within[k].low) low = within[k].low;
      if (high > within[k].high) high = within[k].high;
      if (low > high) continue;
      if (!parts++) putc('[', out);
      put_range(low, high, out);
    }
  if (parts) fputs("] ", out);
  return parts > 0;
}

/* Writes escapes of the set's characters from `low` on, which differ in their last letter. letter: these letters, with
 * a space for a character without an escape. */
static void put_escapes(const characters *s, int32_t low, const char *letter, const char *head, bool *some, FILE *out) {
  int n = 0;
  for (int i = 0; letter[i]; i++) {
    if (letter[i] == ' ' || !has(s, low + i)) continue;
    if (!n++) fprintf(out, "%s\"%s\" [", *some ? "| " : "", head);
    putc(letter[i], out);
  }
  if (n) fputs("] ", out);
  *some |= n > 0;
}

static bool has_all(const characters *s, int32_t low, int32_t high) {
  for (int i = 0; i < s->n; i++)
    if (s->range[i].low <= low && s->range[i].high >= high) return true;
  return false;
}

/* Sets of nearly all characters are frequent: what such sets have beyond ASCII, and all escapes, are rules. */
static void put_in_json(const characters *s, FILE *out) {
  static const rules_range bare[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, LAST}},
                           ascii[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7F}};
  const bool wide = has_all(s, 0x80, FIRST_SURROGATE - 1) && has_all(s, LAST_SURROGATE + 1, LAST),
             escape = has_all(s, 0, 0x1F) && has(s, '"') && has(s, '\\');
  bool some = put_within(s, wide ? ascii : bare, 3, out);
  if (wide) fputs(some ? "| wide " : "wide ", out);
  some |= wide;
  if (escape) {
    fputs(some ? "| escape " : "escape ", out);
    return;
  }
  put_escapes(s, 0x08, "btn fr", "\\\\", &some, out);
  put_escapes(s, '"', "\"", "\\\\", &some, out);
  put_escapes(s, 0x00, "01234567   b  ef", "\\\\u000", &some, out);
  put_escapes(s, 0x10, "0123456789abcdef", "\\\\u001", &some, out);
  if (has(s, '\\')) fprintf(out, "%s\"\\\\\\\\\" ", some ? "| " : "");
}

void characters_put(const characters *s, bool in_json, FILE *out) {
  static const rules_range all = {0, LAST};
  bool parts = has_all(s, 0x80, FIRST_SURROGATE - 1);
  if (!in_json) {
    put_within(s, &all, 1, out);
    return;
  }
  for (int32_t c = 0; c <= 0x7F; c++) parts |= characters_escaped(c) && has(s, c);
  if (parts) fputs("(", out);
  put_in_json(s, out);
  if (parts) fputs(") ", out);
}
