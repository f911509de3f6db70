/* Splits a text into words: see split.h. */
#include "text/split.h"

#include "system/os.h"
#include "text/buffer.h"

#include <stdlib.h>
#include <string.h>

static dt_status run(const splitter *p, int step, const char *s, size_t n, bool first);

static dt_status next(const splitter *p, int step, const char *s, size_t n, bool first) {
  return n > 0 ? run(p, step + 1, s, n, first) : DT_OK;
}

/* The first match at or after `from`; if there is none, an empty match at the end. */
static dt_status find(const splitter *p, const pcre2_code *pattern, const char *s, size_t n, size_t from, size_t *begin,
                      size_t *end) {
  int rc = pcre2_match(pattern, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK, p->match, p->context);
  *begin = *end = n;
  if (rc >= 0) {
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(p->match);
    *begin = found[0];
    *end = found[1];
    return DT_OK;
  }
  if (rc == PCRE2_ERROR_NOMATCH) return DT_OK;
  PCRE2_UCHAR why[128];
  pcre2_get_error_message(rc, why, sizeof why);
  return dt_fail(p->err, rc == PCRE2_ERROR_NOMEMORY ? DT_ENOMEM : DT_EINPUT,
                 "splitting the text into words failed at byte %zu: %s", from, (const char *)why);
}

static dt_status by_pattern(const splitter *p, int step, const char *s, size_t n, bool first) {
  const split_step *t = &p->steps[step];
  for (size_t at = 0; at < n;) {
    size_t begin, end;
    dt_status status = find(p, t->pattern, s, n, at, &begin, &end);
    if (t->keep == KEEP_JOINED) begin = end;
    if (!status && t->keep != KEEP_MATCHES) status = next(p, step, s + at, begin - at, first && at == 0);
    if (!status && t->keep != KEEP_BETWEEN) status = next(p, step, s + begin, end - begin, first && begin == 0);
    if (status) return status;
    at = end;
  }
  return DT_OK;
}

static dt_status with_space(const splitter *p, int step, const char *s, size_t n, bool first) {
  if (s[0] == ' ') return next(p, step, s, n, first);
  byte_buffer spaced = {0};
  dt_status status = buffer_add(&spaced, " ", 1, "the text", p->err);
  if (!status) status = buffer_add(&spaced, s, n, "the text", p->err);
  if (!status) status = next(p, step, spaced.bytes, spaced.n, first);
  free(spaced.bytes);
  return status;
}

static dt_status by_mark(const splitter *p, int step, const char *s, size_t n, bool first) {
  const split_step *t = &p->steps[step];
  size_t mark = strlen(t->mark);
  bool wanted = t->in_front == MARK_ALWAYS || (t->in_front == MARK_FIRST && first);
  bool there = s[0] == ' ' || (n >= mark && memcmp(s, t->mark, mark) == 0);
  byte_buffer marked = {0};
  dt_status status = wanted && !there ? buffer_add(&marked, t->mark, mark, "the text", p->err) : DT_OK;
  if (!status) status = buffer_add_replaced(&marked, s, n, " ", 1, t->mark, mark, "the text", p->err);
  for (size_t at = 0; !status && at < marked.n;) {
    const char *piece = marked.bytes + at, *end = marked.bytes + marked.n, *cut = NULL;
    if (t->cut && marked.n - at > 1) cut = os_find(piece + 1, (size_t)(end - piece) - 1, t->mark, mark);
    size_t len = (size_t)((cut ? cut : end) - piece);
    status = next(p, step, piece, len, first && at == 0);
    at += len;
  }
  free(marked.bytes);
  return status;
}

static dt_status run(const splitter *p, int step, const char *s, size_t n, bool first) {
  if (step == p->n_steps) return p->word(p->user, s, n);
  switch (p->steps[step].kind) {
  case SPLIT_PATTERN: return by_pattern(p, step, s, n, first);
  case SPLIT_SPACE: return with_space(p, step, s, n, first);
  default: return by_mark(p, step, s, n, first);
  }
}

/* Matching goes back over a long run of blanks once for every alternative; a pattern that tries far more than that is
 * abandoned. */
static uint32_t most_tries(size_t n) { return n < UINT32_MAX / 128 ? 10000000 + 64 * (uint32_t)n : UINT32_MAX; }

dt_status split_text(const splitter *p, const char *s, size_t n, bool first) {
  pcre2_set_match_limit(p->context, most_tries(n));
  return run(p, 0, s, n, first);
}

dt_status split_open(splitter *p) {
  p->match = pcre2_match_data_create(1, NULL);
  p->context = pcre2_match_context_create(NULL);
  if (!p->match || !p->context) return dt_fail_memory(p->err, "splitting the text", sizeof(size_t) * 2);
  return DT_OK;
}

void split_close(splitter *p) {
  pcre2_match_data_free(p->match);
  pcre2_match_context_free(p->context);
}

void split_free(split_step *steps, int n_steps) {
  for (int i = 0; i < n_steps; i++) pcre2_code_free(steps[i].pattern);
  free(steps);
}
