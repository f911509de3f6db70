/* Bodies of OpenAI's Responses API become bodies of chats. The items of `input` become messages; those of an answer,
 * which are its reasoning, its text and its calls of tools, become one message of the assistant, as in a chat, so that
 * the next prompt begins with the tokens of the last one and its answer. */
#include "serve/responses_body.h"
#include "serve/translate.h"

#include <stdlib.h>
#include <string.h>

const char *const responses_names[RESPONSES_NAMES][2] = {{"messages", "input"},
                                                         {"max_tokens", "max_output_tokens"},
                                                         {"response_format", "text.format"},
                                                         {"reasoning_effort", "reasoning.effort"}};

/* ---- input ------------------------------------------------------------------------------------------------------- */

static const char *const parts_of_text[] = {"input_text", "output_text", NULL};

/* Adds the texts of a content, one after the other as in the answer they come from. */
static bool add_text(translation *t, json_text *out, const body_value *content, const char *const *types) {
  body_value part;
  const char *only = cJSON_GetStringValue(content->v);
  if (only) json_raw(out, only);
  if (only || !content->v) return true;
  if (!cJSON_IsArray(content->v)) return value_wrong(content, "a text, or a list of parts", t->why);
  for (body_list list = value_list(content); value_next(&list, &part);) {
    const char *text = translated_part(t, &part, types);
    if (!text) return false;
    json_raw(out, text);
  }
  return true;
}

/* An answer's next text or reasoning belongs to another message if the current one has a text. After calls it does not,
 * since the results of calls follow their message. */
static void next_answer(translation *t, translated_answer *a) {
  if (a->has_text && !a->calls.len) translated_write(&t->out, a);
  a->begun = true;
}

static bool write_message(translation *t, const body_value *item, translated_answer *a) {
  static const char *const taken[] = {"type", "role", "content", NULL};
  static const char *const roles[] = {"user", "system", "developer"};
  const char *role = value_string(item, "role");
  const body_value content = value_member(item, "content");
  translated_texts texts = {0};
  if (!value_is_object(item, taken, IN_ITEM, t->why)) return false;
  if (texts_equal(role, "assistant")) {
    next_answer(t, a);
    a->has_text = true;
    return add_text(t, &a->content, &content, parts_of_text);
  }
  if (!texts_equal(role, roles[0]) && !texts_equal(role, roles[1]) && !texts_equal(role, roles[2]))
    return value_lacks(item, "role", "user, assistant, system or developer", t->why);
  translated_write(&t->out, a);
  translated_message(&t->out, role);
  const bool fine = texts_add_content(t, &texts, &content, parts_of_text);
  texts_write(&t->out, &texts);
  json_raw(&t->out, "}");
  return fine;
}

static bool write_call(translation *t, const body_value *item, translated_answer *a) {
  static const char *const taken[] = {"type", "name", "arguments", "call_id", NULL};
  const char *name = value_string(item, "name"), *arguments = value_string(item, "arguments"),
             *id = value_string(item, "call_id");
  if (!value_is_object(item, taken, IN_ITEM, t->why)) return false;
  if (!name) return value_lacks(item, "name", "a text", t->why);
  if (!arguments) return value_lacks(item, "arguments", "a JSON object as a text", t->why);
  if (!id) return value_lacks(item, "call_id", "a text", t->why);
  translated_call(a, id, name, arguments, strlen(arguments));
  return true;
}

static bool write_result(translation *t, const body_value *item, translated_answer *a) {
  static const char *const taken[] = {"type", "call_id", "output", NULL};
  const char *id = value_string(item, "call_id");
  const body_value output = value_member(item, "output");
  translated_texts texts = {0};
  if (!value_is_object(item, taken, IN_ITEM, t->why)) return false;
  if (!id) return value_lacks(item, "call_id", "a text", t->why);
  translated_write(&t->out, a);
  translated_message(&t->out, "tool");
  translated_text(&t->out, "tool_call_id", id);
  const bool fine = texts_add_content(t, &texts, &output, parts_of_text);
  texts_write(&t->out, &texts);
  json_raw(&t->out, "}");
  return fine;
}

/* Summaries are ignored: a model has not generated them. */
static bool write_reasoning_item(translation *t, const body_value *item, translated_answer *a) {
  static const char *const taken[] = {"type", "content", NULL};
  static const char *const types[] = {"reasoning_text", NULL};
  const body_value content = value_member(item, "content");
  if (!value_is_object(item, taken, IN_ITEM, t->why)) return false;
  next_answer(t, a);
  return add_text(t, &a->reasoning, &content, types);
}

