/* See chat_hint.h. */
#include "cli/chat_hint.h"

#include "cli/complain.h"

#include <string.h>
#include <unistd.h>

/* Returns whether the prompt lacks the mark that ends a turn, which a conversation written as text would have. */
static bool is_bare(const dt_chat *chat, const char *prompt) {
  return !dt_chat_end(chat) || !strstr(prompt, dt_chat_end(chat));
}

void chat_hint(const job *j, const outcome *out) {
  const cli_options *o = j->options;
  const dtl_result *r = out->results;
  dt_chat *chat;
  if (j->chat || j->several || !o->n_texts || !isatty(STDOUT_FILENO) || !isatty(STDERR_FILENO)) return;
  if (o->quiet && r->text_len) return;
  if (dt_pair_chat(j->pair, NULL, &chat, NULL)) return;
  if (is_bare(chat, o->texts[0]))
    say(r->text_len ? "the chat model continued the prompt as a text: give --chat to ask it a question"
                    : "the chat model ended the text at once: give --chat to ask it a question");
  dt_chat_close(chat);
}
