/* What a template's own texts show: how it takes messages, what ends an answer, and what stands around reasoning. */
#include "chat/parts.h"
#include "chat/space.h"
#include "system/asprintf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words that no template has. */
#define QUESTION "qZw1"
#define ANSWER "aZw2"
#define NEXT "nZw3"
#define REASON "rZw4"

#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define ASSISTANT(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"
#define REASONED(more)                                                                                                 \
  "{\"role\":\"assistant\",\"content\":\"" ANSWER "\",\"reasoning_content\":\"" REASON "\"" more "}"
#define CALLS                                                                                                          \
  ",\"tool_calls\":[{\"type\":\"function\",\"id\":\"call00001\",\"function\":{\"name\":\"f\",\"arguments\":{}}}]"

/* What the template writes for a list of messages with variables (or NULL): malloc'd; NULL: it fails. */
static char *written(const dt_chat *c, const char *messages, const char *variables, bool answer) {
  dt_error ignored;
  dt_chat_prompt out = {0};
  const dt_conversation q = {.messages = messages,
                             .settings = &variables,
                             .n_settings = variables != NULL,
                             .next = answer ? DT_CHAT_ANSWER : DT_CHAT_NOTHING};
  if (dt_chat_write(c, &q, &out, &ignored)) return NULL;
  free(out.plain);
  return out.text;
}

/* A copy of [begin, end) without white space around it; NULL: there is nothing else in it, or no memory. */
static char *stripped(const char *begin, const char *end) {
  while (begin < end && chat_is_space(*begin)) begin++;
  while (begin < end && chat_is_space(end[-1])) end--;
  return begin < end ? strndup(begin, (size_t)(end - begin)) : NULL;
}

/* ---- habits ------------------------------------------------------------------------------------------------------ */

static bool writes_question(const dt_chat *c) {
  char *text = written(c, "[" USER(QUESTION) "]", NULL, true);
  bool is_there = text && strstr(text, QUESTION);
  free(text);
  return is_there;
}

static bool writes_calls(const dt_chat *c) {
  char *text = written(c, "[" USER(QUESTION) "," REASONED(CALLS) "]", NULL, false);
  free(text);
  return text;
}

/* A content is a list of parts only where the template does not write one that is a text, and the arguments of a call
 * are a text only where it does not write an object. */
static void learn_habits(dt_chat *c) {
  c->habits.developer = dt_chat_mentions(c, "developer");
  if (!writes_calls(c)) {
    c->habits.texts = true;
    c->habits.texts = writes_calls(c);
  }
  if (writes_question(c)) return;
  c->habits.lists = true;
  c->habits.lists = writes_question(c);
}

/* ---- the end of an answer ---------------------------------------------------------------------------------------- */

/* If a text begins with a mark, such as <|im_end|>, cuts off what follows. A mark has no white space. */
static bool cut_to_mark(char *text) {
  if (*text != '<' && *text != '[') return false;
  size_t n = strcspn(text, *text == '<' ? "> \t\r\n" : "] \t\r\n");
  text[n + (text[n] == '>' || text[n] == ']')] = '\0';
  return true;
}

/* The mark after the last answer or, where there is none, what begins the next question. Not all that follows an answer
 * is its end, because some templates always ask for another one. */
static void learn_end(dt_chat *c) {
  char *last = written(c, "[" USER(QUESTION) "," ASSISTANT(ANSWER) "]", NULL, false),
       *asked = written(c, "[" USER(QUESTION) "," ASSISTANT(ANSWER) "," USER(NEXT) "]", NULL, true);
  const char *at = last ? strstr(last, ANSWER) : NULL, *next = asked ? strstr(asked, ANSWER) : NULL;
  char *after = at ? stripped(at + strlen(ANSWER), last + strlen(last)) : NULL;
  if (after && cut_to_mark(after)) {
    c->end = after;
  } else {
    free(after);
    if (next && strstr(next, NEXT)) c->end = stripped(next + strlen(ANSWER), strstr(next, NEXT));
    if (c->end) cut_to_mark(c->end);
  }
  free(last), free(asked);
}

/* ---- reasoning: an answer's marks -------------------------------------------------------------------------------- */

/* The mark that begins what </NAME> or [/NAME] ends, <NAME> or [NAME]: malloc'd, or NULL. */
static char *counterpart(const char *end) {
  const size_t n = strlen(end);
  const bool is_tag =
      n > 3 && end[1] == '/' && ((end[0] == '<' && end[n - 1] == '>') || (end[0] == '[' && end[n - 1] == ']'));
  char *begin = is_tag ? strdup(end) : NULL;
  if (begin) memmove(begin + 1, begin + 2, n - 1);
  return begin;
}

/* How far two texts are equal, without a part of a mark at the end. */
static size_t common(const char *a, const char *b) {
  size_t n = 0, mark;
  while (a[n] && a[n] == b[n]) n++;
  for (mark = n; mark > 0 && a[mark - 1] != '>' && a[mark - 1] != '<' && !chat_is_space(a[mark - 1]);) mark--;
  return mark > 0 && a[mark - 1] == '<' ? mark - 1 : n;
}

