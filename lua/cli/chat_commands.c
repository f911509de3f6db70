/* Commands, lines that begin with '/': see talk.h. */
#include "cli/complain.h"
#include "cli/interrupt.h"
#include "cli/replace.h"
#include "cli/talk.h"
#include "system/asprintf.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void help(talk *t, const char *argument) {
  (void)t, (void)argument;
  puts(
      "/system TEXT     use this system text from now on; without TEXT: show it\n"
      "/set NAME VALUE  temp, top_k, top_p, min_p, seed, tokens, repeat_penalty, presence_penalty, frequency_penalty,\n"
      "                 think (on, off or auto: reasoning, where the template can turn it on or off),\n"
      "                 grammar, json_schema, regex (one of them; grammar none: any text), or a parameter of the "
      "policy;\n"
      "                 alone: list them\n"
      "/temp X          same as /set temp X: 0 takes the likeliest token, above 0 samples\n"
      "/policy NAME     use this policy from now on\n"
      "/regen, /retry   answer the last question again, with the next seed\n"
      "/clear, /reset   forget the conversation\n"
      "/stats [on|off]  answers, tokens and speed so far; on: a line after each answer\n"
      "/save FILE       write the conversation, as JSON\n"
      "/help, /?        these lines\n"
      "/exit, /bye      or /quit, or Ctrl-D; Ctrl-C ends an answer\n"
      "\"\"\" begins and ends a question of several lines; a \\ at the end of a line continues it on the next.");
}

static void tell_stats(talk *t, const char *argument) {
  if (strcmp(argument, "on") == 0 || strcmp(argument, "off") == 0) {
    t->stats = strcmp(argument, "on") == 0;
    return;
  }
  say("%ld answer%s, %ld token%s, %.1f tokens/s, prompt included, %.2f per iteration; %d tokens of context used",
      t->answers, t->answers == 1 ? "" : "s", t->tokens, t->tokens == 1 ? "" : "s",
      t->ms > 0 ? 1000 * (double)t->tokens / t->ms : 0,
      t->iterations ? (double)t->committed / (double)t->iterations : 0, t->n ? dt_seq_length(t->session, 0) : 0);
}

static void reset(talk *t, const char *argument) {
  (void)argument;
  talk_forget(t);
}

static void again(talk *t, const char *argument) {
  (void)argument;
  talk_again(t);
}

static void set(talk *t, const char *argument) {
  char *name = strdup(argument), *value;
  if (!*argument) talk_list_settings(t);
  if (*argument && name) {
    value = name + strcspn(name, " \t=");
    if (*value) *value++ = '\0';
    talk_set(t, name, value + strspn(value, " \t="));
  }
  free(name);
}

static void set_temp(talk *t, const char *argument) { talk_set(t, "temp", argument); }

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static bool add_messages(cJSON *root, const dtl_message *messages, int n) {
  char *json = dtl_messages_json(messages, n);
  cJSON *list = json ? cJSON_Parse(json) : NULL;
  bool ok = list && cJSON_AddItemToObject(root, "messages", list);
  if (!ok) cJSON_Delete(list);
  free(json);
  return ok;
}

/* Returns {"messages": [..]}, malloc'd; NULL: out of memory. */
static char *conversation(const talk *t) {
  cJSON *root = cJSON_CreateObject();
  const char *system = t->options->system;
  dtl_message *all = calloc((size_t)t->n + 1, sizeof *all);
  int n = 0;
  if (all && system) all[n++] = (dtl_message){.role = "system", .text = system, .len = strlen(system)};
  for (int i = 0; all && i < t->n; i++) all[n++] = t->turns[i];
  bool ok = all && add_messages(root, all, n);
  free(all);
  char *printed = ok ? cJSON_Print(root) : NULL, *text = NULL;
  if (printed && dt_asprintf(&text, "%s\n", printed) < 0) text = NULL;
  free(printed);
  cJSON_Delete(root);
  return text;
}

/* Asks the user whether to replace a file; true: yes. */
static bool agrees(talk *t, const char *path) {
  char question[400];
  size_t n;
  snprintf(question, sizeof question, "%.300s exists: replace it? [y/N] ", path);
  dt_clean(question);
  char *line = line_next(t->lines, question, &n);
  interrupted = 0; /* Ctrl-C means no */
  return line && (*line == 'y' || *line == 'Y');
}

static void save(talk *t, const char *path) {
  bool there = *path && access(path, F_OK) == 0;
  if (!*path) {
    complain(0, "/save: expected a file name");
  } else if (there && !t->terminal) {
    complain(0, "/save %s: the file exists: name another file, or remove it first", path);
  } else if (!there || agrees(t, path)) {
    char *text = conversation(t);
    errno = ENOMEM;
    if (!text || !replace_file(path, text)) complain(0, "/save %s: %s", path, strerror(errno));
    free(text);
  }
}

/* ---- all commands ------------------------------------------------------------------------------------------------ */

static void quit(talk *t, const char *argument) {
  (void)argument;
  t->over = true;
}

static const struct {
  const char *name;
  void (*run)(talk *, const char *argument);
} commands[] = {{"/system", talk_system}, {"/set", set},     {"/temp", set_temp}, {"/policy", talk_policy},
                {"/regen", again},        {"/retry", again}, {"/clear", reset},   {"/reset", reset},
                {"/stats", tell_stats},   {"/save", save},   {"/help", help},     {"/?", help},
                {"/exit", quit},          {"/bye", quit},    {"/quit", quit}};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static void fail_unknown(const char *typed) {
  const char *names[N_COMMANDS], *near[1];
  for (size_t i = 0; i < N_COMMANDS; i++) names[i] = commands[i].name + 1;
  if (dtl_near(typed + 1, strlen(typed + 1), names, N_COMMANDS, near, 1))
    complain(0, "no command %.60s: did you mean /%s? /help lists all", typed, near[0]);
  else
    complain(0, "no command %.60s: /help lists them", typed);
}

void chat_command(talk *t, char *line) {
  size_t n = strcspn(line, " \t\n");
  char *argument = line + n + strspn(line + n, " \t\n");
  line[n] = '\0';
  for (size_t i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i].name, line) == 0) {
      commands[i].run(t, argument);
      return;
    }
  fail_unknown(line);
}
