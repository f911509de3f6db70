/* From a JSON schema to a grammar: see schema.h. */
#include "grammar/schema.h"
#include "grammar/characters.h"
#include "grammar/exact_json.h"
#include "grammar/gbnf.h"
#include "grammar/integers.h"
#include "grammar/regex.h"
#include "grammar/written.h"
#include "text/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* RFC 8259; numbers are short enough for a double. Escapes of surrogates are left out: each stands for half a
 * character. `plain` is a character in one spelling, so that a text can be distinguished from others. */
static const char common[] =
    "char ::= [^\"\\\\\\x00-\\x1F\\x7F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-cA-CefEF] "
    "hex{3} | [dD] [0-7] hex{2}))\n"
    "plain ::= [^\"\\\\\\x00-\\x1F\\x7F] | \"\\\\\" ([\"\\\\bfnrt] | \"u00\" (\"0\" [0-7bef] | \"1\" "
    "[0-9a-f] | \"7f\"))\n"
    "rest ::= plain* \"\\\"\"\n"
    "hex ::= [0-9a-fA-F]\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,14})\n"
    "number ::= integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n"
    "value ::= object | array | string | number | boolean | null\n";

/* ws: where white space may be; comma, colon: with what follows them. */
static const schema_notation any_space = {"ws ", "\",\" ws ", "\":\" ws ", NULL};

#define TOO_LONG "its grammar has more than %d bytes"

typedef enum { STRING, INTEGER, NUMBER, BOOLEAN, ARRAY, OBJECT, NULLS, TYPES } type;
static const char *const type_name[TYPES] = {"string", "integer", "number", "boolean", "array", "object", "null"};

#define ANY ((1u << TYPES) - 1)
#define WITH(t) (1u << (t))

/* Keywords, and the types to which they belong; 0: they have no effect. */
static const struct {
  const char *name;
  unsigned of; /* types */
} keyword[] = {{"type", ANY},
               {"properties", WITH(OBJECT)},
               {"required", WITH(OBJECT)},
               {"additionalProperties", WITH(OBJECT)},
               {"items", WITH(ARRAY)},
               {"minItems", WITH(ARRAY)},
               {"maxItems", WITH(ARRAY)},
               {"minLength", WITH(STRING)},
               {"maxLength", WITH(STRING)},
               {"pattern", WITH(STRING)},
               {"minimum", WITH(INTEGER)},
               {"maximum", WITH(INTEGER)},
               {"exclusiveMinimum", WITH(INTEGER)},
               {"exclusiveMaximum", WITH(INTEGER)},
               {"enum", ANY},
               {"const", ANY},
               {"anyOf", ANY},
               {"$ref", ANY},
               {"$defs", 0},
               {"title", 0},
               {"description", 0},
               {"default", 0},
               {"examples", 0},
               {"$schema", 0},
               {"$id", 0},
               {"$comment", 0}};

typedef struct {
  const char *what; /* the schema's name in messages */
  schema_notation space;
  int top;                /* the number of its rule */
  const cJSON *root, *at; /* the schema that is being read */
  FILE *rules;            /* the finished rules */
  int made, depth;        /* made: rules with a number for a name */
  long long parts;        /* number of parts of the grammar that bounds on lengths cause */
  dt_status status;
  dt_error *err;
} compiler;

enum { PLACE = 140 }; /* maximum length of a place in a message */

/* Adds the path to a schema to `place`: a JSON pointer, shortened if it is long. */
static bool find_place(const cJSON *in, const cJSON *schema, char place[PLACE]) {
  const cJSON *child;
  size_t len = strlen(place);
  int k = 0;
  if (in == schema) return true;
  cJSON_ArrayForEach(child, in) {
    if (child->string)
      snprintf(place + len, PLACE - len, "/%s", child->string);
    else
      snprintf(place + len, PLACE - len, "/%d", k++);
    if (find_place(child, schema, place)) return true;
  }
  place[len] = '\0';
  return false;
}

