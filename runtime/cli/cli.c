/* Parsing of the command line: see cli.h. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { FLAG, STRING, NUMBER, REAL, SEED, SETTING, STOP, PROMPT, TEXT, CORPUS } option_kind;

#define MOST_NAMES 4

typedef struct {
  const char *names[MOST_NAMES]; /* --help shows two; others are what other programs call it */
  const char *argument;          /* what its value is called; NULL for a FLAG */
  option_kind kind;
  size_t field; /* FLAG, STRING, NUMBER, REAL, SEED: of cli_options */
  bool also;    /* NUMBER: -1 is allowed beside 1 .. most; REAL: 0 is allowed beside what is above it, up to most */
  int most;
  const char *help;
} option;

#define FIELD(name) offsetof(cli_options, name)

static const option options[] = {
    {{"-f", "--prompt"},
     "FILE",
     PROMPT,
     0,
     0,
     0,
     "prompt from a file, bytes as they are; '-', or no prompt: standard input"},
    {{"-p", "--text"}, "TEXT", TEXT, 0, 0, 0, "prompt given here (repeatable)"},
    {{"--prompts"}, "FILE.jsonl", STRING, FIELD(prompts), 0, 0, "a prompt from each line {\"prompt\": \"...\"}"},
    {{"-np", "--parallel"}, "N", NUMBER, FIELD(parallel), 0, DTL_PLACES, "of several prompts, as many at once (8)"},
    {{"-m", "--target", "--model"},
     "MODEL",
     STRING,
     FIELD(target),
     0,
     0,
     "target: a folder, a .gguf file, or an id in the Hugging Face cache"},
    {{"-md", "--draft", "--model-draft"},
     "MODEL",
     STRING,
     FIELD(draft),
     0,
     0,
     "draft (DTRUN_TARGET, DTRUN_DRAFT; else the bundled pair)"},
    {{"--weights"},
     "TYPE",
     STRING,
     FIELD(target_weights),
     0,
     0,
     "round the target's weights to q8 or q4: another model (as they are)"},
    {{"--draft-weights", "--draft-dtype"},
     "TYPE",
     STRING,
     FIELD(draft_weights),
     0,
     0,
     "round the draft's weights to q8 or q4 (as they are)"},
    {{"--draft-vocab"},
     "N|FILE",
     STRING,
     FIELD(draft_vocab),
     0,
     0,
     "only the N lowest ids, or those of FILE, are guessed by the draft (all)"},
    {{"--cache-dtype"}, "TYPE", STRING, FIELD(cache_dtype), 0, 0, "keys and values on a CPU: f32 or f16 (f32)"},
    {{"-n", "--tokens", "--n-predict", "--max-new-tokens"},
     "N",
     NUMBER,
     FIELD(tokens),
     true,
     INT_MAX,
     "new tokens (128, in a chat 512; -1: until the context ends)"},
    {{"-c", "--ctx", "--ctx-size"},
     "N",
     NUMBER,
     FIELD(context),
     0,
     INT_MAX,
     "context: prompt and new tokens (the target's, at most 4096)"},
    {{"-t", "--threads"}, "N", NUMBER, FIELD(threads), 0, 1024, "threads (the physical cores it may use)"},
    {{"--backend"}, "NAME", STRING, FIELD(backend), 0, 0, "auto, cpu or cuda (auto)"},
    {{"--set"}, "NAME=VALUE", SETTING, 0, 0, 0, "a parameter of the policy (repeatable)"},
    {{"--preset"}, "NAME", STRING, FIELD(preset), 0, 0, "a named set of parameters of the policy"},
    {{"--corpus"}, "FILE", CORPUS, 0, 0, 0, "a text that policies such as suffix look things up in (repeatable)"},
    {{"--policy-seconds"},
     "S",
     REAL,
     FIELD(policy_seconds),
     0,
     1000000,
     "end a policy that used S seconds of its own in a run"},
    {{"--temp", "--temperature"},
     "T",
     REAL,
     FIELD(temp),
     true,
     100,
     "temperature of sampling (0: always the likeliest token)"},
    {{"--top-k"}, "K", NUMBER, FIELD(top_k), 0, INT_MAX, "sample from the K likeliest tokens only"},
    {{"--top-p"}, "P", REAL, FIELD(top_p), 0, 1, "sample from the likeliest tokens that hold P of the probability"},
    {{"--min-p"}, "P", REAL, FIELD(min_p), true, 1, "sample from tokens of at least P times the largest probability"},
    {{"-s", "--seed"}, "N", SEED, FIELD(seed), 0, 0, "of sampling and of the policy's random numbers (0)"},
    {{"--uncoupled"}, NULL, FLAG, FIELD(uncoupled), 0, 0, "draft without the noise of sampling"},
    {{"--ignore-eos"}, NULL, FLAG, FIELD(ignore_eos), 0, 0, "end-of-text is a token like any other and does not stop"},
    {{"--stop"}, "TEXT", STOP, 0, 0, 0, "end the text before this string (repeatable)"},
    {{"--chat"}, NULL, FLAG, FIELD(chat), 0, 0, "the prompt is a question: wrap it in the model's chat template"},
    {{"--system"}, "TEXT", STRING, FIELD(system), 0, 0, "a chat's system text (the template's own, if it has one)"},
    {{"--template"}, "NAME", STRING, FIELD(template), 0, 0, "a chat's template (the model's own): chatml, llama3, ..."},
    {{"--stats"}, NULL, FLAG, FIELD(stats), 0, 0, "in a chat: a line of statistics after each answer"},
    {{"--compare"}, "POLICY", STRING, FIELD(compare), 0, 0, "run both in turns and print the ratio"},
    {{"--rounds"}, "N", NUMBER, FIELD(rounds), 0, 32, "of --compare (3, and more while they are short)"},
    {{"--json"}, "FILE", STRING, FIELD(json), 0, 0, "write the result; '-': to standard output, instead of the text"},
    {{"--trace"}, "FILE", STRING, FIELD(trace), 0, 0, "write every iteration's tree; dtrun run trace FILE shows it"},
    {{"--color"}, NULL, FLAG, FIELD(color), 0, 0, "drafted text green, bonus tokens cyan, corrections yellow"},
    {{"-q", "--quiet"}, NULL, FLAG, FIELD(quiet), 0, 0, "no summary"},
    {{"-v", "--verbose"}, NULL, FLAG, FIELD(verbose), 0, 0, "a longer summary"},
    {{"--explain"}, NULL, FLAG, FIELD(explain), 0, 0, "where the time of an iteration went, and what may help"},
    {{"--list"}, NULL, FLAG, FIELD(list), 0, 0, "installed policies and drivers"},
    {{"-h", "--help"}, NULL, FLAG, FIELD(help), 0, 0, "this text; with a policy: its parameters"},
    {{"--version"}, NULL, FLAG, FIELD(version), 0, 0, "the version"},
};
#define N_OPTIONS (sizeof options / sizeof *options)

