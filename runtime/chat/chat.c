/* Chats themselves: see chat.h. */
#include "chat/parts.h"

#include <stdlib.h>
#include <string.h>

void dt_chat_close(dt_chat *c) {
  if (!c) return;
  template_free(c->main);
  template_free(c->tools);
  free(c->name), free(c->text), free(c->tokens), free(c->end);
  free(c->reasoning_begin), free(c->reasoning_mark), free(c->reasoning_end);
  free(c);
}

const char *dt_chat_name(const dt_chat *c) { return c ? c->name : NULL; }
const char *dt_chat_text(const dt_chat *c) { return c ? c->text : NULL; }
const char *dt_chat_end(const dt_chat *c) { return c ? c->end : NULL; }

bool dt_chat_reasoning(const dt_chat *c, const char **begin, const char **end) {
  if (!c || !c->reasoning_begin || !begin || !end) return false;
  *begin = c->reasoning_begin, *end = c->reasoning_end;
  return true;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool dt_chat_mentions(const dt_chat *c, const char *variable) {
  if (!c || !variable || !*variable) return false;
  const size_t n = strlen(variable);
  for (const char *at = c->text; (at = strstr(at, variable)); at += n)
    if ((at == c->text || !is_word(at[-1])) && !is_word(at[n])) return true;
  return false;
}