/* Where a mistake is, for its message. */
static void name_place(const compiler *c, char place[PLACE]) {
  snprintf(place, PLACE, "%.100s, #", c->what);
  if (c->at == c->root || !c->at || !find_place(c->root, c->at, place)) snprintf(place, PLACE, "%.100s", c->what);
  place[utf8_valid_prefix(place, strlen(place))] = '\0';
}

__attribute__((format(printf, 2, 3))) static void refuse(compiler *c, const char *format, ...) {
  if (c->status) return;
  char why[200], place[PLACE];
  va_list list;
  va_start(list, format);
  vsnprintf(why, sizeof why, format, list);
  va_end(list);
  name_place(c, place);
  c->status = dt_fail(c->err, DT_EINPUT, "%s: %s", place, why);
}

static void fail_memory(compiler *c) {
  if (!c->status) c->status = dt_fail_memory(c->err, "a JSON schema", 4096);
}

static void put_quoted(FILE *out, const char *text) {
  putc('"', out);
  for (const char *at = text; *at; at++) {
    if ((unsigned char)*at < ' ') {
      fprintf(out, "\\x%02X", (unsigned)*at);
      continue;
    }
    if (*at == '"' || *at == '\\') putc('\\', out);
    putc(*at, out);
  }
  fputs("\" ", out);
}

/* A value as items. Only in JSON it is one text. */
static void put_literal(compiler *c, FILE *out, const cJSON *value) {
  const char *quote = c->space.quote;
  if (quote && cJSON_IsString(value)) {
    put_quoted(out, quote), put_quoted(out, value->valuestring), put_quoted(out, quote);
  } else if (quote && value->child) {
    fputs(cJSON_IsArray(value) ? "\"[\" " : "\"{\" ", out);
    for (const cJSON *one = value->child; one; one = one->next) {
      if (one != value->child) fputs(c->space.comma, out);
      if (one->string) put_quoted(out, one->string), fputs(c->space.colon, out);
      put_literal(c, out, one);
    }
    fputs(cJSON_IsArray(value) ? "\"]\" " : "\"}\" ", out);
  } else {
    char *text = cJSON_PrintUnformatted(value);
    if (!text) fail_memory(c);
    put_quoted(out, text ? text : "");
    free(text);
  }
}

/* Reads the count of a keyword; `without` is its default. */
static int count_of(compiler *c, const cJSON *schema, const char *name, int without) {
  const cJSON *n = cJSON_GetObjectItemCaseSensitive(schema, name);
  if (!n) return without;
  if (cJSON_IsRaw(n) && n->valuedouble >= 0 && n->valuedouble <= RULES_NODES && n->valuedouble == n->valueint)
    return n->valueint;
  refuse(c, "%s: expected a whole number from 0 to %d", name, RULES_NODES);
  return 0;
}

/* Writes how often an item is repeated, from `least` to `most` times (-1: without a limit), as the keywords min and max
 * of `what` say. */
static void put_times(compiler *c, FILE *out, const char *what, int least, int most) {
  c->parts += least + (most > least ? 2ll * (most - least) : 0); /* as rules_repeat makes them */
  if (c->parts >= RULES_NODES)
    refuse(c, "%s%s: the bounds of the schema up to here make a grammar of more than %d parts: lower them",
           most < 0 ? "min" : "max", what, RULES_NODES);
  if (most < 0)
    fprintf(out, "{%d,} ", least);
  else
    fprintf(out, "{%d,%d} ", least, most);
}

static void check_order(compiler *c, const char *what, int least, int most) {
  if (most >= 0 && most < least) refuse(c, "max%s is less than min%s", what, what);
}

static void put_schema(compiler *c, const cJSON *schema, FILE *out);

/* Writes the schema as a separate rule and returns the rule's number. */
static int rule_of(compiler *c, const cJSON *schema) {
  char *text = NULL;
  size_t len;
  FILE *rule = open_memstream(&text, &len);
  int number = c->made++;
  if (!rule) return fail_memory(c), 0;
  put_schema(c, schema, rule);
  if (!is_written(rule, &text)) fail_memory(c);
  fprintf(c->rules, "r%d ::= %s\n", number, text ? text : "");
  free(text);
  if (ftell(c->rules) > GBNF_BYTES) refuse(c, TOO_LONG, GBNF_BYTES);
  return number;
}

