/* Tools in a conversation: see chat_tools.h. */
#include "cli/chat_tools.h"

#include "cli/complain.h"
#include "cli/interrupt.h"
#include "system/asprintf.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_BYTES (1 << 20) /* of the result of a call */

int chat_tools_open(const cli_options *o, const dt_chat *chat, chat_tools *out) {
  dt_error err;
  dt_calls *unused;
  *out = (chat_tools){.command = o->tool_command};
  if (o->tool_command && !o->tools) return complain(EXIT_USAGE, "--tool-command needs --tools FILE");
  if (!o->tools) return 0;
  dt_status status = dtl_read_grammar("list of tools", o->tools, &out->list, &err);
  if (!status) status = dt_call_format_open(chat, &out->format, &err);
  if (!status && !(status = dt_calls_open(out->format, out->list, &unused, &err))) dt_calls_close(unused);
  return status ? complain(EXIT_USAGE, "--tools %s: %s", o->tools, err.message) : 0;
}

void chat_tools_close(chat_tools *tools) {
  dt_call_format_close(tools->format);
  free(tools->list);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Some templates take only ids of nine letters and digits. */
static void write_id(int i, char id[10]) {
  char text[24];
  snprintf(text, sizeof text, "call%05u", (unsigned)i % 100000);
  memcpy(id, text, 10);
}

/* "tool_calls":[...], malloc'd; NULL: out of memory. */
static char *members_of(const dt_called *called) {
  cJSON *list = cJSON_CreateArray();
  for (int i = 0; i < called->n_calls; i++) {
    char id[10];
    cJSON *call = cJSON_CreateObject();
    write_id(i, id);
    cJSON_AddStringToObject(call, "id", id);
    cJSON_AddStringToObject(call, "type", "function");
    cJSON *function = cJSON_AddObjectToObject(call, "function");
    cJSON_AddStringToObject(function, "name", called->calls[i].name);
    cJSON_AddStringToObject(function, "arguments", called->calls[i].arguments);
    cJSON_AddItemToArray(list, call);
  }
  char *printed = cJSON_PrintUnformatted(list), *members = NULL;
  if (printed && dt_asprintf(&members, "\"tool_calls\":%s", printed) < 0) members = NULL;
  cJSON_free(printed);
  cJSON_Delete(list);
  return members;
}

dt_status chat_tools_take(const chat_tools *tools, dtl_message *message, dt_called *calls, dt_error *err) {
  dt_status status = dt_calls_read(tools->format, tools->list, message->text, message->len, calls, err);
  if (status || !calls->n_calls) return status;
  char *members = members_of(calls), *content = strndup(calls->content, calls->len);
  if (!members || !content) {
    free(members), free(content);
    return dt_fail(err, DT_ENOMEM, "out of memory: the calls of an answer");
  }
  free((char *)message->text);
  message->text = content, message->len = calls->len, message->members = members;
  return DT_OK;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *text) {
  for (size_t left = strlen(text); left > 0;) {
    ssize_t n = write(fd, text, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text += n, left -= (size_t)n;
  }
  return true;
}

/* Reads to the end, or one byte more than a result may have: malloc'd and NUL-terminated. NULL: out of memory. */
static char *read_all(int fd, size_t *len) {
  char *text = malloc(MOST_BYTES + 2);
  for (*len = 0; text;) {
    ssize_t n = read(fd, text + *len, MOST_BYTES + 1 - *len);
    if (n < 0 && errno == EINTR && !interrupted) continue;
    if (n <= 0) break;
    *len += (size_t)n;
  }
  if (text) text[*len] = '\0';
  return text;
}

/* Runs a command with a text on its standard input. Returns what it prints, without white space at the end; NULL: it
 * failed. */
static char *run(const char *command, const char *input, size_t *len) {
  int in[2], out[2];
  if (pipe(in)) return NULL;
  if (pipe(out)) {
    close(in[0]), close(in[1]);
    return NULL;
  }
  pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL); /* dtrun ignores it */
    dup2(in[0], STDIN_FILENO), dup2(out[1], STDOUT_FILENO);
    close(in[0]), close(in[1]), close(out[0]), close(out[1]);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
  }
  close(in[0]), close(out[1]);
  if (child > 0) write_all(in[1], input); /* a command need not read it */
  close(in[1]);
  char *text = child > 0 ? read_all(out[0], len) : NULL;
  close(out[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (text && *len > MOST_BYTES) {
    complain(0, "--tool-command: '%.200s' printed more than %d bytes", command, MOST_BYTES);
  } else if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    while (text && *len > 0 && strchr(" \t\r\n", text[*len - 1])) text[--*len] = '\0';
    return text;
  } else if (child > 0 && !interrupted) {
    complain(0, "--tool-command: '%.200s' failed with status %d", command,
             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  free(text);
  return NULL;
}

/* The call as a JSON object in a line: {"name": .., "arguments": {..}}, malloc'd. */
static char *line_of(const dt_call *call) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "name", call->name);
  cJSON_AddRawToObject(root, "arguments", call->arguments);
  char *printed = cJSON_PrintUnformatted(root), *line = NULL;
  if (printed && dt_asprintf(&line, "%s\n", printed) < 0) line = NULL;
  cJSON_free(printed);
  cJSON_Delete(root);
  return line;
}

static char *ask_user(line_source *lines, const dt_call *call, size_t *len) {
  char question[160];
  snprintf(question, sizeof question, "result of %.100s: ", call->name);
  char *line = line_next(lines, question, len), *copy = line ? malloc(*len + 1) : NULL;
  if (copy) memcpy(copy, line, *len + 1);
  return copy;
}

static char *run_command(const char *command, const dt_call *call, size_t *len) {
  char *line = line_of(call);
  char *text = line ? run(command, line, len) : NULL;
  free(line);
  return text;
}

bool chat_tools_result(const chat_tools *tools, line_source *lines, const dt_call *call, int i, dtl_message *out) {
  char id[10], *members = NULL;
  size_t len = 0;
  write_id(i, id);
  say("%s %s", call->name, call->arguments);
  char *text = tools->command ? run_command(tools->command, call, &len) : ask_user(lines, call, &len);
  if (text && dt_asprintf(&members, "\"tool_call_id\":\"%s\",\"name\":\"%s\"", id, call->name) < 0) members = NULL;
  if (!text || !members) {
    free(text), free(members);
    return false;
  }
  *out = (dtl_message){.role = "tool", .text = text, .len = len, .members = members};
  return true;
}
