/* The Lua side of dtrun: policies in their box, and drivers. It uses the engine through dtrun.h and the few public
 * headers next to it that tests/rules.sh lists.
 *
 *   dtl_policy *p;  dt_error err;
 *   if (dtl_policy_open(&(dtl_policy_options){.policy = "dynatree"}, &p, &err)) ...
 *   dt_pair_open(...);                                  // needs no draft if dtl_policy_describe(p)->draft is
 * DTL_NO_DRAFT dtl_request request = {.prompts = &(dtl_prompt){.text = text, .len = len}, .n = 1, .seq = {.max_tokens =
 * 100}}; dtl_result result; bool ok = !dtl_generate(pair, p, &request, &result, &err) && !result.failed;   // the
 * result is filled in any case dtl_result_free(&result);  dtl_policy_close(p);
 *
 * A dtl_policy holds a policy's texts, parameters and description. It does not change and serves any number of runs;
 * each run makes its objects in new boxes. One text is a batch with n = 1.
 *
 * Errors and checks of arguments are those of dtrun.h: a call that returns a dt_status answers a bad argument with
 * DT_EINPUT. */
#ifndef DTL_HOST_H
#define DTL_HOST_H

#include "dtrun.h"

#include <signal.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

/* The kind of a failure as results, drivers and other languages name it: "policy", "input" (DT_EINPUT, DT_EWEIGHTS),
 * "context", "interrupted"; "device" for all others. */
const char *dtl_kind_name(dt_status status);

/* Copies text into out[size] with control characters as blanks, cut at a character's border to fit. Returns its length.
 */
size_t dtl_clean(char *out, size_t size, const char *text, size_t len);

#define DTL_DIGEST 65   /* bytes of a digest (BLAKE2b-256) as text: 64 hexadecimal digits and the NUL */
#define DTL_SLOTS 256   /* maximum number of sequences at once */
#define DTL_ANSWERS 256 /* most answers to a prompt */

#define DTL_TUNED "tuned" /* name of the preset that dtrun run tune finds for one pair and machine */

/* ---- policies ---------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name, *value; /* as typed: --set NAME=VALUE */
} dtl_setting;

typedef struct {
  const char *policy; /* a path (it has a '/' or ends in .lua) or the name of an installed policy */
  const char *source; /* its text; NULL: read the file. With a source, policy is only its name in messages */
  size_t source_len;
  const dtl_setting *settings; /* override the preset, which overrides the defaults */
  int n_settings;
  const char *preset;                     /* or NULL */
  const dt_pair *pair;                    /* the pair that the preset DTL_TUNED must belong to */
  double seconds;                         /* limit for all calls into one object together; 0: none */
  double call_seconds;                    /* limit for each call into an object; 0: 2, and 100 for its init */
  bool quiet;                             /* its print writes nothing */
  const volatile sig_atomic_t *interrupt; /* or NULL; nonzero ends the opening */
} dtl_policy_options;

typedef struct dtl_policy dtl_policy;

/* DTL_ANY_DRAFT: it works with a draft and without. */
typedef enum { DTL_NO_DRAFT, DTL_ANY_DRAFT, DTL_NEEDS_DRAFT } dtl_need;

typedef struct {
  const char *name, *doc;
  const char *type;      /* "integer", "number", "boolean", "string" */
  const char *value;     /* its present value as text; NULL: nil */
  const char *range;     /* "1..64", "one of a, b", or "" */
  const char *min, *max; /* NULL: none */
  /* one_of: the allowed values (none: any). tune: a search tries these values, or for a number those from tune[0] to
   * tune[1]; none: it leaves the parameter alone. */
  const char *const *one_of, *const *tune;
  int n_one_of, n_tune;
} dtl_param;

typedef struct {
  const char *name, *doc, *path; /* path: its file, or its name */
  char source[DTL_DIGEST];       /* a digest of its text */
  dtl_need draft;
  bool uses_costs, uses_memory, uses_corpus;
  bool corpus_optional; /* uses_corpus only if the request has a corpus */
  int candidates;       /* how many of the target's it wants after every verified row */
  bool batch;           /* scope "batch": one object serves all sequences of a batch */
  const dtl_param *params;
  int n_params;
  const char *const *presets;
  int n_presets;
} dtl_policy_info;

