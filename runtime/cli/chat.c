/* A conversation at the terminal: see chat.h. */
#include "cli/chat.h"

#include "cli/complain.h"
#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/report.h"
#include "cli/shown.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKENS 512 /* of an answer */

typedef struct {
  job j;
  char *policy; /* what /policy named; NULL: the command line's, which is j.how */
  dt_session *session;
  dt_message *turns; /* [n] question, answer, ..: malloc'd texts */
  int n;
  bool stats, over;
  int status;                                  /* to end with */
  long answers, tokens, iterations, committed; /* of the whole conversation */
  double ms;
} talk;

/* ---- turns -------------------------------------------------------------------------------------------------------------- */

static bool add_turn(talk *t, const char *text, size_t len) {
  dt_message *grown = realloc(t->turns, (size_t)(t->n + 1) * sizeof *grown);
  char *copy = malloc(len + 1);
  if (grown) t->turns = grown;
  if (!grown || !copy) {
    free(copy);
    complain(EXIT_ENGINE, "out of memory: the conversation");
    return false;
  }
  memcpy(copy, text, len);
  t->turns[t->n++] = (dt_message){copy, len};
  return true;
}

static void drop_turns(talk *t, int left) {
  while (t->n > left) free((char *)t->turns[--t->n].text);
}

/* ---- an answer ---------------------------------------------------------------------------------------------------------- */

static void count(talk *t, const dtl_result *r) {
  t->answers++;
  t->tokens += r->stats.generated;
  t->iterations += r->stats.iterations;
  t->committed += r->stats.committed;
  t->ms += r->stats.total_ms;
  if (t->stats) report_summary(r);
}

/* Runs the policy on the conversation, which ends with a question; shows the answer. */
static void generate_answer(talk *t, const char *text, size_t len, dtl_result *result) {
  dtl_error err;
  dtl_policy *policy;
  shown out = {0};
  dtl_prompt prompt = {.text = text, .len = len, .whole = true};
  dtl_request request = job_request(&t->j);
  request.prompts = &prompt, request.n = 1;
  request.session = t->session;
  request.on_text = shown_text, request.user = &out;
  if (t->j.options->color) request.on_origin = shown_origin;
  if (!t->j.options->tokens) request.seq.max_tokens = TOKENS;
  bool ok = dtl_policy_open(&t->j.how, &policy, &err);
  if (ok) {
    ok = dtl_generate(t->j.pair, policy, &request, result, &err);
    dtl_policy_close(policy);
  }
  if (result->failed) err = result->failure, ok = false;
  if (!out.lost) shown_text(&out, "\n", 1);
  if (out.lost) t->over = true, t->status = EXIT_ENGINE;
  if (!ok && err.kind == DTL_CONTEXT)
    complain(0, "%s; /reset begins anew", err.message);
  else if (!ok)
    complain_of(&err);
}

/* A question that got no answer is forgotten; an answer that was cut short stays as far as it came. */
static void ask(talk *t, const char *question) {
  char *text;
  size_t len;
  dt_error err;
  dtl_result result = {0};
  if (!add_turn(t, question, strlen(question))) return;
  if (job_conversation(&t->j, t->turns, t->n, &text, &len, &err)) {
    complain_of_engine(&err);
    drop_turns(t, t->n - 1);
    return;
  }
  generate_answer(t, text, len, &result);
  free(text);
  if (result.n_tokens > 0) count(t, &result);
  if (result.n_tokens == 0 || !add_turn(t, result.text, result.text_len)) drop_turns(t, t->n - 1);
  dtl_result_free(&result);
}

/* ---- commands ------------------------------------------------------------------------------------------------------------- */

static void help(talk *t, const char *argument) {
  (void)t, (void)argument;
  puts("/policy NAME    answer under that policy from now on\n"
       "/stats [on|off] what was generated so far; on: a line after each answer\n"
       "/reset          forget the conversation\n"
       "/save FILE      write the conversation, as JSON\n"
       "/quit           or Ctrl-D; Ctrl-C ends an answer");
}

/* Answers come under the policy opened with `how`, if it opens and can serve this pair; else an exit status. */
static int set_policy(talk *t, const dtl_policy_options *how) {
  dtl_policy *opened, *before = t->j.policy;
  dtl_error err;
  if (!dtl_policy_open(how, &opened, &err)) return complain_of(&err);
  const dtl_policy_info *info = dtl_policy_describe(opened);
  int status = 0;
  if (info->draft == DTL_NEEDS_DRAFT && !t->j.draft)
    status = complain(EXIT_USAGE, "%s needs a draft model: begin with --draft MODEL", info->name);
  t->j.policy = opened;
  if (!status) status = job_calibrate(&t->j);
  if (status) t->j.policy = before;
  dtl_policy_close(status ? opened : before);
  if (!status) t->j.how = *how;
  return status;
}

static void change_policy(talk *t, const char *name) {
  char *copy = strdup(name);
  if (!*name) {
    complain(0, "/policy: now %s; name another: dtrun --list", dtl_policy_describe(t->j.policy)->name);
  } else if (copy && set_policy(t, &(dtl_policy_options){.policy = copy, .seed = t->j.options->seed}) == 0) {
    free(t->policy);
    t->policy = copy;
    return;
  }
  free(copy);
}

