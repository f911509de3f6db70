/* The table of options and its lookup: see options.h. */
#include "cli/options.h"

#include "cli/foreign.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FIELD(name) offsetof(cli_options, name)

/* clang-format off */
static const option options[] = {
    {"-f --prompt", NULL, "FILE", PROMPT, 0, 0, 0,
     "prompt from a file, byte for byte; '-', or no prompt: standard input", NULL},
    {"-p --text", NULL, "TEXT", TEXT, 0, 0, 0, "the prompt itself (repeatable)", NULL},
    {"--prompts", NULL, "FILE.jsonl", STRING, FIELD(prompts), 0, 0,
     "read a prompt from each line {\"prompt\": \"...\"} of a file", NULL},
    {"--set", NULL, "NAME=VALUE", SETTING, 0, 0, 0, "set a parameter of the policy (repeatable)", NULL},
    {"--preset", NULL, "NAME", STRING, FIELD(preset), 0, 0, "use a named set of parameters of the policy", NULL},
    {"--corpus", NULL, "FILE", CORPUS, 0, 0, 0,
     "a text file in which policies such as suffix search (repeatable)", NULL},
    {"--policy-seconds", NULL, "S", SECONDS, FIELD(policy_seconds), 0, 0,
     "stop a policy that has used S seconds of its own in a run", NULL},
    {"--grammar-file", NULL, "FILE", STRING, FIELD(grammar_file), 0, 0, "like --grammar, read from a file", NULL},
    {"--json-schema-file", NULL, "FILE", STRING, FIELD(schema_file), 0, 0,
     "like --json-schema, read from a file", NULL},
    {"--chat", "-st --single-turn", NULL, FLAG, FIELD(chat), 0, 0,
     "the prompt is a question: wrap it in the model's chat template", NULL},
    {"--system", "-sys --system-prompt", "TEXT", STRING, FIELD(system), 0, 0,
     "system text of a chat (the template's own, if it has one)", NULL},
    {"--template", "--chat-template --chat-template-file", "NAME|FILE", STRING, FIELD(template), 0, 0,
     "chat template: chatml, llama3, ..., or a file (the model's own)", NULL},
    {"--template-set", NULL, "NAME=VALUE", VARIABLE, FIELD(variables), 0, 0,
     "set a variable of the chat template (repeatable)", NULL},
    {"--template-raw", NULL, NULL, FLAG, FIELD(template_raw), 0, 0,
     "take control tokens that messages spell as such, not as text", NULL},
    {"--think", NULL, "on|off|auto", STRING, FIELD(think), 0, 0,
     "turn reasoning on or off, if the chat template can (auto: as it does)", NULL},
    {"--tools", NULL, "FILE", STRING, FIELD(tools), 0, 0,
     "in dtrun chat: functions that the model may call (JSON, as OpenAI's)", NULL},
    {"--tool-command", NULL, "COMMAND", STRING, FIELD(tool_command), 0, 0,
     "run a program for each call, with the call on its input", NULL},
    {"--host", NULL, "ADDRESS", STRING, FIELD(host), 0, 0,
     "address at which dtrun serve listens (127.0.0.1: only this machine)", NULL},
    {"--port", NULL, "N", NUMBER, FIELD(port), 0, 65535, "port of dtrun serve (8080; 0: any free port)", NULL},
    {"--port-file", NULL, "FILE", STRING, FIELD(port_file), 0, 0, "dtrun serve writes its port into this file", NULL},
    {"--api-key", NULL, "KEY", STRING, FIELD(key), 0, 0, "key that clients of dtrun serve must send", NULL},
    {"--served-model-name", "--alias -a", "NAME", SERVED, 0, 0, 0,
     "the model's name for clients of dtrun serve (repeatable)", NULL},
    {"--cors", NULL, "ORIGIN", ORIGIN, 0, 0, 0,
     "web pages of this origin may use dtrun serve (repeatable; *: any origin)", NULL},
    {"--queue", NULL, "N", NUMBER, FIELD(queue), 1, 100000,
     "maximum number of requests that wait in dtrun serve (64)", NULL},
    {"--cache-ram", NULL, "MIB", NUMBER, FIELD(cache_ram), 0, 1000000,
     "maximum size of the prefix cache of dtrun serve, in MiB (1024)", NULL},
    {"--timeout", NULL, "S", NUMBER, FIELD(timeout), 1, 1000000,
     "maximum time of a request to dtrun serve, in seconds (no limit)", NULL},
    {"--stats", NULL, NULL, FLAG, FIELD(stats), 0, 0, "in a chat: show a line of statistics after each answer", NULL},
    {"--compare", NULL, "POLICY", STRING, FIELD(compare), 0, 0,
     "run both policies in turns and print the ratio of their speeds", NULL},
    {"--rounds", NULL, "N", NUMBER, FIELD(rounds), 1, 32,
     "number of rounds for --compare (3, more if they are short)", NULL},
    {"--json", NULL, "FILE", STRING, FIELD(json), 0, 0,
     "write the result as JSON; '-': to standard output, instead of the text", NULL},
    {"--trace", NULL, "FILE", STRING, FIELD(trace), 0, 0,
     "write every iteration's tree; dtrun run trace FILE shows it", NULL},
    {"--color", NULL, NULL, FLAG, FIELD(color), 0, 0,
     "show drafted text green, bonus tokens cyan and corrections yellow", NULL},
    {"-q --quiet", NULL, NULL, FLAG, FIELD(quiet), 0, 0, "print no summary", NULL},
    {"-v --verbose", NULL, NULL, FLAG, FIELD(verbose), 0, 0, "print a longer summary", NULL},
    {"--explain", NULL, NULL, FLAG, FIELD(explain), 0, 0,
     "show where the time of an iteration went and what may help", NULL},
    {"--list", NULL, NULL, FLAG, FIELD(list), 0, 0, "list the installed policies and drivers", NULL},
    {"-h --help", "--usage", NULL, FLAG, FIELD(help), 0, 0, "show this help; with a policy: its parameters", NULL},
    {"--man", NULL, NULL, FLAG, FIELD(man), 0, 0, "print this help as a manual page", NULL},
    {"--version", NULL, NULL, FLAG, FIELD(version), 0, 0, "print the version", NULL},
};
/* clang-format on */
enum {
  N_OPTIONS = sizeof options / sizeof *options,
  FIELDS_AT = 3
}; /* options of this table that come before those of the fields */

