/* Bodies of ollama's API become bodies of OpenAI's: see ollama.h. */
#include "serve/body.h"
#include "serve/ollama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const ask_server *server;
  const cJSON *root;
  raw_json body;
  json_text out;
  refusal *why;
  int calls, answered; /* calls of tools in the messages so far, and results of calls */
} translation;

static bool wrong(const translation *t, const char *name, const char *expected) {
  *t->why = refusal_say(400, INVALID, "%s: expected %s", name, expected);
  return false;
}

/* The member, or NULL if it is missing or null. */
static const cJSON *member(const cJSON *object, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
  return cJSON_IsNull(v) ? NULL : v;
}

static bool is_text(const cJSON *v) { return cJSON_IsString(v) && *v->valuestring; }

static void put_name(translation *t, const char *name) {
  const bool first = !t->out.len || strchr("{[", t->out.bytes[t->out.len - 1]);
  answer_put(&t->out, first ? "\"%s\":" : ",\"%s\":", name);
}

/* Copies a value as it is written, with all digits of its numbers. */
static void put_raw(translation *t, const char *name, raw_json value) {
  put_name(t, name);
  json_bytes(&t->out, value.at, value.len);
}

/* Copies a member under another name, unless it is missing or null. */
static void copy(translation *t, const cJSON *object, raw_json raw, const char *name, const char *as) {
  if (member(object, name)) put_raw(t, as, raw_member(raw, name));
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Names of ollama and of OpenAI's interface or this server. */
static const struct {
  const char *name, *as;
} options[] = {{"temperature", "temperature"},
               {"top_p", "top_p"},
               {"top_k", "top_k"},
               {"min_p", "min_p"},
               {"seed", "seed"},
               {"stop", "stop"},
               {"repeat_penalty", "repeat_penalty"},
               {"presence_penalty", "presence_penalty"},
               {"frequency_penalty", "frequency_penalty"}};

enum { OPTIONS = sizeof options / sizeof *options };

/* The context of this server is fixed when it starts. */
static bool check_context(const translation *t, const cJSON *v) {
  if (!cJSON_IsNumber(v) || v->valuedouble != floor(v->valuedouble) || v->valuedouble < 1)
    return wrong(t, "options.num_ctx", "a whole number from 1");
  if (v->valuedouble <= t->server->context) return true;
  *t->why =
      refusal_say(400, INVALID, "options.num_ctx: at most %d is supported, the context with which the server runs",
                  t->server->context);
  return false;
}

/* -2 means until the context ends, as -1 does here. */
static void put_tokens(translation *t, const cJSON *v, raw_json raw) {
  if (cJSON_IsNumber(v) && v->valuedouble == -2)
    put_raw(t, "max_tokens", (raw_json){"-1", 2});
  else
    put_raw(t, "max_tokens", raw);
}

static bool put_options(translation *t) {
  const char *taken[OPTIONS + 3] = {"num_predict", "num_ctx"};
  const cJSON *object = member(t->root, "options"), *v;
  raw_json raw = raw_member(t->body, "options");
  if (!object) return true;
  if (!cJSON_IsObject(object)) return wrong(t, "options", "an object");
  for (int i = 0; i < OPTIONS; i++) taken[i + 2] = options[i].name;
  if (!others_pass_all(object, taken, "options.", IN_OLLAMA_OPTIONS, t->why)) return false;
  if ((v = member(object, "num_ctx")) && !check_context(t, v)) return false;
  if ((v = member(object, "num_predict"))) put_tokens(t, v, raw_member(raw, "num_predict"));
  for (int i = 0; i < OPTIONS; i++) copy(t, object, raw, options[i].name, options[i].as);
  return true;
}

static bool put_format(translation *t) {
  const cJSON *v = member(t->root, "format");
  const char *name = cJSON_GetStringValue(v);
  if (!v || (name && !*name)) return true;
  if (cJSON_IsObject(v)) {
    put_raw(t, "json_schema", raw_member(t->body, "format"));
    return true;
  }
  if (!name || strcmp(name, "json") != 0) return wrong(t, "format", "json or a JSON schema");
  put_name(t, "response_format");
  json_raw(&t->out, "{\"type\":\"json_object\"}");
  return true;
}

/* Turns reasoning on or off. A model that always or never reasons needs no variable for what it does anyway. */
static bool put_think(translation *t, bool on) {
  const char *settings, *begin, *end;
  dt_error err;
  if (dtl_think(t->server->chat, on ? "on" : "off", &settings, &err)) {
    if (dt_chat_reasoning(t->server->chat, &begin, &end) == on) return true;
    *t->why = refusal_say(400, INVALID, "%s", err.message);
    return false;
  }
  put_name(t, "chat_template_kwargs");
  json_raw(&t->out, settings);
  return true;
}

static bool put_thinking(translation *t) {
  const cJSON *v = member(t->root, "think");
  if (!v || !t->server->chat) return true;
  if (cJSON_IsBool(v)) return put_think(t, cJSON_IsTrue(v));
  if (!is_text(v)) return wrong(t, "think", "true, false, or an effort such as low, medium or high");
  copy(t, t->root, t->body, "think", "reasoning_effort");
  return dt_chat_mentions(t->server->chat, "reasoning_effort") || put_think(t, true);
}

/* Writes the members that chats and texts share. */
static bool put_common(translation *t) {
  const cJSON *stream = member(t->root, "stream");
  if (stream && !cJSON_IsBool(stream)) return wrong(t, "stream", "true or false");
  copy(t, t->root, t->body, "model", "model");
  put_name(t, "stream");
  json_raw(&t->out, cJSON_IsFalse(stream) ? "false" : "true");
  return put_options(t) && put_format(t);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Some templates take only ids of nine letters and digits. */
static void put_id(translation *t, const char *name, int call) {
  put_name(t, name);
  answer_put(&t->out, "\"call%05d\"", call % 100000);
}

static bool put_call(translation *t, const cJSON *call, raw_json raw, const char *place) {
  const cJSON *function = member(call, "function");
  raw_json of = raw_member(raw, "function"), arguments = raw_member(of, "arguments");
  char name[96];
  snprintf(name, sizeof name, "%s.function.name", place);
  if (!is_text(member(function, "name"))) return wrong(t, name, "a text");
  snprintf(name, sizeof name, "%s.function.arguments", place);
  if (!cJSON_IsObject(member(function, "arguments"))) return wrong(t, name, "an object");
  json_raw(&t->out, "{");
  if (member(call, "id"))
    copy(t, call, raw, "id", "id");
  else
    put_id(t, "id", t->calls++);
  json_raw(&t->out, ",\"type\":\"function\",\"function\":{");
  copy(t, function, of, "name", "name");
  put_name(t, "arguments");
  json_string(&t->out, arguments.at, arguments.len); /* as a text, which keeps all digits of its numbers */
  json_raw(&t->out, "}}");
  return true;
}

static bool put_calls(translation *t, const cJSON *list, raw_json raw, int message) {
  char place[64];
  const cJSON *call;
  raw_json name, value;
  int i = 0;
  snprintf(place, sizeof place, "messages[%d].tool_calls", message);
  if (!cJSON_IsArray(list)) return wrong(t, place, "a list of {function: {name, arguments}}");
  if (!list->child) return true;
  put_name(t, "tool_calls");
  json_raw(&t->out, "[");
  cJSON_ArrayForEach(call, list) {
    snprintf(place, sizeof place, "messages[%d].tool_calls[%d]", message, i);
    raw_next(&raw, &name, &value);
    if (i++) json_raw(&t->out, ",");
    if (!put_call(t, call, value, place)) return false;
  }
  json_raw(&t->out, "]");
  return true;
}

/* ollama's calls need no ids: results are in the order of the calls. */
static void put_result_id(translation *t, const cJSON *message, raw_json raw) {
  const char *role = cJSON_GetStringValue(member(message, "role"));
  if (member(message, "tool_call_id"))
    copy(t, message, raw, "tool_call_id", "tool_call_id");
  else if (role && strcmp(role, "tool") == 0 && t->answered < t->calls)
    put_id(t, "tool_call_id", t->answered++);
}

static bool put_message(translation *t, const cJSON *message, raw_json raw, int i) {
  static const char *const taken[] = {"role", "content", "thinking", "tool_calls", "tool_name", "tool_call_id", NULL};
  char place[32];
  snprintf(place, sizeof place, "messages[%d]", i);
  if (!cJSON_IsObject(message)) return wrong(t, place, "{role, content}");
  snprintf(place, sizeof place, "messages[%d].", i);
  if (!others_pass_all(message, taken, place, IN_OLLAMA_MESSAGE, t->why)) return false;
  json_raw(&t->out, "{");
  copy(t, message, raw, "role", "role");
  copy(t, message, raw, "content", "content");
  copy(t, message, raw, "thinking", "thinking");
  copy(t, message, raw, "tool_name", "name");
  put_result_id(t, message, raw);
  const cJSON *calls = member(message, "tool_calls");
  if (calls && !put_calls(t, calls, raw_member(raw, "tool_calls"), i)) return false;
  json_raw(&t->out, "}");
  return true;
}

static bool put_messages(translation *t) {
  const cJSON *list = member(t->root, "messages"), *message;
  raw_json left = raw_member(t->body, "messages"), name, value;
  int i = 0;
  if (!cJSON_IsArray(list)) return wrong(t, "messages", "a list of {role, content}");
  put_name(t, "messages");
  json_raw(&t->out, "[");
  cJSON_ArrayForEach(message, list) {
    raw_next(&left, &name, &value);
    if (i) json_raw(&t->out, ",");
    if (!put_message(t, message, value, i++)) return false;
  }
  json_raw(&t->out, "]");
  return true;
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

/* Ends a body. */
static bool finish(translation *t, bool fine, char **out) {
  json_raw(&t->out, "}");
  *out = json_finish(&t->out);
  if (!*out && fine) *t->why = refusal_say(500, "server_error", "out of memory: the request");
  if (fine && *out) return true;
  free(*out);
  *out = NULL;
  return false;
}

static const char *const chat_fields[] = {"model", "messages", "tools", "stream", "options", "format", "think", NULL};

static bool put_chat(translation *t) {
  json_raw(&t->out, "{");
  if (!put_common(t) || !put_thinking(t)) return false;
  copy(t, t->root, t->body, "tools", "tools");
  return put_messages(t);
}

bool ollama_chat_body(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                      refusal *why) {
  translation t = {.server = server, .root = root, .body = body, .why = why};
  *where = IN_CHAT;
  return finish(&t, others_pass_all(root, chat_fields, "", IN_OLLAMA, why) && put_chat(&t), out);
}

static const char *const generate_fields[] = {"model",  "prompt",  "suffix", "system", "raw",
                                              "stream", "options", "format", "think",  NULL};

static bool check_generate(const translation *t) {
  static const char *const texts[] = {"prompt", "suffix", "system"};
  const cJSON *raw = member(t->root, "raw");
  for (int i = 0; i < 3; i++) {
    const cJSON *v = member(t->root, texts[i]);
    if (v && !cJSON_IsString(v)) return wrong(t, texts[i], "a text");
  }
  return !raw || cJSON_IsBool(raw) || wrong(t, "raw", "true or false");
}

/* Writes a prompt that no template changes, with what comes after the gap. */
static bool put_text(translation *t, const char *because) {
  static const char *const of_chats[] = {"system", "think"};
  for (int i = 0; i < 2; i++) {
    const cJSON *v = member(t->root, of_chats[i]);
    if (!v || cJSON_IsFalse(v) || (cJSON_IsString(v) && !*v->valuestring)) continue;
    *t->why = refusal_say(400, INVALID, "%s: not supported together with %s", of_chats[i], because);
    return false;
  }
  copy(t, t->root, t->body, "suffix", "suffix");
  if (member(t->root, "prompt"))
    copy(t, t->root, t->body, "prompt", "prompt");
  else
    put_raw(t, "prompt", (raw_json){"\"\"", 2});
  return true;
}

/* Writes the prompt as a conversation of one message. */
static bool put_question(translation *t) {
  if (!put_thinking(t)) return false;
  put_name(t, "messages");
  json_raw(&t->out, "[");
  if (is_text(member(t->root, "system"))) {
    json_raw(&t->out, "{\"role\":\"system\"");
    copy(t, t->root, t->body, "system", "content");
    json_raw(&t->out, "},");
  }
  json_raw(&t->out, "{\"role\":\"user\"");
  copy(t, t->root, t->body, "prompt", "content");
  json_raw(&t->out, "}]");
  return true;
}

/* A model without a template continues the prompt, as in ollama. */
static bool put_generate(translation *t, unsigned *where) {
  const bool fills = is_text(member(t->root, "suffix"));
  const bool raw = cJSON_IsTrue(member(t->root, "raw"));
  const bool is_chat = !fills && !raw && (t->server->chat || is_text(member(t->root, "system")));
  *where = is_chat ? IN_CHAT : IN_TEXT;
  json_raw(&t->out, "{");
  if (!check_generate(t) || !put_common(t)) return false;
  return is_chat ? put_question(t) : put_text(t, fills ? "suffix" : raw ? "raw" : "a model without a chat template");
}

bool ollama_generate_body(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                          refusal *why) {
  translation t = {.server = server, .root = root, .body = body, .why = why};
  return finish(&t, others_pass_all(root, generate_fields, "", IN_OLLAMA, why) && put_generate(&t, where), out);
}

/* ---- requests that only load the model --------------------------------------------------------------------------- */

bool ollama_loads(const ask_server *server, bool is_chat, raw_json body, const char **model, bool *loads,
                  refusal *why) {
  cJSON *root;
  if (!body_read(&body, &root, why)) return false;
  const cJSON *messages = member(root, "messages"), *prompt = member(root, "prompt");
  const char *name = cJSON_GetStringValue(member(root, "model"));
  *model = ask_model(server, name ? name : "");
  *loads = is_chat ? !messages || (cJSON_IsArray(messages) && !messages->child)
                   : (!prompt || (cJSON_IsString(prompt) && !*prompt->valuestring)) && !is_text(member(root, "suffix"));
  bool fine = !*loads || others_pass_all(root, is_chat ? chat_fields : generate_fields, "", IN_OLLAMA, why);
  cJSON_Delete(root);
  return fine;
}
