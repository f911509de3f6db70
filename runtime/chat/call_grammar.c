/* Grammars for calls of tools: see calls.h. */
#include "chat/call_format.h"
#include "chat/free_text.h"
#include "grammar/exact_json.h"
#include "grammar/gbnf.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/written.h"
#include "system/need.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  const dt_call_format *f;
  const dt_call_options *how;
  bool unmarked; /* the mark of a call cannot be recognized in a text */
  schema_notation space;
  bool any_space;
  char comma[32], colon[32];
  int made; /* rules of schemas */
  FILE *out;
  const cJSON *function; /* the tool that is being written, */
  int i;                 /* its number */
  const char *name;      /* and its name */
  dt_status status;
  dt_error *err;
} writer;

static const cJSON *member(const cJSON *object, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void put_byte(FILE *out, char c) {
  if (c == '\n')
    fputs("\\n", out);
  else if (c == '"' || c == '\\')
    fprintf(out, "\\%c", c);
  else if ((unsigned char)c < ' ')
    fprintf(out, "\\x%02X", (unsigned)(unsigned char)c);
  else
    putc(c, out);
}

static void put_bytes(FILE *out, const char *text, size_t n) {
  if (!n) return;
  putc('"', out);
  for (size_t i = 0; i < n; i++) put_byte(out, text[i]);
  fputs("\" ", out);
}

static void put_text(FILE *out, const char *text) { put_bytes(out, text, strlen(text)); }

/* Writes a text of the format, in which control tokens are demanded as tokens. */
static void put_marked(const writer *w, const char *text, size_t n) {
  size_t plain = 0, at = 0, len;
  while (at < n) {
    const int32_t id = w->how->token ? w->how->token(w->how->of, text + at, n - at, &len) : -1;
    if (id < 0) {
      at++;
      continue;
    }
    put_bytes(w->out, text + plain, at - plain);
    fprintf(w->out, "<[%d]> ", (int)id);
    plain = at += len;
  }
  put_bytes(w->out, text + plain, n - plain);
}

/* Writes what a byte of a text of the format stands for. type: of the value; NULL: any type but a string. */
static void put_stand_in(const writer *w, char c, const char *key, const char *type) {
  switch (c) {
  case CALL_INDEX_0:
  case CALL_INDEX_1: fputs(w->how->several ? "[0-9]{1,3} " : c == CALL_INDEX_0 ? "\"0\" " : "\"1\" ", w->out); break;
  case CALL_ID: fputs("[a-zA-Z0-9]{9} ", w->out); break;
  case CALL_NAME: put_text(w->out, w->name); break;
  case CALL_KEY: put_text(w->out, key); break;
  case CALL_TYPE:
    put_text(w->out, type ? type : "");
    if (!type) fputs("(\"number\" | \"boolean\" | \"array\" | \"object\" | \"null\") ", w->out);
    break;
  default: put_text(w->out, type && strcmp(type, "string") == 0 ? "true" : "false"); /* CALL_IS_STRING */
  }
}

static void put_whole(const writer *w, const char *part, const char *key, const char *type) {
  while (*part) {
    size_t plain = 0;
    while ((unsigned char)part[plain] > CALL_IS_STRING) plain++;
    put_marked(w, part, plain);
    part += plain;
    if (*part) put_stand_in(w, *part++, key, type);
  }
}

/* ---- strings that stand bare ------------------------------------------------------------------------------------- */

static size_t next_character(const char *text) {
  size_t len;
  utf8_next(text, strlen(text), &len);
  return len;
}

static void put_class_character(FILE *out, const char *text, size_t len) {
  if (len == 1 && strchr("[]\\^-\"", *text)) {
    fprintf(out, "\\x%02X", (unsigned)(unsigned char)*text);
    return;
  }
  for (size_t i = 0; i < len; i++) put_byte(out, text[i]);
}

/* The text that ends a string, without what differs from key to key. */
static const char *end_of_string(const dt_call_format *f, size_t *n) {
  const char *end = *f->quote ? f->quote : f->value_end;
  while (chat_is_space(*end)) end++;
  for (*n = 0; end[*n] && (unsigned char)end[*n] > CALL_IS_STRING; ++*n) {}
  while (*n > 0 && chat_is_space(end[*n - 1])) --*n;
  return end;
}

/* The rules `text-0`, a string as the format writes it, and `mild`, one of its characters in a string of limited
 * length. */
static void put_strings(writer *w) {
  size_t n;
  const char *end = end_of_string(w->f, &n);
  if (*w->f->quote && n == 1) { /* a backslash begins an escape there, which templates do not write */
    fputs("text-0 ::= mild*\nmild ::= [^\\x00-\\x08\\\\", w->out);
    put_class_character(w->out, end, 1);
    fputs("]\n", w->out);
    return;
  }
  char *mark = strndup(end, n);
  const bool fine = mark && free_text_rules(w->out, "text", mark, NULL, true, "\\x00-\\x08");
  free(mark);
  if (!fine) w->status = dt_fail(w->err, DT_EINPUT, "tools: the template's calls have no mark at the end of a text");
  fputs("mild ::= [^\\x00-\\x08", w->out);
  put_class_character(w->out, end, next_character(end));
  fputs("]\n", w->out);
}

/* ---- arguments in tags ------------------------------------------------------------------------------------------- */

static void refuse(writer *w, const char *key, const char *why) {
  if (!w->status)
    w->status = dt_fail(w->err, DT_EINPUT, "tools[%d] %.60s, #/properties/%.60s: %s", w->i, w->name, key, why);
}

static int count_of(writer *w, const cJSON *schema, const char *key, const char *name, int without) {
  const cJSON *n = member(schema, name);
  if (!n) return without;
  if (cJSON_IsRaw(n) && n->valuedouble >= 0 && n->valuedouble <= RULES_NODES && n->valuedouble == n->valueint)
    return n->valueint;
  refuse(w, key, "minLength and maxLength: expected whole numbers");
  return 0;
}

/* Refuses keywords that have an effect, other than these: what stands bare is not left to the rules of schemas. */
static void check_keywords(writer *w, const cJSON *schema, const char *key, const char *const *but) {
  const cJSON *k;
  cJSON_ArrayForEach(k, schema) {
    char why[120];
    int i = 0;
    while (but[i] && strcmp(but[i], k->string) != 0) i++;
    if (but[i] || !schema_has_effect(k->string)) continue;
    snprintf(why, sizeof why, "the keyword %.60s is not supported for arguments in tags", k->string);
    refuse(w, key, why);
  }
}

static void check_string(writer *w, const cJSON *schema, const char *key) {
  static const char *const whole[] = {"type", "anyOf", "enum", "const", NULL}, *const parts[] = {"type", "pattern",
                                                                                                 "minLength",
                                                                                                 "maxLength", NULL};
  const bool known = member(schema, "anyOf") || member(schema, "enum") || member(schema, "const");
  check_keywords(w, schema, key, known ? whole : parts);
  if (member(schema, "pattern") && (member(schema, "minLength") || member(schema, "maxLength")))
    refuse(w, key, "pattern with minLength or maxLength is not supported for arguments in tags");
}

static void put_string_body(writer *w, const cJSON *schema, const char *key) {
  const cJSON *value, *list = member(schema, "enum"), *constant = member(schema, "const");
  const cJSON *pattern = member(schema, "pattern");
  if (list || constant) {
    bool first = true;
    if (constant)
      put_text(w->out, cJSON_IsString(constant) ? constant->valuestring : "");
    else
      cJSON_ArrayForEach(value, list) {
        if (!cJSON_IsString(value)) continue;
        if (!first) fputs("| ", w->out);
        put_text(w->out, value->valuestring);
        if (!*value->valuestring) fputs("\"\" ", w->out);
        first = false;
      }
  } else if (pattern) {
    char what[200];
    if (!cJSON_IsString(pattern)) refuse(w, key, "pattern: expected a regular expression");
    snprintf(what, sizeof what, "tools[%d] %.60s, #/properties/%.60s: pattern", w->i, w->name, key);
    if (!w->status) w->status = regex_put(pattern->valuestring, false, what, w->out, w->err);
  } else if (member(schema, "minLength") || member(schema, "maxLength")) {
    int least = count_of(w, schema, key, "minLength", 0), most = count_of(w, schema, key, "maxLength", -1);
    if (most >= 0 && most < least) refuse(w, key, "maxLength is less than minLength");
    if (most < 0)
      fprintf(w->out, "mild{%d,} ", least);
    else
      fprintf(w->out, "mild{%d,%d} ", least, most);
  } else {
    fputs("text-0 ", w->out);
  }
}

/* Copies what $ref may name. False: out of memory. */
static bool add_definitions(cJSON *schema, const cJSON *parameters) {
  static const char *const name[] = {"$defs", "definitions"};
  for (int i = 0; i < 2; i++) {
    const cJSON *defs = member(parameters, name[i]);
    if (!defs || !cJSON_IsObject(schema) || member(schema, name[i])) continue;
    cJSON *copy = cJSON_Duplicate(defs, true);
    if (!cJSON_AddItemToObject(schema, name[i], copy)) {
      cJSON_Delete(copy);
      return false;
    }
  }
  return true;
}

/* Has the schema's own rules written, which are checked, too, where the value is written in another way. The schemas of
 * $defs and definitions belong to all of the tool's. Returns the number of the rule. */
static int put_rules(writer *w, const cJSON *schema, const char *key) {
  char what[200];
  const int rule = w->made;
  cJSON *own = cJSON_Duplicate(schema, true);
  snprintf(what, sizeof what, "tools[%d] %.60s, #/properties/%.60s", w->i, w->name, key);
  if (!own || !add_definitions(own, member(w->function, "parameters"))) {
    if (!w->status) w->status = dt_fail_memory(w->err, "a grammar for calls", 1);
  } else if (!w->status) {
    w->status = schema_put(own, what, w->any_space ? NULL : &w->space, NULL, &w->made, w->out, w->err);
  }
  cJSON_Delete(own);
  return rule;
}

static const char *word_of(const cJSON *schema) {
  const char *type = cJSON_GetStringValue(member(schema, "type"));
  return type && strcmp(type, "integer") == 0 ? "number" : type;
}

/* The schema of strings, which may be one of two in anyOf. */
static const cJSON *string_schema(const cJSON *schema) {
  const cJSON *one;
  cJSON_ArrayForEach(one, member(schema, "anyOf")) if (call_declared_by(one) == CALL_STRING) return one;
  return schema;
}

/* Rule aI-mK: an argument, from its key to value_end. */
static void put_member(writer *w, int k, const cJSON *schema) {
  const char *key = schema->string;
  const dt_call_format *f = w->f;
  const call_declared declared = call_declared_by(schema);
  const bool string = declared == CALL_STRING || declared == CALL_STRING_OR_NULL;
  const bool boolean = word_of(schema) && !strcmp(word_of(schema), "boolean") && cJSON_GetArraySize(schema) > 0;
  const int rule = put_rules(w, schema, key);
  fprintf(w->out, "a%d-m%d ::= ", w->i, k);
  put_text(w->out, key);
  if (string) {
    check_string(w, schema, key);
    if (string_schema(schema) != schema) check_string(w, string_schema(schema), key);
    fputs("(", w->out);
    put_whole(w, f->key_end, key, "string");
    put_marked(w, f->quote, strlen(f->quote));
    fputs("(", w->out);
    put_string_body(w, string_schema(schema), key);
    fputs(") ", w->out);
    put_marked(w, f->quote, strlen(f->quote));
    if (declared == CALL_STRING_OR_NULL) {
      fputs("| ", w->out);
      put_whole(w, f->key_end, key, "null");
      put_text(w->out, f->python ? "None" : "null");
    }
    fputs(") ", w->out);
  } else {
    put_whole(w, f->key_end, key, word_of(schema));
    if (boolean && f->python && !member(schema, "enum") && !member(schema, "const"))
      fputs("(\"True\" | \"False\") ", w->out);
    else
      fprintf(w->out, "r%d ", rule);
  }
  put_whole(w, f->value_end, key, NULL);
  putc('\n', w->out);
}

static bool is_required(const cJSON *required, const char *name) {
  const cJSON *r;
  cJSON_ArrayForEach(r, required) if (cJSON_IsString(r) && !strcmp(r->valuestring, name)) return true;
  return false;
}

/* Rules aI-fK and aI-gK: the arguments from property K on, if none or some came before. */
static void put_members(writer *w, const cJSON *parameters) {
  const cJSON *p, *required = member(parameters, "required");
  int k = 0;
  cJSON_ArrayForEach(p, member(parameters, "properties")) {
    const bool must = is_required(required, p->string);
    put_member(w, k, p);
    fprintf(w->out, "a%d-f%d ::= ", w->i, k);
    put_whole(w, w->f->before, p->string, NULL);
    fprintf(w->out, "a%d-m%d a%d-g%d", w->i, k, w->i, k + 1);
    if (!must) fprintf(w->out, " | a%d-f%d", w->i, k + 1);
    fprintf(w->out, "\na%d-g%d ::= (", w->i, k);
    put_whole(w, w->f->more, p->string, NULL);
    fprintf(w->out, "a%d-m%d)%s a%d-g%d\n", w->i, k, must ? "" : "?", w->i, k + 1);
    k++;
  }
  fprintf(w->out, "a%d-f%d ::= \"\"\na%d-g%d ::= \"\"\n", w->i, k, w->i, k);
}

/* Arguments with any keys, whose values are strings. */
static void put_any_members(const writer *w) {
  if (strchr(w->f->value_end, CALL_KEY)) { /* no grammar can repeat a key that it does not know */
    fprintf(w->out, "a%d-f0 ::= \"\"\n", w->i);
    return;
  }
  fprintf(w->out, "a%d-m ::= [a-zA-Z0-9-_]+ ", w->i);
  put_whole(w, w->f->key_end, "", "string");
  put_marked(w, w->f->quote, strlen(w->f->quote));
  fputs("text-0 ", w->out);
  put_marked(w, w->f->quote, strlen(w->f->quote));
  put_whole(w, w->f->value_end, "", NULL);
  fprintf(w->out, "\na%d-f0 ::= (", w->i);
  put_whole(w, w->f->before, "", NULL);
  fprintf(w->out, "a%d-m (", w->i);
  put_whole(w, w->f->more, "", NULL);
  fprintf(w->out, "a%d-m)*)?\n", w->i);
}

/* ---- tools ------------------------------------------------------------------------------------------------------- */

/* Whether the schema takes any object. */
static bool takes_all(const cJSON *parameters) {
  const cJSON *k;
  cJSON_ArrayForEach(k, parameters) if (strcmp(k->string, "type") && strcmp(k->string, "description") &&
                                        strcmp(k->string, "title") && strcmp(k->string, "$schema")) return false;
  return true;
}

static void check_parameters(writer *w, const cJSON *parameters) {
  const cJSON *type = member(parameters, "type");
  if (parameters && !cJSON_IsObject(parameters) && !cJSON_IsNull(parameters))
    w->status = dt_fail(w->err, DT_EINPUT, "tools[%d] %.60s: parameters: expected a JSON schema", w->i, w->name);
  else if (type ? strcmp(cJSON_IsString(type) ? type->valuestring : "", "object") != 0
                : !takes_all(parameters) && !member(parameters, "properties"))
    w->status =
        dt_fail(w->err, DT_EINPUT, "tools[%d] %.60s: parameters: expected a schema of type object", w->i, w->name);
}

/* The arguments are written one by one, so keywords that relate them are refused. */
static void check_own(writer *w, const cJSON *parameters) {
  static const char *const but[] = {"type", "properties", "required", "additionalProperties", NULL};
  const cJSON *name;
  check_keywords(w, parameters, "", but);
  cJSON_ArrayForEach(name,
                     member(parameters, "required")) if (!w->status && cJSON_IsString(name) &&
                                                         !member(member(parameters, "properties"), name->valuestring))
      w->status = dt_fail(w->err, DT_EINPUT, "tools[%d] %.60s: required: there is no property %.60s", w->i, w->name,
                          name->valuestring);
}

/* Checks what is not left to the rules of schemas. */
static void check_tags(writer *w, const cJSON *parameters) {
  char what[120];
  const cJSON *more = member(parameters, "additionalProperties");
  if (more && !cJSON_IsFalse(more)) {
    if (!w->status)
      w->status = dt_fail(w->err, DT_EINPUT,
                          "tools[%d] %.60s: additionalProperties is supported only in formats whose arguments are JSON",
                          w->i, w->name);
    return;
  }
  /* The whole schema must be one that JSON could have, too. Its rules are not used. */
  snprintf(what, sizeof what, "tools[%d] %.60s", w->i, w->name);
  check_own(w, parameters);
  if (w->status) return;
  char *unused = NULL;
  size_t len;
  int made = 0;
  FILE *out = open_memstream(&unused, &len);
  if (!out) {
    w->status = dt_fail_memory(w->err, "a grammar for calls", 1);
    return;
  }
  w->status = schema_put(parameters, what, NULL, NULL, &made, out, w->err);
  fclose(out);
  free(unused);
}

/* Rule tI: a tool's name, and its arguments. */
static void put_tool(writer *w) {
  const cJSON *parameters = member(w->function, "parameters");
  char what[120];
  check_parameters(w, parameters);
  if (w->status) return;
  const bool all = takes_all(parameters);
  const int rule = w->made;
  snprintf(what, sizeof what, "tools[%d] %.60s", w->i, w->name);
  if (w->f->tags && !all) check_tags(w, parameters);
  if (w->status) return;
  if (!w->f->tags && !all)
    w->status = schema_put(parameters, what, w->any_space ? NULL : &w->space, NULL, &w->made, w->out, w->err);
  else if (w->f->tags && all)
    put_any_members(w);
  else if (w->f->tags)
    put_members(w, parameters);
  fprintf(w->out, "t%d ::= ", w->i);
  put_text(w->out, w->name);
  put_whole(w, w->f->middle, "", NULL);
  if (w->f->tags)
    fprintf(w->out, "a%d-f0\n", w->i);
  else if (all)
    fputs("object\n", w->out);
  else
    fprintf(w->out, "r%d\n", rule);
}

/* The text after the last call. A mark at its end may be a token that ends the answer, which has no text. */
static void put_last(const writer *w) {
  const char *last = w->f->last, *mark = strrchr(last, '<');
  const size_t n = strlen(last);
  if (!mark || mark[1] != '|' || n < 4 || strcmp(last + n - 2, "|>") != 0) mark = last + n;
  char *begin = strndup(last, (size_t)(mark - last));
  if (begin) put_whole(w, begin, "", NULL);
  free(begin);
  if (!*mark) return;
  fputs("(", w->out);
  put_whole(w, mark, "", NULL);
  fputs(")? ", w->out);
}

/* How many bytes of `first` are the mark of a call, such as <tool_call>; without one, all that precedes what differs
 * from call to call. */
static size_t mark_length(const char *first) {
  const char *close = *first == '<' ? strchr(first, '>') : *first == '[' ? strchr(first, ']') : NULL;
  if (close) return (size_t)(close + 1 - first);
  size_t n = 0;
  while ((unsigned char)first[n] > CALL_IS_STRING) n++;
  return n;
}

static void put_calls(const writer *w, const char *first) {
  put_whole(w, first, "", NULL);
  fputs("call ", w->out);
  if (w->how->several && w->f->next) {
    fputs("(", w->out);
    put_whole(w, w->f->next, "", NULL);
    fputs("call)* ", w->out);
  }
  put_last(w);
  fputs("\n", w->out);
}

/* Rule answer: calls, or free text up to the mark of a call. */
static void put_answer(writer *w) {
  const char *first = w->f->first;
  if (w->how->required) {
    fputs("answer ::= ", w->out);
    put_calls(w, first);
    return;
  }
  while (chat_is_space(*first)) first++;
  const size_t n = mark_length(first);
  char *mark = strndup(first, n);
  fputs("answer ::= free-0\n", w->out);
  w->unmarked = !mark || !free_text_rules(w->out, "free", mark, "calls", true, "");
  free(mark);
  fputs("calls ::= ", w->out);
  put_calls(w, first + n);
}

/* Rule root: reasoning, and the answer. */
static void put_root(writer *w) {
  const char *begin = w->how->reasoning_begin, *end = w->how->reasoning_end;
  size_t n = end ? strlen(end) : 0;
  while (n > 0 && chat_is_space(*end)) end++, n--;
  while (n > 0 && chat_is_space(end[n - 1])) n--;
  char *mark = n > 0 ? strndup(end, n) : NULL;
  const bool reasons = mark && begin && free_text_rules(w->out, "reasoning", mark, "reasoned", !w->how->required, "");
  free(mark);
  if (!reasons) {
    fputs("root ::= answer\n", w->out);
    return;
  }
  fputs("reasoned ::= [ \\t\\r\\n]{0,8} answer\nroot ::= ", w->out);
  if (!w->how->open) {
    fputs("answer | ", w->out);
    put_marked(w, begin, strlen(begin));
  }
  fputs("reasoning-0\n", w->out);
}

/* Lists and objects in tags are JSON, except where strings have a mark of their own instead of quotes: then commas and
 * colons are those between arguments. */
static void choose_notation(writer *w) {
  const dt_call_format *f = w->f;
  const bool own = f->tags && strlen(f->quote) > 1;
  const char *comma = own ? f->more : f->tags ? ", " : f->comma, *colon = own ? f->key_end : f->tags ? ": " : f->colon;
  w->any_space = !comma || !colon || strlen(comma) > 8 || strlen(colon) > 8 || strpbrk(comma, "\n\r\"\\") ||
                 strpbrk(colon, "\n\r\"\\");
  if (w->any_space) return;
  snprintf(w->comma, sizeof w->comma, "\"%s\" ", comma);
  snprintf(w->colon, sizeof w->colon, "\"%s\" ", colon);
  w->space = (schema_notation){"", w->comma, w->colon, own ? f->quote : NULL};
}

static void put_grammar(writer *w, const cJSON *tools) {
  const cJSON *tool;
  put_root(w);
  put_answer(w);
  fputs("call ::= ", w->out);
  for (int i = 0; i < cJSON_GetArraySize(tools); i++) fprintf(w->out, i ? " | t%d" : "t%d", i);
  putc('\n', w->out);
  schema_put_common(w->any_space ? NULL : &w->space, false, w->out);
  if (w->f->tags) put_strings(w);
  cJSON_ArrayForEach(tool, tools) {
    if (w->status) break;
    w->function = member(tool, "function");
    w->name = cJSON_GetStringValue(member(w->function, "name"));
    put_tool(w);
    w->i++;
  }
  if (!w->status && ftell(w->out) > GBNF_BYTES)
    w->status = dt_fail(w->err, DT_EINPUT, "tools: their grammar has more than %d bytes", GBNF_BYTES);
}

dt_status dt_call_grammar(const dt_call_format *format, const char *tools, const dt_call_options *options, char **gbnf,
                          dt_error *err) {
  NEED(format, "format");
  NEED(tools, "tools");
  NEED(options, "options");
  NEED(gbnf, "gbnf");
  cJSON *list;
  char *text = NULL;
  size_t len;
  dt_status status = exact_json_read("tools", tools, GBNF_BYTES, &list, err);
  if (status) return status;
  writer w = {.f = format, .how = options, .err = err};
  w.status = call_check_tools(list, err);
  if (!w.status && !list->child) w.status = dt_fail(err, DT_EINPUT, "tools: the list is empty");
  if (!w.status && !(w.out = open_memstream(&text, &len))) w.status = dt_fail_memory(err, "a grammar for calls", 1);
  if (w.out) {
    choose_notation(&w);
    put_grammar(&w, list);
    if (!is_written(w.out, &text) && !w.status) w.status = dt_fail_memory(err, "a grammar for calls", 1);
  }
  cJSON_Delete(list);
  if (w.status || w.unmarked) free(text), text = NULL;
  if (!w.status) *gbnf = text;
  return w.status;
}
