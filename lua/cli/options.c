/* The table of options, and looking them up: see options.h. */
#include "cli/options.h"

#include "cli/foreign.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#define FIELD(name) offsetof(cli_options, name)
#define DRAWN(name) FIELD(sampling.name)

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
     "a folder, a .gguf file, or a name of dtrun ls (bundled)"},
    {{"-md", "--draft", "--model-draft"},
     "MODEL",
     STRING,
     FIELD(draft),
     0,
     0,
     "draft (if one is found); exit:N, mtp: the target's layers; none: without"},
    {{"--weights"},
     "TYPE",
     STRING,
     FIELD(target_weights),
     0,
     0,
     "round the target's weights to q8 or q4: another model (as they are)"},
    {{"--draft-weights"},
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
    {{"--head-layers"},
     "A,B,C",
     STRING,
     FIELD(head_layers),
     0,
     0,
     "layers of the target whose inputs a draft head reads (as its files say)"},
    {{"--cache-dtype"}, "TYPE", STRING, FIELD(cache_dtype), 0, 0, "keys and values on a CPU: f16, f32 or q8 (f16)"},
    {{"--activations"},
     "BITS",
     STRING,
     FIELD(activations),
     0,
     0,
     "what enters the target's quantized weights on a CPU: 8 or 16 (8)"},
    {{"--costs"}, "KIND", STRING, FIELD(costs), 0, 0, "what passes cost: learn from runs, or a measured table (learn)"},
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
    {{"--window"},
     "N",
     NUMBER,
     FIELD(window.last),
     0,
     INT_MAX,
     "the target sees the last N tokens: another text (all)"},
    {{"--sinks"}, "M", NUMBER, FIELD(window.sinks), 0, INT_MAX, "and the first M, as in StreamingLLM (with --window)"},
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
     DRAWN(temp),
     true,
     100,
     "temperature of sampling, 0.001 to 100 (0: always the likeliest token)"},
    {{"--top-k"}, "K", NUMBER, DRAWN(top_k), 0, INT_MAX, "sample from the K likeliest tokens only"},
    {{"--top-p"}, "P", REAL, DRAWN(top_p), 0, 1, "sample from the likeliest tokens that hold P of the probability"},
    {{"--min-p"}, "P", REAL, DRAWN(min_p), true, 1, "sample from tokens of at least P times the largest probability"},
    {{"--repeat-penalty"},
     "R",
     REAL,
     FIELD(shifts.repeat),
     0,
     100,
     "tokens of the text: logits above 0 over R, others times R (1)"},
    {{"--presence-penalty"},
     "P",
     PENALTY,
     FIELD(shifts.presence),
     0,
     100,
     "taken from the logit of a token that was generated (0)"},
    {{"--frequency-penalty"},
     "F",
     PENALTY,
     FIELD(shifts.frequency),
     0,
     100,
     "taken from it as often as it was generated (0)"},
    {{"--logit-bias"},
     "TOKEN+BIAS",
     BIAS,
     0,
     0,
     0,
     "added to a token's logit: 15043+1, ' the=-2', 15043-inf never (repeatable)"},
    {{"--min-tokens"},
     "N",
     NUMBER,
     FIELD(shifts.min_tokens),
     0,
     INT_MAX,
     "no end-of-text before N tokens are generated"},
    {{"--grammar"}, "TEXT", STRING, FIELD(grammar), 0, 0, "the text's grammar, in GBNF: 'root ::= \"yes\" | \"no\"'"},
    {{"--grammar-file"}, "FILE", STRING, FIELD(grammar_file), 0, 0, "the same, from a file"},
    {{"-j", "--json-schema"}, "TEXT", STRING, FIELD(schema), 0, 0, "the text is JSON that this schema takes"},
    {{"--json-schema-file"}, "FILE", STRING, FIELD(schema_file), 0, 0, "the same, from a file"},
    {{"--regex"},
     "TEXT",
     STRING,
     FIELD(regex),
     0,
     0,
     "the text is one that this regular expression matches as a whole"},
    {{"-s", "--seed"}, "N", SEED, DRAWN(seed), 0, 0, "of sampling and of the policy's random numbers (0)"},
    {{"--answers"},
     "N",
     NUMBER,
     FIELD(answers),
     0,
     DTL_ANSWERS,
     "of each prompt, which share its pass; answer i has seed + i - 1 (1)"},
    {{"--logprobs"},
     "K",
     COUNT,
     FIELD(logprobs),
     0,
     DT_LOGPROBS,
     "in the result, of each token and the K likeliest: 0 to 20"},
    {{"--echo"}, NULL, FLAG, FIELD(echo), 0, 0, "with --logprobs: of the prompt's tokens too"},
    {{"--uncoupled"}, NULL, FLAG, FIELD(uncoupled), 0, 0, "draft without the noise of sampling"},
    {{"--ignore-eos"}, NULL, FLAG, FIELD(ignore_eos), 0, 0, "end-of-text is a token like any other and does not stop"},
    {{"--stop"}, "TEXT", STOP, 0, 0, 0, "end the text before this string (repeatable)"},
    {{"--chat"}, NULL, FLAG, FIELD(chat), 0, 0, "the prompt is a question: wrap it in the model's chat template"},
    {{"--system"}, "TEXT", STRING, FIELD(system), 0, 0, "a chat's system text (the template's own, if it has one)"},
    {{"--template"}, "NAME", STRING, FIELD(template), 0, 0, "a chat's template (the model's own): chatml, llama3, ..."},
    {{"--host"}, "ADDRESS", STRING, FIELD(host), 0, 0, "of dtrun serve (127.0.0.1: this machine alone)"},
    {{"--port"}, "N", COUNT, FIELD(port), 0, 65535, "of dtrun serve (8080; 0: any that is free)"},
    {{"--port-file"}, "FILE", STRING, FIELD(port_file), 0, 0, "dtrun serve writes its port there"},
    {{"--api-key"}, "KEY", STRING, FIELD(key), 0, 0, "that clients of dtrun serve must send"},
    {{"--queue"}, "N", NUMBER, FIELD(queue), 0, 100000, "requests that may wait in dtrun serve (64)"},
    {{"--cache-ram"},
     "MIB",
     COUNT,
     FIELD(cache_ram),
     0,
     1000000,
     "memory of dtrun serve for rows of prompts, beside its texts (1024)"},
    {{"--timeout"}, "S", NUMBER, FIELD(timeout), 0, 1000000, "seconds that a request to dtrun serve may take (any)"},
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
    {{"--man"}, NULL, FLAG, FIELD(man), 0, 0, "this text as a manual page"},
    {{"--version"}, NULL, FLAG, FIELD(version), 0, 0, "the version"},
};
#define N_OPTIONS (sizeof options / sizeof *options)

