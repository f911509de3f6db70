/* Answers with reasoning, a tool call etc. are split into their parts, however the text is cut into pieces. */
#include "unit.h"

#include "chat/reasoning.h"

#include <string.h>

typedef struct {
  char text[512]; /* the text of all parts, with reasoning in braces */
  size_t n;
  bool reasoning;
  int calls, most; /* after `most` calls it refuses more */
} heard;

static bool hear(void *user, bool reasoning, const char *bytes, size_t len) {
  heard *h = user;
  assert_true(len > 0 && h->n + len + 3 < sizeof h->text);
  if (reasoning != h->reasoning) h->text[h->n++] = reasoning ? '{' : '}';
  memcpy(h->text + h->n, bytes, len);
  h->n += len, h->reasoning = reasoning;
  return ++h->calls < h->most;
}

/* Feeds the pieces 0..a, a..b and b..n of a text. */
static void feed(const dt_chat *chat, bool open, const char *text, size_t a, size_t b, const char *expected) {
  heard h = {.most = 100};
  dt_reasoning *t;
  const size_t cuts[] = {0, a, b, strlen(text)};
  ok(dt_reasoning_open(chat, open, &t, &err));
  for (int i = 0; i < 3; i++) assert_true(dt_reasoning_add(t, text + cuts[i], cuts[i + 1] - cuts[i], hear, &h));
  assert_true(dt_reasoning_end(t, hear, &h));
  dt_reasoning_close(t);
  h.text[h.n] = '\0';
  if (strcmp(h.text, expected) != 0)
    fail_msg("[%s] cut at %zu, %zu: [%s], expected [%s]", text, a, b, h.text, expected);
}

static void parts_of(const dt_chat *chat, bool open, const char *text, const char *expected) {
  size_t n = strlen(text);
  for (size_t a = 0; a <= n; a++)
    for (size_t b = a; b <= n; b++) feed(chat, open, text, a, b, expected);
}

static void parts(const char *layout, bool open, const char *text, const char *expected) {
  dt_chat *chat;
  ok(dt_chat_open(&(dt_chat_source){.name = layout}, &chat, &err));
  parts_of(chat, open, text, expected);
  dt_chat_close(chat);
}

static void tags_hold_reasoning(void **state) {
  (void)state;
  parts("chatml", false, "<think>\nab cd\n</think>\n\nef", "{ab cd}ef");
  parts("chatml", false, "\n <think>a é</think>b", "{a é}b");
  parts("glm4.5", false, "<think>\n\n</think>\n\nb\n", "b\n");
  parts("smollm3", false, "<think>a\n\n b \n", "{a\n\n b");
  parts("glm4.5", false, "<think>a</thin", "{a</thin");
  parts("llama3", false, "<think>a</think>b", "<think>a</think>b"); /* its template knows no reasoning */
}

static void a_text_may_speak_of_tags(void **state) {
  (void)state;
  parts("chatml", false, "", "");
  parts("chatml", false, " \n", " \n");
  parts("chatml", false, " plain \n text \n", " plain \n text \n");
  parts("chatml", false, "<thin", "<thin");
  parts("chatml", false, "a <think>b</think>", "a <think>b</think>");
  parts("chatml", false, "a</think>b", "a</think>b");
  parts("chatml", false, "<think>a <think> b</think>c</think><think>d</think>",
        "{a <think> b}c</think><think>d</think>");
  parts("chatml", false, "<|channel|>analysis<|message|>a", "<|channel|>analysis<|message|>a");
}

static void an_answer_may_begin_in_reasoning(void **state) {
  (void)state;
  parts("deepseek-r1", true, "a\n</think>\nb", "{a}b");
  parts("deepseek-r1", true, "<think>\na</think>b", "{a}b");
  parts("deepseek-r1", true, "a", "{a");
  parts("deepseek-r1", false, "a</think>", "a</think>");
  parts("deepseek-r1", false, "<think>a</think>b", "{a}b");
  parts("llama3", true, "a</think>b", "a</think>b");
}

#define FINAL "<|start|>assistant<|channel|>final<|message|>"
#define ANALYSIS "<|channel|>analysis<|message|>"

static void messages_and_channels_hold_reasoning(void **state) {
  (void)state;
  parts("harmony", false, ANALYSIS "b c\n<|end|>" FINAL "d <|e", "{b c}d <|e");
  parts("harmony", false,
        ANALYSIS "a<|end|><|start|>assistant<|channel|>commentary<|message|>b<|end|><|start|>assistant" ANALYSIS
                 "c<|end|>" FINAL "d",
        "{a}b{c}d");
  parts("harmony", false, ANALYSIS "a", "{a");
  parts("harmony", false, "plain <think>", "plain <think>");
  parts("gemma4", false, "<|channel>thought\na\n<channel|>b", "{a}b");
  parts("gemma4", false, "<|channel>thought\n<channel|>b<|channel>", "b<|channel>");
}

static void who_hears_enough_says_so(void **state) {
  (void)state;
  dt_chat *chat;
  dt_reasoning *t;
  ok(dt_chat_open(&(dt_chat_source){.name = "chatml"}, &chat, &err));
  ok(dt_reasoning_open(chat, false, &t, &err));
  heard h = {.most = 1};
  assert_true(dt_reasoning_add(t, "<think>", 7, hear, &h)); /* nothing is passed on */
  assert_false(dt_reasoning_add(t, "a</think>b</thi", 15, hear, &h));
  assert_int_equal(h.calls, 2);
  h.most = 3;
  assert_false(dt_reasoning_add(t, "<", 1, hear, &h));
  dt_reasoning_close(t);
  dt_chat_close(chat);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tags_hold_reasoning),
      cmocka_unit_test(a_text_may_speak_of_tags),
      cmocka_unit_test(an_answer_may_begin_in_reasoning),
      cmocka_unit_test(messages_and_channels_hold_reasoning),
      cmocka_unit_test(who_hears_enough_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