/* Returns the options made from fields of requests and pairs, and their number. The first call makes them. */
static const option *field_options(int *n) {
  static option made[REQUEST_FIELDS];
  static int count = 0;
  if (!count)
    for (int k = 0; request_field_at(k); k++) {
      const request_field *f = request_field_at(k);
      if (f->where & ON_LINE) made[count++] = (option){f->line, f->other, f->value, REQUEST, 0, 0, 0, f->help, f};
    }
  *n = count;
  return made;
}

const option *option_at(int i) {
  int n;
  const option *of_fields = field_options(&n);
  if (i < FIELDS_AT) return &options[i];
  if (i < FIELDS_AT + n) return &of_fields[i - FIELDS_AT];
  return i - n < N_OPTIONS ? &options[i - n] : NULL;
}

/* Returns the length of the next name in a list, whose names are separated by blanks, and moves *at after it; 0: there
 * is none. */
static size_t next_name(const char **at, const char **name) {
  if (!*at) return 0;
  *name = *at + strspn(*at, " ");
  size_t n = strcspn(*name, " ");
  *at = *name + n;
  return n;
}

bool option_name(const option *o, int i, char *out, size_t size) {
  const char *at = o->names, *name = NULL;
  size_t n = 0;
  for (int k = 0; k <= i; k++) n = next_name(&at, &name);
  if (n) snprintf(out, size, "%.*s", (int)n, name);
  return n > 0;
}

const option *option_find(const char *arg, size_t n) {
  for (int i = 0; option_at(i); i++)
    if (request_has_name(option_at(i)->names, arg, n) || request_has_name(option_at(i)->other, arg, n))
      return option_at(i);
  return NULL;
}

/* Finds the long option that arg[n] probably means; false: there is none. It must have the same first letter: otherwise
 * the name probably is another program's option. */
static bool suggestion(const char *arg, size_t n, char *out, size_t size) {
  enum { MOST = 256, LENGTH = 40 };
  char text[MOST][LENGTH];
  const char *names[MOST], *near[1];
  int count = 0;
  if (n < 4 || strncmp(arg, "--", 2) != 0) return false;
  for (int i = 0; option_at(i); i++) {
    const char *lists[] = {option_at(i)->names, option_at(i)->other}, *name;
    for (int k = 0; k < 2; k++)
      for (size_t len; count < MOST && (len = next_name(&lists[k], &name));) {
        if (len < 3 || name[1] != '-' || name[2] != arg[2] || len > LENGTH) continue;
        snprintf(text[count], LENGTH, "%.*s", (int)len - 2, name + 2);
        names[count] = text[count], count++;
      }
  }
  if (!dtl_near(arg + 2, n - 2, names, count, near, 1)) return false;
  snprintf(out, size, "--%s", near[0]);
  return true;
}

dt_status option_fail(const char *arg, size_t n, dt_error *err) {
  const foreign_option *other = foreign_find(arg, n);
  char meant[64];
  if (other) return dt_fail(err, DT_EINPUT, "no option %.*s: %s", (int)n, arg, other->answer);
  if (suggestion(arg, n, meant, sizeof meant))
    return dt_fail(err, DT_EINPUT, "unknown option '%.*s' (did you mean '%s'?)", (int)n, arg, meant);
  return dt_fail(err, DT_EINPUT, "unknown option '%.*s', see dtrun --help", (int)n, arg);
}
