/* Conversations of requests: see conversation.h. */
#include "serve/conversation.h"
#include "files/json_text.h"
#include "serve/messages.h"

#include <stdlib.h>
#include <string.h>

enum { SETTINGS = 5 };

typedef struct {
  const ask_server *server;
  const cJSON *root;
  raw_json body;
  refusal *why;
  dt_conversation of;
  const char *settings[SETTINGS];
  char *messages, *tools, *documents, *variables, *effort; /* malloc'd */
} writing;

static bool wrong(const writing *w, const char *name, const char *expected) {
  *w->why = refusal_say(400, INVALID, "%s: expected %s", name, expected);
  return false;
}

static bool starved(const writing *w) {
  *w->why = refusal_say(500, "server_error", "out of memory: the conversation");
  return false;
}

/* The member, or NULL if it is missing or null. */
static const cJSON *member(const writing *w, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(w->root, name);
  return cJSON_IsNull(v) ? NULL : v;
}

/* Copies a member as it is written, with all digits of its numbers. */
static bool copy(const writing *w, const char *name, char **out) {
  raw_json raw = raw_member(w->body, name);
  *out = strndup(raw.at ? raw.at : "", raw.len);
  return *out || starved(w);
}

static void add_settings(writing *w, const char *json) { w->settings[w->of.n_settings++] = json; }

/* The template's variables of the command line come first, so that those of the request replace them. */
static bool read_variables(writing *w) {
  static const char *const own[] = {"messages", "tools", "documents", "add_generation_prompt"};
  const cJSON *v = member(w, "chat_template_kwargs");
  for (int i = 0; i < w->server->n_settings; i++) add_settings(w, w->server->settings[i]);
  if (!v) return true;
  if (!cJSON_IsObject(v)) return wrong(w, "chat_template_kwargs", "an object");
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (cJSON_GetObjectItemCaseSensitive(v, own[i])) {
      *w->why = refusal_say(400, INVALID, "chat_template_kwargs: %s is a member of the request", own[i]);
      return false;
    }
  if (!copy(w, "chat_template_kwargs", &w->variables)) return false;
  add_settings(w, w->variables);
  return true;
}

/* The effort is a variable of the template; "none" turns reasoning off where the template can. */
static bool read_effort(writing *w) {
  const cJSON *v = member(w, "reasoning_effort");
  const char *off;
  dt_error ignored;
  if (!v) return true;
  if (!cJSON_IsString(v)) return wrong(w, "reasoning_effort", "a text");
  json_text out = {0};
  json_raw(&out, "{\"reasoning_effort\":");
  json_string(&out, v->valuestring, strlen(v->valuestring));
  json_raw(&out, "}");
  if (!(w->effort = json_finish(&out))) return starved(w);
  add_settings(w, w->effort);
  if (strcmp(v->valuestring, "none") == 0 && !dtl_think(w->server->chat, "off", &off, &ignored)) add_settings(w, off);
  return true;
}

static bool read_flag(const writing *w, const char *name, bool *given, bool *out) {
  const cJSON *v = member(w, name);
  *given = v != NULL, *out = cJSON_IsTrue(v);
  return !v || cJSON_IsBool(v) || wrong(w, name, "true or false");
}

/* Without these two members, an answer continues a last message of the assistant. */
static bool read_next(writing *w) {
  bool chosen, goes_on, told, answers;
  if (!read_flag(w, "continue_final_message", &chosen, &goes_on) ||
      !read_flag(w, "add_generation_prompt", &told, &answers))
    return false;
  if (goes_on && answers) return wrong(w, "continue_final_message", "add_generation_prompt to be false");
  w->of.next = goes_on            ? DT_CHAT_CONTINUE
               : told && !answers ? DT_CHAT_NOTHING
               : told || chosen   ? DT_CHAT_ANSWER
                                  : DT_CHAT_AUTO;
  return true;
}

static bool read_documents(writing *w) {
  const cJSON *v = member(w, "documents");
  if (!v) return true;
  if (!cJSON_IsArray(v)) return wrong(w, "documents", "a list");
  if (!copy(w, "documents", &w->documents)) return false;
  w->of.documents = w->documents;
  return true;
}

static bool read_all(writing *w) {
  if (!w->server->chat) {
    *w->why = refusal_say(400, INVALID, "%s", w->server->no_chat);
    return false;
  }
  if (!messages_check(member(w, "messages"), w->why) || !copy(w, "messages", &w->messages)) return false;
  w->of = (dt_conversation){.messages = w->messages, .settings = w->settings, .raw = w->server->template_raw};
  return read_variables(w) && read_effort(w) && read_next(w) && read_documents(w);
}

bool conversation_write(const ask_server *server, const cJSON *root, raw_json body, const request_tools *tools,
                        dt_chat_prompt *out, refusal *why) {
  writing w = {.server = server, .root = root, .body = body, .why = why};
  dt_error err;
  bool fine = read_all(&w);
  if (fine && tools->list) fine = copy(&w, "tools", &w.tools);
  w.of.tools = w.tools;
  if (fine && dt_chat_write(server->chat, &w.of, out, &err)) {
    *why = refusal_of(&err);
    fine = false;
  }
  free(w.messages), free(w.tools), free(w.documents), free(w.variables), free(w.effort);
  return fine;
}
