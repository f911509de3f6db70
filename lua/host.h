/* libdtrun's interface for generating under policies: policies, models on this machine, generation, results, the engine
 * of a server, drivers, and a bridge for other languages. A policy is a Lua script that decides which tokens are
 * guessed. The engine below this header, with pairs, sessions and passes, is declared in dtrun.h.
 *
 *   dtl_policy *policy;  dt_pair *pair;  dt_error err;
 *   dtl_policy_open(&(dtl_policy_options){.policy = "dynatree"}, &policy, &err);
 *   dt_pair_open(...);       // with a draft if dtl_policy_describe(policy)->draft is DTL_NEEDS_DRAFT
 *   dtl_prompt prompt = {.text = text, .len = len};
 *   dtl_request request = {.prompts = &prompt, .n = 1, .seq = {.max_tokens = 100}};
 *   dtl_result result;                                      // filled even if the call fails
 *   bool ok = dtl_generate(pair, policy, &request, &result, &err) == DT_OK && !result.failed;
 *   dtl_result_free(&result);  dt_pair_close(pair);  dtl_policy_close(policy);
 *
 * A dtl_policy holds a policy's text, parameters and description. It does not change, and any number of runs can use
 * it: each run makes its own policy objects. A policy object is an instance of the policy, with variables of its own,
 * in a box (sandboxed Lua state) of its own. It serves one sequence or, with scope "batch", all sequences of a run.
 *
 * Errors and argument checks work as in dtrun.h: a function that returns a dt_status reports a bad argument as
 * DT_EINPUT. */
#ifndef DTL_HOST_H
#define DTL_HOST_H

#include "dtrun.h"

#include <signal.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

/* Returns the name of a failure's kind as results, drivers and other languages use it: "policy", "input" (DT_EINPUT and
 * DT_EWEIGHTS), "context" or "interrupted", and "device" for all others: the engine, the system or memory failed, with
 * or without a GPU. The string is static. */
const char *dtl_kind_name(dt_status status);

/* Copies text[len] into out[size] with control characters replaced by blanks. A text that does not fit is cut between
 * two characters. Returns the length of the copy in bytes. */
size_t dtl_clean(char *out, size_t size, const char *text, size_t len);

#define DTL_DIGEST 65   /* bytes of a BLAKE2b-256 digest as text: 64 hexadecimal digits and a NUL */
#define DTL_SLOTS 256   /* maximum number of sequences that run at once */
#define DTL_ANSWERS 256 /* maximum number of answers to a prompt */

#define DTL_TUNED "tuned" /* name of the preset that `dtrun run tune` finds for one pair on one machine */

/* ---- policies ---------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name, *value; /* as typed: --set NAME=VALUE */
} dtl_setting;

typedef struct {
  const char *policy; /* a path (it contains '/' or ends in .lua) or the name of an installed policy */
  const char *source; /* the policy's text, which `policy` then only names in messages; NULL: the file's */
  size_t source_len;
  const dtl_setting *settings; /* [n_settings] they override the preset, which overrides the defaults */
  int n_settings;
  const char *preset;                     /* or NULL */
  const dt_pair *pair;                    /* the pair for which the preset DTL_TUNED must have been found */
  double seconds;                         /* time limit for all calls into one object together; 0: none */
  double call_seconds;                    /* time limit for each call into an object; 0: 2 s, and 100 s for its init */
  bool quiet;                             /* the policy's print writes nothing */
  const volatile sig_atomic_t *interrupt; /* or NULL; a nonzero value ends the opening */
} dtl_policy_options;

typedef struct dtl_policy dtl_policy;

/* Whether a policy uses a draft. DTL_ANY_DRAFT: it works with a draft and without one. */
typedef enum { DTL_NO_DRAFT, DTL_ANY_DRAFT, DTL_NEEDS_DRAFT } dtl_need;

typedef struct {
  const char *name, *doc;
  const char *type;      /* "integer", "number", "boolean" or "string" */
  const char *value;     /* the present value as text; NULL: nil */
  const char *range;     /* "1..64", "one of a, b", or "" */
  const char *min, *max; /* NULL: no bound */
  /* one_of: the allowed values; if it is empty, any value is allowed. tune: the values that a search tries; for a
   * number it has two elements, and the search tries the range from tune[0] to tune[1]. If it is empty, a search leaves
   * the parameter alone. */
  const char *const *one_of, *const *tune;
  int n_one_of, n_tune;
} dtl_param;

typedef struct {
  const char *name, *doc, *path; /* path: the policy's file, or its name if it was given as a text */
  char source[DTL_DIGEST];       /* digest of the policy's text */
  dtl_need draft;
  bool uses_costs, uses_memory, uses_corpus;
  bool corpus_optional; /* uses_corpus applies only to requests with `corpus`, and they then need `memory` as well */
  int candidates;       /* number of the target's likeliest tokens that the policy wants for each verified row */
  bool batch;           /* scope "batch": one object serves all sequences of a batch */
  const dtl_param *params;
  int n_params;
  const char *const *presets;
  int n_presets;
} dtl_policy_info;

