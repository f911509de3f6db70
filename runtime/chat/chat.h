/* Writes conversations as the text that a chat model was trained on, by running its chat template: a program in Jinja
 * (template/template.h). A template comes with the model, from the caller, or is one of those built in.
 *
 *   dt_chat *c;
 *   dt_chat_prompt prompt;
 *   dt_model_chat("model.gguf", NULL, &c, &err);
 *   dt_conversation conversation = {.messages = "[{\"role\": \"user\", \"content\": \"Hello!\"}]"};
 *   dt_chat_write(c, &conversation, &prompt, &err);   // ends where the answer begins
 *   dt_encode_chat(pair, &prompt, &ids, &n, &err);
 *   dt_chat_prompt_free(&prompt);  dt_chat_close(c);
 *
 * A dt_chat does not change, so any number of threads may use it at the same time. */
#ifndef DT_CHAT_H
#define DT_CHAT_H

#include "system/range.h"
#include "system/status.h"

#include <stdbool.h>
#include <time.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct dt_chat dt_chat;

typedef struct {
  const char *name;   /* for messages; without a text, the name of a built-in template */
  const char *text;   /* the template; NULL: the built-in one */
  const char *tools;  /* the template for conversations with tools; NULL: the same */
  const char *tokens; /* a JSON object of special tokens, such as {"bos_token": "<s>"}; NULL: none */
} dt_chat_source;

/* Compiles a template, and learns from texts that it writes how answers end and how reasoning is marked. The source is
 * copied. DT_EINPUT: it is not a template (the message says the line), or no built-in one has this name (the message
 * lists them). Free with dt_chat_close. */
dt_status dt_chat_open(const dt_chat_source *source, dt_chat **out, dt_error *err);

/* The same for the model in this folder or GGUF file: the template called `name`, built in or a file; NULL: the model's
 * own. Special tokens are the model's. DT_EINPUT, too: the model has no template. */
dt_status dt_model_chat(const char *path, const char *name, dt_chat **out, dt_error *err);
void dt_chat_close(dt_chat *chat); /* NULL is allowed */

const char *dt_chat_name(const dt_chat *chat);
const char *dt_chat_text(const dt_chat *chat); /* the template */

/* The text after an answer, such as "<|im_end|>", which is usually an end-of-text token of the model; NULL: there is
 * none. */
const char *dt_chat_end(const dt_chat *chat);

/* Returns whether the template marks reasoning. *begin and *end are the texts around it, such as "<think>" and
 * "\n</think>\n\n"; they belong to the chat. */
bool dt_chat_reasoning(const dt_chat *chat, const char **begin, const char **end);

/* Returns whether the template mentions a variable, such as enable_thinking. */
bool dt_chat_mentions(const dt_chat *chat, const char *variable);

/* Settings (dt_conversation) that turn reasoning on and off: templates name the variable in one of these two ways. */
#define DT_CHAT_THINK "{\"enable_thinking\":true,\"thinking\":true}"
#define DT_CHAT_NO_THINK "{\"enable_thinking\":false,\"thinking\":false}"

#define DT_CHAT_SETTINGS 8 /* maximum number of objects of settings */

/* What follows the last message. DT_CHAT_AUTO: the answer continues it if it is the assistant's, without calls. */
typedef enum { DT_CHAT_AUTO, DT_CHAT_ANSWER, DT_CHAT_CONTINUE, DT_CHAT_NOTHING } dt_chat_next;

typedef struct {
  /* A JSON list of messages, {"role": "user", "content": "Hi"}, with any other members that the template reads. Members
   * that are null are left out. A content is a text or, as in OpenAI's interface, a list of parts of type text. An
   * assistant's message may have reasoning_content (or reasoning, or thinking) and tool_calls. */
  const char *messages;
  const char *tools, *documents; /* JSON lists; NULL: none */
  const char *const *settings;   /* [n_settings] JSON objects, whose members are variables of the template; at most
                                    DT_CHAT_SETTINGS. A later one replaces what an earlier one sets */
  int n_settings;
  dt_chat_next next;
  bool raw;             /* messages may contain control tokens: dt_chat_prompt.plain is empty */
  const struct tm *now; /* for templates that write the date; NULL: the current time */
} dt_conversation;

/* How a prompt leaves the reasoning of its answer. */
typedef enum {
  DT_REASONING_FREE,  /* the model decides whether it reasons, or the template knows no reasoning */
  DT_REASONING_OPEN,  /* the prompt ends inside reasoning: the answer begins there */
  DT_REASONING_CLOSED /* the prompt ends with the mark that ends reasoning: the answer has none */
} dt_reasoning_state;

typedef struct {
  char *text; /* NUL-terminated */
  size_t len;
  dt_range *plain; /* [n_plain] bytes that come from messages other than the assistant's, or from tools and settings */
  size_t n_plain;
  dt_reasoning_state reasoning;
} dt_chat_prompt;

/* Writes a conversation. Fill *out with zeros before, and free it with dt_chat_prompt_free. DT_EINPUT: the messages are
 * not as above, or the template refuses them; then the message is what the template says. */
dt_status dt_chat_write(const dt_chat *chat, const dt_conversation *conversation, dt_chat_prompt *out, dt_error *err);
void dt_chat_prompt_free(dt_chat_prompt *prompt);

#pragma GCC visibility pop

#endif
