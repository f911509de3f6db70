/* Checks the text of a body, value by value, before cJSON reads it: see body.h. */
#include "serve/body.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 500       /* levels of nesting, fewer than cJSON's limit */
#define LONGEST_NUMBER 63 /* characters of a number, cJSON's limit */
#define BAD "not valid JSON: "

/* The place of a value: a member or an element of the value above it. */
typedef struct place {
  const struct place *above; /* NULL: the body itself */
  const char *name;          /* the member's name as it is written; NULL: it is an element */
  size_t len;
  long index;
} place;

typedef struct {
  const char *begin, *at, *end;
  int depth;
  refusal *why;
} scan;

/* Appends the place, such as messages[0].content, to out[size]. */
static void put_place(const place *p, char *out, size_t size) {
  if (!p || !p->above) return;
  put_place(p->above, out, size);
  size_t used = strlen(out);
  if (p->name)
    snprintf(out + used, size - used, "%s%.*s", used ? "." : "", p->len < 60 ? (int)p->len : 60, p->name);
  else
    snprintf(out + used, size - used, "[%ld]", p->index);
}

static bool wrong_at(const scan *s, const char *at, const place *p, const char *what) {
  char path[200] = "";
  put_place(p, path, sizeof path);
  *s->why =
      refusal_say(400, INVALID, "%s: %s (byte %td of the body)", *path ? path : "the body", what, at - s->begin + 1);
  return false;
}

static bool wrong(const scan *s, const place *p, const char *what) {
  return wrong_at(s, s->at, p, s->at < s->end ? what : BAD "it ends too early");
}

static void skip_space(scan *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r' || *s->at == '\n')) s->at++;
}