/* Opens a policy: reads its text, applies preset and settings, makes one object to run the policy's own check, and
 * keeps the description. Close *out with dtl_policy_close. */
dt_status dtl_policy_open(const dtl_policy_options *options, dtl_policy **out, dt_error *err);
void dtl_policy_close(dtl_policy *policy);                            /* NULL is allowed */
const dtl_policy_info *dtl_policy_describe(const dtl_policy *policy); /* lives as long as the policy */
const char *dtl_policy_text(const dtl_policy *policy, size_t *len);   /* the text of its file */

/* Lists the Lua files in an installed folder ("policies" or "scripts") by their names without .lua, sorted. *names is a
 * malloc'd array of *n malloc'd strings. Policies that only reproduce a paper (policies/papers) come last. */
dt_status dtl_installed(const char *folder, char ***names, int *n, dt_error *err);

#define DTL_NEAR 8

/* Finds the names that resemble typed[n] most, the closest first, for "did you mean" messages. It writes at most `most`
 * (and at most DTL_NEAR) of names[n_names] into near[] and returns their number. */
int dtl_near(const char *typed, size_t n, const char *const *names, int n_names, const char **near, int most);

/* Finds the models to load: those that the options name, otherwise those that the environment names (DTRUN_TARGET,
 * DTRUN_DRAFT), otherwise the bundled pair. A name is a folder, a file, or a Hugging Face id whose files are in its
 * cache. If only the target is named, a draft that fits it (dt_draft_fits) is searched for: next to the target, among
 * dtrun's own models, and in that cache. The draft "none" prevents the search.
 *
 * *target and *draft are malloc'd paths. *draft is NULL if there is no draft or `need` is DTL_NO_DRAFT. DT_EINPUT: a
 * model is not here, or `need` is DTL_NEEDS_DRAFT and there is no draft. */
dt_status dtl_resolve_models(const char *target_option, const char *draft_option, dtl_need need, char **target,
                             char **draft, dt_error *err);

/* ---- models on this machine -------------------------------------------------------------------------------------- */

typedef struct {
  char *name;       /* its name for dtl_resolve_models */
  char *path;       /* a folder or a file */
  const char *kind; /* "target", "draft" (it fits another model of the list), "head" or "unreadable". Static */
  const char *type; /* type of most of its weights, such as "Q4_K"; NULL for a head and an unreadable model. Static */
  uint64_t bytes;   /* size of the files with its weights; of all files if it is unreadable */
  bool removable;   /* dtl_remove_model can remove it */
  char *problem;    /* why it is unreadable; NULL: it is readable */
} dtl_model;

/* Returns whether a word that is not a path is the name of a model: one of dtrun's own, one that scripts/get-model
 * downloads, or ORG/NAME. The model itself may be missing on this machine. */
bool dtl_is_model_name(const char *word);

/* Lists dtrun's own models, then pulled models, then those in Hugging Face's cache. *models is a malloc'd array of *n;
 * free it with dtl_models_free. */
dt_status dtl_models(dtl_model **models, int *n, dt_error *err);
void dtl_models_free(dtl_model *models, int n);

/* Removes the model with this name in dtl_models, and nothing else: a pulled file together with the file that it links
 * to, or the cache's folder of ORG/NAME. It first calls agree with the path and the size in bytes; if agree returns
 * false, the model is kept. *removed: whether it was removed. DT_EINPUT: there is no such name, or the model is one of
 * dtrun's own. DT_EDEVICE: the model, or a part of it, could not be removed. */
dt_status dtl_remove_model(const char *name, bool (*agree)(void *user, const char *path, uint64_t bytes), void *user,
                           bool *removed, dt_error *err);

/* Finds a model that scripts/get-model installs from a Python package. *script is the path of scripts/get-model, or
 * NULL if the name is unknown; *folder is where the model belongs, which may not exist yet; *names lists all such
 * models, separated by blanks. All three are malloc'd. */
dt_status dtl_named_model(const char *name, char **script, char **folder, char **names, dt_error *err);

/* Returns the folder of Hugging Face's cache: $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub. It is malloc'd;
 * NULL: out of memory. */
char *dtl_hub_folder(void);

/* ---- the user's files -------------------------------------------------------------------------------------------- */

/* Returns the path of a state file: dtrun/RELATIVE in $XDG_STATE_HOME or in ~/.local/state. It is malloc'd; NULL:
 * neither of these is an absolute path, or out of memory. */
char *dtl_state_file(const char *relative);

/* Makes the missing folders of a path, up to its last '/'. On failure it returns false and sets errno (EINVAL: not a
 * path). */
bool dtl_make_folders(char *path);