/* Reads the policy, applies preset and settings, makes one object to run its check, and keeps the description. */
dt_status dtl_policy_open(const dtl_policy_options *options, dtl_policy **out, dt_error *err);
void dtl_policy_close(dtl_policy *policy); /* NULL is allowed */
const dtl_policy_info *dtl_policy_describe(const dtl_policy *policy);
const char *dtl_policy_text(const dtl_policy *policy, size_t *len); /* of its file */

/* The names of the Lua files in an installed folder ("policies", "scripts"), sorted, without .lua: *n malloc'd strings
 * in a malloc'd array. Policies that only reproduce a paper (policies/papers) come last. */
dt_status dtl_installed(const char *folder, char ***names, int *n, dt_error *err);

#define DTL_NEAR 8

/* Finds the names closest to n typed characters, the closest first: near[], at most `most` and DTL_NEAR. Returns their
 * number. */
int dtl_near(const char *typed, size_t n, const char *const *names, int n_names, const char **near, int most);

/* Finds the models to load: from the options, else the environment (DTRUN_TARGET, DTRUN_DRAFT), else the bundled pair.
 * A name is a folder, a file, or a Hugging Face id whose files lie in its cache. If only the target is named, its draft
 * is searched for: next to it, among dtrun's own models and in that cache (dt_draft_fits). The draft "none" prevents
 * that. *draft is NULL if there is no draft or `need` wants none; if `need` asks for one, that is DT_EINPUT. Both are
 * malloc'd. */
dt_status dtl_resolve_models(const char *target_option, const char *draft_option, dtl_need need, char **target,
                             char **draft, dt_error *err);

/* ---- models on this machine -------------------------------------------------------------------------------------- */

typedef struct {
  char *name;       /* its name for dtl_resolve_models */
  char *path;       /* a folder or a file */
  const char *kind; /* "target"; "draft": it fits another model of the list; "head"; "unreadable". Static */
  const char *type; /* "Q4_K", the type of most of its weights; NULL: a head, or unreadable. Static */
  uint64_t bytes;   /* size of its weights' files; of all files if it is unreadable */
  bool removable;   /* dtl_remove_model can remove it */
  char *problem;    /* why it is unreadable; NULL: it is readable */
} dtl_model;

/* Whether a word that is no path is a model's name: of dtrun's own, of those that scripts/get-model brings, or
 * ORG/NAME. The model may not be here. */
bool dtl_is_model_name(const char *word);

/* Lists dtrun's own models, pulled models, and those in Hugging Face's cache, in this order: *n in a malloc'd array,
 * freed with dtl_models_free. */
dt_status dtl_models(dtl_model **models, int *n, dt_error *err);
void dtl_models_free(dtl_model *models, int n);

/* Removes a model by its name in dtl_models, and nothing else: a pulled file and the file it links to, or the cache's
 * folder of ORG/NAME. agree: called with path and size in bytes; false keeps the model. *removed: whether it was
 * removed. DT_EINPUT: no such name, or one of dtrun's own models. DT_EDEVICE: all or a part of it could not be removed.
 */
dt_status dtl_remove_model(const char *name, bool (*agree)(void *user, const char *path, uint64_t bytes), void *user,
                           bool *removed, dt_error *err);

/* Finds a model that scripts/get-model brings from a Python package: that script, and the folder for the model, which
 * may not exist yet. *names: all such models' names, separated by blanks. All are malloc'd. *script is NULL if the name
 * is unknown. */
dt_status dtl_named_model(const char *name, char **script, char **folder, char **names, dt_error *err);

/* The folder of Hugging Face's cache: $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub. malloc'd; NULL: out of
 * memory. */
char *dtl_hub_folder(void);

/* ---- the user's files -------------------------------------------------------------------------------------------- */

/* The path of a state file: dtrun/RELATIVE in $XDG_STATE_HOME, or in ~/.local/state. malloc'd; NULL: neither is an
 * absolute path, or out of memory. */
char *dtl_state_file(const char *relative);

/* Makes the missing folders before the last '/' of a path; false sets errno (EINVAL: no path). */
bool dtl_make_folders(char *path);

