/* Bodies of Anthropic's Messages API become bodies of chats: `system` is the first message, the results of tools in a
 * message of the user become messages of their own, and the blocks of an assistant's message one message. */
#include "serve/anthropic_body.h"
#include "serve/translate.h"

#include <string.h>

const char *const anthropic_names[ANTHROPIC_NAMES][2] = {{"stop", "stop_sequences"},
                                                         {"response_format", "output_config.format"},
                                                         {"reasoning_effort", "output_config.effort"},
                                                         {"think_tokens", "thinking.budget_tokens"},
                                                         {"parallel_tool_calls", "tool_choice"}};

static const char *const texts_only[] = {"text", NULL};

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Writes a message whose content is these texts, if there are any, or if it must be written. */
static void write_texts(translation *t, const char *role, translated_texts *texts, bool must) {
  if (texts->n || must) {
    translated_message(&t->out, role);
    texts_write(&t->out, texts);
    json_raw(&t->out, "}");
  }
  texts_free(texts);
}

static bool write_plain(translation *t, const char *role, const body_value *content) {
  translated_texts texts = {0};
  const bool fine = texts_add_content(t, &texts, content, texts_only);
  write_texts(t, role, &texts, true);
  return fine;
}

static bool write_result(translation *t, const body_value *block) {
  static const char *const taken[] = {"type", "tool_use_id", "content", NULL};
  const char *id = value_string(block, "tool_use_id");
  const body_value content = value_member(block, "content");
  translated_texts texts = {0};
  if (!value_is_object(block, taken, IN_PART, t->why)) return false;
  if (!id) return value_lacks(block, "tool_use_id", "a text", t->why);
  const bool fine = !content.v || texts_add_content(t, &texts, &content, texts_only);
  translated_message(&t->out, "tool");
  translated_text(&t->out, "tool_call_id", id);
  texts_write(&t->out, &texts);
  json_raw(&t->out, "}");
  return fine;
}

static bool is_type(const body_value *block, const char *type) {
  return texts_equal(value_string(block, "type"), type);
}

/* Results of tools become messages, in the order of the blocks. */
static bool write_user(translation *t, const body_value *content) {
  static const char *const types[] = {"text", "tool_result", NULL};
  translated_texts texts = {0};
  body_value block;
  bool fine = true;
  if (!cJSON_IsArray(content->v)) return write_plain(t, "user", content);
  for (body_list list = value_list(content); fine && value_next(&list, &block);) {
    if (is_type(&block, "tool_result")) {
      write_texts(t, "user", &texts, false);
      fine = write_result(t, &block);
    } else {
      const char *text = translated_part(t, &block, types);
      fine = text != NULL;
      if (text) texts_add(&texts, text);
    }
  }
  write_texts(t, "user", &texts, !content->v->child);
  return fine;
}

static bool add_thinking(translation *t, const body_value *block, translated_answer *a) {
  static const char *const taken[] = {"type", "thinking", "signature", NULL};
  const char *text = value_string(block, "thinking");
  if (!value_is_object(block, taken, IN_PART, t->why)) return false;
  if (!text) return value_lacks(block, "thinking", "a text", t->why);
  json_raw(&a->reasoning, text);
  return true;
}

static bool add_call(translation *t, const body_value *block, translated_answer *a) {
  static const char *const taken[] = {"type", "id", "name", "input", NULL};
  const char *id = value_string(block, "id"), *name = value_string(block, "name");
  const body_value input = value_member(block, "input");
  if (!value_is_object(block, taken, IN_PART, t->why)) return false;
  if (!id) return value_lacks(block, "id", "a text", t->why);
  if (!name) return value_lacks(block, "name", "a text", t->why);
  if (!cJSON_IsObject(input.v)) return value_wrong(&input, "an object", t->why);
  translated_call(a, id, name, input.raw.at, input.raw.len);
  return true;
}

static bool add_block(translation *t, const body_value *block, translated_answer *a) {
  static const char *const types[] = {"text", "thinking", "tool_use", NULL};
  if (is_type(block, "thinking")) return add_thinking(t, block, a);
  if (is_type(block, "tool_use")) return add_call(t, block, a);
  if (is_type(block, "redacted_thinking")) return true; /* nobody but Anthropic can read it */
  const char *text = translated_part(t, block, types);
  if (text) json_raw(&a->content, text);
  return text != NULL;
}