/* Finds the id of a text that is a single token. DT_EINPUT: the text is several tokens, or none. */
dt_status dtl_token(const dt_pair *pair, const char *text, size_t len, int32_t *id, dt_error *err);
/* Reads a bias written as in llama.cpp ("15043+1", "15043-2.5", "15043-inf") or with the token's text (" the=-2").
 * DT_EINPUT: it is neither. */
dt_status dtl_bias(const dt_pair *pair, const char *given, dt_bias *out, dt_error *err);
/* Reads the file of a grammar or a schema; `what` names its kind in messages. *text is malloc'd. DT_EINPUT: the file
 * cannot be read or contains a NUL byte. */
dt_status dtl_read_grammar(const char *what, const char *path, char **text, dt_error *err);

/* Reads the value of --draft-vocab: a number of ids (the lowest ids and those of a text that comes with dtrun), "auto"
 * (the same, of an eighth of all ids), or a file with one id per line. Free *out with dtl_draft_vocab_close. DT_EINPUT:
 * the message names file and line. */
dt_status dtl_draft_vocab_open(const char *given, dt_draft_vocab *out, dt_error *err);
void dtl_draft_vocab_close(dt_draft_vocab *vocab); /* zeros are allowed */

typedef struct {
  const char *target, *draft; /* names as in dtl_resolve_models, or NULL */
  dtl_need need;
  const char *draft_vocab; /* see dtl_draft_vocab_open; NULL: the draft may guess all ids */
  const dt_text *texts;    /* [n_texts] texts whose ids are added to draft_vocab */
  int n_texts;
  bool chats;           /* fail before loading weights if the target has no layout of conversations */
  const char *layout;   /* name of that layout; NULL: the one of the target's chat template */
  dt_pair_options how;  /* all other options; its models and its draft_vocab are ignored */
  bool no_packed_cache; /* do not keep packed weights in the user's cache */
  bool shown;           /* show on standard error that it is loading (at a terminal) and a load time over one second */
} dtl_load_options;

/* Resolves the target's name and computes what it takes on GPUs: see dt_pair_needs. */
dt_status dtl_needs(const dtl_load_options *options, dt_needs *out, dt_error *err);

/* Resolves the names and opens the pair. *found is set to whether the search of dtl_resolve_models found the draft. A
 * draft that was found but cannot be loaded is left out, unless `need` requires a draft.
 * With DTL_NO_DRAFT no draft is opened. */
dt_status dtl_load(const dtl_load_options *options, dt_pair **out, bool *found, dt_error *err);

/* ---- conversations ----------------------------------------------------------------------------------------------- */

typedef struct {
  const char *role; /* "system", "user", "assistant", ... */
  const char *text; /* bytes; invalid UTF-8 becomes U+FFFD */
  size_t len;
  const char *reasoning; /* of an assistant's message, as text; */
  size_t reasoning_len;  /* 0: none */
  const char *members;   /* further members, as JSON: "name":"f","tool_call_id":"1"; NULL: none */
} dtl_message;

/* Returns messages as JSON for dt_conversation: malloc'd; NULL: out of memory. */
char *dtl_messages_json(const dtl_message *messages, int n);

/* Finds the template's variables (dt_conversation.settings) that turn reasoning on or off. think: "on", "off", or
 * "auto" or NULL, which leave it to the template; then *settings is NULL. DT_EINPUT: the template has no such
 * variable. */
dt_status dtl_think(const dt_chat *chat, const char *think, const char **settings, dt_error *err);

/* Writes a conversation (dt_chat_write) and encodes it (dt_encode_chat). *ids is malloc'd. *reasoning: how the prompt
 * leaves the reasoning of its answer. */
dt_status dtl_encode_chat(const dt_pair *pair, const dt_chat *chat, const dt_conversation *conversation, int32_t **ids,
                          int *n, dt_reasoning_state *reasoning, dt_error *err);

/* Writes the grammar that makes sure that calls are those of tools (dt_call_grammar): from the beginning if a call is
 * `required`, otherwise from the mark of a call on. *grammar is malloc'd; NULL: nothing constrains the calls, because
 * the answer does not end with a token of the model or the backend has no grammars, or, unless a call is required,
 * because a tool's schema is not supported. */
dt_status dtl_call_grammar(const dt_pair *pair, const dt_chat *chat, const dt_call_format *format, const char *tools,
                           bool required, bool several, dt_reasoning_state reasoning, char **grammar, dt_error *err);

typedef struct {
  char *list;    /* a JSON list of the tools that the answer may call, malloc'd; NULL: none */
  bool required; /* the answer is a call */
  bool several;  /* it may have several calls */
} dtl_tool_choice;