/* The id of a text that is one token. DT_EINPUT: the text is several tokens, or none. */
dt_status dtl_token(const dt_pair *pair, const char *text, size_t len, int32_t *id, dt_error *err);
/* Reads a bias as llama.cpp does, "15043+1", "15043-2.5", "15043-inf", or with the token's text, " the=-2". DT_EINPUT:
 * neither. */
dt_status dtl_bias(const dt_pair *pair, const char *given, dt_bias *out, dt_error *err);
/* The text of a grammar's or a schema's file (`what`); malloc'd. DT_EINPUT: it cannot be read, or holds a NUL byte. */
dt_status dtl_read_grammar(const char *what, const char *path, char **text, dt_error *err);

/* Reads --draft-vocab: a number of ids (the lowest ids, and those of a text that comes with dtrun), or a file with an
 * id on each line. Freed with dtl_draft_vocab_close. DT_EINPUT names file and line. */
dt_status dtl_draft_vocab_open(const char *given, dt_draft_vocab *out, dt_error *err);
void dtl_draft_vocab_close(dt_draft_vocab *vocab); /* zeros are allowed */

typedef struct {
  const char *target, *draft; /* names as in dtl_resolve_models, or NULL */
  const char *draft2;         /* a second draft's name; NULL or "none": none */
  dtl_need need;
  const char *draft_vocab; /* see dtl_draft_vocab_open; NULL: the draft guesses all ids */
  const dt_message *texts; /* [n_texts] texts whose ids draft_vocab gets too */
  int n_texts;
  bool chats;          /* fails, before it loads weights, if there is no layout of conversations: */
  const char *layout;  /* its name; NULL: the one of the target's chat template */
  dt_pair_options how; /* the other options; its models and draft_vocab are not read */
  bool shown; /* tells on standard error that it loads (on a terminal), and the time if that was over a second */
} dtl_load_options;

/* Resolves the names and opens the pair. *found: the draft was searched for, not named. A found draft that cannot be
 * loaded is left out, unless `need` asks for one or a second is named. DTL_NO_DRAFT opens neither. */
dt_status dtl_load(const dtl_load_options *options, dt_pair **out, bool *found, dt_error *err);

/* ---- conversations ----------------------------------------------------------------------------------------------- */

/* dt_chat_text with a date for templates that have one; NULL: today. */
dt_status dtl_conversation(const dt_chat *chat, const dt_message *system, const dt_message *turns, const dt_role *roles,
                           int n, const char *date, char **text, size_t *len, dt_error *err);

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* Counters of this process, or of its children that have ended. */
typedef struct {
  double wall_ms, cpu_ms, steal_ms; /* steal: time that other virtual machines took from all processors */
  long switches;                    /* involuntary context switches */
} dtl_usage;

dtl_usage dtl_usage_now(bool children);

#define DTL_WHY 80

/* Whether other programs used the processors between the two, which makes times of that period unreliable; why[size]
 * gets the reason (size: DTL_WHY or more). `computes`: some thread computed all the time, as on a CPU, and did not wait
 * for a GPU or disk. */
bool dtl_disturbed(const dtl_usage *before, const dtl_usage *after, bool computes, char *why, size_t size);

/* ---- costs of passes --------------------------------------------------------------------------------------------- */

#define DTL_COST_ROWS 96
#define DTL_COST_CONTEXTS 8
#define DTL_COST_MISSES 3

/* Milliseconds of a pass over `batch` sequences, by each sequence's rows and context. Other values are interpolated;
 * few contexts are enough, since attention's time is linear in the context. Of a target with experts these are times of
 * passes that read experts[] distinct ones, of all layers and sequences; one that reads e takes expert[] * (e -
 * experts[]) longer. */