/* Whether `arg`, of n characters up to its end or its '=', is that name; '_' is as good as '-' within it. */
static bool is_same(const char *name, const char *arg, size_t n) {
  if (strlen(name) != n) return false;
  for (size_t i = 0; i < n; i++)
    if (name[i] != arg[i] && !(i > 1 && name[i] == '-' && arg[i] == '_')) return false;
  return true;
}

static bool is_named(const option *o, const char *arg, size_t n) {
  for (int i = 0; i < MOST_NAMES && o->names[i]; i++)
    if (is_same(o->names[i], arg, n)) return true;
  return false;
}

/* What other programs have and this one does otherwise. */
static const struct {
  const char *name, *ours;
} elsewhere[] = {
    {"--draft-max", "how much is drafted is the policy's business, as in linear --set K=8"},
    {"--draft-n", "how much is drafted is the policy's business, as in linear --set K=8"},
    {"--num-assistant-tokens", "how much is drafted is the policy's business, as in linear --set K=8"},
    {"-ngl", "all layers are where --backend says: cpu or cuda"},
    {"--gpu-layers", "all layers are where --backend says: cpu or cuda"},
    {"--n-gpu-layers", "all layers are where --backend says: cpu or cuda"},
    {"-i", "a conversation is dtrun chat [POLICY]"},
    {"--interactive", "a conversation is dtrun chat [POLICY]"},
    {"-cnv", "a conversation is dtrun chat [POLICY]"},
    {"--conversation", "a conversation is dtrun chat [POLICY]"},
};