/* Chooses from a JSON list of tools (chat/calls.h) those that an answer may call. choice: JSON, as tool_choice in
 * OpenAI's interface: "none", "auto", "required", a tool {"type": "function", "function": {"name"}}, or {"type":
 * "allowed_tools", "allowed_tools": {"mode", "tools"}}; NULL is "auto". A tool that is named is called once. tools:
 * NULL is an empty list. DT_EINPUT: the message begins with tools or tool_choice. */
dt_status dtl_choose_tools(const char *tools, const char *choice, bool several, dtl_tool_choice *out, dt_error *err);

/* A whole answer of a chat. */
typedef struct {
  char *reasoning; /* malloc'd, NUL-terminated */
  size_t reasoning_len;
  dt_called called; /* its text for the user and its calls */
} dtl_answer;

/* Splits an answer into reasoning, text and calls of tools. state: how the prompt left the reasoning. Free *out with
 * dtl_answer_free; after a failure there is nothing to free. */
dt_status dtl_answer_read(const dt_chat *chat, const dt_call_format *format, const char *tools,
                          dt_reasoning_state state, const char *text, size_t len, dtl_answer *out, dt_error *err);
void dtl_answer_free(dtl_answer *answer);

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* Counters of this process, or of its children that have ended. */
typedef struct {
  double wall_ms, cpu_ms, steal_ms; /* steal: time that other virtual machines took from all processors */
  long switches;                    /* involuntary context switches */
} dtl_usage;

dtl_usage dtl_usage_now(bool children);

#define DTL_WHY 80

/* Returns whether other programs used the processors between `before` and `after`, which makes times measured in that
 * period unreliable. why[size], at least DTL_WHY bytes, gets the reason. `computes` states that the process had work
 * for a processor all the time, as in passes on a CPU, and did not wait for a GPU or a disk; if it was without a
 * processor for much of that time, other programs are to blame. */
bool dtl_disturbed(const dtl_usage *before, const dtl_usage *after, bool computes, char *why, size_t size);

/* ---- costs of passes --------------------------------------------------------------------------------------------- */

#define DTL_COST_ROWS 96
#define DTL_COST_CONTEXTS 8
#define DTL_COST_MISSES 3

/* A table of costs: milliseconds of a pass over `batch` sequences, by the rows and the context of each sequence. Values
 * between the entries are interpolated; few contexts are enough because attention's time is linear in the context.
 *
 * If the target has experts, the time of a pass also depends on the number of distinct experts that it reads, counted
 * as in dt_verdict.experts_read. target[] then holds for passes that read experts[] of them; a pass that reads e takes
 * expert[] * (e - experts[]) longer. */
typedef struct {
  int batch, n_contexts, n_rows;
  bool drafts;                                         /* the pair has a draft; false: the next five are zeros */
  bool disturbed;                                      /* other programs ran during all measurements */
  int context[DTL_COST_CONTEXTS], rows[DTL_COST_ROWS]; /* ascending */
  double target[DTL_COST_CONTEXTS][DTL_COST_ROWS];     /* strictly increasing in rows */
  double draft[DTL_COST_CONTEXTS][DTL_COST_ROWS];      /* a pass of the draft right after another */
  double first[DTL_COST_CONTEXTS]; /* the draft's first pass of an iteration, one row, cold caches */
  int block;   /* a block head (dt_model_info.block), whose one pass of an iteration takes draft[] by the rows of the
                  block; 0: it is none */
  double read; /* the draft processes a token of a text without guessing after it; 0: not measured */
  double target_sample, draft_sample; /* added for each row of all sequences: sampling, and coupled drafting */
  double experts[DTL_COST_ROWS];      /* by rows; zeros: the target has no experts, or they were not counted */
  double expert[DTL_COST_ROWS];       /* by rows: ms of one additional expert */
  double cache_miss[DTL_COST_MISSES]; /* ms of reading 32 KiB that were last read 0, 1 and more target passes
                                       * ago, ascending. lua/dt/policy/pass_costs.lua estimates policy overhead
                                       * as a multiple of it */
} dtl_costs;

typedef struct {
  int context;                                       /* as in dtl_request */
  int batch;                                         /* sequences at once; 0: 1 */
  bool fresh;                                        /* measure again, ignoring stored tables */
  void (*progress)(void *user, int done, int total); /* or NULL; called while measuring; at the end done == total */
  void (*note)(void *user, const char *line);        /* or NULL; gets warnings, such as an unreadable stored table */
  void *user;
  dtl_usage (*usage)(bool children);      /* NULL: dtl_usage_now */
  const volatile sig_atomic_t *interrupt; /* or NULL */
} dtl_cost_measuring;

/* Returns options that show notes and progress on standard error; if that is not a terminal, at most one line of
 * progress every ten seconds. `user` points to a double that all callers share: the time in ms of the last line. */
dtl_cost_measuring dtl_cost_measuring_shown(const volatile sig_atomic_t *interrupt);