typedef struct {
  int batch, n_contexts, n_rows;
  int drafts;                                                /* that the pair has: 0..DT_DRAFTS */
  bool disturbed;                                            /* other programs ran during all measurements */
  int context[DTL_COST_CONTEXTS], rows[DTL_COST_ROWS];       /* ascending */
  double target[DTL_COST_CONTEXTS][DTL_COST_ROWS];           /* strictly increasing in rows */
  double draft[DT_DRAFTS][DTL_COST_CONTEXTS][DTL_COST_ROWS]; /* a pass of a draft right after another one of it */
  double first[DT_DRAFTS][DTL_COST_CONTEXTS]; /* its first pass of an iteration, of one row: caches are cold */
  double target_sample, draft_sample;         /* added for each row of all sequences: sampling, and coupled drafting */
  double experts[DTL_COST_ROWS];              /* by rows; zeros: the target has none, or nobody counted */
  double expert[DTL_COST_ROWS];               /* ms of one more */
  double cache_miss[DTL_COST_MISSES]; /* ms of a read of 32 KiB last read 0, 1, more target passes ago, ascending.
                                       * Policy overhead is a multiple: lua/dt/policy/pass_costs.lua */
} dtl_costs;

typedef struct {
  int context;                                       /* as in dtl_request; 0: the target's */
  int batch;                                         /* sequences at once; 0: 1 */
  bool fresh;                                        /* measure again and ignore the cache */
  void (*progress)(void *user, int done, int total); /* or NULL; while measuring; the last time done == total */
  void (*note)(void *user, const char *line);        /* or NULL; gets warnings: an unreadable cache */
  void *user;
  dtl_usage (*usage)(bool children);      /* NULL: dtl_usage_now */
  const volatile sig_atomic_t *interrupt; /* or NULL */
} dtl_cost_measuring;

/* Options that show notes and progress on standard error; where that is no terminal, a line each ten seconds. `user`
 * points to the clock in ms of the last line, a double of all callers. */
dtl_cost_measuring dtl_cost_measuring_shown(const volatile sig_atomic_t *interrupt);

/* Times of the pair's passes on this machine, from the user's cache folder; if they are not there, they are measured
 * and stored: in some seconds or, with large models, minutes. A disturbed measurement is repeated once; a table that is
 * still disturbed is used for ten minutes. */
dt_status dtl_measure_costs(dt_pair *pair, const dtl_cost_measuring *how, dtl_costs *costs, dt_error *err);

/* The median of n numbers, which it sorts. NaN: there are none. */
double dtl_median(double *list, int n);

/* Learned costs begin as an estimate from the models' sizes, and from a quarter of a second of passes if these are
 * short. Each pass of a run improves them. They are kept in the user's cache folder, one file for each pair, machine
 * and way of running; programs, builds and contexts share it. For one thread at a time, like the pair; close it before
 * the pair. */
typedef struct dtl_learned dtl_learned;

typedef struct {
  void (*note)(void *user, const char *line); /* or NULL; gets warnings: a file that is ignored or cannot be written */
  void *user;
  const volatile sig_atomic_t *interrupt; /* or NULL */
} dtl_learning;

dtl_learning dtl_learning_shown(const volatile sig_atomic_t *interrupt); /* notes on standard error */

dtl_learned *dtl_learned_open(dt_pair *pair, const dtl_learning *how); /* NULL: out of memory, or an argument is NULL */
void dtl_learned_close(dtl_learned *learned);                          /* writes the file; NULL is allowed */

/* Milliseconds of plain decoding per token after `context` tokens, in runs like the last one. 0: no pass over one row
 * was seen. */
double dtl_learned_plain(const dtl_learned *learned, int context);

/* Milliseconds of the draft's first pass of an iteration, in the same way. 0: there was no run, or there is no draft.
 */
double dtl_learned_draft(const dtl_learned *learned, int context);

/* ---- memory between runs ----------------------------------------------------------------------------------------- */

/* Keeps for later runs with one pair the table that a policy fills (uses.memory) and its outputs, to search in
 * (uses.corpus). It holds those of the four policies that ran last; a policy is identified by its text. */
typedef struct dtl_memory dtl_memory;

dtl_memory *dtl_memory_open(void); /* NULL: out of memory */
void dtl_memory_forget(dtl_memory *memory);
void dtl_memory_close(dtl_memory *memory); /* NULL is allowed */

/* An index of files for policies to search in: some seconds for ten million tokens. It holds the pair's ids. */
typedef struct dtl_corpus dtl_corpus;

/* n >= 1 files. DT_EINPUT: no files, or one is missing, empty or too long. */
dt_status dtl_corpus_open(const dt_pair *pair, const char *const *files, int n, dtl_corpus **out, dt_error *err);
void dtl_corpus_close(dtl_corpus *corpus); /* NULL is allowed */