/* What precedes the reasoning of an answer, and not other answers: malloc'd, or NULL. */
static char *before_reasoning(const dt_chat *c, const char *text, const char *reason) {
  char *prompt = written(c, "[" USER(QUESTION) "]", NULL, true),
       *plain = written(c, "[" USER(QUESTION) "," ASSISTANT(ANSWER) "]", NULL, false);
  size_t from = prompt ? common(text, prompt) : 0, other = plain ? common(text, plain) : from;
  if (other < from) from = other;
  char *begin = text + from < reason ? stripped(text + from, reason) : NULL;
  free(prompt), free(plain);
  return begin;
}

/* If the template writes the reasoning of an answer, the marks stand around it. calls: calls may follow the end mark.
 */
static void learn_from_reasoning(dt_chat *c, const char *messages, bool calls, const char *variables) {
  char *text = written(c, messages, variables, false);
  const char *reason = text ? strstr(text, REASON) : NULL, *answer = reason ? strstr(reason, ANSWER) : NULL;
  const char *after = reason ? reason + strlen(REASON) : NULL;
  if (answer) c->reasoning_mark = stripped(after, answer);
  if (c->reasoning_mark) {
    if (calls && cut_to_mark(c->reasoning_mark)) answer = strstr(after, c->reasoning_mark) + strlen(c->reasoning_mark);
    c->reasoning_end = strndup(after, (size_t)(answer - after));
    c->reasoning_begin = counterpart(c->reasoning_mark);
    if (!c->reasoning_begin) c->reasoning_begin = before_reasoning(c, text, reason);
  }
  free(text);
}

/* ---- reasoning: what an earlier answer loses --------------------------------------------------------------------- */

enum { MARK = 40 };

static void take_marks(dt_chat *c, const char *begin, const char *end) {
  c->reasoning_mark = strdup(end);
  c->reasoning_begin = begin ? strdup(begin) : counterpart(end);
  if (dt_asprintf(&c->reasoning_end, "\n%s\n\n", end) < 0) c->reasoning_end = NULL;
}

/* Whether the template leaves out what precedes the end mark in an earlier answer. */
static bool cuts_at(const dt_chat *c, const char *mark) {
  char messages[256];
  snprintf(messages, sizeof messages,
           "[" USER(QUESTION) ",{\"role\":\"assistant\",\"content\":\"" REASON "%s" ANSWER "\"}," USER(NEXT) "]", mark);
  char *text = written(c, messages, NULL, true);
  bool cuts = text && strstr(text, ANSWER) && !strstr(text, REASON);
  free(text);
  return cuts;
}

/* The template splits earlier answers at a mark that it spells, </NAME> or [/NAME]. */
static void learn_from_split(dt_chat *c) {
  for (const char *at = c->text; *at && !c->reasoning_mark; at++) {
    if ((at[0] != '<' && at[0] != '[') || at[1] != '/') continue;
    size_t n = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:");
    if (n == 2 || n > MARK || at[n] != (at[0] == '<' ? '>' : ']')) continue;
    char mark[MARK + 2];
    snprintf(mark, sizeof mark, "%.*s", (int)n + 1, at);
    if (cuts_at(c, mark)) take_marks(c, NULL, mark);
  }
}

/* ---- reasoning: a prompt that closes it -------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *mark) {
  char *all = stripped(text, text + strlen(text));
  const size_t n = all ? strlen(all) : 0, len = strlen(mark);
  bool ends = all && n >= len && strcmp(all + n - len, mark) == 0;
  free(all);
  return ends;
}

/* If reasoning is turned off, some templates begin the answer with empty reasoning: its two marks, with which the
 * prompt does not end if reasoning is turned on. */
static void learn_from_empty(dt_chat *c) {
  char *on = written(c, "[" USER(QUESTION) "]", DT_CHAT_THINK, true),
       *off = written(c, "[" USER(QUESTION) "]", DT_CHAT_NO_THINK, true);
  char *tail = off ? stripped(off, off + strlen(off)) : NULL;
  const size_t n = tail ? strlen(tail) : 0;
  char *end = n && (tail[n - 1] == '>' || tail[n - 1] == ']') ? strrchr(tail, tail[n - 1] == '>' ? '<' : '[') : NULL;
  if (on && end && !ends_with(on, end)) {
    char *mark = strdup(end);
    *end = '\0';
    char *open = strrchr(tail, *mark), *begin = open ? stripped(open, end) : NULL;
    if (mark && begin) take_marks(c, begin, mark);
    free(mark), free(begin);
  }
  free(on), free(off), free(tail);
}

static void forget_reasoning(dt_chat *c) {
  free(c->reasoning_begin), free(c->reasoning_mark), free(c->reasoning_end);
  c->reasoning_begin = c->reasoning_mark = c->reasoning_end = NULL;
}

void chat_learn(dt_chat *c) {
  learn_habits(c);
  learn_end(c);
  static const char *const reasoned[] = {"[" USER(QUESTION) "," REASONED("") "]",
                                         "[" USER(QUESTION) "," REASONED(CALLS) "]"};
  for (int i = 0; i < 4 && !c->reasoning_mark; i++)
    learn_from_reasoning(c, reasoned[i / 2], i / 2, i % 2 ? DT_CHAT_THINK : NULL);
  if (!c->reasoning_mark) learn_from_split(c);
  if (!c->reasoning_mark) learn_from_empty(c);
  if (!c->reasoning_begin || !c->reasoning_end) forget_reasoning(c);
}