/* Returns the costs of the pair's passes on this machine. They are read from the user's cache folder; if they are not
 * there, they are measured and stored, which takes some seconds or, with large models, minutes. A disturbed measurement
 * is repeated once; a table that is still disturbed is used for ten minutes. */
dt_status dtl_measure_costs(dt_pair *pair, const dtl_cost_measuring *how, dtl_costs *costs, dt_error *err);

/* Returns the median of n numbers, which it sorts; NaN if n < 1. */
double dtl_median(double *list, int n);

/* Learned costs start as an estimate from the sizes of the models and, if passes are short, from a quarter of a second
 * of passes. Each pass of a run improves them, from the first run on. They are kept in the user's cache folder, in one
 * file for each pair, machine, backend, number of threads, number of sequences at once and way of sampling (greedy,
 * coupled or uncoupled); programs, builds and contexts share that file. Like the pair, they may be used by one thread
 * at a time; close them before the pair. */
typedef struct dtl_learned dtl_learned;

typedef struct {
  void (*note)(void *user, const char *line); /* or NULL; gets warnings: a file that is ignored or cannot be written */
  void *user;
  const volatile sig_atomic_t *interrupt; /* or NULL */
} dtl_learning;

dtl_learning dtl_learning_shown(const volatile sig_atomic_t *interrupt); /* notes go to standard error */

dtl_learned *dtl_learned_open(dt_pair *pair, const dtl_learning *how); /* NULL: out of memory, or an argument is NULL */
void dtl_learned_close(dtl_learned *learned);                          /* writes the file; NULL is allowed */

/* Returns the milliseconds that plain decoding takes per token after `context` tokens, in runs like the last one (the
 * same number of sequences and way of sampling). 0: no pass over one row has been seen. */
double dtl_learned_plain(const dtl_learned *learned, int context);

/* Returns the milliseconds of the draft's first pass of an iteration after `context` tokens, in runs like the last one.
 * 0: there was no run, or there is no draft. */
double dtl_learned_draft(const dtl_learned *learned, int context);

/* ---- memory between runs ----------------------------------------------------------------------------------------- */

/* What policies remember between runs with one pair: the table that a policy fills (uses.memory), and the outputs of
 * earlier runs, to search in (uses.corpus, whether or not there are files: dtl_corpus). It is kept in this process, for
 * the four policies that ran last; a policy is identified by its text. The lists that a policy stores with costs:keep
 * are something else: a file next to the learned costs has those of eight policies (policies/COSTS.md). */
typedef struct dtl_memory dtl_memory;

dtl_memory *dtl_memory_open(void); /* NULL: out of memory */
void dtl_memory_forget(dtl_memory *memory);
void dtl_memory_close(dtl_memory *memory); /* NULL is allowed */

/* An index of files for policies to search in. It holds the pair's token ids; ten million tokens take some seconds. */
typedef struct dtl_corpus dtl_corpus;

/* Indexes files[n], n >= 1. DT_EINPUT: there are no files, or one is missing, empty or too long. */
dt_status dtl_corpus_open(const dt_pair *pair, const char *const *files, int n, dtl_corpus **out, dt_error *err);
void dtl_corpus_close(dtl_corpus *corpus); /* NULL is allowed */

/* ---- generation -------------------------------------------------------------------------------------------------- */

/* Where a generated token comes from. */
typedef enum {
  DTL_DRAFTED,  /* an accepted node, whatever guessed it: a draft, a copy, or a token that a grammar forces */
  DTL_BONUS,    /* the target's own token (dt_verdict.bonus) where the tree had no verified guess */
  DTL_CORRECTED /* the target's own token where all guesses of the tree were wrong */
} dtl_origin;

/* A file with every iteration of a request's runs, in schema dtrun.trace/1 (policies/TRACES.md). */
typedef struct dtl_trace dtl_trace;

dt_status dtl_trace_open(const char *path, dtl_trace **out, dt_error *err); /* DT_EINPUT: the file cannot be written */
/* Opens a trace that passes each line, without its newline, to `tell` instead of writing a file. */
dt_status dtl_trace_open_lines(void (*tell)(void *user, const char *line), void *user, dtl_trace **out, dt_error *err);
/* Closes a trace; NULL is allowed. DT_EDEVICE: the file is incomplete; the run itself is unaffected. */
dt_status dtl_trace_close(dtl_trace *trace, dt_error *err);

typedef struct {
  const char *text; /* NULL if `prefix` or `ids` is given */
  size_t len;
  const dt_prefix *prefix;
  const int32_t *ids; /* [n_ids] token ids instead of a text; NULL: a text or a prefix */
  int n_ids;
} dtl_prompt;

typedef struct dtl_result dtl_result;

/* What a policy reports about its own run: counts of nodes by the tag that it gave them (tree:tag), and numbers by name
 * (seq:log). */
#define DTL_NOTES 16     /* maximum number of tags of a run, and of names of numbers */
#define DTL_NOTE_NAME 32 /* maximum number of bytes of a tag or name */

