/* A conversation at the terminal: see chat.h. Turns typed lines into questions and commands. */
#include "cli/chat.h"

#include "cli/complain.h"
#include "cli/interrupt.h"
#include "cli/talk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUOTES "\"\"\"" /* marks the beginning and the end of a question of several lines */

typedef struct {
  char *text; /* [n], then a NUL */
  size_t n;
  bool quoted; /* it is not a command, whatever it begins with */
} message;

static bool add(message *m, const char *text, size_t n) {
  char *grown = realloc(m->text, m->n + n + 1);
  if (!grown) {
    complain(EXIT_ENGINE, "out of memory: a question of %zu bytes", m->n + n);
    return false;
  }
  m->text = grown;
  memcpy(grown + m->n, text, n);
  grown[m->n += n] = '\0';
  return true;
}

static size_t without_blanks(const char *line, size_t n) {
  while (n > 0 && strchr(" \t\r\n", line[n - 1])) n--;
  return n;
}

/* Adds a typed line to the message. *more: further lines follow, since the message is between """ and """, or the line
 * ends in a backslash. False: the message must be dropped, and a message has said why. */
static bool take_line(talk *t, message *m, const char *line, size_t n, bool *more) {
  if (memchr(line, '\0', n)) {
    complain(0, "the line is dropped: it has a NUL character, which a text cannot have");
    return false;
  }
  bool first = !m->text;
  if (line[strspn(line, " \t\r")]) line_remember(t->lines, line);
  if (first) n -= strspn(line, " \t\r"), line += strspn(line, " \t\r");
  if (first && strncmp(line, QUOTES, 3) == 0) m->quoted = true, line += 3, n -= 3;
  size_t end = without_blanks(line, n);
  bool closes = m->quoted && end >= 3 && strncmp(line + end - 3, QUOTES, 3) == 0,
       continues = !m->quoted && end > 0 && line[end - 1] == '\\' && end == n;
  *more = m->quoted ? !closes : continues;
  return add(m, line, closes ? end - 3 : continues ? end - 1 : n) && (!*more || add(m, "\n", 1));
}

/* Reads the next question or command; its text is malloc'd, without blanks around it. text NULL: Ctrl-C, end of input,
 * or a message that was dropped. */
static message read_message(talk *t) {
  message m = {0};
  bool more = true, first = true;
  while (more) {
    size_t n;
    char *line = line_next(t->lines, first ? "> " : "... ", &n);
    bool ends = !line && !interrupted;
    if (ends && m.quoted) complain(0, "%s was not closed: the question is dropped", QUOTES);
    if (ends) t->over = true;
    if (ends && m.text && !m.quoted) break; /* the input ends within a message */
    if (!line || !take_line(t, &m, line, n, &more)) {
      free(m.text);
      return (message){0};
    }
    first = false;
  }
  size_t skip = strspn(m.text, " \t\r\n");
  m.n = without_blanks(m.text, m.n);
  m.n = m.n > skip ? m.n - skip : 0;
  memmove(m.text, m.text + skip, m.n);
  m.text[m.n] = '\0';
  return m;
}

static void converse(talk *t) {
  while (!t->over) {
    interrupted = 0;
    message m = read_message(t);
    if (m.text && *m.text == '/' && !m.quoted)
      chat_command(t, m.text);
    else if (m.n)
      talk_ask(t, m.text, m.n);
    free(m.text);
  }
}

static int open_talk(talk *t) {
  cli_options *o = t->options;
  int status = job_open_chat(o, &t->j);
  catch_interrupts(false);
  if (!status) status = job_costs(&t->j);
  if (status) return status;
  status = chat_tools_open(o, t->j.chat, &t->tools);
  if (status) return status;
  t->j.tools = t->tools.list;
  t->how = job_policy(o, t->j.pair);
  dt_session_options options = {.sequences = 1,
                                .context = o->in.request.context,
                                .use_draft = t->j.draft != NULL,
                                .window = o->in.request.window};
  dt_error err;
  if (dt_session_open(t->j.pair, &options, &t->session, &err)) return complain_of(&err);
  t->stats = o->stats;
  t->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  t->lines = line_open(t->terminal);
  if (!t->lines) return complain(EXIT_ENGINE, "out of memory: a line");
  if (!o->quiet)
    say("%s under %s, chat template %s; /help lists commands", t->j.target, dtl_policy_describe(t->j.policy)->name,
        dt_chat_name(t->j.chat));
  return 0;
}

int chat(cli_options *o) {
  talk t = {.options = o};
  t.status = open_talk(&t);
  if (!t.status) converse(&t);
  talk_close(&t);
  job_close(&t.j);
  return finish_output(t.status);
}
