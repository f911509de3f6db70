/* Reads the grammars and schemas of requests: see ask_reading.h. */
#include "serve/ask_reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a grammar in a form of request_grammar; there can be only one. */
static bool take_grammar(reading *r, const char *form, const char *text) {
  dt_error err;
  if (r->a->in.grammar) {
    *r->why = refusal_say(
        400, INVALID,
        "grammar, json_schema, response_format, structured_outputs, guided_* and regex: give only one of them");
    return false;
  }
  return ask_done(r, request_grammar(&r->a->in, form, text, &err), &err);
}

bool ask_read_grammar(reading *r, const cJSON *v) {
  return cJSON_IsString(v) ? take_grammar(r, "grammar", v->valuestring) : ask_wrong(r, "a text in GBNF");
}

/* The schema as it was written, with all digits of its numbers. */
static bool take_schema(reading *r, raw_json schema) {
  char *json = strndup(schema.at ? schema.at : "", schema.len);
  if (!json) return ask_starved(r);
  bool fine = take_grammar(r, "json_schema", json);
  free(json);
  return fine;
}

bool ask_read_schema(reading *r, const cJSON *v) {
  (void)v;
  return take_schema(r, raw_member(r->body, r->name));
}

static const char any_object[] = "{\"type\":\"object\"}";

bool ask_read_format(reading *r, const cJSON *v) {
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(v, "type");
  const char *name = cJSON_IsString(type) ? type->valuestring : "";
  bool is_schema = strcmp(name, "json_schema") == 0, is_object = strcmp(name, "json_object") == 0;
  raw_json format = raw_member(r->body, r->name), named = {NULL, 0}, schema = {NULL, 0};
  if (is_schema || is_object) named = raw_member(format, "json_schema");
  if (is_schema || is_object) schema = raw_member(named.at ? named : format, "schema");
  if (strcmp(name, "text") == 0) return true;
  r->formatted = true;
  const cJSON *inside = cJSON_GetObjectItemCaseSensitive(v, "json_schema"),
              *strict = cJSON_GetObjectItemCaseSensitive(inside ? inside : v, "strict");
  if (strict && !cJSON_IsBool(strict) && !cJSON_IsNull(strict)) return ask_wrong(r, "json_schema.strict true or false");
  if (cJSON_IsTrue(strict)) r->a->in.how.strict = true;
  if (schema.at) return take_schema(r, schema);
  if (is_object) return take_schema(r, (raw_json){any_object, sizeof any_object - 1});
  return ask_wrong(r, "type text, json_object, or json_schema with json_schema.schema");
}

/* ---- the fields of vLLM ------------------------------------------------------------------------------------------ */

bool ask_read_regex(reading *r, const cJSON *v) {
  return cJSON_IsString(v) ? take_grammar(r, "regex", v->valuestring) : ask_wrong(r, "a regular expression");
}

/* A schema, or a text that holds one. */
static bool take_json(reading *r, const cJSON *v, raw_json raw) {
  return cJSON_IsString(v) ? take_grammar(r, "json_schema", v->valuestring) : take_schema(r, raw);
}

bool ask_read_choice(reading *r, const cJSON *v) {
  const cJSON *one;
  char *text = NULL;
  size_t len;
  bool fine = cJSON_IsArray(v) && v->child;
  cJSON_ArrayForEach(one, v) fine &= cJSON_IsString(one);
  if (!fine) return ask_wrong(r, "a list of texts");
  FILE *out = open_memstream(&text, &len);
  if (!out) return ask_starved(r);
  fputs("root ::= ", out);
  cJSON_ArrayForEach(one, v) {
    fputs(one == v->child ? "\"" : "| \"", out);
    for (const char *at = one->valuestring; *at; at++)
      fprintf(out, (unsigned char)*at < ' ' ? "\\x%02X" : strchr("\"\\", *at) ? "\\%c" : "%c", (unsigned char)*at);
    fputs("\" ", out);
  }
  putc('\n', out);
  fine = fclose(out) == 0 && text;
  fine = fine ? take_grammar(r, "grammar", text) : ask_starved(r);
  free(text);
  return fine;
}

bool ask_read_json(reading *r, const cJSON *v) { return take_json(r, v, raw_member(r->body, r->name)); }

bool ask_read_structured(reading *r, const cJSON *v) {
  static const char expected[] = "an object with one of json, regex, choice, grammar and json_object";
  const cJSON *k, *chosen = NULL;
  cJSON_ArrayForEach(k, v) {
    if (cJSON_IsNull(k)) continue;
    if (chosen) return ask_wrong(r, expected);
    chosen = k;
  }
  const char *name = cJSON_IsObject(v) && chosen ? chosen->string : "";
  if (!strcmp(name, "json")) return take_json(r, chosen, raw_member(raw_member(r->body, r->name), name));
  if (!strcmp(name, "regex")) return ask_read_regex(r, chosen);
  if (!strcmp(name, "choice")) return ask_read_choice(r, chosen);
  if (!strcmp(name, "grammar")) return ask_read_grammar(r, chosen);
  if (!strcmp(name, "json_object") && cJSON_IsTrue(chosen))
    return take_schema(r, (raw_json){any_object, sizeof any_object - 1});
  return ask_wrong(r, expected);
}