typedef struct {
  char name[DTL_NOTE_NAME + 1];
  long verified, decided, accepted; /* numbers of nodes; decided: nodes whose parent was accepted */
  double expected;                  /* sum of the probabilities of the decided nodes */
} dtl_tag;

typedef struct {
  char name[DTL_NOTE_NAME + 1];
  long n;
  double sum, least, most, last;
} dtl_logged;

typedef struct {
  int n_tags, n_logged;
  dtl_tag tag[DTL_NOTES];
  dtl_logged logged[DTL_NOTES];
} dtl_notes;

/* The log-probability of a token, and the n likeliest tokens at its position. */
typedef struct {
  float logp; /* NaN: unknown, as for a text's first token */
  int n;
  const int32_t *id;  /* [n] the likeliest first */
  const float *logps; /* [n] */
} dtl_logprob;

typedef struct {
  const dtl_prompt *prompts; /* [n] */
  int n;
  int answers;              /* texts per prompt, which share its prompt pass; 0: 1. There are n * answers results */
  int slots;                /* sequences that run at once: 1..DTL_SLOTS; 0: not a batch: one prompt and one answer */
  dt_seq_options seq;       /* answer i (from 0) adds i to the seed of sampling and of its policy's math.random */
  const dtl_costs *costs;   /* a table for a policy that uses costs; copied. NULL: learned costs are used */
  dtl_learned *learned;     /* NULL: learned costs are opened for this request if the policy needs them */
  dtl_memory *memory;       /* what earlier runs left; NULL is allowed unless the policy uses memory or a corpus */
  const dtl_corpus *corpus; /* files that a policy with uses.corpus searches, as well as `memory`; or NULL */
  dt_reasoning_state reasoning; /* of a chat: noted in the result, since a head may know one kind of answer only */
  int context;                  /* maximum number of tokens of prompt and answer; 0: as in dt_session_options */
  dt_window window;             /* zeros: the target sees the whole text */
  dt_session *session; /* or NULL; only with one answer: its sequence 0 is used (dt_seq_continue). The prompt is
                          the whole text, earlier turns included; rows of tokens that it shares are reused */
  /* Or NULL; called when a sequence ends, in any order. `prompt` is the index of the result in results[], from 0;
   * result->index is the same number from 1, and result->prompt the number of the result's prompt. If it returns false,
   * running sequences end as "interrupted" and no others begin. */
  bool (*done)(void *user, int prompt, dtl_result *result);
  /* Or NULL; only with one prompt and one answer: called with bytes that may be shown. If it returns false, the text
   * ends as "interrupted" after this iteration; more calls may follow, with the rest of the iteration's text and with
   * text that was held back as a possible stop string. */
  bool (*on_text)(void *user, const char *bytes, size_t len);
  /* Or NULL; only with one prompt and one answer: called in each iteration with its n tokens and their
   * log-probabilities (NaN unless they are wanted), before all calls of on_text for the iteration. The arrays are valid
   * during the call. */
  void (*on_logprobs)(void *user, const int32_t *ids, const dtl_logprob *logprobs, int n);
  void (*begin_line)(void); /* or NULL; called before a policy prints a line on standard error */
  /* Or NULL; only with one prompt and one answer: called before each on_text, whose bytes then have one origin. */
  void (*on_origin)(void *user, dtl_origin origin);
  void *user;
  dtl_trace *trace; /* or NULL; a trace serves one request, with all its prompts */
  bool alone;       /* in a dtl_engine: use no cached tokens of earlier requests and cache none for later ones */
  const volatile sig_atomic_t *interrupt; /* or NULL; nonzero ends the run as "interrupted", also within policy calls */
} dtl_request;

/* Sets what a request's answers take from their chat: how they end, the state of their reasoning and, if its tokens are
 * `limited`, the marks around it. There are none in a template without reasoning. The chat must outlive the request. */
void dtl_chat_options(const dt_chat *chat, dt_reasoning_state reasoning, bool limited, dtl_request *request);

