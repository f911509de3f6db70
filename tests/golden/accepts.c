/* Which texts schemas, regular expressions and grammars accept, for check_suites.py. Standard input is a list of
 * commands, each a line and bytes after it:
 *
 *   S LEN       a JSON schema, for what follows
 *   X LEN       a regular expression
 *   G LEN       a grammar (GBNF)
 *   A LEN       a text: true, or the number of bytes before the one that is refused (all: the text must not end there)
 *
 * Standard output: one line for each, the milliseconds that compiling took or the answer, or "E" and the message.
 *
 * accepts FILE checks the lines of a file instead: after "S SCHEMA", "X REGEX" or "G GRAMMAR", "+ TEXT" is accepted and
 * "- TEXT" is not; "! MESSAGE" is a part of the message with which the compiler refuses. */
#include "byte_text.h"
#include "commands.h"

#include "grammar/regex.h"
#include "grammar/schema.h"

#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Opens the masks of what a command has. */
static dt_status compile(char kind, const char *text, const vocabulary *v, masks **m, dt_error *err) {
  char *gbnf = NULL;
  masks_release(*m);
  *m = NULL;
  dt_status status = kind == 'S'   ? schema_to_gbnf(text, &(schema_options){.open = true}, &gbnf, err)
                     : kind == 'X' ? regex_to_gbnf(text, &gbnf, err)
                                   : DT_OK;
  if (!status) status = masks_open(v, gbnf ? gbnf : text, m, err);
  free(gbnf);
  return status;
}

static dt_status answer(masks *m, const char *text, size_t len, dt_error *err) {
  bool whole;
  if (!m) return dt_fail(err, DT_EINPUT, "there is no grammar");
  size_t n = bytes_accepted(m, text, len, &whole);
  if (whole) return puts("true"), DT_OK;
  /* a text that has too many readings, or a lack of memory, is no refusal */
  if (masks_are_stuck(m, err) && !strstr(err->message, "no token can follow")) return err->status;
  printf("%zu\n", n);
  return DT_OK;
}

/* Checks one line of a file. *compiled: the status of the last schema, regular expression or grammar. */
static bool holds(const char *line, const vocabulary *v, masks **m, dt_status *compiled, dt_error *err) {
  const char *text = line + 2;
  bool whole = false;
  if (strchr("SXG", *line)) return *compiled = compile(*line, text, v, m, err), true;
  if (*line == '!') return *compiled && strstr(err->message, text);
  if (*m) bytes_accepted(*m, text, strlen(text), &whole);
  return *m && whole == (*line == '+');
}

static int check_file(const char *path, const vocabulary *v, masks **m) {
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t room = 0;
  int number = 0, wrong = 0;
  dt_status compiled = DT_OK;
  dt_error err = {0};
  if (!file) return perror(path), 2;
  for (ssize_t n; (n = getline(&line, &room, file)) > 0;) {
    number++;
    line[n - 1] = '\0';
    if (n < 3 || *line == '#' || holds(line, v, m, &compiled, &err)) continue;
    fprintf(stderr, "%s:%d: %s%s%s\n", path, number, line, compiled ? ": " : "", compiled ? err.message : "");
    wrong++;
  }
  fclose(file);
  free(line);
  return wrong ? 1 : 0;
}

static void answer_commands(const vocabulary *v, masks **m) {
  char line[100], kind;
  size_t len;
  dt_error err;
  while (fgets(line, sizeof line, stdin) && sscanf(line, "%c %zu", &kind, &len) == 2) {
    double start = now();
    char *bytes = read_bytes(len);
    dt_status status = kind == 'A' ? answer(*m, bytes, len, &err) : compile(kind, bytes, v, m, &err);
    if (status)
      printf("E %s\n", err.message);
    else if (kind != 'A')
      printf("%.3f\n", now() - start);
    fflush(stdout);
    free(bytes);
  }
}

int main(int argc, char **argv) {
  vocabulary *v;
  masks *m = NULL;
  dt_error err;
  if (open_bytes(&v, &err)) return 2;
  int status = 0;
  if (argc > 1)
    status = check_file(argv[1], v, &m);
  else
    answer_commands(v, &m);
  masks_release(m);
  vocabulary_close(v);
  return status;
}
