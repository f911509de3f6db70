/* Bodies of other APIs: see translate.h. */
#include "serve/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the client's body ------------------------------------------------------------------------------------------- */

static const cJSON *member(const body_value *object, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(object->v, name);
  return cJSON_IsNull(v) ? NULL : v;
}

/* The name of a member, in out[sizeof body_value.name]. */
static void name_member(char *out, const body_value *object, const char *name) {
  snprintf(out, sizeof object->name, "%.60s%s%.30s", object->name, *object->name ? "." : "", name);
}

body_value value_member(const body_value *object, const char *name) {
  body_value out = {.v = member(object, name)};
  if (out.v) out.raw = raw_member(object->raw, name);
  name_member(out.name, object, name);
  return out;
}

bool texts_equal(const char *text, const char *other) { return text && strcmp(text, other) == 0; }

const char *value_string(const body_value *object, const char *name) {
  return cJSON_GetStringValue(member(object, name));
}

body_list value_list(const body_value *list) {
  return (body_list){list, list->v ? list->v->child : NULL, list->raw, 0};
}

bool value_next(body_list *list, body_value *out) {
  if (!list->next) return false;
  raw_json none;
  *out = (body_value){.v = list->next};
  raw_next(&list->left, &none, &out->raw);
  snprintf(out->name, sizeof out->name, "%.80s[%d]", list->list->name, list->i++);
  list->next = list->next->next;
  return true;
}

bool value_wrong(const body_value *value, const char *expected, refusal *why) {
  *why = refusal_say(400, INVALID, "%s: expected %s", value->name, expected);
  return false;
}

bool value_lacks(const body_value *object, const char *name, const char *expected, refusal *why) {
  body_value at = {0};
  name_member(at.name, object, name);
  return value_wrong(&at, expected, why);
}

bool value_is_object(const body_value *value, const char *const *taken, int where, refusal *why) {
  char path[sizeof value->name + 1];
  if (!cJSON_IsObject(value->v)) return value_wrong(value, "an object", why);
  snprintf(path, sizeof path, "%s.", value->name);
  return others_pass_all(value->v, taken, path, where, why);
}

/* ---- all fields -------------------------------------------------------------------------------------------------- */

/* Fields of dtrun's own and of samplers, which every API has. */
static const char *const own[] = {
    "seed",       "min_p",      "presence_penalty", "frequency_penalty", "repetition_penalty",
    "logit_bias", "min_tokens", "ignore_eos",       "think_tokens",      "cache_prompt",
    "grammar",    "dtrun"};

static bool is_own(const char *name) {
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (strcmp(own[i], name) == 0) return true;
  return false;
}

static bool translate_field(translation *t, const cJSON *v, const translated_field *fields, int n, int where) {
  int i = 0;
  while (i < n && strcmp(fields[i].name, v->string) != 0) i++;
  if (i == n && !is_own(v->string)) return others_pass(v, "", where, t->why);
  const body_value value = value_member(&t->body, v->string);
  if (i < n && fields[i].write) return fields[i].write(t, &value);
  const char *as = i < n ? fields[i].as : v->string;
  if (as) translated_raw(&t->out, as, value.raw);
  return true;
}

bool translate_fields(translation *t, const translated_field *fields, int n, int where, char **out) {
  const cJSON *v;
  bool fine = true;
  json_raw(&t->out, "{");
  cJSON_ArrayForEach(v, t->body.v) { fine = fine && (cJSON_IsNull(v) || translate_field(t, v, fields, n, where)); }
  json_raw(&t->out, "}");
  char *text = json_finish(&t->out);
  if (fine && !text) *t->why = refusal_say(500, "server_error", "out of memory: the request");
  *out = fine ? text : NULL;
  if (!fine) free(text);
  return *out != NULL;
}

/* ---- the chat's body --------------------------------------------------------------------------------------------- */

void translated_comma(json_text *out) {
  if (out->len && !strchr("[{", out->bytes[out->len - 1])) json_raw(out, ",");
}

void translated_member(json_text *out, const char *name) {
  translated_comma(out);
  json_string(out, name, strlen(name));
  json_raw(out, ":");
}

void translated_raw(json_text *out, const char *name, raw_json raw) {
  translated_member(out, name);
  json_bytes(out, raw.at, raw.len);
}

void translated_text(json_text *out, const char *name, const char *text) {
  translated_member(out, name);
  json_string(out, text, strlen(text));
}

void translated_message(json_text *out, const char *role) {
  translated_comma(out);
  json_raw(out, "{");
  translated_text(out, "role", role);
}

void translated_function(json_text *out, const char *name) {
  json_raw(out, "{\"type\":\"function\",\"function\":{");
  translated_text(out, "name", name);
  json_raw(out, "}}");
}