/* The result of one answer, complete or up to a failure. It owns all its strings and arrays. */
struct dtl_result {
  int32_t *tokens, *prompt_ids;
  int n_tokens, n_prompt;
  char *text; /* valid UTF-8, cut before the stop string */
  size_t text_len;
  /* "length", "eos", "stop", "context" or "interrupted"; "policy": the policy failed (DT_EPOLICY); "error": something
   * else failed, or the prompt was never tried: see dtl_generate. Static. */
  const char *finish_reason;
  char *policy, *params;   /* the policy's name; the parameters that were set, as the text of a JSON object */
  char source[DTL_DIGEST]; /* digest of the policy's text */
  uint64_t seed;
  dt_sampling sampling;
  bool coupled;
  char *target, *draft; /* paths; draft NULL: no draft was loaded */
#define DTL_FACT(name, of_draft) char *name;
  DT_PAIR_FACTS(DTL_FACT) /* as in dt_pair_info */
#undef DTL_FACT
  char *backend;
  int threads;
  double load_ms;             /* time to open the pair, once for all its runs; not part of any other time */
  int index, slots;           /* its number in results[], from 1; sequences that run at once (0: not a batch) */
  int prompt;                 /* number of its prompt in the request, from 1; several answers may have the same */
  dt_adjustments adjustments; /* zeros: none. The result owns its arrays and texts */
  dt_reasoning_state reasoning;
  dtl_logprob *logprobs, *prompt_logprobs; /* [n_tokens], [n_prompt]; NULL: not asked for */
  int32_t *top_ids;                        /* the arrays that logprobs point into */
  float *top_logps;
  dt_stats stats;
  /* policy_ms: the policy's own code, init included; with scope "batch" that of the whole batch. other_ms: the rest of
   * the time from the start of the prompt, such as callbacks and passes of other sequences. */
  double policy_ms, other_ms;
  dtl_notes notes;
  dt_window window;                 /* zeros: none */
  const char *costs;                /* the costs that the policy used: "table" or "learn"; NULL: none. Static */
  bool uses_memory, uses_corpus;    /* earlier runs may have influenced this one, by the memory or by their outputs */
  long remembered, earlier_tokens;  /* entries of the memory, and tokens of earlier outputs, when it started */
  long corpus_tokens;               /* tokens of the corpus's files */
  char corpus[DTL_DIGEST];          /* digest of these tokens' ids */
  int ids_without_row;              /* number of the tokenizer's ids that the target's vocabulary lacks */
  size_t peak_memory;               /* of the process, in bytes */
  size_t weight_bytes, cache_bytes; /* in the host's or the GPU's memory */
  size_t device_memory;             /* bytes of weights, caches and scratch in the GPU's memory; 0: in the host's */
  bool failed;                      /* false also if it was interrupted or never tried */
  dt_error failure;                 /* if it failed: why the text ended early */
};

/* Checks the values of a request that can be checked without a pair, as dtl_generate does. DT_EINPUT: the message
 * begins with the option's name. */
dt_status dtl_request_check(const dtl_request *request, dt_error *err);

/* Generates answers to all prompts, `slots` sequences at a time, and fills results[n * answers], the answers to a
 * prompt next to each other. The sequences share passes, and a new prompt begins when a sequence ends. Each text is the
 * one that its prompt would give alone. Each answer has its own policy object; with scope "batch" one object serves
 * all.
 *
 * All results are filled even if the call fails, unless `request` or `results` is NULL, `n` is negative, or `answers`
 * is out of range; the caller frees each with dtl_result_free. The failure of one sequence, such as a bad prompt, is
 * reported only in its result (`failed`), and `done` is called for it. The call itself fails if the request is refused
 * or a policy of scope "batch" fails.
 *
 * If the run ends early (an interrupt, `done` returned false, or such a failure), the remaining prompts are never
 * tried: `done` is not called for them, and their results have only the finish_reason "error". The first prompt is
 * tried even after an interrupt, so that its result describes the run. */
dt_status dtl_generate(dt_pair *pair, const dtl_policy *policy, const dtl_request *request, dtl_result *results,
                       dt_error *err);
void dtl_result_free(dtl_result *result);

/* ---- the engine of a server -------------------------------------------------------------------------------------- */

/* Serves requests that arrive at any time, in one session of a pair. A request begins between two iterations of the
 * others, shares their passes, and leaves when its text ends. Each has a policy object of its own, also with scope
 * "batch", and its text is the one that dtl_generate would give it alone. A slot is room for one such sequence. A long
 * prompt runs in pieces, one between two iterations of the others; short prompts that together take no longer than a
 * piece begin together.
 *
 * If a prompt shares a prefix with an earlier request, the cached rows of that prefix are reused. Most of them are in
 * the slots: each slot keeps the rows of its last text, and a prompt that continues that text gets the slot if it is
 * free. The rows of a text that lost its slot move to the prefix cache, which evicts the least recently used rows when
 * it is full. A prompt gets rows from there or from another slot only if these are at least 32 rows more than its own
 * slot has; computing fewer is faster than copying them. On a GPU, pieces have whole chunks of 512 rows, and of some
 * texts fewer rows can be reused (dt_seq_continue).
 *
 * An engine, its pair and what its requests share may be used by one thread at a time. */
typedef struct dtl_engine dtl_engine;

typedef struct {
  int slots;                 /* requests that run at once: 1..DTL_SLOTS */
  int context;               /* of each request; 0: as in dt_session_options */
  double piece_ms;           /* approximate time that a piece of a prompt may keep the others waiting; 0: 100 ms */
  dtl_learned *learned;      /* as in dtl_request */
  size_t prefix_cache_bytes; /* maximum size of the prefix cache; 0: a prompt reuses rows of its own slot only */
} dtl_engine_options;

