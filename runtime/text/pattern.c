/* Regular expressions: see pattern.h. The translation accepts what both engines read alike: literals, groups with and
 * without (?i:), look-ahead, classes without nested classes, \p{..}, bounded and possessive repeats. */
#include "text/pattern.h"

#include "text/buffer.h"
#include "text/char_class.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *at, *end, *start;
  byte_buffer out;
  dt_error *err;
} translator;

static dt_status put(translator *t, const char *bytes, size_t n) {
  return buffer_add(&t->out, bytes, n, "a pattern", t->err);
}

static dt_status put_string(translator *t, const char *s) { return put(t, s, strlen(s)); }

static dt_status refuse(const translator *t, const char *what) {
  return dt_fail(t->err, DT_EINPUT, "%s at byte %zu of the pattern is not supported", what, (size_t)(t->at - t->start));
}

static bool begins(const translator *t, const char *with) {
  size_t n = strlen(with);
  return (size_t)(t->end - t->at) >= n && memcmp(t->at, with, n) == 0;
}

static dt_status copy(translator *t, size_t n) {
  dt_status status = put(t, t->at, n);
  t->at += n;
  return status;
}

static dt_status translate_escape(translator *t, bool in_class) {
  if (t->end - t->at < 2) return refuse(t, "a lone \\");
  char c = t->at[1];
  if (c == 's' || (c == 'S' && !in_class)) {
    t->at += 2;
    return put_string(t, in_class ? WHITE_SPACE : c == 's' ? "[" WHITE_SPACE "]" : "[^" WHITE_SPACE "]");
  }
  if (c == 'p' || c == 'P') {
    const char *close = memchr(t->at, '}', (size_t)(t->end - t->at));
    if (t->end - t->at < 4 || t->at[2] != '{' || !close) return refuse(t, "\\p without {}");
    bool number = begins(t, "\\p{N}");
    dt_status status = number && !in_class ? put_string(t, "[") : DT_OK;
    if (!status) status = copy(t, (size_t)(close - t->at) + 1);
    if (!status && number) status = put_string(t, in_class ? NEW_NUMBERS : NEW_NUMBERS "]");
    return status;
  }
  if (strchr("rnt", c) || ispunct((unsigned char)c)) return copy(t, 2);
  return refuse(t, (char[]){'\\', (char)(isalnum((unsigned char)c) ? c : '?'), '\0'});
}

static dt_status translate_class(translator *t) {
  dt_status status = copy(t, begins(t, "[^") ? 2 : 1);
  if (begins(t, "]")) return refuse(t, "an empty class");
  while (!status && t->at < t->end && *t->at != ']') {
    if (*t->at == '[') return refuse(t, "a class inside a class");
    if (begins(t, "&&")) return refuse(t, "&&");
    status = *t->at == '\\' ? translate_escape(t, true) : copy(t, 1);
  }
  if (status) return status;
  return t->at == t->end ? refuse(t, "a class without its ]") : copy(t, 1);
}

static dt_status translate_group(translator *t) {
  static const char *const known[] = {"(?:", "(?i:", "(?!", "(?="};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (begins(t, known[i])) return copy(t, strlen(known[i]));
  return begins(t, "(?") || begins(t, "(*") ? refuse(t, "this kind of group") : copy(t, 1);
}

/* Accepts {n}, {n,} or {n,m}: Oniguruma reads {,m} and {n}+ in its own way. */
static dt_status translate_repeat(translator *t) {
  const char *at = t->at + 1;
  while (at < t->end && isdigit((unsigned char)*at)) at++;
  bool digits = at > t->at + 1;
  if (at < t->end && *at == ',')
    for (at++; at < t->end && isdigit((unsigned char)*at);) at++;
  if (!digits || at == t->end || *at != '}') return refuse(t, "this kind of {}");
  if (at + 1 < t->end && at[1] == '+') return refuse(t, "a possessive {}");
  return copy(t, (size_t)(at - t->at) + 1);
}

static dt_status translate(translator *t) {
  dt_status status = DT_OK;
  while (!status && t->at < t->end) {
    switch (*t->at) {
    case '\\': status = translate_escape(t, false); break;
    case '[': status = translate_class(t); break;
    case '(': status = translate_group(t); break;
    case '{': status = translate_repeat(t); break;
    case '.':
    case '^':
    case '$': status = refuse(t, (char[]){*t->at, '\0'}); break;
    default: status = copy(t, 1);
    }
  }
  return status;
}

static dt_status compile(const byte_buffer *translated, pcre2_code **out, dt_error *err) {
  int code;
  PCRE2_SIZE at;
  uint32_t may_be_empty = 0;
  const char *text = translated->bytes ? translated->bytes : "";
  pcre2_code *made = pcre2_compile((PCRE2_SPTR)text, translated->n, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
  if (!made) {
    PCRE2_UCHAR why[128];
    if (code == PCRE2_ERROR_HEAP_FAILED) return dt_fail_memory(err, "the pattern", translated->n);
    pcre2_get_error_message(code, why, sizeof why);
    return dt_fail(err, DT_EINPUT, "the pattern: %s", (const char *)why);
  }
  pcre2_pattern_info(made, PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  if (may_be_empty) {
    pcre2_code_free(made);
    return dt_fail(err, DT_EINPUT, "the pattern matches an empty text");
  }
  pcre2_jit_compile(made, PCRE2_JIT_COMPLETE); /* if it fails, matching is interpreted */
  *out = made;
  return DT_OK;
}

dt_status pattern_compile(const char *pattern, size_t n, pcre2_code **out, dt_error *err) {
  translator t = {.start = pattern, .at = pattern, .end = pattern + n, .err = err};
  dt_status status = translate(&t);
  if (!status) status = compile(&t.out, out, err);
  free(t.out.bytes);
  return status;
}
