/* Opens chat templates and writes conversations for check_chats.py. Standard input is a list of commands, each a line
 * and bytes after it:
 *
 *   K LEN       the text of a tokenizer.json, for the ids
 *   C LEN       a chat template, with the special tokens <s> and </s>
 *   M LEN       a list of messages
 *   W LEN       the same, with control tokens in messages
 *
 * Standard output: after C, {"end":..,"begin":..,"stop":..} with what was learned; after M and W, a list of ids; or
 * "E" and the message, each in one line. */
#include "commands.h"

#include "chat/chat.h"
#include "text/tokenizer.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tok *open_tokenizer(const char *text) {
  char path[] = "/tmp/write_chats_XXXXXX.json";
  int fd = mkstemps(path, 5);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
  dt_error err;
  tok *t;
  if (!f || fwrite(text, 1, strlen(text), f) != strlen(text) || fclose(f) != 0 || tok_open(path, &t, &err)) exit(1);
  remove(path);
  return t;
}

static void say_learned(const dt_chat *chat) {
  cJSON *learned = cJSON_CreateObject();
  const char *begin = NULL, *stop = NULL;
  dt_chat_reasoning(chat, &begin, &stop);
  if (dt_chat_end(chat)) cJSON_AddStringToObject(learned, "end", dt_chat_end(chat));
  if (begin) cJSON_AddStringToObject(learned, "begin", begin);
  if (stop) cJSON_AddStringToObject(learned, "stop", stop);
  char *text = cJSON_PrintUnformatted(learned);
  printf("%s\n", text);
  free(text);
  cJSON_Delete(learned);
}

static dt_status say_ids(const dt_chat *chat, const tok *t, const char *messages, bool raw, dt_error *err) {
  struct tm now = {.tm_year = 125, .tm_mon = 7, .tm_mday = 5};
  dt_chat_prompt out = {0};
  int32_t *ids;
  int n;
  dt_status status = dt_chat_write(
      chat, &(dt_conversation){.messages = messages, .next = DT_CHAT_ANSWER, .raw = raw, .now = &now}, &out, err);
  if (!status) status = tok_encode_plain(t, out.text, out.len, out.plain, out.n_plain, &ids, &n, err);
  dt_chat_prompt_free(&out);
  if (status) return status;
  printf("[");
  for (int i = 0; i < n; i++) printf(i ? ",%d" : "%d", ids[i]);
  printf("]\n");
  free(ids);
  return DT_OK;
}

int main(void) {
  char line[100], kind;
  size_t len;
  tok *t = NULL;
  dt_chat *chat = NULL;
  while (fgets(line, sizeof line, stdin) && sscanf(line, "%c %zu", &kind, &len) == 2) {
    char *bytes = read_bytes(len);
    dt_error err;
    dt_status status = DT_OK;
    if (kind == 'K') {
      tok_close(t);
      t = open_tokenizer(bytes);
    } else if (kind == 'C') {
      dt_chat_close(chat);
      chat = NULL;
      const dt_chat_source source = {"given", bytes, NULL, "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}"};
      if (!(status = dt_chat_open(&source, &chat, &err))) say_learned(chat);
    } else {
      status = say_ids(chat, t, bytes, kind == 'W', &err);
    }
    if (status) printf("E %s\n", err.message);
    fflush(stdout);
    free(bytes);
  }
  dt_chat_close(chat);
  tok_close(t);
  return 0;
}
