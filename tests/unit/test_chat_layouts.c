/* The built-in chat templates, compared with what Jinja2 writes with them (tests/golden/make_layouts.py). */
#include "unit.h"

#include "chat/layouts.h"
#include "template/template.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct tm now = {.tm_mday = 5, .tm_mon = 7, .tm_year = 125, .tm_wday = 2, .tm_yday = 216};

static cJSON *golden;

static int read_golden(void **state) {
  (void)state;
  static char text[1 << 20];
  FILE *f = fopen(SOURCE_DIR "/tests/golden/chat/layouts.json", "rb");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  golden = cJSON_Parse(text);
  assert_non_null(golden);
  return 0;
}

static int delete_golden(void **state) {
  (void)state;
  cJSON_Delete(golden);
  return 0;
}

/* Renders the template with the variables of a conversation. */
static dt_status run(const template *t, const cJSON *conversation, template_output *out, dt_error *err) {
  template_variable variables[8] = {0};
  int n = 0;
  for (const cJSON *v = conversation->child; v; v = v->next) {
    assert_true(n < 8);
    char *json = cJSON_PrintUnformatted(v);
    bool messages = strcmp(v->string, "messages") == 0;
    variables[n++] = (template_variable){v->string, json, strlen(json), messages ? TEMPLATE_MESSAGES : TEMPLATE_OWN};
  }
  dt_status status = template_render(t, variables, n, &now, out, err);
  while (n > 0) free((char *)variables[--n].json);
  return status;
}

static template *compiled(const chat_layout_text *layout) {
  template *t;
  ok(template_compile(layout->text, layout->len, &t, &err));
  return t;
}

static void check_case(const char *name, int i, const template *t, const cJSON *conversation, const cJSON *expected) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(expected, "text"));
  template_output out;
  dt_error err;
  if (!text) {
    const char *message = cJSON_GetStringValue(cJSON_GetObjectItem(expected, "error"));
    if (!run(t, conversation, &out, &err)) fail_msg("%s, conversation %d: [%s], expected a failure", name, i, out.text);
    assert_string_equal(err.message, message);
    return;
  }
  if (run(t, conversation, &out, &err)) fail_msg("%s, conversation %d: %s", name, i, err.message);
  if (strcmp(out.text, text) != 0) fail_msg("%s, conversation %d: [%s], expected [%s]", name, i, out.text, text);
  assert_int_equal(out.len, strlen(text));
  template_output_free(&out);
}

static void texts_are_what_Jinja2_writes(void **state) {
  (void)state;
  const cJSON *layouts = cJSON_GetObjectItem(golden, "layouts"), *conversations, *conversation;
  conversations = cJSON_GetObjectItem(golden, "conversations");
  assert_true(cJSON_GetArraySize(conversations) > 10);
  int layout = 0;
  for (; chat_layout_texts[layout].name; layout++) {
    const char *name = chat_layout_texts[layout].name;
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(layouts, name);
    if (!cases) fail_msg("layouts.json has no %s; run tests/golden/make_layouts.py", name);
    template *t = compiled(&chat_layout_texts[layout]);
    int i = 0;
    cJSON_ArrayForEach(conversation, conversations) {
      check_case(name, i, t, conversation, cJSON_GetArrayItem(cases, i));
      i++;
    }
    template_free(t);
  }
  assert_int_equal(layout, cJSON_GetArraySize(layouts));
}

static void names_are_in_alphabetical_order(void **state) {
  (void)state;
  assert_string_equal(chat_layout_texts[0].name, "chatml");
  for (int i = 1; chat_layout_texts[i].name; i++)
    if (strcmp(chat_layout_texts[i - 1].name, chat_layout_texts[i].name) >= 0)
      fail_msg("%s is before %s", chat_layout_texts[i - 1].name, chat_layout_texts[i].name);
}

/* A conversation of a system text and a question has exactly their words marked. */
static void the_words_of_the_request_are_marked(void **state) {
  (void)state;
  const cJSON *conversation = cJSON_GetArrayItem(cJSON_GetObjectItem(golden, "conversations"), 1);
  int allowed = 0;
  for (const chat_layout_text *layout = chat_layout_texts; layout->name; layout++) {
    template *t = compiled(layout);
    template_output out;
    dt_error err;
    char marked[100] = "";
    if (!run(t, conversation, &out, &err)) {
      for (size_t i = 0; i < out.n_marked; i++)
        strncat(marked, out.text + out.marked[i].begin, out.marked[i].end - out.marked[i].begin);
      if (strcmp(marked, "Be brief.Hello!") != 0) fail_msg("%s marks [%s]", layout->name, marked);
      template_output_free(&out);
      allowed++;
    }
    template_free(t);
  }
  assert_true(allowed > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_what_Jinja2_writes),
      cmocka_unit_test(names_are_in_alphabetical_order),
      cmocka_unit_test(the_words_of_the_request_are_marked),
  };
  return cmocka_run_group_tests(tests, read_golden, delete_golden);
}
