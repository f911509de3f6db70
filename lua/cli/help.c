/* Prints help and the manual page: see help.h. */
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
    {"dtrun serve [POLICY] [options]", "a server for OpenAI's clients, with a web page"},
    {"dtrun run SCRIPT [arguments]", "run a driver; everything after SCRIPT is its own"},
    {"mpirun -n R dtrun ...", "the same with a target shared by R processes, on one machine or several"},
    {"dtrun pull NAME", "download smollm2, or OWNER/NAME[:Q4_K_M] of Hugging Face; -m NAME loads it"},
    {"dtrun ls [--json], dtrun list", "list the models on this machine: name, kind, type, size, path"},
    {"dtrun rm [-y] NAME", "remove a pulled model; -y: without asking"},
    {"dtrun doctor", "report on this machine, to paste into a bug report"},
    {"dtrun --list", "list the installed policies and drivers"},
    {"dtrun POLICY --help", "show the policy's parameters"},
};

static const line statuses[] = {
    {"0", "done"},
    {"1", "the engine or the device failed, or a disk is full"},
    {"2", "bad usage or bad input"},
    {"3", "the policy failed"},
    {"130", "interrupted by Ctrl-C; the text so far has been printed"},
};

static const line variables[] = {
    {"DTRUN_TARGET, DTRUN_DRAFT", "the models to load without --target and --draft"},
    {"DTRUN_HOME", "a folder that is searched first for policies, scripts and models"},
    {"DTRUN_JOIN_SECONDS", "seconds to wait until all programs that mpirun starts have joined, 1 to 86400 (20)"},
    {"HF_HUB_CACHE, HF_HOME", "the cache with models that are named by a Hugging Face id"},
    {"HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH",
     "the server of dtrun pull (https://huggingface.co), and a token for private models"},
    {"DTRUN_PULL_STALL_SECONDS", "seconds without data after which dtrun pull gives up (60)"},
    {"XDG_CACHE_HOME, XDG_CONFIG_HOME",
     "folders in whose folder dtrun packed weights, costs and tuned presets are kept (~/.cache, ~/.config)"},
    {"XDG_DATA_HOME",
     "where dtrun pull smollm2 puts models if it may not write into models/ (~/.local/share/dtrun/models)"},
    {"XDG_STATE_HOME", "the lines typed in chats are kept in its folder dtrun (~/.local/state)"},
};

static const char example[] = "dtrun dynatree --text 'It was a dark night' -n 100 --compare ar";
static const char defaults[] = "The default policy is rate; without a draft model it copies from the text.";

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

/* Prints text for man: escapes characters that man would read as a command or as a typographic sign. */
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