static bool write_item(translation *t, const body_value *item, translated_answer *a) {
  const char *type = value_string(item, "type");
  if (!cJSON_IsObject(item->v)) return value_wrong(item, "an item, such as {role, content}", t->why);
  if (texts_equal(type, "message") || !cJSON_GetObjectItemCaseSensitive(item->v, "type"))
    return write_message(t, item, a);
  if (texts_equal(type, "function_call")) return write_call(t, item, a);
  if (texts_equal(type, "function_call_output")) return write_result(t, item, a);
  if (texts_equal(type, "reasoning")) return write_reasoning_item(t, item, a);
  *t->why =
      refusal_say(400, INVALID, "%s.type: expected message, function_call, function_call_output or reasoning%s%.60s",
                  item->name, type ? ", not " : "", type ? type : "");
  return false;
}

static bool write_items(translation *t, const body_value *input) {
  translated_answer a = {0};
  body_value item;
  bool fine = true;
  for (body_list list = value_list(input); fine && value_next(&list, &item);) fine = write_item(t, &item, &a);
  translated_write(&t->out, &a);
  return fine;
}

static void write_plain(translation *t, const char *role, const char *text) {
  translated_message(&t->out, role);
  translated_text(&t->out, "content", text);
  json_raw(&t->out, "}");
}

static bool write_input(translation *t, const body_value *input) {
  const char *text = cJSON_GetStringValue(input->v), *instructions = value_string(&t->body, "instructions");
  if (!text && !(cJSON_IsArray(input->v) && input->v->child))
    return value_wrong(input, "a text, or a list of items", t->why);
  translated_member(&t->out, "messages");
  json_raw(&t->out, "[");
  if (instructions) write_plain(t, "system", instructions);
  if (text) write_plain(t, "user", text);
  const bool fine = text || write_items(t, input);
  json_raw(&t->out, "]");
  return fine;
}

/* They are written with the input. */
static bool check_instructions(translation *t, const body_value *v) {
  return cJSON_IsString(v->v) || value_wrong(v, "a text", t->why);
}

/* ---- tools ------------------------------------------------------------------------------------------------------- */

static bool write_tool(translation *t, const body_value *tool) {
  static const char *const taken[] = {"type", "name", "description", "parameters", "strict", NULL};
  const char *type = value_string(tool, "type"), *name = value_string(tool, "name");
  if (cJSON_IsObject(tool->v) && !texts_equal(type, "function")) {
    *t->why = refusal_say(400, INVALID, "%s.type: expected function%s%.60s", tool->name, type ? ", not " : "",
                          type ? type : "");
    return false;
  }
  if (!value_is_object(tool, taken, IN_TOOL, t->why)) return false;
  if (!name || !*name) return value_lacks(tool, "name", "the function's name", t->why);
  translated_comma(&t->out);
  json_raw(&t->out, "{\"type\":\"function\",\"function\":{");
  for (int i = 1; taken[i]; i++) {
    const body_value v = value_member(tool, taken[i]);
    if (v.v) translated_raw(&t->out, taken[i], v.raw);
  }
  json_raw(&t->out, "}}");
  return true;
}

static bool write_tools(translation *t, const body_value *tools) {
  return translated_list(t, "tools", tools, "a list of functions", write_tool);
}

/* {type: function, name}. False: it is something else. */
static bool write_name(translation *t, const body_value *tool) {
  const char *name = value_string(tool, "name");
  if (!texts_equal(value_string(tool, "type"), "function") || !name) return false;
  translated_function(&t->out, name);
  return true;
}

static bool write_allowed(translation *t, const body_value *choice) {
  const body_value mode = value_member(choice, "mode"), tools = value_member(choice, "tools");
  body_value tool;
  bool fine =
      texts_equal(value_string(choice, "type"), "allowed_tools") && cJSON_IsString(mode.v) && cJSON_IsArray(tools.v);
  if (!fine) return false;
  json_raw(&t->out, "{\"type\":\"allowed_tools\",\"allowed_tools\":{");
  translated_raw(&t->out, "mode", mode.raw);
  translated_member(&t->out, "tools");
  json_raw(&t->out, "[");
  for (body_list list = value_list(&tools); fine && value_next(&list, &tool);) {
    translated_comma(&t->out);
    fine = write_name(t, &tool);
  }
  json_raw(&t->out, "]}}");
  return fine;
}

