/* Messages: see messages.h. */
#include "serve/messages.h"
#include "serve/others.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  dt_message *text; /* [n] malloc'd */
  dt_role *role;    /* [n] */
  int n;
  refusal *why;
} conversation;

static bool wrong(const conversation *c, int i, const char *what) {
  *c->why = refusal_say(400, INVALID, "messages[%d]%s", i, what);
  return false;
}

static bool starved(refusal *why) {
  *why = refusal_say(500, "server_error", "out of memory: the request");
  return false;
}

static bool read_role(conversation *c, int i, const cJSON *message) {
  static const struct {
    const char *name;
    dt_role role;
  } roles[] = {{"user", DT_USER}, {"assistant", DT_ASSISTANT}, {"system", DT_SYSTEM}, {"developer", DT_SYSTEM}};
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "role"));
  for (size_t k = 0; name && k < sizeof roles / sizeof *roles; k++) {
    if (strcmp(name, roles[k].name) != 0) continue;
    c->role[i] = roles[k].role;
    return true;
  }
  bool is_call = name && (strcmp(name, "tool") == 0 || strcmp(name, "function") == 0);
  return wrong(c, i,
               is_call ? ".role: tools are not supported" : ".role: expected system, developer, user or assistant");
}

/* Appends a text. As in llama.cpp's server, a newline separates the texts of a list. */
static bool add_text(dt_message *to, const char *text, size_t n) {
  char *grown = realloc((char *)to->text, to->len + n + 2);
  if (!grown) return false;
  if (to->len) grown[to->len++] = '\n';
  memcpy(grown + to->len, text, n);
  to->text = grown, to->len += n;
  return true;
}

static bool read_part(conversation *c, int i, int at, const cJSON *part) {
  static const char *const taken[] = {"type", "text", NULL};
  char place[64];
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(part, "type");
  const char *kind = type ? cJSON_GetStringValue(type) : "text";
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, "text"));
  snprintf(place, sizeof place, "messages[%d].content[%d].", i, at);
  if (!kind || strcmp(kind, "text") != 0 || !text) {
    *c->why = refusal_say(400, INVALID, "messages[%d].content[%d]: expected a part of type text, with a text%s%.40s", i,
                          at, kind && *kind ? ", not of type " : "", kind ? kind : "");
    return false;
  }
  if (!others_pass_all(part, taken, place, IN_PART, c->why)) return false;
  return add_text(&c->text[i], text, strlen(text)) || starved(c->why);
}

static bool read_content(conversation *c, int i, const cJSON *message) {
  const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content"), *part;
  int at = 0;
  if (!add_text(&c->text[i], "", 0)) return starved(c->why); /* it may be empty, but not missing */
  if (cJSON_IsString(content))
    return add_text(&c->text[i], content->valuestring, strlen(content->valuestring)) || starved(c->why);
  if ((!content || cJSON_IsNull(content)) && c->role[i] == DT_ASSISTANT) return true;
  if (!cJSON_IsArray(content)) return wrong(c, i, ".content: expected a text, or a list of parts of type text");
  cJSON_ArrayForEach(part, content) if (!read_part(c, i, at++, part)) return false;
  return true;
}

static bool read_all(conversation *c, const cJSON *list) {
  static const char *const taken[] = {"role", "content", NULL};
  const cJSON *message;
  char place[32];
  cJSON_ArrayForEach(message, list) {
    int i = c->n++;
    snprintf(place, sizeof place, "messages[%d].", i);
    if (!cJSON_IsObject(message)) return wrong(c, i, ": expected {role, content}");
    if (!read_role(c, i, message) || !others_pass_all(message, taken, place, IN_MESSAGE, c->why)) return false;
    if (!read_content(c, i, message)) return false;
  }
  return true;
}

/* Returns whether user and assistant take turns from message `first` on, and the last message is the user's. */
static bool take_turns(const conversation *c, int first) {
  for (int i = first; i < c->n; i++) {
    bool user = (i - first) % 2 == 0;
    if (c->role[i] != (user ? DT_USER : DT_ASSISTANT))
      return wrong(c, i,
                   user ? ": expected role user: user and assistant take turns, after a system text"
                        : ": expected role assistant: user and assistant take turns, after a system text");
  }
  if ((c->n - first) % 2 == 1) return true;
  *c->why = refusal_say(400, INVALID, "messages: expected the last message to be the user's");
  return false;
}

static bool write_text(const conversation *c, const dt_chat *chat, char **text, size_t *len) {
  int first = c->role[0] == DT_SYSTEM;
  dt_error err;
  if (!dt_chat_any_order(chat) && !take_turns(c, first)) return false;
  if (!dtl_conversation(chat, first ? c->text : NULL, c->text + first, c->role + first, c->n - first, NULL, text, len,
                        &err))
    return true;
  *c->why = refusal_of(&err);
  return false;
}

bool messages_text(const dt_chat *chat, const cJSON *messages, char **text, size_t *len, refusal *why) {
  size_t n = (size_t)cJSON_GetArraySize(messages);
  if (!cJSON_IsArray(messages) || n == 0) {
    *why = refusal_say(400, INVALID, "messages: expected a list of {role, content}");
    return false;
  }
  conversation c = {.text = calloc(n, sizeof *c.text), .role = calloc(n, sizeof *c.role), .why = why};
  bool fine = c.text && c.role ? read_all(&c, messages) && write_text(&c, chat, text, len) : starved(why);
  for (int i = 0; i < c.n; i++) free((char *)c.text[i].text);
  free(c.text), free(c.role);
  return fine;
}
