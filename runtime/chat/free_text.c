/* Free text up to a mark: see free_text.h. */
#include "chat/free_text.h"

#include "text/utf8.h"

#include <stdint.h>
#include <string.h>

typedef struct {
  int32_t c[FREE_TEXT_MARK];
  int n;
  int failed[FREE_TEXT_MARK]; /* the state after a character that does not continue the mark: how much of it is read */
} pattern;

static bool read_mark(const char *mark, pattern *p) {
  size_t left = strlen(mark), len;
  for (p->n = 0; left > 0; mark += len, left -= len) {
    if (p->n == FREE_TEXT_MARK || utf8_next(mark, left, &len) != UTF8_GOOD) return false;
    p->c[p->n++] = utf8_code_point(mark, len);
  }
  for (int i = 1, k = p->failed[0] = 0; i < p->n; i++) {
    p->failed[i] = k;
    while (k && p->c[k] != p->c[i]) k = p->failed[k];
    k += p->c[k] == p->c[i];
  }
  return p->n > 0;
}

/* The state after a character. */
static int next(const pattern *p, int state, int32_t c) {
  while (state && p->c[state] != c) state = p->failed[state];
  return state + (p->c[state] == c);
}

static bool is_first(const pattern *p, int i) {
  for (int k = 0; k < i; k++)
    if (p->c[k] == p->c[i]) return false;
  return true;
}

bool free_text_rules(FILE *out, const char *name, const char *mark, const char *then, bool may_end, const char *never) {
  pattern p;
  if (!read_mark(mark, &p)) return false;
  for (int state = 0; state < p.n; state++) {
    fprintf(out, "%s-%d ::= %s[^%s", name, state, may_end ? "\"\" | " : "", never);
    for (int i = 0; i < p.n; i++)
      if (is_first(&p, i) && next(&p, state, p.c[i]) > 0) fprintf(out, "\\U%08X", (unsigned)p.c[i]);
    fprintf(out, "] %s-0", name);
    for (int i = 0; i < p.n; i++) {
      const int to = next(&p, state, p.c[i]);
      if (!is_first(&p, i) || to == 0 || (to == p.n && !then)) continue;
      fprintf(out, to == p.n ? " | \"\\U%08X\" %s" : " | \"\\U%08X\" %s-%d", (unsigned)p.c[i], to == p.n ? then : name,
              to);
    }
    fprintf(out, "\n");
  }
  return true;
}