/* The long option that the n characters of `arg` were probably meant to be, or NULL. */
static const char *suggestion(const char *arg, size_t n) {
  const char *names[N_OPTIONS * MOST_NAMES], *near[1];
  int count = 0;
  if (n < 4 || strncmp(arg, "--", 2) != 0) return NULL;
  for (size_t k = 0; k < N_OPTIONS; k++)
    for (int i = 0; i < MOST_NAMES && options[k].names[i]; i++)
      if (options[k].names[i][1] == '-') names[count++] = options[k].names[i] + 2;
  return dtl_near(arg + 2, n - 2, names, count, near, 1) ? near[0] - 2 : NULL;
}

static dt_status fail_unknown(const char *arg, size_t n, dt_error *err) {
  for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere; k++)
    if (is_same(elsewhere[k].name, arg, n))
      return dt_fail(err, DT_EINPUT, "no option %s: %s", elsewhere[k].name, elsewhere[k].ours);
  const char *meant = suggestion(arg, n);
  if (meant) return dt_fail(err, DT_EINPUT, "unknown option '%.*s' (did you mean '%s'?)", (int)n, arg, meant);
  return dt_fail(err, DT_EINPUT, "unknown option '%.*s', see dtrun --help", (int)n, arg);
}

static dt_status parse_number(const option *o, const char *name, const char *value, int *out, dt_error *err) {
  char *end;
  errno = 0;
  long n = strtol(value, &end, 10);
  bool whole = end != value && !*end && errno == 0;
  if (whole && ((n >= 1 && n <= o->most) || (n == -1 && o->also))) {
    *out = (int)n;
    return DT_OK;
  }
  const char *also = o->also ? ", or -1" : "";
  if (o->most == INT_MAX)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number, 1 or more%s", name, value, also);
  return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number from 1 to %d%s", name, value, o->most, also);
}

static dt_status parse_real(const option *o, const char *name, const char *value, float *out, dt_error *err) {
  char *end;
  float x = strtof(value, &end);
  if (end == value || *end || !(x > 0 || (o->also && x == 0)) || x > (float)o->most)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a number %s 0, at most %d", name, value,
                   o->also ? "of at least" : "above", o->most);
  *out = x;
  return DT_OK;
}

