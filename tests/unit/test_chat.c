/* Conversations, compared with what Hugging Face transformers writes (tests/golden/make_chat.py). With a file as
 * argument, compares with that file instead; dtrun need not know its templates. */
#include "temp_files.h"
#include "unit.h"

#include "text/chat_layout.h"
#include "text/tokenizer.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char *golden_path = SOURCE_DIR "/tests/golden/chat/golden.json";
static bool published;

static cJSON *read_json(const char *path) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  static char text[1 << 22];
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = '\0';
  cJSON *json = cJSON_Parse(text);
  assert_non_null(json);
  return json;
}

static const char *string(const cJSON *object, const char *key) {
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static dt_message message(const char *text) { return (dt_message){text, strlen(text)}; }

/* The small tokenizer of the model's kind, with the tokens that the model adds; NULL if the case has no ids. */
static tok *open_tokenizer(const cJSON *t) {
  const char *kind = string(t, "tokenizer");
  if (!kind) return NULL;
  char path[512];
  snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/tokenizer/kinds/%s.json", kind);
  cJSON *json = read_json(path), *list = cJSON_GetObjectItemCaseSensitive(json, "added_tokens"), *content;
  int id =
      cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "model"), "vocab"));
  const cJSON *known;
  cJSON_ArrayForEach(known, list) {
    int after = cJSON_GetObjectItemCaseSensitive(known, "id")->valueint + 1;
    if (after > id) id = after;
  }
  cJSON_ArrayForEach(content, cJSON_GetObjectItemCaseSensitive(t, "added")) {
    cJSON *token = cJSON_CreateObject();
    cJSON_AddNumberToObject(token, "id", id++);
    cJSON_AddStringToObject(token, "content", cJSON_GetStringValue(content));
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (int i = 0; i < 4; i++) cJSON_AddFalseToObject(token, flags[i]);
    cJSON_AddTrueToObject(token, "special");
    cJSON_AddItemToArray(list, token);
  }
  char *text = cJSON_PrintUnformatted(json), *folder = temp_folder();
  temp_write(folder, "tokenizer.json", text, strlen(text));
  snprintf(path, sizeof path, "%s/tokenizer.json", folder);
  tok *made;
  ok(tok_open(path, &made, &err));
  temp_remove(folder);
  free(text);
  cJSON_Delete(json);
  return made;
}

static void check_ids(const tok *tokenizer, const char *model, const char *text, size_t len, const char *expected) {
  int32_t *ids;
  int n;
  ok(tok_encode(tokenizer, text, len, false, &ids, &n, &err));
  for (int i = 0; i < n; i++) {
    char *end;
    long id = strtol(expected, &end, 10);
    if (end == expected || id != ids[i]) fail_msg("%s: id %d is %d, expected %ld, of [%s]", model, i, ids[i], id, text);
    expected = end;
  }
  assert_string_equal(expected, "");
  free(ids);
}

/* Returns for how many conversations the ids were compared. */
static int check_case(const dt_chat *chat, const tok *tokenizer, const char *model, const cJSON *c, const char *today) {
  dt_message turns[8], system = {0};
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(c, "turns"), *turn;
  int n = 0;
  cJSON_ArrayForEach(turn, list) turns[n++] = message(cJSON_GetStringValue(turn));
  const char *system_text = string(c, "system"), *expected = string(c, "text");
  if (system_text) system = message(system_text);
  char *text;
  size_t len;
  if (!expected) {
    fails(dt_chat_text(chat, &system, turns, NULL, n, today, &text, &len, &err), DT_EINPUT,
          "does not allow a system text");
    return 0;
  }
  ok(dt_chat_text(chat, system_text ? &system : NULL, turns, NULL, n, today, &text, &len, &err));
  if (strcmp(text, expected) != 0)
    fail_msg("%s, %d turns, system %s:\n[%s]\nexpected\n[%s]", model, n, system_text ? "given" : "none", text,
             expected);
  assert_int_equal(len, strlen(expected));
  if (tokenizer) check_ids(tokenizer, model, text, len, string(c, "small_ids"));
  free(text);
  return tokenizer != NULL;
}

