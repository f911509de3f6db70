/* Help and the manual page: see help.h. */
#include "cli/help.h"

#include "cli/options.h"

#include <stdio.h>
#include <string.h>

static const char about[] =
    "Text from a large language model, faster and not one token different: a small model guesses a tree of\n"
    "continuations, the large one checks it in one pass. A policy, a Lua script, decides how the tree grows.";

typedef struct {
  const char *what, *help;
} line;

static const line commands[] = {
    {"dtrun [POLICY] [options]", "generate under a policy: an installed name or a path (with a '/' or .lua)"},
    {"dtrun chat [POLICY] [options]", "a conversation at the terminal; /help there lists its commands"},
    {"dtrun serve [POLICY] [options]", "an address for OpenAI's clients, and a page for browsers"},
    {"dtrun run SCRIPT [arguments]", "run a driver; everything after SCRIPT is its own"},
    {"mpirun -n R dtrun ...", "the same, the target shared by R processes on one machine or several"},
    {"dtrun pull NAME", "bring smollm2, or OWNER/NAME[:Q4_K_M] of Hugging Face; -m NAME then takes it"},
    {"dtrun ls [--json], dtrun list", "models that are here: name, kind, type, size, path"},
    {"dtrun rm [-y] NAME", "remove what was pulled; -y: without asking"},
    {"dtrun doctor", "what it finds on this machine, to paste into a bug report"},
    {"dtrun --list", "installed policies and drivers"},
    {"dtrun POLICY --help", "the policy's parameters"},
};

static const line statuses[] = {
    {"0", "done"},
    {"1", "the engine or the device failed, or a disk is full"},
    {"2", "bad usage or bad input"},
    {"3", "the policy failed"},
    {"130", "interrupted by Ctrl-C, after printing what there was"},
};

static const line variables[] = {
    {"DTRUN_TARGET, DTRUN_DRAFT", "models where --target and --draft say none"},
    {"DTRUN_HOME", "a folder with policies, scripts and models that are looked for there first"},
    {"DTRUN_JOIN_SECONDS", "how long programs that mpirun starts may take to join, 1 to 86400 (20)"},
    {"HF_HUB_CACHE, HF_HOME", "where models that are named by an id of Hugging Face lie"},
    {"HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH",
     "where dtrun pull asks (https://huggingface.co), and its token for private models"},
    {"DTRUN_PULL_STALL_SECONDS", "how long a server may be silent before dtrun pull ends (60)"},
    {"XDG_CACHE_HOME, XDG_CONFIG_HOME",
     "where measured costs and tuned presets are kept, in a folder dtrun (~/.cache, ~/.config)"},
    {"XDG_DATA_HOME",
     "where dtrun pull smollm2 puts models if it may not write into models/ (~/.local/share/dtrun/models)"},
    {"XDG_STATE_HOME", "where what was typed in chats is kept, in a folder dtrun (~/.local/state)"},
};

static const char example[] = "dtrun dynatree --text 'It was a dark night' -n 100 --compare ar";
static const char defaults[] = "A policy that is left out is rate; without a draft model it copies from the text.";

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* "-n, --tokens N" */
static void name_option(const option *o, char *out, size_t size) {
  char second[40];
  option_name(o, 0, out, size);
  size_t n = strlen(out);
  if (option_name(o, 1, second, sizeof second)) n += (size_t)snprintf(out + n, size - n, ", %s", second);
  if (o->argument) snprintf(out + n, size - n, " %s", o->argument);
}

void print_help(void) {
  char name[80];
  printf("%s\n\n", about);
  for (size_t i = 0; i < COUNT(commands); i++) printf("  %-30s %s\n", commands[i].what, commands[i].help);
  puts("");
  for (int i = 0; option_at(i); i++) {
    name_option(option_at(i), name, sizeof name);
    printf("  %-33s %s\n", name, option_at(i)->help);
  }
  printf("\n%s\nExample: %s\n", defaults, example);
}

/* Prints text for man: escapes characters that man would read as a command or a typographic sign. */
static void roff(const char *text) {
  for (const char *c = text; *c; c++) {
    bool begins = c == text || c[-1] == '\n';
    if (begins && (*c == '.' || *c == '\'')) fputs("\\&", stdout);
    if (*c == '\\')
      fputs("\\e", stdout);
    else if (*c == '-')
      fputs("\\-", stdout);
    else if (*c == '\'')
      fputs("\\(aq", stdout);
    else
      putchar(*c);
  }
  putchar('\n');
}

static void entry(const char *what, const char *help) {
  fputs(".TP\n.B ", stdout);
  roff(what);
  roff(help);
}

static void section(const char *name, const line *lines, size_t n) {
  printf(".SH %s\n", name);
  for (size_t i = 0; i < n; i++) entry(lines[i].what, lines[i].help);
}

void print_manual(void) {
  char name[80];
  printf(".TH DTRUN 1 \"\" \"dtrun %s\" \"User Commands\"\n.SH NAME\ndtrun \\- speculative decoding with scriptable "
         "token trees\n",
         dt_version());
  puts(".SH SYNOPSIS");
  for (size_t i = 0; i < COUNT(commands); i++) {
    fputs(i ? ".br\n.B " : ".B ", stdout);
    roff(commands[i].what);
  }
  puts(".SH DESCRIPTION");
  roff(about);
  puts(".PP");
  roff(defaults);
  section("COMMANDS", commands, COUNT(commands));
  puts(".SH OPTIONS");
  for (int i = 0; option_at(i); i++) {
    name_option(option_at(i), name, sizeof name);
    entry(name, option_at(i)->help);
  }
  section("EXIT STATUS", statuses, COUNT(statuses));
  section("ENVIRONMENT", variables, COUNT(variables));
  puts(".SH EXAMPLES");
  roff(example);
}