/* ---- generation -------------------------------------------------------------------------------------------------- */

/* Where generated text comes from. */
typedef enum {
  DTL_DRAFTED,  /* a guess that was accepted */
  DTL_BONUS,    /* the target's own token after the last guess */
  DTL_CORRECTED /* the target's own token at a place where all guesses were wrong */
} dtl_origin;

/* A file with every iteration of a request's runs, in schema dtrun.trace/1 (policies/TRACES.md). */
typedef struct dtl_trace dtl_trace;

dt_status dtl_trace_open(const char *path, dtl_trace **out, dt_error *err); /* DT_EINPUT: the file cannot be written */
/* Instead of a file, `tell` gets each line, without its newline. */
dt_status dtl_trace_open_lines(void (*tell)(void *user, const char *line), void *user, dtl_trace **out, dt_error *err);
/* DT_EDEVICE: the file is incomplete; the run is unaffected. NULL is allowed. */
dt_status dtl_trace_close(dtl_trace *trace, dt_error *err);

typedef struct {
  const char *text; /* or NULL with prefix */
  size_t len;
  bool whole; /* encoded by dt_encode_whole */
  const dt_prefix *prefix;
  const int32_t *ids; /* [n_ids] the tokens themselves, instead of a text; NULL: a text or a prefix */
  int n_ids;
} dtl_prompt;

typedef struct dtl_result dtl_result;

/* What a policy says of its own: nodes by the tag it gave them (tree:tag), and numbers by name (seq:log). */
#define DTL_NOTES 16     /* tags of a run, and names of numbers */
#define DTL_NOTE_NAME 32 /* bytes of one */