static bool takes(scan *s, char byte) {
  if (s->at == s->end || *s->at != byte) return false;
  s->at++;
  return true;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* Returns the value of four hexadecimal digits; -1: there are none. */
static int hex4(const char *at, const char *end) {
  int value = 0;
  if (end - at < 4) return -1;
  for (int i = 0; i < 4; i++) {
    const char *digits = "0123456789abcdef", *digit = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
    if (!digit || (at[i] & 0xC0) == 0x80) return -1;
    value = value * 16 + (int)(digit - digits);
  }
  return value;
}

static bool is_low(int unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

static bool scan_escape(scan *s, const place *p) {
  const char *at = s->at++;
  if (s->at == s->end) return wrong(s, p, "");
  if (*s->at != 'u')
    return strchr("\"\\/bfnrt", *s->at) && *s->at++ ? true : wrong_at(s, at, p, BAD "an unknown escape");
  int unit = hex4(s->at + 1, s->end);
  if (unit < 0) return wrong_at(s, at, p, BAD "expected four hexadecimal digits after \\u");
  if (unit == 0) return wrong_at(s, at, p, "a NUL character, which no text here may hold");
  s->at += 5;
  if (unit < 0xD800 || unit > 0xDFFF) return true;
  bool pair = !is_low(unit) && s->end - s->at >= 6 && s->at[0] == '\\' && s->at[1] == 'u';
  if (!pair || !is_low(hex4(s->at + 2, s->end))) return wrong_at(s, at, p, "a lone surrogate, half of a character");
  s->at += 6;
  return true;
}

/* Returns the number of bytes of the multi-byte character that begins here; 0: invalid UTF-8. */
static size_t utf8_length(const unsigned char *c, size_t left) {
  size_t n = c[0] >= 0xF0 ? 4 : c[0] >= 0xE0 ? 3 : 2;
  if (c[0] < 0xC2 || c[0] > 0xF4 || n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((c[i] & 0xC0) != 0x80) return 0;
  bool surrogate = c[0] == 0xED && c[1] >= 0xA0,
       overlong = (c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xF0 && c[1] < 0x90);
  return surrogate || overlong || (c[0] == 0xF4 && c[1] >= 0x90) ? 0 : n;
}

/* Checks a text; its opening quote has been read. */
static bool scan_text(scan *s, const place *p) {
  while (s->at < s->end && *s->at != '"') {
    unsigned char c = (unsigned char)*s->at;
    size_t n = 1;
    if (c == '\\') {
      if (!scan_escape(s, p)) return false;
      continue;
    }
    if (c == 0) return wrong(s, p, "a NUL character, which no text here may hold");
    if (c < 0x20) return wrong(s, p, BAD "a control character in a text: write it as an escape, such as \\n");
    if (c >= 0x80) n = utf8_length((const unsigned char *)s->at, (size_t)(s->end - s->at));
    if (n == 0) return wrong(s, p, BAD "invalid UTF-8");
    s->at += n;
  }
  return takes(s, '"') || wrong(s, p, "");
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool scan_value(scan *s, const place *p);

static bool digits(scan *s) {
  const char *from = s->at;
  while (s->at < s->end && *s->at >= '0' && *s->at <= '9') s->at++;
  return s->at > from;
}

static bool scan_number(scan *s, const place *p) {
  const char *from = s->at;
  takes(s, '-');
  bool fine = takes(s, '0') || digits(s);
  if (fine && takes(s, '.')) fine = digits(s);
  if (fine && (takes(s, 'e') || takes(s, 'E'))) {
    if (!takes(s, '-')) takes(s, '+');
    fine = digits(s);
  }
  if (fine && s->at < s->end && *s->at >= '0' && *s->at <= '9') fine = false; /* such as 01 */
  if (!fine) return wrong_at(s, from, p, BAD "a number that is not valid in JSON");
  return s->at - from <= LONGEST_NUMBER || wrong_at(s, from, p, "a number of more than 63 characters");
}

static bool scan_members(scan *s, const place *p) {
  skip_space(s);
  if (takes(s, '}')) return true;
  for (;;) {
    skip_space(s);
    place member = {.above = p, .name = s->at + 1};
    if (!takes(s, '"')) return wrong(s, p, BAD "expected a name in quotes");
    const char *quote = s->at;
    while (quote < s->end && *quote != '"') quote += *quote == '\\' && quote + 1 < s->end ? 2 : 1; /* for messages */
    member.len = (size_t)((quote < s->end ? quote : s->end) - member.name);
    if (!scan_text(s, &member)) return false;
    skip_space(s);
    if (!takes(s, ':')) return wrong(s, &member, BAD "expected a colon");
    if (!scan_value(s, &member)) return false;
    skip_space(s);
    if (takes(s, '}')) return true;
    if (!takes(s, ',')) return wrong(s, p, BAD "expected a comma or }");
  }
}

static bool scan_elements(scan *s, const place *p) {
  skip_space(s);
  if (takes(s, ']')) return true;
  for (place element = {.above = p};; element.index++) {
    if (!scan_value(s, &element)) return false;
    skip_space(s);
    if (takes(s, ']')) return true;
    if (!takes(s, ',')) return wrong(s, p, BAD "expected a comma or ]");
  }
}

static bool scan_word(scan *s, const place *p) {
  static const char *const words[] = {"true", "false", "null"};
  for (int i = 0; i < 3; i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, words[i], n) != 0) continue;
    s->at += n;
    return true;
  }
  return wrong(s, p, BAD "expected a value");
}

static bool scan_value(scan *s, const place *p) {
  skip_space(s);
  bool nests = s->at < s->end && (*s->at == '{' || *s->at == '['), fine;
  if (nests && s->depth == DEEPEST) return wrong(s, p, "more than 500 levels");
  s->depth++;
  if (takes(s, '{'))
    fine = scan_members(s, p);
  else if (takes(s, '['))
    fine = scan_elements(s, p);
  else if (takes(s, '"'))
    fine = scan_text(s, p);
  else if (s->at < s->end && (*s->at == '-' || (*s->at >= '0' && *s->at <= '9')))
    fine = scan_number(s, p);
  else
    fine = scan_word(s, p);
  s->depth--;
  return fine;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static bool starved(refusal *why) {
  *why = refusal_say(500, "server_error", "out of memory: the request");
  return false;
}

/* Returns whether all names of an object are different. */
static bool names_differ(const cJSON *object, const place *p, refusal *why) {
  int n = cJSON_GetArraySize(object), i = 0;
  const cJSON *member;
  const char **names = malloc(sizeof *names * ((size_t)n + 1));
  if (!names) return starved(why);
  cJSON_ArrayForEach(member, object) names[i++] = member->string;
  qsort(names, (size_t)n, sizeof *names, by_name);
  for (i = 1; i < n && strcmp(names[i - 1], names[i]) != 0;) i++;
  if (i < n) {
    char path[200] = "";
    put_place(&(place){p, names[i], strlen(names[i]), 0}, path, sizeof path);
    *why = refusal_say(400, INVALID, "%s: it is given twice", path);
  }
  free(names);
  return i >= n;
}

static bool all_names_differ(const cJSON *value, const place *p, refusal *why) {
  place inner = {.above = p};
  const cJSON *one;
  if (cJSON_IsObject(value) && !names_differ(value, p, why)) return false;
  cJSON_ArrayForEach(one, value) {
    inner.name = one->string, inner.len = one->string ? strlen(one->string) : 0;
    if (one->child && !all_names_differ(one, &inner, why)) return false;
    inner.index++;
  }
  return true;
}

bool body_read(raw_json *body, cJSON **out, refusal *why) {
  static const char mark[] = "\xEF\xBB\xBF"; /* the byte order mark, which RFC 8259 allows a reader to skip */
  const place whole = {0};
  scan s = {.begin = body->at, .at = body->at, .end = body->at + body->len, .why = why};
  *out = NULL;
  if (body->len >= 3 && memcmp(body->at, mark, 3) == 0) s.at += 3;
  skip_space(&s);
  const char *first = s.at;
  if (!scan_value(&s, &whole)) return false;
  *body = (raw_json){first, (size_t)(s.at - first)};
  skip_space(&s);
  if (s.at < s.end) return wrong(&s, &whole, BAD "expected nothing after the value");
  if (*first != '{') {
    *why = refusal_say(400, INVALID, "the body is not a JSON object: expected {...}");
    return false;
  }
  *out = cJSON_ParseWithLength(body->at, body->len);
  if (!*out) return starved(why);
  if (all_names_differ(*out, &whole, why)) return true;
  cJSON_Delete(*out);
  *out = NULL;
  return false;
}