static void tell_stats(talk *t, const char *argument) {
  if (strcmp(argument, "on") == 0 || strcmp(argument, "off") == 0) {
    t->stats = strcmp(argument, "on") == 0;
    return;
  }
  say("%ld answers, %ld tokens, %.1f tokens/s, prompt included, %.2f per iteration; %d tokens of context used",
      t->answers, t->tokens, t->ms > 0 ? 1000 * (double)t->tokens / t->ms : 0,
      t->iterations ? (double)t->committed / (double)t->iterations : 0, t->n ? dt_seq_length(t->session, 0) : 0);
}

static void reset(talk *t, const char *argument) {
  (void)argument;
  drop_turns(t, 0);
}

static void save(talk *t, const char *path) {
  cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "messages");
  if (t->j.options->system) {
    cJSON *message = cJSON_CreateObject();
    cJSON_AddStringToObject(message, "role", "system");
    cJSON_AddStringToObject(message, "content", t->j.options->system);
    cJSON_AddItemToArray(list, message);
  }
  for (int i = 0; i < t->n; i++) {
    cJSON *message = cJSON_CreateObject();
    cJSON_AddStringToObject(message, "role", i % 2 ? "assistant" : "user");
    char *text = dt_utf8(t->turns[i].text, t->turns[i].len, NULL);
    cJSON_AddStringToObject(message, "content", text ? text : "");
    cJSON_AddItemToArray(list, message);
    free(text);
  }
  char *text = cJSON_Print(root);
  FILE *f = text && *path ? fopen(path, "w") : NULL;
  bool ok = f && fprintf(f, "%s\n", text) > 0;
  if (f && fclose(f) != 0) ok = false;
  if (!ok) complain(0, "/save %s: %s", path, *path ? strerror(errno) : "expected a file name");
  free(text);
  cJSON_Delete(root);
}

static void quit(talk *t, const char *argument) {
  (void)argument;
  t->over = true;
}

static void command(talk *t, char *line) {
  static const struct {
    const char *name;
    void (*run)(talk *, const char *argument);
  } commands[] = {{"/policy", change_policy},
                  {"/stats", tell_stats},
                  {"/reset", reset},
                  {"/save", save},
                  {"/help", help},
                  {"/quit", quit}};
  size_t n = strcspn(line, " \t");
  char *argument = line + n + strspn(line + n, " \t");
  line[n] = '\0';
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(commands[i].name, line) == 0) {
      commands[i].run(t, argument);
      return;
    }
  complain(0, "no command %s: /help lists them", line);
}

/* ---- the conversation -------------------------------------------------------------------------------------------------- */

/* The next line without the white space around it; NULL: the end, or Ctrl-C was pressed while it was typed. */
static char *read_line(char **buffer, size_t *size, bool terminal) {
  if (terminal) {
    fputs("> ", stdout);
    fflush(stdout);
  }
  catch_interrupts(true);
  ssize_t n = getline(buffer, size, stdin);
  catch_interrupts(false);
  if (n < 0) {
    clearerr(stdin);
    if (terminal) putchar('\n');
    return NULL;
  }
  char *line = *buffer + strspn(*buffer, " \t\r\n");
  for (size_t end = strlen(line); end > 0 && strchr(" \t\r\n", line[end - 1]);) line[--end] = '\0';
  return line;
}

static void converse(talk *t) {
  bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  char *buffer = NULL;
  size_t size = 0;
  while (!t->over) {
    interrupted = 0;
    char *line = read_line(&buffer, &size, terminal);
    if (!line)
      t->over = !interrupted;
    else if (*line == '/')
      command(t, line);
    else if (*line)
      ask(t, line);
  }
  free(buffer);
}

static int open_talk(talk *t, const cli_options *o) {
  int status = job_open_chat(o, &t->j);
  catch_interrupts(false);
  if (!status && !o->policy)
    status = set_policy(t, &(dtl_policy_options){.policy = t->j.draft ? "dynatree" : "prompt_lookup", .seed = o->seed});
  else if (!status)
    status = job_calibrate(&t->j);
  if (status) return status;
  dt_session_options options = {
      .sequences = 1, .context = o->context, .use_draft = t->j.draft != NULL, .window = {o->window, o->sinks}};
  dt_error err;
  if (dt_session_open(t->j.pair, &options, &t->session, &err)) return complain_of_engine(&err);
  t->stats = o->stats;
  if (!o->quiet)
    say("%s under %s, chat template %s; /help lists commands", t->j.target, dtl_policy_describe(t->j.policy)->name,
        dt_chat_name(t->j.chat));
  return 0;
}

int chat(const cli_options *o) {
  talk t = {0};
  t.status = open_talk(&t, o);
  if (!t.status) converse(&t);
  drop_turns(&t, 0);
  free(t.turns), free(t.policy);
  dt_session_close(t.session);
  job_close(&t.j);
  return finish_output(t.status);
}