static bool write_choice(translation *t, const body_value *choice) {
  static const char expected[] =
      "none, auto, required, {type: function, name} or {type: allowed_tools, mode, tools: [{type: function, name}]}";
  const char *mode = cJSON_GetStringValue(choice->v);
  translated_member(&t->out, "tool_choice");
  if (mode) json_bytes(&t->out, choice->raw.at, choice->raw.len);
  if (texts_equal(mode, "none") || texts_equal(mode, "auto") || texts_equal(mode, "required")) return true;
  return (!mode && (write_name(t, choice) || write_allowed(t, choice))) || value_wrong(choice, expected, t->why);
}

/* ---- other fields ------------------------------------------------------------------------------------------------ */

/* {type: json_schema, name, schema}, which a chat has one level deeper. */
static bool write_format(translation *t, const body_value *format) {
  static const char *const taken[] = {"type", "name", "schema", "description", "strict", NULL};
  const char *type = value_string(format, "type");
  const body_value schema = value_member(format, "schema"), strict = value_member(format, "strict");
  if (!value_is_object(format, taken, IN_ITEM, t->why)) return false;
  if (texts_equal(type, "text")) return true;
  if (!texts_equal(type, "json_object") && !texts_equal(type, "json_schema"))
    return value_lacks(format, "type", "text, json_object or json_schema", t->why);
  if (texts_equal(type, "json_schema") && !schema.v) return value_lacks(format, "schema", "a JSON schema", t->why);
  translated_member(&t->out, "response_format");
  json_raw(&t->out, "{");
  translated_text(&t->out, "type", type);
  if (schema.v) translated_raw(&t->out, "schema", schema.raw);
  if (strict.v) translated_raw(&t->out, "strict", strict.raw);
  json_raw(&t->out, "}");
  return true;
}

static bool write_text(translation *t, const body_value *text) {
  static const char *const taken[] = {"format", "verbosity", NULL};
  const body_value format = value_member(text, "format");
  return value_is_object(text, taken, IN_ITEM, t->why) && (!format.v || write_format(t, &format));
}

static bool write_reasoning(translation *t, const body_value *reasoning) {
  static const char *const taken[] = {"effort", NULL};
  const body_value effort = value_member(reasoning, "effort");
  if (!value_is_object(reasoning, taken, IN_REASONING, t->why)) return false;
  if (effort.v) translated_raw(&t->out, "reasoning_effort", effort.raw);
  return true;
}

/* What these values ask for comes from OpenAI's own tools, or is encrypted state: no answer has it. */
static bool check_include(translation *t, const body_value *include) {
  static const char *const known[] = {"reasoning.encrypted_content",   "file_search_call.results",
                                      "web_search_call.results",       "web_search_call.action.sources",
                                      "message.input_image.image_url", "computer_call_output.output.image_url",
                                      "code_interpreter_call.outputs"};
  body_value one;
  if (!cJSON_IsArray(include->v)) return value_wrong(include, "a list of texts", t->why);
  for (body_list list = value_list(include); value_next(&list, &one);) {
    const char *what = cJSON_GetStringValue(one.v);
    size_t i = 0;
    while (i < sizeof known / sizeof *known && !texts_equal(what, known[i])) i++;
    if (i < sizeof known / sizeof *known) continue;
    *t->why = refusal_say(400, INVALID, "%s: %.60s is not supported", one.name, what ? what : "this value");
    return false;
  }
  return true;
}

static bool check_stream_options(translation *t, const body_value *options) {
  static const char *const taken[] = {NULL};
  return value_is_object(options, taken, IN_STREAM, t->why);
}

static const translated_field fields[] = {
    {"model", "model", NULL},
    {"input", NULL, write_input},
    {"instructions", NULL, check_instructions},
    {"max_output_tokens", NULL, translated_limit},
    {"temperature", "temperature", NULL},
    {"top_p", "top_p", NULL},
    {"top_k", "top_k", NULL},
    {"stop", "stop", NULL},
    {"stream", "stream", NULL},
    {"stream_options", NULL, check_stream_options},
    {"text", NULL, write_text},
    {"tools", NULL, write_tools},
    {"tool_choice", NULL, write_choice},
    {"parallel_tool_calls", "parallel_tool_calls", NULL},
    {"reasoning", NULL, write_reasoning},
    {"include", NULL, check_include},
    {"chat_template_kwargs", "chat_template_kwargs", NULL},
};

bool responses_translate(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                         refusal *why) {
  translation t = {.server = server, .body = {.v = root, .raw = body}, .why = why};
  *where = IN_CHAT;
  return translate_fields(&t, fields, sizeof fields / sizeof *fields, IN_RESPONSE, out);
}