/* The texts of the blocks are not separated, as in the answer they come from. */
static bool write_assistant(translation *t, const body_value *content) {
  const char *text = cJSON_GetStringValue(content->v);
  translated_answer a = {.begun = true};
  body_value block;
  bool fine = text || cJSON_IsArray(content->v) || value_wrong(content, "a text, or a list of blocks", t->why);
  if (text) json_raw(&a.content, text);
  for (body_list list = value_list(content); fine && !text && value_next(&list, &block);)
    fine = add_block(t, &block, &a);
  translated_write(&t->out, &a);
  return fine;
}

static bool write_message(translation *t, const body_value *message) {
  static const char *const taken[] = {"role", "content", NULL};
  const char *role = value_string(message, "role");
  const body_value content = value_member(message, "content");
  if (!value_is_object(message, taken, IN_MESSAGE, t->why)) return false;
  if (texts_equal(role, "user")) return write_user(t, &content);
  if (texts_equal(role, "assistant")) return write_assistant(t, &content);
  if (texts_equal(role, "system")) return write_plain(t, role, &content);
  return value_lacks(message, "role", "user, assistant or system", t->why);
}

static bool write_messages(translation *t, const body_value *messages) {
  const body_value system = value_member(&t->body, "system");
  body_value message;
  if (!cJSON_IsArray(messages->v) || !messages->v->child)
    return value_wrong(messages, "a list of {role, content}", t->why);
  translated_member(&t->out, "messages");
  json_raw(&t->out, "[");
  bool fine = !system.v || write_plain(t, "system", &system);
  for (body_list list = value_list(messages); fine && value_next(&list, &message);) fine = write_message(t, &message);
  json_raw(&t->out, "]");
  return fine;
}

/* ---- tools ------------------------------------------------------------------------------------------------------- */

static bool write_tool(translation *t, const body_value *tool) {
  static const char *const taken[] = {"type", "name", "description", "input_schema", "strict", NULL};
  const char *name = value_string(tool, "name"), *type = value_string(tool, "type");
  const body_value schema = value_member(tool, "input_schema"), description = value_member(tool, "description"),
                   strict = value_member(tool, "strict");
  if (type && !texts_equal(type, "custom")) {
    *t->why = refusal_say(400, INVALID, "%s.type: expected custom, not %.60s", tool->name, type);
    return false;
  }
  if (!value_is_object(tool, taken, IN_TOOL, t->why)) return false;
  if (!name || !*name) return value_lacks(tool, "name", "the tool's name", t->why);
  if (!cJSON_IsObject(schema.v)) return value_wrong(&schema, "a JSON schema", t->why);
  translated_comma(&t->out);
  json_raw(&t->out, "{\"type\":\"function\",\"function\":{");
  translated_text(&t->out, "name", name);
  if (description.v) translated_raw(&t->out, "description", description.raw);
  translated_raw(&t->out, "parameters", schema.raw);
  if (strict.v) translated_raw(&t->out, "strict", strict.raw);
  json_raw(&t->out, "}}");
  return true;
}

static bool write_tools(translation *t, const body_value *tools) {
  return translated_list(t, "tools", tools, "a list of tools", write_tool);
}

static bool write_choice(translation *t, const body_value *choice) {
  static const char *const taken[] = {"type", "name", "disable_parallel_tool_use", NULL};
  static const char *const modes[][2] = {{"auto", "auto"}, {"any", "required"}, {"none", "none"}};
  const char *type = value_string(choice, "type"), *name = value_string(choice, "name");
  const body_value alone = value_member(choice, "disable_parallel_tool_use");
  if (!value_is_object(choice, taken, IN_TOOL, t->why)) return false;
  if (alone.v && !cJSON_IsBool(alone.v)) return value_wrong(&alone, "true or false", t->why);
  if (cJSON_IsTrue(alone.v)) translated_raw(&t->out, "parallel_tool_calls", (raw_json){"false", 5});
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (!texts_equal(type, modes[i][0])) continue;
    translated_text(&t->out, "tool_choice", modes[i][1]);
    return true;
  }
  if (!texts_equal(type, "tool")) return value_lacks(choice, "type", "auto, any, tool or none", t->why);
  if (!name) return value_lacks(choice, "name", "the tool's name", t->why);
  translated_member(&t->out, "tool_choice");
  translated_function(&t->out, name);
  return true;
}

/* ---- other fields ------------------------------------------------------------------------------------------------ */

/* Returns the variables that turn reasoning on or off; NULL: the request leaves this to the template, or the template
 * has no such variables. */