static void put_string(compiler *c, const cJSON *schema, FILE *out) {
  const char *quote = c->space.quote ? c->space.quote : "\"";
  static const char *const length[] = {"minLength", "maxLength"};
  const cJSON *pattern = cJSON_GetObjectItemCaseSensitive(schema, "pattern");
  if (pattern) {
    if (!cJSON_IsString(pattern)) refuse(c, "pattern: expected a regular expression");
    for (int i = 0; i < 2; i++)
      if (cJSON_GetObjectItemCaseSensitive(schema, length[i]))
        refuse(c, "pattern with %s: give only one of them", length[i]);
    if (c->status) return;
    char place[PLACE], what[PLACE + 10];
    name_place(c, place);
    snprintf(what, sizeof what, "%s: pattern", place);
    put_quoted(out, quote);
    fputs("(", out);
    c->status = regex_put(pattern->valuestring, !c->space.quote, what, out, c->err);
    fputs(") ", out);
    put_quoted(out, quote);
    return;
  }
  int least = count_of(c, schema, "minLength", 0), most = count_of(c, schema, "maxLength", -1);
  check_order(c, "Length", least, most);
  if (c->space.quote && least == 0 && most < 0) {
    fputs("string ", out);
    return;
  }
  put_quoted(out, quote);
  fputs(c->space.quote ? "mild" : "char", out);
  put_times(c, out, "Length", least, most);
  put_quoted(out, quote);
}

static void put_integer(compiler *c, const cJSON *schema, FILE *out) {
  static const struct {
    const char *name;
    bool (*narrow)(integers *, const char *, bool);
    bool exclusive;
  } of[] = {{"minimum", integers_from, false},
            {"maximum", integers_to, false},
            {"exclusiveMinimum", integers_from, true},
            {"exclusiveMaximum", integers_to, true}};
  integers between = {0};
  for (int i = 0; i < 4; i++) {
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(schema, of[i].name);
    if (n && !cJSON_IsRaw(n)) refuse(c, "%s: expected a number", of[i].name);
    if (n && !c->status && !of[i].narrow(&between, n->valuestring, of[i].exclusive))
      refuse(c, "%s: more than %d digits", of[i].name, INTEGERS_DIGITS);
  }
  if (integers_empty(&between)) refuse(c, "no integer is between minimum and maximum");
  if (c->status) return;
  if (between.has_low || between.has_high)
    integers_put(&between, out);
  else
    fputs("integer ", out);
}

static void put_array(compiler *c, const cJSON *schema, FILE *out) {
  const cJSON *items = cJSON_GetObjectItemCaseSensitive(schema, "items");
  int least = count_of(c, schema, "minItems", 0), most = count_of(c, schema, "maxItems", -1);
  char item[16] = "value";
  check_order(c, "Items", least, most);
  if (items) snprintf(item, sizeof item, "r%d", rule_of(c, items));
  fprintf(out, "\"[\" %s", c->space.ws);
  if (most) {
    fprintf(out, "(%s %s(%s%s %s)", item, c->space.ws, c->space.comma, item, c->space.ws);
    put_times(c, out, "Items", least ? least - 1 : 0, most < 0 ? -1 : most - 1);
    fputs(least ? ") " : ")? ", out);
  }
  fputs("\"]\" ", out);
}

static bool is_required(const cJSON *required, const char *name) {
  const cJSON *r;
  cJSON_ArrayForEach(r, required) if (cJSON_IsString(r) && !strcmp(r->valuestring, name)) return true;
  return false;
}

/* ---- names that are none of some, in order ----------------------------------------------------------------------- */

static int32_t next_character(const char *text, size_t *len) {
  utf8_next(text, strlen(text), len);
  return utf8_code_point(text, *len);
}

/* Returns the end of the names that have the same next character after `at` bytes as name i, and the length of that
 * character. */
static int same_next(char *const *name, int i, int n, size_t at, size_t *len) {
  int k = i + 1;
  next_character(name[i] + at, len);
  while (k < n && !strncmp(name[k] + at, name[i] + at, *len)) k++;
  return k;
}