static void conversations_are_what_transformers_writes(void **state) {
  (void)state;
  cJSON *golden = read_json(golden_path), *t;
  const char *today = string(golden, "today");
  int templates = 0, encoded = 0;
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(golden, "templates")) {
    dt_chat *chat;
    dt_error err;
    const char *model = string(t, "model"), *layout = string(t, "layout");
    if (dt_chat_open(NULL, string(t, "template"), &chat, &err)) {
      if (!published) fail_msg("%s: %s", model, err.message);
      printf("not known: %s\n", model);
      continue;
    }
    if (published) printf("%s: %s\n", model, dt_chat_name(chat));
    if (layout) assert_string_equal(dt_chat_name(chat), layout);
    const cJSON *c;
    tok *tokenizer = open_tokenizer(t);
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(t, "cases")) encoded +=
        check_case(chat, tokenizer, model, c, today);
    tok_close(tokenizer);
    dt_chat_close(chat);
    templates++;
  }
  assert_true(templates >= (published ? 1 : 20));
  assert_true(published || encoded >= 250);
  cJSON_Delete(golden);
}

/* What the layout `name` writes for one turn, without a system text. */
static dt_role role_of(const char *name) {
  return strcmp(name, "system") == 0 ? DT_SYSTEM : strcmp(name, "assistant") == 0 ? DT_ASSISTANT : DT_USER;
}

/* Checks a text of messages whose roles come in any order. */
static void check_order(const dt_chat *chat, const char *model, const cJSON *c, const char *today) {
  dt_message list[8];
  dt_role roles[8];
  const cJSON *m;
  int n = 0;
  cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(c, "messages")) {
    list[n] = message(string(m, "content"));
    roles[n++] = role_of(string(m, "role"));
  }
  bool system = roles[0] == DT_SYSTEM;
  char *text;
  size_t len;
  ok(dt_chat_text(chat, system ? list : NULL, list + system, roles + system, n - system, today, &text, &len, &err));
  if (strcmp(text, string(c, "text")) != 0) fail_msg("%s: [%s], expected [%s]", model, text, string(c, "text"));
  free(text);
}

static void roles_come_in_any_order(void **state) {
  (void)state;
  cJSON *golden = read_json(SOURCE_DIR "/tests/golden/chat/orders.json"), *t, *c;
  int cases = 0;
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(golden, "templates")) {
    dt_chat *chat;
    ok(dt_chat_open(NULL, string(t, "template"), &chat, &err));
    assert_true(dt_chat_any_order(chat));
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(t, "cases")) {
      check_order(chat, string(t, "model"), c, string(golden, "today"));
      cases++;
    }
    dt_chat_close(chat);
  }
  assert_true(cases >= 50);
  cJSON_Delete(golden);
}

/* Layouts that do not support other orders refuse everything except turns. */
static void other_orders_are_refused_where_a_layout_has_none(void **state) {
  (void)state;
  const dt_message turns[] = {message("a"), message("b"), message("c")};
  const dt_role taken[] = {DT_USER, DT_ASSISTANT, DT_USER}, other[] = {DT_USER, DT_USER, DT_SYSTEM};
  const char *const names[] = {"llama2", "mistral", "gemma3", "phi4", "granite", "harmony", "smollm3"};
  char *text;
  size_t len;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    dt_chat *chat;
    ok(dt_chat_open(names[i], NULL, &chat, &err));
    assert_false(dt_chat_any_order(chat));
    ok(dt_chat_text(chat, NULL, turns, taken, 3, NULL, &text, &len, &err));
    free(text);
    fails(dt_chat_text(chat, NULL, turns, other, 3, NULL, &text, &len, &err), DT_EINPUT,
          "needs alternating turns of user and assistant");
    fails(dt_chat_text(chat, NULL, turns, taken, 2, NULL, &text, &len, &err), DT_EINPUT,
          "needs alternating turns of user and assistant");
    dt_chat_close(chat);
  }
  dt_chat *thinks;
  ok(dt_chat_open(NULL, "<|im_start|> content.split('</think>')[-1]", &thinks, &err));
  fails(dt_chat_text(thinks, NULL, turns, taken, 2, NULL, &text, &len, &err), DT_EINPUT,
        "the last turn is the assistant's");
  ok(dt_chat_text(thinks, NULL, turns, other, 3, NULL, &text, &len, &err));
  free(text);
  dt_chat_close(thinks);
  assert_false(dt_chat_any_order(NULL));
}

static void says(const char *name, const char *expected) {
  dt_chat *chat;
  char *text;
  size_t len;
  ok(dt_chat_open(name, NULL, &chat, &err));
  dt_message turn = message("hi");
  ok(dt_chat_text(chat, NULL, &turn, NULL, 1, NULL, &text, &len, &err));
  assert_string_equal(text, expected);
  free(text);
  dt_chat_close(chat);
}

