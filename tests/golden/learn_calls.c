/* Learns formats of calls and reads answers for check_calls.py. Standard input is a list of commands, each a line and
 * bytes after it:
 *
 *   C LEN       a chat template
 *   T LEN       a list of tools, for what follows
 *   M LEN       a list of messages, for the text that the template writes for them
 *   P LEN       the same, for a text with which an answer begins
 *   R LEN       an answer, for its content and calls
 *   G LEN       "one" or "several": the grammar
 *   A LEN       an answer: whether the last grammar allows it
 *
 * Standard output: one line of JSON for each command but T, or "E" and the message. */
#include "byte_text.h"
#include "commands.h"

#include "chat/calls.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(cJSON *json) {
  char *text = cJSON_PrintUnformatted(json);
  printf("%s\n", text);
  free(text);
  cJSON_Delete(json);
}

static dt_status open_chat(const char *text, dt_chat **chat, dt_call_format **format, dt_error *err) {
  char *learned;
  dt_call_format_close(*format);
  dt_chat_close(*chat);
  *format = NULL, *chat = NULL;
  const dt_chat_source source = {"given", text, NULL, "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}"};
  dt_status status = dt_chat_open(&source, chat, err);
  if (!status) status = dt_call_format_open(*chat, format, err);
  if (!status) status = dt_call_format_text(*format, &learned, err);
  if (status) return status;
  printf("%s\n", learned);
  free(learned);
  return DT_OK;
}

static dt_status write_messages(const dt_chat *chat, const char *tools, const char *messages, dt_chat_next next,
                                dt_error *err) {
  struct tm now = {.tm_year = 125, .tm_mon = 7, .tm_mday = 5};
  static const char *const needed = "{\"functions\":\"[]\",\"datetime\":\"now\"}";
  dt_status status = DT_OK;
  for (int i = 0; i < 3; i++) {
    dt_chat_prompt out = {0};
    const dt_conversation q = {.messages = messages,
                               .tools = i < 2 ? tools : NULL,
                               .settings = &needed,
                               .n_settings = i == 1,
                               .next = next,
                               .now = &now};
    status = dt_chat_write(chat, &q, &out, err);
    if (status) continue;
    say(cJSON_CreateString(out.text));
    dt_chat_prompt_free(&out);
    break;
  }
  return status;
}

static dt_status read_answer(const dt_call_format *format, const char *tools, const char *answer, dt_error *err) {
  dt_called out = {0};
  dt_status status = dt_calls_read(format, tools, answer, strlen(answer), &out, err);
  if (status) return status;
  cJSON *said = cJSON_CreateObject(), *calls = cJSON_AddArrayToObject(said, "calls");
  cJSON_AddStringToObject(said, "content", out.content);
  for (int i = 0; i < out.n_calls; i++) {
    cJSON *call = cJSON_CreateObject();
    cJSON_AddStringToObject(call, "name", out.calls[i].name);
    cJSON_AddStringToObject(call, "arguments", out.calls[i].arguments);
    cJSON_AddItemToArray(calls, call);
  }
  say(said);
  dt_called_free(&out);
  return DT_OK;
}

static dt_status match_answer(const char *gbnf, const char *answer, dt_error *err) {
  vocabulary *v;
  masks *m;
  bool whole;
  dt_status status = open_bytes(&v, err);
  if (status) return status;
  status = masks_open(v, gbnf, &m, err);
  if (!status) {
    bytes_accepted(m, answer, strlen(answer), &whole);
    puts(whole ? "true" : "false");
    masks_release(m);
  }
  vocabulary_close(v);
  return status;
}

static dt_status write_grammar(const dt_call_format *format, const char *tools, const char *how, char **gbnf,
                               dt_error *err) {
  free(*gbnf);
  *gbnf = NULL;
  dt_status status = dt_call_grammar(
      format, tools, &(dt_call_options){.required = true, .several = strcmp(how, "several") == 0}, gbnf, err);
  if (!status) say(cJSON_CreateString(*gbnf));
  return status;
}

int main(void) {
  char line[100], kind, *tools = NULL, *gbnf = NULL;
  size_t len;
  dt_chat *chat = NULL;
  dt_call_format *format = NULL;
  while (fgets(line, sizeof line, stdin) && sscanf(line, "%c %zu", &kind, &len) == 2) {
    char *bytes = read_bytes(len);
    dt_error err;
    dt_status status = DT_OK;
    if (kind == 'T') {
      free(tools);
      tools = bytes;
      continue;
    }
    if (kind == 'C') status = open_chat(bytes, &chat, &format, &err);
    if (kind == 'M') status = write_messages(chat, tools, bytes, DT_CHAT_NOTHING, &err);
    if (kind == 'P') status = write_messages(chat, tools, bytes, DT_CHAT_ANSWER, &err);
    if (kind == 'R') status = read_answer(format, tools, bytes, &err);
    if (kind == 'G') status = write_grammar(format, tools, bytes, &gbnf, &err);
    if (kind == 'A') status = match_answer(gbnf ? gbnf : "root ::= [a]", bytes, &err);
    if (status) printf("E %s\n", err.message);
    fflush(stdout);
    free(bytes);
  }
  dt_call_format_close(format);
  dt_chat_close(chat);
  free(tools), free(gbnf);
  return 0;
}