bool translated_list(translation *t, const char *name, const body_value *list, const char *expected,
                     bool (*write)(translation *t, const body_value *element)) {
  body_value element;
  bool fine = true;
  if (!cJSON_IsArray(list->v)) return value_wrong(list, expected, t->why);
  translated_member(&t->out, name);
  json_raw(&t->out, "[");
  for (body_list left = value_list(list); fine && value_next(&left, &element);) fine = write(t, &element);
  json_raw(&t->out, "]");
  return fine;
}

bool translated_limit(translation *t, const body_value *tokens) {
  if (!cJSON_IsNumber(tokens->v) || tokens->v->valuedouble < 1)
    return value_wrong(tokens, "a whole number of at least 1", t->why);
  translated_raw(&t->out, "max_tokens", tokens->raw);
  return true;
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

/* Writes the types as "input_text or output_text". */
static void list_types(const char *const *types, char *out, size_t size) {
  *out = '\0';
  for (int i = 0; types[i]; i++) {
    const size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", !i ? "" : types[i + 1] ? ", " : " or ", types[i]);
  }
}

const char *translated_part(const translation *t, const body_value *part, const char *const *types) {
  static const char *const taken[] = {"type", "text", NULL};
  char expected[160];
  const char *type = value_string(part, "type"), *text = value_string(part, "text");
  int i = 0;
  if (!cJSON_IsObject(part->v)) return value_wrong(part, "a part {type, text}", t->why), NULL;
  while (type && types[i] && strcmp(types[i], type) != 0) i++;
  if (!type || !types[i]) {
    list_types(types, expected, 100);
    const size_t used = strlen(expected);
    snprintf(expected + used, sizeof expected - used, "%s%.40s", type ? ", not " : "", type ? type : "");
    return value_lacks(part, "type", expected, t->why), NULL;
  }
  if (!text) return value_lacks(part, "text", "a text", t->why), NULL;
  return value_is_object(part, taken, IN_PART, t->why) ? text : NULL;
}

void texts_add(translated_texts *texts, const char *text) {
  texts->only = texts->n++ ? NULL : text;
  json_raw(&texts->parts, texts->parts.len ? ",{" : "[{");
  translated_text(&texts->parts, "type", "text");
  translated_text(&texts->parts, "text", text);
  json_raw(&texts->parts, "}");
}

bool texts_add_content(const translation *t, translated_texts *texts, const body_value *content,
                       const char *const *types) {
  body_value part;
  const char *only = cJSON_GetStringValue(content->v);
  if (only) {
    texts_add(texts, only);
    return true;
  }
  if (!cJSON_IsArray(content->v)) return value_wrong(content, "a text, or a list of parts", t->why);
  for (body_list list = value_list(content); value_next(&list, &part);) {
    const char *text = translated_part(t, &part, types);
    if (!text) return false;
    texts_add(texts, text);
  }
  return true;
}

void texts_write(json_text *out, translated_texts *texts) {
  if (texts->n < 2) {
    translated_text(out, "content", texts->only ? texts->only : "");
  } else {
    translated_member(out, "content");
    json_bytes(out, texts->parts.bytes, texts->parts.len);
    json_raw(out, "]");
  }
  if (texts->parts.failed) out->failed = true;
  texts_free(texts);
}

void texts_free(translated_texts *texts) {
  free(texts->parts.bytes);
  *texts = (translated_texts){0};
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

void translated_call(translated_answer *a, const char *id, const char *name, const char *arguments, size_t len) {
  json_text *out = &a->calls;
  a->begun = true;
  json_raw(out, out->len ? ",{" : "[{");
  translated_text(out, "id", id);
  json_raw(out, ",\"type\":\"function\",\"function\":{");
  translated_text(out, "name", name);
  translated_member(out, "arguments");
  json_string(out, arguments, len);
  json_raw(out, "}}");
}

static void put_text(json_text *out, const char *name, const json_text *text) {
  translated_member(out, name);
  json_string(out, text->bytes ? text->bytes : "", text->len);
}

void translated_write(json_text *out, translated_answer *a) {
  if (!a->begun) return;
  translated_message(out, "assistant");
  put_text(out, "content", &a->content);
  if (a->reasoning.len) put_text(out, "reasoning_content", &a->reasoning);
  if (a->calls.len) {
    translated_member(out, "tool_calls");
    json_bytes(out, a->calls.bytes, a->calls.len);
    json_raw(out, "]");
  }
  json_raw(out, "}");
  if (a->content.failed || a->reasoning.failed || a->calls.failed) out->failed = true;
  translated_free(a);
}

void translated_free(translated_answer *a) {
  free(a->content.bytes), free(a->reasoning.bytes), free(a->calls.bytes);
  *a = (translated_answer){0};
}
