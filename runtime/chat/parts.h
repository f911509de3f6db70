/* The parts of a chat. Private to this folder. */
#ifndef DT_CHAT_PARTS_H
#define DT_CHAT_PARTS_H

#include "chat/chat.h"
#include "template/template.h"

/* What a template expects of messages. */
typedef struct {
  bool lists;     /* a content is a list of parts, not a text */
  bool developer; /* it knows the role developer; otherwise such messages become the system's */
  bool texts;     /* the arguments of a call are a text of JSON, not an object */
} chat_habits;

struct dt_chat {
  char *name, *text, *tokens;
  template *main, *tools; /* tools: NULL: main */
  chat_habits habits;
  char *end;                              /* or NULL */
  char *reasoning_begin, *reasoning_mark; /* or both NULL; mark: the text that ends reasoning, without white space */
  char *reasoning_end;                    /* the mark with white space around it, as the template writes it */
};

/* Prepares a JSON list of messages for a template: see dt_conversation. *goes_on: the answer continues the last
 * message, to whose content `tag` is appended. *out is malloc'd. */
dt_status chat_messages(const char *json, const dt_chat *chat, dt_chat_next next, const char *tag, char **out,
                        bool *goes_on, dt_error *err);

/* Passes on a template's failure. Its message begins with a line, which gets the template's name, or is what the
 * template itself says. */
dt_status chat_fail(const char *name, dt_status status, const dt_error *inner, dt_error *err);

/* Fills in habits, end and the marks of reasoning, from texts that the template writes. A template that fails for all
 * of these conversations gives nothing to learn. */
void chat_learn(dt_chat *c);

#endif