typedef struct {
  char name[DTL_NOTE_NAME + 1];
  long verified, decided, accepted; /* nodes; decided: those whose parent was accepted */
  double expected;                  /* of those decided: the sum of their probabilities */
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

/* A token's log-probability, and the n likeliest tokens in its place. */
typedef struct {
  float logp; /* NaN: unknown, as of a text's first token */
  int n;
  const int32_t *id;  /* [n] by falling */
  const float *logps; /* [n] */
} dtl_logprob;

typedef struct {
  const dtl_prompt *prompts; /* [n] */
  int n;
  int answers;            /* texts of each prompt, which share its prompt pass; 0 is 1. There are n * answers results */
  int slots;              /* sequences at once: 1..DTL_SLOTS; 0: one prompt, not a batch */
  dt_seq_options seq;     /* answer i, from 0, adds i to the seed, of sampling and of its policy's math.random */
  const dtl_costs *costs; /* a table for a policy with uses_costs; copied. NULL: learned costs */
  dtl_learned *learned;   /* or NULL: opened for this request if the policy needs it */
  dtl_memory *memory;     /* NULL is allowed unless the policy uses memory or corpus */
  const dtl_corpus *corpus; /* or NULL */
  int context;              /* 0: the target's */
  dt_window window;         /* zeros: the target sees the whole text */
  dt_session *session;      /* or NULL; with one prompt: its sequence 0 continues with that prompt */
  /* Or NULL; called as each sequence ends, in any order. False: running sequences end as "interrupted", and no more
   * begin. */
  bool (*done)(void *user, int prompt, dtl_result *result);
  /* Or NULL; with one prompt: called with bytes that may be shown. False: the text ends as "interrupted". */
  bool (*on_text)(void *user, const char *bytes, size_t len);
  /* Or NULL; with one prompt that asks for log-probabilities: called with those of the n tokens of an iteration, before
   * their text. The arrays are valid during the call. */
  void (*on_logprobs)(void *user, const int32_t *ids, const dtl_logprob *logprobs, int n);
  void (*begin_line)(void); /* or NULL; called before a policy prints a line on standard error */
  void (*on_origin)(void *user, dtl_origin origin); /* or NULL; before each on_text, whose bytes then have one origin */
  void *user;
  dtl_trace *trace; /* or NULL; of all prompts, for one request */
  bool alone;       /* of an engine's: it keeps no rows of earlier prompts, and leaves none for later ones */
  const volatile sig_atomic_t *interrupt; /* or NULL; nonzero ends the run as "interrupted", also within policy calls */
} dtl_request;

/* The outcome of one prompt, complete or up to a failure. The result owns all its strings and arrays. */
struct dtl_result {
  int32_t *tokens, *prompt_ids;
  int n_tokens, n_prompt;
  char *text; /* valid UTF-8, cut before the stop string */
  size_t text_len;
  const char *finish_reason; /* "length", "eos", "stop", "context", "interrupted", "policy", "error": static */
  char *policy, *params;     /* its name; the parameters that were set, a JSON object as text */
  char source[DTL_DIGEST];   /* a digest of the policy's text */
  uint64_t seed;
  dt_sampling sampling;
  bool coupled;
  char *target, *draft; /* paths; draft NULL: none loaded */
#define DTL_FACT(name, of_draft) char *name;
  DT_PAIR_FACTS(DTL_FACT) /* as in dt_pair_info */
#undef DTL_FACT
  char *backend;
  int threads;
  double load_ms;             /* time to open the pair, once for all its runs; not part of any other time */
  int index, slots;           /* number of the answer, from 1, and sequences at once; slots 0: not a batch */
  int prompt;                 /* number of its prompt, from 1; several answers may share one */
  dt_adjustments adjustments; /* zeros: none. The result owns its biases */
  dtl_logprob *logprobs, *prompt_logprobs; /* [n_tokens], [n_prompt]; NULL: not asked for */
  int32_t *top_ids;                        /* storage of the ids that logprobs point to */
  float *top_logps;
  dt_stats stats;
  double policy_ms, other_ms;
  dtl_notes notes;
  dt_window window;                 /* zeros: none */
  const char *costs;                /* "table", "learn": the costs that the policy used; NULL: none. Static */
  bool uses_memory, uses_corpus;    /* earlier runs may have had influence: */
  long remembered, earlier_tokens;  /* entries of the memory and tokens of outputs at the start of the run */
  long corpus_tokens;               /* tokens of the corpus's files */
  char corpus[DTL_DIGEST];          /* a digest of these tokens' ids */
  int ids_without_row;              /* how many of the tokenizer's ids the target lacks */
  size_t peak_memory;               /* of the process */
  size_t weight_bytes, cache_bytes; /* on the host or on the device */
  size_t device_memory;             /* weights, caches and scratch on the device; 0: they are on the host */
  bool failed;
  dt_error failure; /* why it ended early */
};

/* Checks the values of a request that need no pair, as dtl_generate does. DT_EINPUT: the message begins with the
 * option's name. */
dt_status dtl_request_check(const dtl_request *request, dt_error *err);

/* Generates from all prompts, `slots` at a time. Their passes are shared, and a prompt begins when a sequence ends.
 * Each text is the one that its prompt would give alone. Each answer has an object of the policy; with scope "batch"
 * one object serves all. Fills all results in any case, the answers of a prompt one after the other; the caller frees
 * each with dtl_result_free. It fails if nothing could begin, or if a policy of scope "batch" failed: `done` is then
 * not called for prompts that did not begin. A failure of one sequence is in its result only. */
dt_status dtl_generate(dt_pair *pair, const dtl_policy *policy, const dtl_request *request, dtl_result *results,
                       dt_error *err);
void dtl_result_free(dtl_result *result);

/* ---- requests that come and go ----------------------------------------------------------------------------------- */

/* Serves requests in one session of a pair. Each has a policy of its own; it begins between two iterations of the
 * others, shares their passes, and leaves when its text ends. Its text is the one that dtl_generate gives it alone. A
 * long prompt runs in pieces, one between two iterations of the others; short ones that end in the time of a piece
 * begin together. If a prompt shares a prefix with an earlier request, only the tokens missing from the prefix cache
 * are computed: each slot keeps the rows of its last text, and the rows of displaced texts are kept until they are the
 * least recently used. On a device prompts run as a whole, and nothing is kept. One thread at a time uses an engine,
 * its pair and what its requests share. */
typedef struct dtl_engine dtl_engine;

typedef struct {
  int slots;                 /* requests at once: 1..DTL_SLOTS */
  int context;               /* of each; 0: the target's */
  double piece_ms;           /* how long a piece of a prompt may keep the others waiting, about; 0: 100 */
  dtl_learned *learned;      /* as in dtl_request */
  size_t prefix_cache_bytes; /* of displaced rows, at most */
} dtl_engine_options;

/* It measures a few passes, if nothing is known of them. The pair must outlive the engine. */
dt_status dtl_engine_open(dt_pair *pair, const dtl_engine_options *options, dtl_engine **out, dt_error *err);
void dtl_engine_close(dtl_engine *engine); /* ends what runs as "interrupted"; NULL is allowed */

/* Takes a request of one prompt and one answer, whose slots, costs, learned, context, window and session are zeros.
 * The policy and all that the request points to, but for its prompt, must last until its `done` was called, with prompt
 * = 0; the result is freed after that call, whose answer is ignored. If on_text returns false or *interrupt is not
 * zero, only this request ends. What is wrong with its prompt or its options is in its result. DT_ESTATE: no slot is
 * free. After a failure `done` is not called. */
dt_status dtl_engine_begin(dtl_engine *engine, const dtl_policy *policy, const dtl_request *request, dt_error *err);

/* Runs one iteration of every request, and a piece of one prompt, or some short ones, if any wait. Returns how many
 * requests there are still. */
int dtl_engine_step(dtl_engine *engine);
int dtl_engine_room(const dtl_engine *engine);            /* slots that are free */
size_t dtl_engine_cached_bytes(const dtl_engine *engine); /* bytes of displaced rows */

#define DTL_JSON_BRIEF 1u /* without prompt_ids, tokens and text */
#define DTL_JSON_LINE 2u  /* on one line */

/* The result as JSON text in schema dtrun.result/1, described in lua/cli/RESULTS.md: malloc'd, NUL-terminated,
 * ends in a newline; NULL when out of memory, or for an unknown flag. */
char *dtl_result_json(const dtl_result *result, unsigned flags);
/* FNV-1a 64 over the ids as little-endian int32. It tells outputs of one pair apart, unless somebody forges one. */
uint64_t dtl_output_hash(const int32_t *tokens, int n);
/* Generated tokens over the time from the start of the prompt pass to the last token. */
double dtl_tokens_per_second(const dtl_result *result);

/* ---- drivers ----------------------------------------------------------------------------------------------------- */

/* Runs a driver (a path or an installed name) with full Lua and the module `dt`. Returns an exit status for the
 * process; 2: no such driver. */
int dtl_run_driver(const char *driver, int argc, char **argv, const volatile sig_atomic_t *interrupt);

/* ---- other languages --------------------------------------------------------------------------------------------- */

/* The functions of drivers for programs in other languages, such as scripts/python. All values are JSON;
 * lua/dt/bridge.lua has the list of functions. One thread at a time may use a bridge. */
typedef struct dtl_bridge dtl_bridge;

/* Gets each new piece of the text; with several prompts each prompt's answer, as JSON. False: stop. */
typedef bool (*dtl_listener)(void *user, const char *bytes, size_t len);

dtl_bridge *dtl_bridge_open(void); /* NULL: out of memory */
/* Closes all pairs that it loaded, too. NULL is allowed. From its own listener this does nothing. */
void dtl_bridge_close(dtl_bridge *bridge);

/* Calls a function with an object of options (JSON). listener: or NULL. The answer is {"value": ...} or {"error":
 * {"kind":, "message":, ...}}: malloc'd JSON, to be freed with dtl_bridge_free; NULL: out of memory. A call from a
 * listener is an error. */
char *dtl_bridge_call(dtl_bridge *bridge, const char *function, const char *options, dtl_listener listener, void *user);
void dtl_bridge_free(char *answer); /* NULL is allowed */

/* true: the present call and all later ones fail with "interrupted", until this is called with false. From any thread
 * or signal handler. */
void dtl_bridge_interrupt(dtl_bridge *bridge, bool interrupted);
/* Lets this signal interrupt the bridge, before it goes to its present handler; number 0 ends that. One bridge of a
 * process at a time. False: there is no such signal. */
bool dtl_bridge_catch(dtl_bridge *bridge, int number);

#pragma GCC visibility pop

#endif