static bool is_named(const option *o, const char *arg, size_t n) {
  for (int i = 0; i < MOST_NAMES && o->names[i]; i++)
    if (option_is_called(o->names[i], strlen(o->names[i]), arg, n)) return true;
  return false;
}

const option *option_at(int i) { return i < (int)N_OPTIONS ? &options[i] : NULL; }

const option *option_find(const char *arg, size_t n) {
  for (size_t k = 0; k < N_OPTIONS; k++)
    if (is_named(&options[k], arg, n)) return &options[k];
  const foreign_option *other = foreign_find(arg, n);
  return other && other->ours ? option_find(other->ours, strlen(other->ours)) : NULL;
}

/* The long option that the n characters of `arg` probably mean, or NULL. It has the same first letter: a name that
 * differs there is probably another program's option. */
static const char *suggestion(const char *arg, size_t n) {
  const char *names[N_OPTIONS * MOST_NAMES], *near[1];
  int count = 0;
  if (n < 4 || strncmp(arg, "--", 2) != 0) return NULL;
  for (size_t k = 0; k < N_OPTIONS; k++)
    for (int i = 0; i < MOST_NAMES && options[k].names[i]; i++)
      if (options[k].names[i][1] == '-' && options[k].names[i][2] == arg[2]) names[count++] = options[k].names[i] + 2;
  return dtl_near(arg + 2, n - 2, names, count, near, 1) ? near[0] - 2 : NULL;
}

dt_status option_fail(const char *arg, size_t n, dt_error *err) {
  const foreign_option *other = foreign_find(arg, n);
  if (other) return dt_fail(err, DT_EINPUT, "no option %.*s: %s", (int)n, arg, other->answer);
  const char *meant = suggestion(arg, n);
  if (meant) return dt_fail(err, DT_EINPUT, "unknown option '%.*s' (did you mean '%s'?)", (int)n, arg, meant);
  return dt_fail(err, DT_EINPUT, "unknown option '%.*s', see dtrun --help", (int)n, arg);
}