static const char *variables_of(const translation *t) {
  const body_value thinking = value_member(&t->body, "thinking");
  const bool on = is_type(&thinking, "enabled");
  const char *variables = NULL;
  dt_error ignored;
  if (!t->server->chat || (!on && !is_type(&thinking, "disabled"))) return NULL;
  return dtl_think(t->server->chat, on ? "on" : "off", &variables, &ignored) ? NULL : variables;
}

/* Writes the variables of the template: those for reasoning, and the client's own. */
static bool write_variables(translation *t, const body_value *own) {
  const char *variables = variables_of(t);
  const bool has_own = cJSON_IsObject(own->v) && cJSON_GetArraySize(own->v) > 0;
  if (variables && (!own->v || cJSON_IsObject(own->v))) {
    translated_raw(&t->out, "chat_template_kwargs", (raw_json){variables, strlen(variables) - (has_own ? 1 : 0)});
    if (has_own) json_raw(&t->out, ","), json_bytes(&t->out, own->raw.at + 1, own->raw.len - 1);
  } else if (own->v) {
    translated_raw(&t->out, "chat_template_kwargs", own->raw);
  }
  return true;
}

static bool write_thinking(translation *t, const body_value *thinking) {
  static const char *const taken[] = {"type", "budget_tokens", NULL};
  const body_value budget = value_member(thinking, "budget_tokens"),
                   own = value_member(&t->body, "chat_template_kwargs");
  if (!value_is_object(thinking, taken, IN_REASONING, t->why)) return false;
  if (is_type(thinking, "enabled")) {
    if (!budget.v) return value_wrong(&budget, "a whole number, but it is missing", t->why);
    translated_raw(&t->out, "think_tokens", budget.raw);
  } else if (!is_type(thinking, "disabled") && !is_type(thinking, "adaptive")) {
    return value_lacks(thinking, "type", "enabled, disabled or adaptive", t->why);
  }
  return own.v || write_variables(t, &own);
}

static bool write_format(translation *t, const body_value *format) {
  static const char *const taken[] = {"type", "schema", NULL};
  const body_value schema = value_member(format, "schema");
  if (!value_is_object(format, taken, IN_ITEM, t->why)) return false;
  if (!is_type(format, "json_schema")) return value_lacks(format, "type", "json_schema", t->why);
  if (!schema.v) return value_wrong(&schema, "a JSON schema", t->why);
  translated_member(&t->out, "response_format");
  json_raw(&t->out, "{\"type\":\"json_schema\"");
  translated_raw(&t->out, "schema", schema.raw);
  json_raw(&t->out, "}");
  return true;
}

static bool write_output(translation *t, const body_value *output) {
  static const char *const taken[] = {"effort", "format", NULL};
  const body_value effort = value_member(output, "effort"), format = value_member(output, "format");
  if (!value_is_object(output, taken, IN_ITEM, t->why)) return false;
  if (effort.v) translated_raw(&t->out, "reasoning_effort", effort.raw);
  return !format.v || write_format(t, &format);
}

static bool write_stops(translation *t, const body_value *v) {
  if (!cJSON_IsArray(v->v)) return value_wrong(v, "a list of texts", t->why);
  translated_raw(&t->out, "stop", v->raw);
  return true;
}

static const translated_field fields[] = {
    {"model", "model", NULL},
    {"messages", NULL, write_messages},
    {"system", NULL, NULL},
    {"max_tokens", NULL, translated_limit},
    {"stop_sequences", NULL, write_stops},
    {"temperature", "temperature", NULL},
    {"top_p", "top_p", NULL},
    {"top_k", "top_k", NULL},
    {"stream", "stream", NULL},
    {"tools", NULL, write_tools},
    {"tool_choice", NULL, write_choice},
    {"thinking", NULL, write_thinking},
    {"output_config", NULL, write_output},
    {"output_format", NULL, write_format},
    {"chat_template_kwargs", NULL, write_variables},
};

bool anthropic_translate_counted(const ask_server *server, const cJSON *root, raw_json body, char **out,
                                 unsigned *where, refusal *why) {
  translation t = {.server = server, .body = {.v = root, .raw = body}, .why = why};
  *where = IN_CHAT;
  return translate_fields(&t, fields, sizeof fields / sizeof *fields, IN_ANTHROPIC, out);
}

bool anthropic_translate(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                         refusal *why) {
  const body_value whole = {.v = root, .raw = body}, limit = value_member(&whole, "max_tokens");
  if (!limit.v) return value_wrong(&limit, "a whole number, but it is missing", why);
  return anthropic_translate_counted(server, root, body, out, where, why);
}
