/* str, repr and JSON of values: see write.h. */
#include "template/write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* The fewest digits that read back as x, as d.ddde+xx. */
static void shortest(char out[TPL_NUMBER_TEXT], double x) {
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(out, TPL_NUMBER_TEXT, "%.*e", digits - 1, x);
    if (strtod(out, NULL) == x) return;
  }
}

/* Python writes exponents below -4 and from 16 on, and ".0" where there is no other sign of a float. */
void tpl_number_text(char out[TPL_NUMBER_TEXT], double x) {
  if (!isfinite(x)) {
    snprintf(out, TPL_NUMBER_TEXT, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
    return;
  }
  shortest(out, x);
  const char *e = strchr(out, 'e'), *point = strchr(out, '.');
  int exponent = atoi(e + 1), after = point ? (int)(e - point) - 1 : 0;
  if (exponent < -4 || exponent >= 16) return;
  after = after > exponent ? after - exponent : 1;
  snprintf(out, TPL_NUMBER_TEXT, "%.*f", after, x);
}

static void write_number(tpl_builder *b, tpl_value v) {
  char text[TPL_NUMBER_TEXT];
  if (v.kind == TPL_FLOAT)
    tpl_number_text(text, v.number);
  else
    snprintf(text, sizeof text, "%" PRId64, v.integer);
  tpl_add_text(b, text);
}

/* ---- repr -------------------------------------------------------------------------------------------------------- */

static bool is_printable(int32_t c) {
  if (c < 0x7F) return c >= ' ';
  switch (utf8proc_category(c)) {
  case UTF8PROC_CATEGORY_ZS:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CN: return false;
  default: return true;
  }
}

/* The escape of a character inside a Python literal, or "". */
static void python_escape(char out[16], int32_t c, char quote) {
  out[0] = '\0';
  if (c == quote || c == '\\')
    snprintf(out, 16, "\\%c", (char)c);
  else if (c == '\n' || c == '\r' || c == '\t')
    snprintf(out, 16, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
  else if (!is_printable(c))
    snprintf(out, 16, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
}

static void write_quoted(tpl_builder *b, const tpl_string *s) {
  char escape[16];
  bool has_single = memchr(s->bytes, '\'', s->len), has_double = memchr(s->bytes, '"', s->len);
  char quote = has_single && !has_double ? '"' : '\'';
  tpl_charge_characters(b->job, s->len);
  tpl_add(b, &quote, 1, false);
  for (size_t at = 0, len; at < s->len; at += len) {
    python_escape(escape, tpl_character(s, at, &len), quote);
    if (escape[0])
      tpl_add(b, escape, strlen(escape), tpl_is_marked(s, at));
    else
      tpl_add_part(b, s, at, at + len);
  }
  tpl_add(b, &quote, 1, false);
}

static void write_items(tpl_builder *b, const char *begin, const tpl_list *list, const char *end) {
  tpl_add_text(b, begin);
  for (size_t i = 0; i < list->n; i++) {
    if (i) tpl_add_text(b, ", ");
    tpl_write_repr(b, list->items[i]);
  }
  tpl_add_text(b, end);
}

static void write_pairs(tpl_builder *b, const tpl_dict *d) {
  tpl_add_text(b, "{");
  for (size_t i = 0; i < d->n; i++) {
    if (i) tpl_add_text(b, ", ");
    tpl_write_repr(b, d->pairs[i].key);
    tpl_add_text(b, ": ");
    tpl_write_repr(b, d->pairs[i].value);
  }
  tpl_add_text(b, "}");
}

static void write_container(tpl_builder *b, tpl_value v) {
  tpl_enter(b->job);
  if (v.kind == TPL_LIST) write_items(b, "[", v.list, "]");
  if (v.kind == TPL_TUPLE) write_items(b, "(", v.list, v.list->n == 1 ? ",)" : ")");
  if (v.kind == TPL_VIEW) tpl_add_text(b, v.list->type), write_items(b, "([", v.list, "])");
  if (v.kind == TPL_NAMESPACE) tpl_add_text(b, "<Namespace ");
  if (v.kind == TPL_NAMESPACE || v.kind == TPL_DICT) write_pairs(b, v.dict);
  if (v.kind == TPL_NAMESPACE) tpl_add_text(b, ">");
  tpl_leave(b->job);
}

void tpl_write_repr(tpl_builder *b, tpl_value v) {
  tpl_charge(b->job, 1);
  switch (v.kind) {
  case TPL_NONE: tpl_add_text(b, "None"); break;
  case TPL_BOOL: tpl_add_text(b, v.boolean ? "True" : "False"); break;
  case TPL_INT:
  case TPL_FLOAT: write_number(b, v); break;
  case TPL_STRING:
    if (v.string->safe) tpl_add_text(b, "Markup(");
    write_quoted(b, v.string);
    if (v.string->safe) tpl_add_text(b, ")");
    break;
  case TPL_LIST:
  case TPL_TUPLE:
  case TPL_VIEW:
  case TPL_NAMESPACE:
  case TPL_DICT: write_container(b, v); break;
  case TPL_RANGE: tpl_add_text(b, v.list->type); break;
  case TPL_UNDEFINED: tpl_add_text(b, "Undefined"); break;
  case TPL_MACRO:
    tpl_add_text(b, "<Macro ");
    write_quoted(b, v.macro->name);
    tpl_add_text(b, ">");
    break;
  default:
    tpl_add_text(b, "<");
    tpl_add_text(b, tpl_type(v));
    tpl_add_text(b, " object>");
  }
}

void tpl_write(tpl_builder *b, tpl_value v) {
  if (v.kind == TPL_STRING)
    tpl_add_string(b, v.string);
  else if (v.kind != TPL_UNDEFINED)
    tpl_write_repr(b, v);
}

const tpl_string *tpl_str(tpl_job *job, tpl_value v) {
  if (v.kind == TPL_STRING) return v.string;
  tpl_builder b = {.job = job};
  tpl_write(&b, v);
  return tpl_built(&b);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* The escape of a character, or "". */
static void json_escape(char out[16], int32_t c, bool ascii) {
  static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
  const char *known = c < 0x80 && c ? strchr(from, c) : NULL;
  out[0] = '\0';
  if (known)
    snprintf(out, 16, "\\%c", to[known - from]);
  else if (c < ' ' || (ascii && c > '~' && c < 0x10000))
    snprintf(out, 16, "\\u%04x", (unsigned)c);
  else if (ascii && c > '~')
    snprintf(out, 16, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((c - 0x10000) >> 10)), (unsigned)(0xDC00 + (c & 0x3FF)));
}

static void write_json_string(tpl_builder *b, const tpl_string *s, bool ascii) {
  char escape[16];
  size_t from = 0;
  tpl_charge_characters(b->job, s->len);
  tpl_add_text(b, "\"");
  for (size_t at = 0, len; at < s->len; at += len) {
    json_escape(escape, tpl_character(s, at, &len), ascii);
    if (!escape[0]) continue;
    tpl_add_part(b, s, from, at);
    tpl_add(b, escape, strlen(escape), tpl_is_marked(s, at));
    from = at + len;
  }
  tpl_add_part(b, s, from, s->len);
  tpl_add_text(b, "\"");
}

static void write_json_number(tpl_builder *b, tpl_value v) {
  if (v.kind == TPL_FLOAT && !isfinite(v.number))
    tpl_add_text(b, isnan(v.number) ? "NaN" : v.number < 0 ? "-Infinity" : "Infinity");
  else
    write_number(b, v);
}

static void write_json_key(tpl_builder *b, tpl_value key, const tpl_json_style *style) {
  if (key.kind == TPL_STRING) {
    write_json_string(b, key.string, style->ascii);
    return;
  }
  if (!tpl_is_number(key) && key.kind != TPL_NONE) tpl_fail(b->job, "tojson: a key of type %s", tpl_type(key));
  tpl_add_text(b, "\"");
  tpl_write_json(b, key, style);
  tpl_add_text(b, "\"");
}

/* A new line with its indentation, if the style has one. */
static void new_line(tpl_builder *b, const tpl_json_style *style, int levels) {
  if (!style->indent) return;
  tpl_add_text(b, "\n");
  for (int i = 0; i < levels; i++) tpl_add_string(b, style->indent);
}

static void write_json(tpl_builder *b, tpl_value v, const tpl_json_style *style, int level);

static void write_json_list(tpl_builder *b, const tpl_list *list, const tpl_json_style *style, int level) {
  tpl_add_text(b, "[");
  for (size_t i = 0; i < list->n; i++) {
    if (i) tpl_add_string(b, style->comma);
    new_line(b, style, level + 1);
    write_json(b, list->items[i], style, level + 1);
  }
  if (list->n) new_line(b, style, level);
  tpl_add_text(b, "]");
}

static const tpl_dict *sorted_by_key(tpl_job *job, const tpl_dict *d) {
  tpl_list *keys = tpl_list_new(job, TPL_LIST, d->n).list;
  for (size_t i = 0; i < d->n; i++) keys->items[i] = d->pairs[i].key;
  tpl_sort(job, keys->items, keys->items, d->n, false);
  tpl_dict *sorted = tpl_dict_new(job).dict;
  for (size_t i = 0; i < d->n; i++) tpl_dict_set(job, sorted, keys->items[i], *tpl_dict_get(job, d, keys->items[i]));
  return sorted;
}

static void write_json_dict(tpl_builder *b, const tpl_dict *d, const tpl_json_style *style, int level) {
  if (style->sorted) d = sorted_by_key(b->job, d);
  tpl_add_text(b, "{");
  for (size_t i = 0; i < d->n; i++) {
    if (i) tpl_add_string(b, style->comma);
    new_line(b, style, level + 1);
    write_json_key(b, d->pairs[i].key, style);
    tpl_add_string(b, style->colon);
    write_json(b, d->pairs[i].value, style, level + 1);
  }
  if (d->n) new_line(b, style, level);
  tpl_add_text(b, "}");
}

static void write_json(tpl_builder *b, tpl_value v, const tpl_json_style *style, int level) {
  tpl_charge(b->job, 1);
  tpl_enter(b->job);
  switch (v.kind) {
  case TPL_NONE: tpl_add_text(b, "null"); break;
  case TPL_BOOL: tpl_add_text(b, v.boolean ? "true" : "false"); break;
  case TPL_INT:
  case TPL_FLOAT: write_json_number(b, v); break;
  case TPL_STRING: write_json_string(b, v.string, style->ascii); break;
  case TPL_LIST:
  case TPL_TUPLE: write_json_list(b, v.list, style, level); break;
  case TPL_DICT: write_json_dict(b, v.dict, style, level); break;
  default: tpl_fail(b->job, "Object of type %s is not JSON serializable", tpl_type(v));
  }
  tpl_leave(b->job);
}

void tpl_write_json(tpl_builder *b, tpl_value v, const tpl_json_style *style) { write_json(b, v, style, 0); }
