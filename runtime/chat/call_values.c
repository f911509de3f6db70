/* The values of arguments, as formats write them, become JSON: see call_format.h. */
#include "chat/call_format.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 100 }; /* of nested brackets */

/* ---- text -------------------------------------------------------------------------------------------------------- */

bool call_put_bytes(const char *bytes, size_t len, char **out, size_t *n) {
  char *grown = realloc(*out, *n + len + 1);
  if (!grown) return false;
  if (len) memcpy(grown + *n, bytes, len);
  grown[ *n += len] = '\0';
  *out = grown;
  return true;
}

static bool put_character(char c, char **out, size_t *n) {
  static const char plain[] = "\b\f\n\r\t\"\\", named[] = "bfnrt\"\\";
  const char *at = c ? strchr(plain, c) : NULL;
  char escape[8];
  if (at)
    snprintf(escape, sizeof escape, "\\%c", named[at - plain]);
  else if ((unsigned char)c < ' ' || c == 0x7f)
    snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)c);
  else
    snprintf(escape, sizeof escape, "%c", c);
  return call_put_bytes(escape, strlen(escape), out, n);
}

bool call_put_string(call_span text, char **out, size_t *n) {
  bool fine = call_put_bytes("\"", 1, out, n);
  for (size_t i = 0; i < text.n && fine; i++) {
    size_t run = i;
    while (run < text.n && (unsigned char)text.bytes[run] >= ' ' && text.bytes[run] != '"' && text.bytes[run] != '\\' &&
           text.bytes[run] != 0x7f)
      run++;
    fine = call_put_bytes(text.bytes + i, run - i, out, n) && (run == text.n || put_character(text.bytes[run], out, n));
    i = run;
  }
  return fine && call_put_bytes("\"", 1, out, n);
}

/* ---- values in other notations ----------------------------------------------------------------------------------- */

typedef struct {
  const char *at, *end, *quote; /* quote: an additional one; "": none */
  char **out;
  size_t *n;
  bool loose; /* True, False, None, and keys without quotes, too */
  bool no_memory;
  int depth;
} reader;

static bool put(reader *r, const char *bytes, size_t len) {
  if (!r->no_memory && !call_put_bytes(bytes, len, r->out, r->n)) r->no_memory = true;
  return !r->no_memory;
}

static bool starts(const reader *r, const char *with) {
  size_t len = strlen(with);
  return len > 0 && (size_t)(r->end - r->at) >= len && memcmp(r->at, with, len) == 0;
}

/* Copies white space. */
static bool put_space(reader *r) {
  const char *from = r->at;
  while (r->at < r->end && strchr(" \t\n\r", *r->at) && *r->at) r->at++;
  return put(r, from, (size_t)(r->at - from));
}

static bool put_escape(reader *r) {
  char c = r->at[1];
  if (strchr("\"\\/bfnrt", c) && c) return r->at += 2, put(r, r->at - 2, 2);
  if (c == 'u' && r->end - r->at >= 6 && strspn(r->at + 2, "0123456789abcdefABCDEF") >= 4)
    return r->at += 6, put(r, r->at - 6, 6);
  if (c == '\'' && r->loose) return r->at += 2, put(r, "'", 1);
  return false;
}

/* A string up to `quote`, which has begun. Escapes count where a quote is one character. */
static bool read_string(reader *r, const char *quote) {
  if (!put(r, "\"", 1)) return false;
  while (r->at < r->end && !starts(r, quote)) {
    if (*r->at == '\\' && !quote[1]) {
      if (r->end - r->at < 2 || !put_escape(r)) return false;
    } else if ((unsigned char)*r->at < ' ' && !r->loose) {
      return false;
    } else if (!put_character(*r->at++, r->out, r->n)) {
      r->no_memory = true;
      return false;
    }
  }
  if (r->at == r->end) return false;
  r->at += strlen(quote);
  return put(r, "\"", 1);
}

/* Reads a string, if one begins here. */
static bool is_string(reader *r, bool *fine) {
  const char *quotes[] = {r->quote, "\"", r->loose ? "'" : ""};
  for (int i = 0; i < 3; i++)
    if (starts(r, quotes[i])) {
      r->at += strlen(quotes[i]);
      *fine = read_string(r, quotes[i]);
      return true;
    }
  return false;
}

static bool read_word(reader *r) {
  static const char *const words[][2] = {{"true", "true"}, {"false", "false"}, {"null", "null"},
                                         {"True", "true"}, {"False", "false"}, {"None", "null"}};
  for (int i = 0; i < (r->loose ? 6 : 3); i++)
    if (starts(r, words[i][0])) return r->at += strlen(words[i][0]), put(r, words[i][1], strlen(words[i][1]));
  return false;
}

static size_t digits(const reader *r, const char *at) {
  const char *from = at;
  while (at < r->end && *at >= '0' && *at <= '9') at++;
  return (size_t)(at - from);
}

static bool read_number(reader *r) {
  const char *at = r->at;
  if (at < r->end && *at == '-') at++;
  size_t n = digits(r, at);
  if (!n || (n > 1 && *at == '0')) return false;
  at += n;
  if (at < r->end && *at == '.') {
    if (!(n = digits(r, at + 1))) return false;
    at += 1 + n;
  }
  if (at < r->end && (*at == 'e' || *at == 'E')) {
    at++;
    if (at < r->end && (*at == '+' || *at == '-')) at++;
    if (!(n = digits(r, at))) return false;
    at += n;
  }
  const char *from = r->at;
  r->at = at;
  return put(r, from, (size_t)(at - from));
}