static void a_layout_can_be_named(void **state) {
  (void)state;
  says("chatml", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  says("llama3", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
                 "<|start_header_id|>assistant<|end_header_id|>\n\n");
  says("mistral", "<s>[INST] hi [/INST]");
  says("phi4", "<|im_start|>user<|im_sep|>hi<|im_end|><|im_start|>assistant<|im_sep|>");
  says("gemma3", "<bos><start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n");
  says("gemma4", "<bos><|turn>user\nhi<turn|>\n<|turn>model\n<|channel>thought\n<channel|>");
  says("smollm3", "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\nReasoning Mode: /think\n\n"
                  "## Custom Instructions\n\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face.\n\n"
                  "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  says("zephyr", "<|user|>\nhi</s>\n<|assistant|>\n");
  says("glm4.5", "[gMASK]<sop><|user|>\nhi<|assistant|>");
  says("deepseek-r1", "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜><think>\n");
}

/* For past answers of gpt-oss, only the final message is written; nothing is written for an answer that ended before
 * it. */
static void past_reasoning_of_harmony_is_left_out(void **state) {
  (void)state;
  dt_chat *chat;
  char *text;
  size_t len;
  ok(dt_chat_open("harmony", NULL, &chat, &err));
  const dt_message turns[] = {
      message("a"), message("<|channel|>analysis<|message|>b<|end|><|start|>assistant<|channel|>final<|message|>c"),
      message("d"), message("<|channel|>analysis<|message|>e"), message("f")};
  ok(dt_chat_text(chat, NULL, turns, NULL, 5, "05 Aug 2025", &text, &len, &err));
  const char *end =
      "Current date: 2025-08-05\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be "
      "included for every message.<|end|><|start|>user<|message|>a<|end|><|start|>assistant<|channel|>final"
      "<|message|>c<|end|><|start|>user<|message|>d<|end|><|start|>assistant<|channel|>final<|message|><|end|>"
      "<|start|>user<|message|>f<|end|><|start|>assistant";
  assert_true(len > strlen(end));
  assert_string_equal(text + len - strlen(end), end);
  free(text);
  dt_chat_close(chat);
}

static void a_message_is_bytes(void **state) {
  (void)state;
  dt_chat *chat;
  char *text;
  size_t len;
  ok(dt_chat_open("llama2", NULL, &chat, &err));
  dt_message turn = {" \0\xff\xa0 ", 5}; /* bytes that are neither white space nor UTF-8 stay */
  ok(dt_chat_text(chat, NULL, &turn, NULL, 1, NULL, &text, &len, &err));
  assert_int_equal(len, strlen("<s>[INST] ") + 3 + strlen(" [/INST]"));
  assert_memory_equal(text, "<s>[INST] \0\xff\xa0 [/INST]", len);
  assert_string_equal(dt_chat_end(chat), "</s>");
  free(text);
  dt_chat_close(chat);
}

static void a_system_text_may_have_no_bytes(void **state) {
  (void)state;
  dt_chat *chat;
  char *text;
  size_t len;
  ok(dt_chat_open("chatml", NULL, &chat, &err));
  dt_message turn = message("hi"), nothing = {NULL, 0};
  ok(dt_chat_text(chat, &nothing, &turn, NULL, 1, NULL, &text, &len, &err));
  assert_string_equal(text, "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  free(text);
  dt_chat_close(chat);
}

static void what_is_not_known_is_refused(void **state) {
  (void)state;
  dt_chat *chat;
  fails(dt_chat_open("alpaca", NULL, &chat, &err), DT_EINPUT,
        "no chat template 'alpaca'; available: phi4, smollm3, chatml, llama2, llama3.1, ");
  const char *const templates[] = {"", "{{ '<start_of_role>' + role }}", "<|user|>", "{{ '[INST] ' }}"};
  for (int i = 0; i < 4; i++)
    fails(dt_chat_open(NULL, templates[i], &chat, &err), DT_EINPUT, "unknown: give --template NAME (phi4, ");
}

int main(int argc, char **argv) {
  if (argc > 1) golden_path = argv[1], published = true;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conversations_are_what_transformers_writes),
      cmocka_unit_test(roles_come_in_any_order),
      cmocka_unit_test(other_orders_are_refused_where_a_layout_has_none),
      cmocka_unit_test(a_layout_can_be_named),
      cmocka_unit_test(past_reasoning_of_harmony_is_left_out),
      cmocka_unit_test(a_message_is_bytes),
      cmocka_unit_test(a_system_text_may_have_no_bytes),
      cmocka_unit_test(what_is_not_known_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