static dt_status parse_seed(const char *name, const char *value, uint64_t *out, dt_error *err) {
  char *end;
  errno = 0;
  unsigned long long n = strtoull(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number from 0 to 2^64 - 1", name, value);
  *out = n;
  return DT_OK;
}

/* Stores the value of an option (NULL for a flag) that was given under `name`. */
static dt_status store(const option *o, const char *name, char *value, cli_options *out, dt_error *err) {
  void *field = (char *)out + o->field;
  switch (o->kind) {
  case FLAG: *(bool *)field = true; break;
  case STRING:
    if (field == &out->compare && out->compare)
      return dt_fail(err, DT_EINPUT, "--compare is given twice: the policy is compared with one other");
    if (field == &out->draft && *value && !value[strspn(value, "0123456789")])
      return dt_fail(err, DT_EINPUT, "--draft %s: expected a model (did you mean a parameter, as in --set K=%s?)",
                     value, value);
    *(const char **)field = value;
    break;
  case NUMBER: return parse_number(o, name, value, field, err);
  case REAL: return parse_real(o, name, value, field, err);
  case SEED: return parse_seed(name, value, field, err);
  case STOP:
    if (!*value) return dt_fail(err, DT_EINPUT, "%s: expected a text that is not empty", name);
    out->stop[out->n_stop++] = value;
    break;
  case PROMPT: out->files[out->n_files++] = value; break;
  case TEXT: out->texts[out->n_texts++] = value; break;
  case CORPUS: out->corpus[out->n_corpus++] = value; break;
  case SETTING: {
    char *equals = strchr(value, '=');
    if (!equals || equals == value)
      return dt_fail(err, DT_EINPUT, "%s '%.60s': expected NAME=VALUE, as in --set K=8", name, value);
    *equals = '\0';
    out->settings[out->n_settings++] = (dtl_setting){.name = value, .value = equals + 1};
    break;
  }
  }
  return DT_OK;
}

/* Whether an option is as good with another policy, and not about what is told or written of this run. */
static bool suits_others(const option *o) {
  static const size_t own[] = {FIELD(preset), FIELD(compare), FIELD(rounds),  FIELD(json),
                               FIELD(trace),  FIELD(quiet),   FIELD(verbose), FIELD(explain)};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (o->field == own[i]) return false;
  return o->kind != SETTING;
}

/* One option and its value, which may be the next argument: *used arguments in all. */
static dt_status parse_option(char **argv, int left, cli_options *out, int *used, dt_error *err) {
  char *arg = argv[0], *equals = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
  size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
  const option *o = NULL;
  for (size_t k = 0; k < N_OPTIONS && !o; k++)
    if (is_named(&options[k], arg, n)) o = &options[k];
  if (!o) return fail_unknown(arg, n, err);

  char name[32], *value = NULL;
  snprintf(name, sizeof name, "%.*s", (int)n, arg);
  *used = 1;
  if (o->kind == FLAG) {
    if (equals) return dt_fail(err, DT_EINPUT, "option %s takes no value", name);
  } else if (equals) {
    value = equals + 1;
  } else {
    if (left < 2) return dt_fail(err, DT_EINPUT, "option %s needs a value: %s %s", name, name, o->argument);
    value = argv[1];
    *used = 2;
  }
  for (int i = 0; suits_others(o) && i < *used; i++) out->common[out->n_common++] = argv[i];
  return store(o, name, value, out, err);
}

dt_status cli_parse(int argc, char **argv, cli_options *out, dt_error *err) {
  *out = (cli_options){0};
  out->settings = calloc((size_t)argc + 1, sizeof *out->settings); /* argc bounds how often an option can be repeated */
  out->stop = calloc((size_t)argc + 1, sizeof *out->stop);
  out->files = calloc((size_t)argc + 1, sizeof *out->files);
  out->texts = calloc((size_t)argc + 1, sizeof *out->texts);
  out->common = calloc((size_t)argc + 1, sizeof *out->common);
  out->corpus = calloc((size_t)argc + 1, sizeof *out->corpus);
  if (!out->settings || !out->stop || !out->files || !out->texts || !out->common || !out->corpus)
    return dt_fail_memory(err, "the options", (size_t)argc * sizeof *out->settings);
  bool only_words = false; /* after "--" */
  for (int i = 0, used; i < argc; i += used) {
    used = 1;
    char *arg = argv[i];
    if (!only_words && strcmp(arg, "--") == 0) {
      only_words = true;
    } else if (!only_words && arg[0] == '-' && arg[1]) {
      dt_status status = parse_option(argv + i, argc - i, out, &used, err);
      if (status) return status;
    } else if (out->policy) {
      return dt_fail(err, DT_EINPUT,
                     "unexpected argument '%.100s': the policy is '%.100s', a prompt is given by --prompt or --text",
                     arg, out->policy);
    } else {
      out->policy = arg;
    }
  }
  return DT_OK;
}

void cli_free(cli_options *o) {
  free(o->settings);
  free(o->stop);
  free(o->files);
  free(o->texts);
  free(o->common);
  free(o->corpus);
}

void cli_help(FILE *out) {
  fputs("Text from a large language model, faster and not one token different: a small model guesses a tree of\n"
        "continuations, the large one checks it in one pass. A policy, a Lua script, decides how the tree grows.\n\n"
        "  dtrun [POLICY] [options]       generate under a policy: an installed name or a path (with a '/' or .lua)\n"
        "  dtrun chat [POLICY] [options]  a conversation at the terminal; /help there lists its commands\n"
        "  dtrun run SCRIPT [arguments]   run a driver; everything after SCRIPT is its own\n"
        "  dtrun doctor                   what it finds on this machine, to paste into a bug report\n"
        "  dtrun --list                   installed policies and drivers\n"
        "  dtrun POLICY --help            the policy's parameters\n\n",
        out);
  for (size_t k = 0; k < N_OPTIONS; k++) {
    const option *o = &options[k];
    char left[80];
    int n = snprintf(left, sizeof left, "%s", o->names[0]);
    if (o->names[1]) n += snprintf(left + n, sizeof left - (size_t)n, ", %s", o->names[1]);
    if (o->argument) snprintf(left + n, sizeof left - (size_t)n, " %s", o->argument);
    fprintf(out, "  %-33s %s\n", left, o->help);
  }
  fputs("\nA policy that is left out is rate, or ar where there is no draft model.\nExample: dtrun dynatree --text 'It "
        "was a dark night' -n 100 --compare ar\n",
        out);
}