static bool read_value(reader *r);

static bool read_key(reader *r) {
  bool fine = false;
  if (is_string(r, &fine)) return fine;
  const char *from = r->at;
  while (r->at < r->end && (unsigned char)*r->at > ' ' && !strchr("<>()[]{}\"'=,:", *r->at)) r->at++;
  if (!r->loose || r->at == from) return false;
  if (!call_put_string((call_span){from, (size_t)(r->at - from)}, r->out, r->n)) r->no_memory = true;
  return !r->no_memory;
}

static bool read_member(reader *r) {
  if (!read_key(r) || !put_space(r) || r->at == r->end || *r->at != ':') return false;
  r->at++;
  return put(r, ":", 1) && read_value(r);
}

/* A list or an object, whose bracket comes next. */
static bool read_items(reader *r) {
  const bool object = *r->at == '{';
  const char close = object ? '}' : ']';
  if (r->depth++ == DEPTH || !put(r, r->at++, 1) || !put_space(r)) return false;
  if (r->at < r->end && *r->at == close) return r->depth--, put(r, r->at++, 1);
  for (;;) {
    if (!put_space(r) || !(object ? read_member(r) : read_value(r)) || r->at == r->end) return false;
    char c = *r->at++;
    if (!put(r, &c, 1)) return false;
    if (c == close) return r->depth--, true;
    if (c != ',') return false;
  }
}

/* A value with the white space around it. */
static bool read_value(reader *r) {
  bool fine = false;
  if (!put_space(r) || r->at == r->end) return false;
  if (*r->at == '{' || *r->at == '[')
    fine = read_items(r);
  else if (!is_string(r, &fine))
    fine = read_word(r) || (!r->no_memory && read_number(r));
  return fine && put_space(r);
}

/* ---- what formats write ------------------------------------------------------------------------------------------ */

static call_span trimmed(call_span s) {
  while (s.n && chat_is_space(s.bytes[0])) s.bytes++, s.n--;
  while (s.n && chat_is_space(s.bytes[s.n - 1])) s.n--;
  return s;
}

bool call_is_object(call_span text) {
  char *out = NULL;
  size_t n = 0;
  reader r = {.at = text.bytes, .end = text.bytes + text.n, .quote = "", .out = &out, .n = &n};
  bool is_object = text.n && *text.bytes == '{' && read_value(&r) && r.at == r.end;
  free(out);
  return is_object;
}

static bool is_null(call_span value) {
  call_span core = trimmed(value);
  return core.n == 4 && (memcmp(core.bytes, "null", 4) == 0 || memcmp(core.bytes, "None", 4) == 0);
}

/* Strips the marks of XML's character data, which some templates write around strings with < or &. */
static bool is_character_data(call_span *value) {
  static const char begin[] = "<![CDATA[", end[] = "]]>";
  const size_t before = sizeof begin - 1, after = sizeof end - 1;
  call_span core = trimmed(*value);
  if (core.n < before + after || memcmp(core.bytes, begin, before) || memcmp(core.bytes + core.n - after, end, after))
    return false;
  *value = (call_span){core.bytes + before, core.n - before - after};
  return true;
}

bool call_put_value(call_span value, call_declared declared, const char *quote, char **out, size_t *n) {
  if (!*quote && is_character_data(&value)) return call_put_string(value, out, n);
  if (declared == CALL_STRING_OR_NULL && !is_null(value)) declared = CALL_STRING;
  if (declared == CALL_STRING && !*quote) return call_put_string(value, out, n);
  call_span core = trimmed(value);
  const size_t before = *n;
  reader r = {.at = core.bytes, .end = core.bytes + core.n, .quote = quote, .out = out, .n = n, .loose = true};
  /* Bare text in single quotes is that text. */
  const bool is_text = !*quote && core.n && *core.bytes == '\'';
  if (!is_text && read_value(&r) && r.at == r.end) return true;
  if (r.no_memory) return false;
  *n = before;
  const size_t len = strlen(quote);
  if (!len) return call_put_string(value, out, n);
  /* Templates do not escape quotes in strings. */
  if (core.n >= 2 * len && !memcmp(core.bytes, quote, len) && !memcmp(core.bytes + core.n - len, quote, len))
    core = (call_span){core.bytes + len, core.n - 2 * len};
  return call_put_string(core, out, n);
}

size_t call_value_length(const char *text, size_t n, const char *quote) {
  const size_t len = strlen(quote);
  int depth = 0;
  for (size_t i = 0; i < n; i++) {
    const bool quoted = n - i >= len && memcmp(text + i, quote, len) == 0;
    if (quoted || text[i] == '"') {
      const char *mark = quoted ? quote : "\"";
      const size_t of = strlen(mark);
      for (i += of; i < n && (n - i < of || memcmp(text + i, mark, of) != 0); i++)
        if (text[i] == '\\' && of == 1) i++;
      if (i >= n) return SIZE_MAX;
      i += of - 1;
    } else if (strchr("([{", text[i]) && text[i]) {
      depth++;
    } else if ((strchr(")]},", text[i]) && text[i]) || chat_is_space(text[i])) {
      if (depth == 0) return i;
      depth -= text[i] != ',' && !chat_is_space(text[i]);
    }
  }
  return SIZE_MAX;
}
