/* What a template's own texts show: how it takes messages, what ends an answer, and what stands around reasoning. */
#include "chat/parts.h"

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
#define REASONED "{\"role\":\"assistant\",\"content\":\"" ANSWER "\",\"reasoning_content\":\"" REASON "\"}"

/* What the template writes for a list of messages: malloc'd; NULL: it fails. */
static char *written(const dt_chat *c, const char *messages, bool answer) {
  dt_error ignored;
  dt_chat_prompt out = {0};
  const dt_conversation q = {.messages = messages, .next = answer ? DT_CHAT_ANSWER : DT_CHAT_NOTHING};
  if (dt_chat_write(c, &q, &out, &ignored)) return NULL;
  free(out.plain);
  return out.text;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* A copy of [begin, end) without white space around it; NULL: there is nothing else in it, or no memory. */
static char *stripped(const char *begin, const char *end) {
  while (begin < end && is_space(*begin)) begin++;
  while (begin < end && is_space(end[-1])) end--;
  return begin < end ? strndup(begin, (size_t)(end - begin)) : NULL;
}

/* ---- habits ------------------------------------------------------------------------------------------------------ */

static bool writes_question(const dt_chat *c) {
  char *text = written(c, "[" USER(QUESTION) "]", true);
  bool is_there = text && strstr(text, QUESTION);
  free(text);
  return is_there;
}

/* A content is a list of parts only where the template does not write one that is a text. */
static void learn_habits(dt_chat *c) {
  c->habits.developer = dt_chat_mentions(c, "developer");
  if (writes_question(c)) return;
  c->habits.lists = true;
  c->habits.lists = writes_question(c);
}

/* ---- the end of an answer ---------------------------------------------------------------------------------------- */

/* If a text begins with a mark, such as <|im_end|>, cuts off what follows. */
static bool cut_to_mark(char *text) {
  const char *close = *text == '<' ? strchr(text, '>') : *text == '[' ? strchr(text, ']') : NULL;
  if (close) text[close + 1 - text] = '\0';
  return close;
}

/* The mark after the last answer or, where there is none, what begins the next question. Not all that follows an answer
 * is its end, because some templates always ask for another one. */
static void learn_end(dt_chat *c) {
  char *last = written(c, "[" USER(QUESTION) "," ASSISTANT(ANSWER) "]", false),
       *asked = written(c, "[" USER(QUESTION) "," ASSISTANT(ANSWER) "," USER(NEXT) "]", true);
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

/* ---- reasoning --------------------------------------------------------------------------------------------------- */

/* The mark that begins what </NAME> or [/NAME] ends, <NAME> or [NAME]: malloc'd, or NULL. */
static char *counterpart(const char *end) {
  const size_t n = strlen(end);
  const bool is_tag =
      n > 3 && end[1] == '/' && ((end[0] == '<' && end[n - 1] == '>') || (end[0] == '[' && end[n - 1] == ']'));
  char *begin = is_tag ? strdup(end) : NULL;
  if (begin) memmove(begin + 1, begin + 2, n - 1);
  return begin;
}

static size_t common(const char *a, const char *b) {
  size_t n = 0;
  while (a[n] && a[n] == b[n]) n++;
  return n;
}

/* What precedes the reasoning of an answer, and not other answers: malloc'd, or NULL. */
static char *before_reasoning(const dt_chat *c, const char *text, const char *reason) {
  char *prompt = written(c, "[" USER(QUESTION) "]", true),
       *plain = written(c, "[" USER(QUESTION) "," ASSISTANT(ANSWER) "]", false);
  size_t from = prompt ? common(text, prompt) : 0, other = plain ? common(text, plain) : from;
  if (other < from) from = other;
  char *begin = text + from < reason ? stripped(text + from, reason) : NULL;
  free(prompt), free(plain);
  return begin;
}

/* The template writes the reasoning of an answer: the marks stand around it. */
static void learn_from_reasoning(dt_chat *c) {
  char *text = written(c, "[" USER(QUESTION) "," REASONED "]", false);
  const char *reason = text ? strstr(text, REASON) : NULL, *answer = reason ? strstr(reason, ANSWER) : NULL;
  const char *after = reason ? reason + strlen(REASON) : NULL;
  if (answer) c->reasoning_mark = stripped(after, answer);
  if (c->reasoning_mark) {
    c->reasoning_end = strndup(after, (size_t)(answer - after));
    c->reasoning_begin = counterpart(c->reasoning_mark);
    if (!c->reasoning_begin) c->reasoning_begin = before_reasoning(c, text, reason);
  }
  free(text);
}

/* Whether the template leaves out what precedes the mark in an earlier answer. */
static bool cuts_at(const dt_chat *c, const char *mark) {
  char messages[256];
  snprintf(messages, sizeof messages,
           "[" USER(QUESTION) ",{\"role\":\"assistant\",\"content\":\"" REASON "%s" ANSWER "\"}," USER(NEXT) "]", mark);
  char *text = written(c, messages, true);
  bool cuts = text && strstr(text, ANSWER) && !strstr(text, REASON);
  free(text);
  return cuts;
}

/* The template splits earlier answers at a mark that it spells, </NAME> or [/NAME]. */
static void learn_from_split(dt_chat *c) {
  enum { MOST = 40 };
  for (const char *at = c->text; *at && !c->reasoning_mark; at++) {
    if ((at[0] != '<' && at[0] != '[') || at[1] != '/') continue;
    size_t n = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:");
    if (n == 2 || n > MOST || at[n] != (at[0] == '<' ? '>' : ']')) continue;
    char mark[MOST + 2];
    snprintf(mark, sizeof mark, "%.*s", (int)n + 1, at);
    if (!cuts_at(c, mark)) continue;
    c->reasoning_mark = strdup(mark);
    c->reasoning_begin = counterpart(mark);
    if (asprintf(&c->reasoning_end, "\n%s\n\n", mark) < 0) c->reasoning_end = NULL;
  }
}

static void forget_reasoning(dt_chat *c) {
  free(c->reasoning_begin), free(c->reasoning_mark), free(c->reasoning_end);
  c->reasoning_begin = c->reasoning_mark = c->reasoning_end = NULL;
}

void chat_learn(dt_chat *c) {
  learn_habits(c);
  learn_end(c);
  learn_from_reasoning(c);
  if (!c->reasoning_mark) learn_from_split(c);
  if (!c->reasoning_begin || !c->reasoning_end) forget_reasoning(c);
}