/* Opens an engine. It measures a few passes if nothing is known about their costs. The pair must outlive the engine. */
dt_status dtl_engine_open(dt_pair *pair, const dtl_engine_options *options, dtl_engine **out, dt_error *err);
/* Ends all requests as "interrupted", calling `done` for each, and closes the engine. NULL is allowed. */
void dtl_engine_close(dtl_engine *engine);

/* Adds a request with one prompt and one answer; its slots, costs, learned, context, window and session must be zero,
 * and its prompt is not a prefix. The request takes a free slot at once, but nothing is computed yet: its prompt runs
 * in dtl_engine_step, and its callbacks are called there and in dtl_engine_close. They must not call functions of the
 * engine, which is in the middle of a step; the next request can begin when dtl_engine_step has returned.
 *
 * The request and its prompt are copied. The policy and everything else that the request points to (strings, biases,
 * memory, corpus, trace, interrupt, user) must last until `done` has been called for it. `done` gets prompt = 0; its
 * return value is ignored, and the result is freed after the call. If on_text returns false or *interrupt is not zero,
 * only this request ends.
 *
 * If this call fails, `done` is not called. DT_EINPUT: there is not exactly one prompt and one answer, a field that
 * must be zero is set, the policy needs a draft or a memory that is missing, or the text cannot be encoded. DT_ESTATE:
 * no slot is free. An empty or too long prompt, an unknown id or a bad option is reported in the result. */
dt_status dtl_engine_begin(dtl_engine *engine, const dtl_policy *policy, const dtl_request *request, dt_error *err);

/* Runs one iteration of every request whose prompt is complete, and then, if prompts are waiting, a piece of one prompt
 * or several short ones. Returns the number of requests that are left. */
int dtl_engine_step(dtl_engine *engine);
int dtl_engine_room(const dtl_engine *engine);            /* number of free slots */
size_t dtl_engine_cached_bytes(const dtl_engine *engine); /* present size of the prefix cache */

/* ---- results ----------------------------------------------------------------------------------------------------- */

#define DTL_JSON_BRIEF 1u /* without prompt_ids, tokens and text */
#define DTL_JSON_LINE 2u  /* on one line */

/* Writes the result as JSON in schema dtrun.result/1 (lua/cli/RESULTS.md). The text is malloc'd and ends in a newline
 * and a NUL; NULL: out of memory, or an unknown flag. */
char *dtl_result_json(const dtl_result *result, unsigned flags);
/* Returns the FNV-1a 64 hash of the ids as little-endian int32. It tells different outputs of one pair apart, but it is
 * not cryptographic. */
uint64_t dtl_output_hash(const int32_t *tokens, int n);
/* Returns the generated tokens divided by the time from the start of the prompt pass to the last token. */
double dtl_tokens_per_second(const dtl_result *result);

/* ---- drivers ----------------------------------------------------------------------------------------------------- */

/* Runs a driver, a Lua program named by a path or an installed name, with all of Lua and the module `dt`. Returns an
 * exit status for the process; 2: there is no such driver. */
int dtl_run_driver(const char *driver, int argc, char **argv, const volatile sig_atomic_t *interrupt);

/* ---- other languages --------------------------------------------------------------------------------------------- */

/* Makes the functions of drivers callable from other languages, as scripts/python does. All values are JSON;
 * lua/dt/bridge.lua lists the functions. One thread at a time may use a bridge. */
typedef struct dtl_bridge dtl_bridge;

/* Gets each new piece of the text or, with several prompts, each answer as JSON. It returns false to stop. */
typedef bool (*dtl_listener)(void *user, const char *bytes, size_t len);

dtl_bridge *dtl_bridge_open(void); /* NULL: out of memory */
/* Closes a bridge and all pairs that it loaded. NULL is allowed. A call from the bridge's own listener does nothing. */
void dtl_bridge_close(dtl_bridge *bridge);

/* Calls a function with a JSON object of options; `listener` may be NULL. Returns {"value": ...} or {"error": {"kind":,
 * "message":, ...}} as malloc'd JSON, which the caller frees with dtl_bridge_free; NULL: out of memory. A call from a
 * listener is an error. */
char *dtl_bridge_call(dtl_bridge *bridge, const char *function, const char *options, dtl_listener listener, void *user);
void dtl_bridge_free(char *answer); /* NULL is allowed */

/* With true, the present call and all later ones fail with "interrupted", until it is called with false. It may be
 * called from any thread and from signal handlers. */
void dtl_bridge_interrupt(dtl_bridge *bridge, bool interrupted);
/* Lets a signal interrupt the bridge before it goes to its present handler; number 0 ends that. A process has one such
 * bridge at a time. False: there is no such signal. */
bool dtl_bridge_catch(dtl_bridge *bridge, int number);

#pragma GCC visibility pop

#endif
