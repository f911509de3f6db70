/* Messages of the command line: see complain.h. */
#include "cli/complain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool open_line, brief, at_length;

void stand_in_line(bool open) { open_line = open; }

/* Returns whether text and messages go to the same terminal or file. */
static bool outputs_meet(void) {
  struct stat out, err;
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
         out.st_ino == err.st_ino;
}

void begin_line(void) {
  if (open_line && outputs_meet()) fputc('\n', stderr);
  if (brief) fputs("\r\033[K", stderr);
  open_line = brief = false;
}

void show_briefly(const char *format, ...) {
  va_list args;
  if (!isatty(STDERR_FILENO)) return;
  begin_line();
  fputs("dtrun: ", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  brief = true;
}

static void print(const char *format, va_list args) {
  char line[4096];
  vsnprintf(line, sizeof line, format, args);
  dt_clean(line);
  begin_line();
  fprintf(stderr, "dtrun: %s\n", line);
}

void say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print(format, args);
  va_end(args);
}

int complain(int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  print(format, args);
  va_end(args);
  return status;
}

int status_of(const dt_error *err) {
  switch (err->status) {
  case DT_EPOLICY: return EXIT_POLICY;
  case DT_EINPUT:
  case DT_EWEIGHTS:
  case DT_ECONTEXT: return EXIT_USAGE;
  case DT_EINTERRUPTED: return EXIT_INTERRUPTED;
  default: return EXIT_ENGINE;
  }
}

void complain_at_length(void) { at_length = true; }

void say_traceback(const dt_error *err) {
  for (const char *line = err->traceback; at_length && *line;) {
    int n = (int)strcspn(line, "\n");
    say("  %.*s", n, line);
    line += n + (line[n] == '\n');
  }
}

int complain_of(const dt_error *err) {
  complain(0, "%s", err->message);
  say_traceback(err);
  return status_of(err);
}

int finish_output(int status) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  return complain(status ? status : EXIT_ENGINE, "standard output: %s", strerror(errno));
}