/* The rule oN-xI-A: the rest of a name whose first A bytes are those of names i to n, which share them, and which is
 * none of them. */
static void put_unlike(compiler *c, int number, char *const *name, int i, int n, size_t at) {
  characters other = {0};
  size_t len;
  bool is_name = i < n && !name[i][at];
  fprintf(c->rules, "o%d-x%d-%zu ::= %s", number, i, at, is_name ? "" : "\"\\\"\" | ");
  while (i < n && !name[i][at]) i++;
  for (int k = i; k < n; k = same_next(name, k, n, at, &len)) {
    int32_t next = next_character(name[k] + at, &len);
    characters_put(&(characters){.range = &(rules_range){next, next}, .n = 1}, true, c->rules);
    fprintf(c->rules, "o%d-x%d-%zu | ", number, k, at + len);
    characters_add(&other, next, next);
  }
  characters_tidy(&other);
  characters_invert(&other);
  if (other.no_memory) fail_memory(c);
  characters_put(&other, true, c->rules);
  fputs("rest\n", c->rules);
  characters_free(&other);
  if (ftell(c->rules) > GBNF_BYTES) refuse(c, TOO_LONG, GBNF_BYTES);
}

/* That rule and those that it needs. The stack grows where names part, not with their length. */
static void put_all_unlike(compiler *c, int number, char *const *name, int i, int n, size_t at) {
  while (!c->status) {
    put_unlike(c, number, name, i, n, at);
    while (i < n && !name[i][at]) i++;
    if (i == n) return;
    size_t len;
    for (int end; (end = same_next(name, i, n, at, &len)) < n && !c->status; i = end)
      put_all_unlike(c, number, name, i, end, at + len);
    at += len;
  }
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void put_other_names(compiler *c, int number, const cJSON *properties) {
  int n = 0, most = properties ? cJSON_GetArraySize(properties) : 0;
  char **name = malloc(((size_t)most + 1) * sizeof *name);
  const cJSON *p;
  if (!name) {
    fail_memory(c);
    return;
  }
  cJSON_ArrayForEach(p, properties) name[n++] = p->string;
  qsort(name, (size_t)n, sizeof *name, by_bytes);
  put_all_unlike(c, number, name, 0, n, 0);
  free(name);
}

/* Writes a rule for what can follow from each property on: oN-K after another property, oN-nK if it is the first. */
static void put_object(compiler *c, const cJSON *schema, FILE *out) {
  const cJSON *properties = cJSON_GetObjectItemCaseSensitive(schema, "properties"),
              *required = cJSON_GetObjectItemCaseSensitive(schema, "required"),
              *more = cJSON_GetObjectItemCaseSensitive(schema, "additionalProperties"), *p;
  if (properties && !cJSON_IsObject(properties)) refuse(c, "properties: expected an object");
  if (required && !cJSON_IsArray(required)) refuse(c, "required: expected a list");
  cJSON_ArrayForEach(p, required) {
    if (!cJSON_IsString(p))
      refuse(c, "required: expected names");
    else if (!cJSON_GetObjectItemCaseSensitive(properties, p->valuestring))
      refuse(c, "required: there is no property %.60s", p->valuestring);
  }
  if (c->status) return;
  if (!properties && (!more || cJSON_IsTrue(more))) {
    fputs("object ", out);
    return;
  }
  int number = c->made++, k = 0;
  cJSON_ArrayForEach(p, properties) {
    int value = rule_of(c, p);
    bool must = is_required(required, p->string);
    cJSON name = {.type = cJSON_String, .valuestring = p->string};
    fprintf(c->rules, "o%d-m%d ::= ", number, k);
    if (c->space.quote)
      put_quoted(c->rules, p->string);
    else
      put_literal(c, c->rules, &name);
    fprintf(c->rules, "%sr%d %s\n", c->space.colon, value, c->space.ws);
    fprintf(c->rules, "o%d-n%d ::= o%d-m%d o%d-%d%s", number, k, number, k, number, k + 1, must ? "\n" : " | ");
    if (!must) fprintf(c->rules, "o%d-n%d\n", number, k + 1);
    fprintf(c->rules, "o%d-%d ::= (%so%d-m%d)%s o%d-%d\n", number, k, c->space.comma, number, k, must ? "" : "?",
            number, k + 1);
    k++;
  }
  if (more && !cJSON_IsFalse(more)) {
    if (c->space.quote && k) refuse(c, "additionalProperties next to properties is supported only in JSON");
    int value = rule_of(c, more);
    if (!c->space.quote) put_other_names(c, number, properties);
    fprintf(c->rules, c->space.quote ? "o%d-x ::= [a-zA-Z0-9_-]+ " : "o%d-x ::= \"\\\"\" o%d-x0-0 ", number, number);
    fprintf(c->rules, "%sr%d %s\n", c->space.colon, value, c->space.ws);
    fprintf(c->rules, "o%d-n%d ::= (o%d-x o%d-%d)?\n", number, k, number, number, k);
    fprintf(c->rules, "o%d-%d ::= (%so%d-x)*\n", number, k, c->space.comma, number);
  } else
    fprintf(c->rules, "o%d-n%d ::= \"\"\no%d-%d ::= \"\"\n", number, k, number, k);
  fprintf(out, "\"{\" %so%d-n0 \"}\" ", c->space.ws, number);
}

static bool is_of(const cJSON *value, unsigned types) {
  return (types & WITH(STRING) && cJSON_IsString(value)) || (types & WITH(NUMBER) && cJSON_IsRaw(value)) ||
         (types & WITH(INTEGER) && cJSON_IsRaw(value) && value->valuedouble == trunc(value->valuedouble)) ||
         (types & WITH(BOOLEAN) && cJSON_IsBool(value)) || (types & WITH(NULLS) && cJSON_IsNull(value)) ||
         (types & WITH(ARRAY) && cJSON_IsArray(value)) || (types & WITH(OBJECT) && cJSON_IsObject(value));
}

static void put_constant(compiler *c, const cJSON *value, unsigned types, FILE *out) {
  if (!is_of(value, types)) refuse(c, "const: expected a value of the given type");
  put_literal(c, out, value);
}

static void put_values(compiler *c, const cJSON *list, unsigned types, FILE *out) {
  const cJSON *value;
  int n = 0;
  cJSON_ArrayForEach(value, list) if (is_of(value, types)) {
    if (n++) fputs("| ", out);
    put_literal(c, out, value);
  }
  if (!n) refuse(c, "enum: expected a list of values of the given type");
}

static void put_choice(compiler *c, const cJSON *list, FILE *out) {
  const cJSON *one;
  if (!cJSON_IsArray(list) || !list->child) refuse(c, "anyOf: expected a list of schemas");
  cJSON_ArrayForEach(one, list) fprintf(out, "%sr%d ", one == list->child ? "" : "| ", rule_of(c, one));
}

/* The schema that a $ref names; its number: 0 for the root, then the $defs. NULL: there is none. */
static const cJSON *target_of(const compiler *c, const cJSON *ref, int *number) {
  const char *to = cJSON_IsString(ref) ? ref->valuestring : "";
  const cJSON *defs = cJSON_GetObjectItemCaseSensitive(c->root, "$defs"), *def;
  *number = 0;
  if (!strcmp(to, "#")) return c->root;
  if (strncmp(to, "#/$defs/", 8)) return NULL;
  cJSON_ArrayForEach(def, defs) {
    ++*number;
    if (!strcmp(to + 8, def->string)) return def;
  }
  return NULL;
}

static void put_reference(compiler *c, const cJSON *ref, FILE *out) {
  int number;
  if (!target_of(c, ref, &number))
    refuse(c, "$ref: there is no %.80s; supported: # and #/$defs/NAME", cJSON_IsString(ref) ? ref->valuestring : "");
  else if (number)
    fprintf(out, "d%d-%d ", c->top, number - 1);
  else
    fprintf(out, "r%d ", c->top);
}

static unsigned type_of(compiler *c, const cJSON *name) {
  for (int t = 0; t < TYPES; t++)
    if (cJSON_IsString(name) && !strcmp(name->valuestring, type_name[t])) return WITH(t);
  refuse(c, "type: %.60s%sstring, integer, number, boolean, array, object and null are supported",
         cJSON_IsString(name) ? name->valuestring : "", cJSON_IsString(name) ? " is not supported; " : "");
  return 0;
}

/* The types that the schema takes; with no type, those of its keywords. */
static unsigned types_of(compiler *c, const cJSON *schema) {
  const cJSON *named = cJSON_GetObjectItemCaseSensitive(schema, "type"), *k;
  unsigned types = 0, implied = ANY;
  if (cJSON_IsArray(named))
    cJSON_ArrayForEach(k, named) types |= type_of(c, k);
  else if (named)
    types = type_of(c, named);
  cJSON_ArrayForEach(k, schema) {
    size_t i = 0, n = sizeof keyword / sizeof *keyword;
    while (i < n && strcmp(k->string, keyword[i].name)) i++;
    if (i == n)
      refuse(c, "the keyword %.60s is not supported", k->string);
    else if (keyword[i].of)
      implied &= keyword[i].of;
    if (i < n && keyword[i].of == WITH(INTEGER) && types & WITH(NUMBER))
      refuse(c, "%s: bounds are supported only for the type integer, not for number", k->string);
    if (i < n && named && keyword[i].of && !(keyword[i].of & types))
      refuse(c, "%s does not belong to the given type", k->string);
  }
  if (!implied && !named) refuse(c, "the keywords belong to different types: give a type");
  return named ? types : implied;
}

/* Refuses other keywords that have an effect, except one. */
static void check_alone(compiler *c, const cJSON *schema, const char *name, const char *but) {
  const cJSON *k;
  cJSON_ArrayForEach(k, schema) {
    if (!strcmp(k->string, name) || (but && !strcmp(k->string, but))) continue;
    for (size_t i = 0; i < sizeof keyword / sizeof *keyword; i++)
      if (keyword[i].of && !strcmp(k->string, keyword[i].name))
        refuse(c, "%s with %s: give only one of them", name, k->string);
  }
}

static void put_types(compiler *c, const cJSON *schema, unsigned types, FILE *out) {
  if (types == ANY) {
    fputs("value ", out);
    return;
  }
  if (types & WITH(NUMBER)) types &= ~WITH(INTEGER);
  for (int t = 0, n = 0; t < TYPES; t++) {
    if (!(types & WITH(t))) continue;
    if (n++) fputs("| ", out);
    if (t == STRING)
      put_string(c, schema, out);
    else if (t == ARRAY)
      put_array(c, schema, out);
    else if (t == OBJECT)
      put_object(c, schema, out);
    else if (t == INTEGER)
      put_integer(c, schema, out);
    else
      fprintf(out, "%s ", type_name[t]);
  }
}

static void put_schema(compiler *c, const cJSON *schema, FILE *out) {
  static const char *const whole[] = {"$ref", "anyOf", "const", "enum"};
  if (cJSON_IsTrue(schema)) {
    fputs("value ", out);
    return;
  }
  const cJSON *around = c->at;
  c->at = schema;
  if (!cJSON_IsObject(schema))
    refuse(c, cJSON_IsFalse(schema) ? "the schema false matches nothing" : "a schema must be an object or true");
  if (c->depth >= SCHEMA_DEPTH) refuse(c, "more than %d nested schemas", SCHEMA_DEPTH);
  if (c->status) return;
  c->depth++;
  unsigned types = types_of(c, schema);
  const cJSON *is[4];
  for (int i = 0; i < 4; i++) {
    is[i] = cJSON_GetObjectItemCaseSensitive(schema, whole[i]);
    if (is[i]) check_alone(c, schema, whole[i], i < 2 ? NULL : "type");
  }
  if (is[0])
    put_reference(c, is[0], out);
  else if (is[1])
    put_choice(c, is[1], out);
  else if (is[2])
    put_constant(c, is[2], types, out);
  else if (is[3])
    put_values(c, is[3], types, out);
  else
    put_types(c, schema, types, out);
  c->depth--;
  c->at = around;
}

/* ---- references that lead back to where they began --------------------------------------------------------------- */

enum { UNSEEN, BEGUN, SEEN };

static void find_circle(compiler *c, const cJSON *schema, char *mark);

/* Follows schema `number`, which a $ref names or may name. */
static void follow(compiler *c, const cJSON *schema, int number, char *mark) {
  if (mark[number] != UNSEEN) return;
  mark[number] = BEGUN;
  find_circle(c, schema, mark);
  mark[number] = SEEN;
}

/* Refuses a $ref to a schema whose text would begin with the very text of this one: only $ref and anyOf add nothing of
 * their own. */
static void find_circle(compiler *c, const cJSON *schema, char *mark) {
  const cJSON *ref = cJSON_GetObjectItemCaseSensitive(schema, "$ref"), *option;
  int number;
  const cJSON *to = ref ? target_of(c, ref, &number) : NULL;
  if (to && mark[number] == BEGUN) {
    c->at = schema;
    refuse(c, "$ref: %.80s leads back to itself: put a property or an item in between", ref->valuestring);
  } else if (to) {
    follow(c, to, number, mark);
  }
  cJSON_ArrayForEach(option, cJSON_GetObjectItemCaseSensitive(schema, "anyOf")) find_circle(c, option, mark);
}

static void check_references(compiler *c, const cJSON *defs) {
  const cJSON *def;
  int number = 0;
  char *mark = calloc((size_t)cJSON_GetArraySize(defs) + 1, 1);
  if (!mark) {
    fail_memory(c);
    return;
  }
  follow(c, c->root, 0, mark);
  cJSON_ArrayForEach(def, defs) follow(c, def, ++number, mark);
  free(mark);
}

void schema_put_common(const schema_notation *notation, FILE *out) {
  const schema_notation s = notation ? *notation : any_space;
  if (!notation) fputs("ws ::= | \" \" | \"\\n\" [ ]{0,20}\n", out);
  fputs(common, out);
  fprintf(out, "array ::= \"[\" %s(value %s(%svalue %s)*)? \"]\"\n", s.ws, s.ws, s.comma, s.ws);
  fprintf(out, "object ::= \"{\" %s(member (%smember)*)? \"}\"\n", s.ws, s.comma);
  fputs("string ::= ", out);
  put_quoted(out, s.quote ? s.quote : "\"");
  fputs(s.quote ? "text-0 " : "char* ", out);
  put_quoted(out, s.quote ? s.quote : "\"");
  fprintf(out, "\nmember ::= %s %svalue %s\n", s.quote ? "[a-zA-Z0-9_-]+" : "string", s.colon, s.ws);
}

dt_status schema_put(const cJSON *schema, const char *what, const schema_notation *notation, int *made, FILE *out,
                     dt_error *err) {
  compiler c = {.what = what,
                .space = notation ? *notation : any_space,
                .top = *made,
                .made = *made,
                .root = schema,
                .rules = out,
                .err = err};
  const cJSON *def, *defs = cJSON_GetObjectItemCaseSensitive(schema, "$defs");
  if (defs && !cJSON_IsObject(defs)) refuse(&c, "$defs: expected an object");
  rule_of(&c, schema);
  int k = 0;
  cJSON_ArrayForEach(def, defs) {
    int rule = rule_of(&c, def);
    fprintf(c.rules, "d%d-%d ::= r%d\n", c.top, k++, rule);
  }
  if (!c.status) check_references(&c, defs);
  *made = c.made;
  return c.status;
}

dt_status schema_to_gbnf(const char *json, char **gbnf, dt_error *err) {
  cJSON *root;
  dt_status status = exact_json_read("JSON schema", json, GBNF_BYTES, &root, err);
  if (status) return status;
  char *text = NULL;
  size_t len;
  int made = 0;
  FILE *out = open_memstream(&text, &len);
  if (!out) {
    cJSON_Delete(root);
    return dt_fail_memory(err, "a JSON schema", 4096);
  }
  schema_put_common(NULL, out);
  fputs("root ::= r0\n", out);
  status = schema_put(root, "JSON schema", NULL, &made, out, err);
  if (!is_written(out, &text) && !status) status = dt_fail_memory(err, "a JSON schema", 4096);
  cJSON_Delete(root);
  if (status)
    free(text);
  else
    *gbnf = text;
  return status;
}
