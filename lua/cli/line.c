/* Reads typed lines: see line.h. */
#include "cli/line.h"

#include "cli/history.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef DTRUN_LIBEDIT
#include <histedit.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <sys/select.h>
#endif

struct line_source {
  bool terminal;
  const char *prompt;
  char *buffer; /* [size] */
  size_t size;
#ifdef DTRUN_LIBEDIT
  EditLine *editor; /* NULL: lines are read as they come, without editing */
  History *history;
  sigset_t mask; /* signals that are blocked while no line is being typed */
#endif
};

static char *read_plainly(line_source *s, size_t *len) {
  if (s->terminal) {
    fputs(s->prompt, stdout);
    fflush(stdout);
  }
  ssize_t n = getline(&s->buffer, &s->size, stdin);
  if (n < 0) {
    clearerr(stdin);
    if (s->terminal) putchar('\n');
    return NULL;
  }
  *len = (size_t)n;
  return s->buffer;
}

#ifdef DTRUN_LIBEDIT

static char *show_prompt(EditLine *editor) {
  line_source *s;
  el_get(editor, EL_CLIENTDATA, &s);
  return (char *)s->prompt;
}

/* Reads a character, whose bytes may come one at a time. Ctrl-C ends waiting for it; it is blocked everywhere else. */
static int next_character(EditLine *editor, wchar_t *c) {
  mbstate_t state = {0};
  fd_set input;
  line_source *s;
  char byte;
  el_get(editor, EL_CLIENTDATA, &s);
  for (;;) {
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    ssize_t n = pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &s->mask) < 0 ? -1 : read(STDIN_FILENO, &byte, 1);
    if (n == 0) return 0;
    if (interrupted || (n < 0 && errno != EINTR)) return -1;
    size_t taken = n > 0 ? mbrtowc(c, &byte, 1, &state) : (size_t)-2;
    if (taken == (size_t)-1) state = (mbstate_t){0}; /* invalid bytes are ignored */
    if (taken <= 1) return 1;
  }
}

static void remember(void *user, const char *line) {
  line_source *s = user;
  HistEvent event;
  if (mbstowcs(NULL, line, 0) != (size_t)-1) history(s->history, &event, H_ENTER, line);
}

static void open_editor(line_source *s) {
  HistEvent event;
  setlocale(LC_CTYPE, ""); /* only this category, so that numbers keep their decimal point */
  if (MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
  s->editor = el_init("dtrun", stdin, stdout, stderr);
  s->history = s->editor ? history_init() : NULL;
  if (!s->history) return;
  history(s->history, &event, H_SETSIZE, HISTORY_MOST);
  history(s->history, &event, H_SETUNIQUE, 1); /* a repeated line is stored once */
  el_set(s->editor, EL_CLIENTDATA, s);
  el_set(s->editor, EL_PROMPT, show_prompt);
  el_set(s->editor, EL_EDITOR, "emacs");
  el_set(s->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_set(s->editor, EL_HIST, history, s->history);
  el_set(s->editor, EL_GETCFN, next_character);
  el_source(s->editor, NULL); /* ~/.editrc may change this */
  history_read(remember, s);
}

static char *read_edited(line_source *s, size_t *len) {
  int n = 0;
  sigset_t held;
  sigemptyset(&held), sigaddset(&held, SIGINT);
  pthread_sigmask(SIG_BLOCK, &held, &s->mask);
  el_resize(s->editor);
  const char *line = el_gets(s->editor, &n);
  pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
  if (!line || n <= 0) {
    el_reset(s->editor);
    puts(interrupted ? "^C" : "");
    return NULL;
  }
  if (s->size <= (size_t)n) {
    char *grown = realloc(s->buffer, (size_t)n + 1);
    if (!grown) return NULL;
    s->buffer = grown, s->size = (size_t)n + 1;
  }
  memcpy(s->buffer, line, *len = (size_t)n);
  s->buffer[n] = '\0';
  return s->buffer;
}

#endif

line_source *line_open(bool terminal) {
  line_source *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->terminal = terminal;
#ifdef DTRUN_LIBEDIT
  if (terminal) open_editor(s);
#endif
  return s;
}

void line_close(line_source *s) {
  if (!s) return;
#ifdef DTRUN_LIBEDIT
  if (s->editor) el_end(s->editor);
  if (s->history) history_end(s->history);
#endif
  free(s->buffer);
  free(s);
}

char *line_next(line_source *s, const char *prompt, size_t *len) {
  char *line;
  s->prompt = prompt;
  catch_interrupts(true);
#ifdef DTRUN_LIBEDIT
  line = s->history ? read_edited(s, len) : read_plainly(s, len);
#else
  line = read_plainly(s, len);
#endif
  catch_interrupts(false);
  if (line && *len > 0 && line[*len - 1] == '\n') line[--*len] = '\0';
  return line;
}

void line_remember(line_source *s, const char *line) {
#ifdef DTRUN_LIBEDIT
  if (!s->history) return;
  remember(s, line);
  history_add(line);
#else
  (void)s, (void)line;
#endif
}
