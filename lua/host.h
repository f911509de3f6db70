/* The Lua side of dtrun: policies in their box, and drivers. Knows the engine through dtrun.h and tree.h only.
 *
 *   dtl_policy *p;  dt_error err;
 *   if (dtl_policy_open(&(dtl_policy_options){.policy = "dynatree"}, &p, &err)) ...
 *   dt_pair_open(...);                                  // without a draft where dtl_policy_describe(p)->draft is DTL_NO_DRAFT
 *   dtl_request request = {.prompts = &(dtl_prompt){.text = text, .len = len}, .n = 1, .seq = {.max_tokens = 100}};
 *   dtl_result result;
 *   bool ok = !dtl_generate(pair, p, &request, &result, &err) && !result.failed;   // the result is filled either way
 *   dtl_result_free(&result);  dtl_policy_close(p);
 *
 * A dtl_policy is what is written: texts, parameters, description. It does not change, and serves any number of runs; each makes its
 * objects in boxes of their own. One text is many texts with n = 1.
 *
 * Calls fail and arguments are checked as in dtrun.h: what is wrong with one is DT_EINPUT of a call that returns a dt_status. */
#ifndef DTL_HOST_H
#define DTL_HOST_H

#include "dtrun.h"

#include <signal.h>

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

/* Kinds of failures, as results, drivers and other languages name them: "policy", "input" (DT_EINPUT, DT_EWEIGHTS), "context",
 * "interrupted"; "device" of any other. */
const char *dtl_kind_name(dt_status status);

/* Copies text into out[size] with control characters as blanks, cut at a character's border to fit. Returns its length. */
size_t dtl_clean(char *out, size_t size, const char *text, size_t len);

#define DTL_DIGEST 65   /* bytes of a digest (BLAKE2b-256) as text: 64 hexadecimal digits and the NUL */
#define DTL_PLACES 256  /* most sequences at once */
#define DTL_ANSWERS 256 /* most answers to a prompt */

#define DTL_TUNED "tuned" /* the preset that dtrun run tune finds for one pair and machine */

/* ---- policies --------------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name, *value; /* as typed: --set NAME=VALUE */
} dtl_setting;

typedef struct {
  const char *policy; /* a path (it has a '/' or ends in .lua) or the name of an installed policy */
  const char *source; /* its text, or NULL: read the file. With source, policy is only its name in messages */
  size_t source_len;
  const dtl_setting *settings; /* override the preset, which overrides the defaults */
  int n_settings;
  const char *preset;                     /* or NULL */
  const dt_pair *pair;                    /* for the preset DTL_TUNED: the pair it must have been found for */
  double seconds;                         /* what all calls into an object may take together; 0: any time */
  const volatile sig_atomic_t *interrupt; /* or NULL: ends the opening */
} dtl_policy_options;

typedef struct dtl_policy dtl_policy;

/* Any: a draft model that is named, or none. */
typedef enum { DTL_NO_DRAFT, DTL_ANY_DRAFT, DTL_NEEDS_DRAFT } dtl_need;

typedef struct {
  const char *name, *doc;
  const char *type;                        /* "integer", "number", "boolean", "string" */
  const char *value;                       /* as set now, as text; NULL: nil */
  const char *range;                       /* "1..64", "one of a, b", or "" */
  const char *min, *max;                   /* NULL: none */
  const char *const *one_of, *const *tune; /* values allowed (none: any), and what a search tries: of a number the */
  int n_one_of, n_tune;                    /* lowest and highest value, else all values; nothing: it is left alone */
} dtl_param;

typedef struct {
  const char *name, *doc, *path; /* path: the file it came from, or its name */
  char source[DTL_DIGEST];       /* a digest of its text */
  dtl_need draft;
  bool uses_costs, uses_memory, uses_corpus;
  int candidates; /* of the target's after every verified row */
  bool batch;     /* of scope "batch": one object serves all sequences of a batch */
  const dtl_param *params;
  int n_params;
  const char *const *presets;
  int n_presets;
} dtl_policy_info;

/* Reads the policy and makes an object of it once: applies preset and settings, runs its check, and keeps the description. */
dt_status dtl_policy_open(const dtl_policy_options *options, dtl_policy **out, dt_error *err);
void dtl_policy_close(dtl_policy *policy); /* NULL is allowed */
const dtl_policy_info *dtl_policy_describe(const dtl_policy *policy);

/* The names of the Lua files in an installed folder ("policies", "scripts"), sorted, without .lua: *n malloc'd strings in a
 * malloc'd array. */
dt_status dtl_installed(const char *folder, char ***names, int *n, dt_error *err);

#define DTL_NEAR 8

/* The names that the n characters typed were probably meant to be, the likeliest first: near[], at most `most` and DTL_NEAR of
 * them. Returns how many. */
int dtl_near(const char *typed, size_t n, const char *const *names, int n_names, const char **near, int most);

/* Which models to use: option before environment (DTRUN_TARGET, DTRUN_DRAFT) before the bundled pair. Each is named by a folder, a
 * file, or an id of Hugging Face whose files lie in its cache. Where only a target is named, its draft is the one that is found to
 * belong to it (dt_draft_fits), beside it, among the models that come with us or in that cache; "none" as the draft: none.
 * *draft is NULL where there is none or none is wanted; where one is needed, that is DT_EINPUT, after a look at the target.
 * Both are malloc'd. */
dt_status dtl_resolve_models(const char *target_option, const char *draft_option, dtl_need need, char **target,
                             char **draft, dt_error *err);

/* ---- models that lie here ---------------------------------------------------------------------------------------------- */

typedef struct {
  char *name;       /* what dtl_resolve_models takes it by */
  char *path;       /* a folder or a file */
  const char *kind; /* "target"; "draft": it can guess for another one that is listed; "head"; "unreadable". Static */
  const char *type; /* "Q4_K": of most of its weights; NULL: a head, or unreadable. Static */
  uint64_t bytes;   /* of its weights' files; of an unreadable one's files */
  bool removable;   /* dtl_remove_model takes it away */
  char *problem;    /* of an unreadable one; NULL: none */
} dtl_model;

/* Models that came with dtrun, those that were pulled, and those in the cache of Hugging Face, in this order: *n in a malloc'd
 * array, freed with dtl_models_free. */
dt_status dtl_models(dtl_model **models, int *n, dt_error *err);
void dtl_models_free(dtl_model *models, int n);

/* Removes what was pulled under a name of dtl_models: a file with what it is a link to, or all that the cache holds of ORG/NAME,
 * and nothing beside these. agree: called with the path and how many bytes lie there; false: it stays. *removed: whether it went.
 * DT_EINPUT: there is no such name, or it came with dtrun; DT_EDEVICE: it stays in whole or in part. */
dt_status dtl_remove_model(const char *name, bool (*agree)(void *user, const char *path, uint64_t bytes), void *user,
                           bool *removed, dt_error *err);

/* A model that scripts/get-model brings from a Python package: its script and the folder to put it in, which may be missing.
 * *names: all of them, with blanks between. All malloc'd. script NULL: there is no such name. */
dt_status dtl_named_model(const char *name, char **script, char **folder, char **names, dt_error *err);

/* The folder of Hugging Face's cache: $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub. malloc'd; NULL: out of memory. */
char *dtl_hub_folder(void);

/* ---- what is kept for a user -------------------------------------------------------------------------------------------- */

/* Where a program keeps what it remembers for a user: dtrun/RELATIVE in $XDG_STATE_HOME, or in ~/.local/state. malloc'd; NULL
 * where neither is an absolute path, or out of memory. */
char *dtl_state_file(const char *relative);

/* Makes the folders before the last '/' of a path, as far as they are missing; false leaves errno (EINVAL: no path). */
bool dtl_make_folders(char *path);

/* The id of the one token that a text is. DT_EINPUT: it is several, or none. */
dt_status dtl_token(const dt_pair *pair, const char *text, size_t len, int32_t *id, dt_error *err);
/* A bias as llama.cpp takes it, "15043+1", "15043-2.5", "15043-inf"; or of a token by its text, " the=-2". DT_EINPUT: it is neither. */
dt_status dtl_bias(const dt_pair *pair, const char *given, dt_bias *out, dt_error *err);

/* What cuts the draft's output matrix, as a user says it: a number of ids (the lowest, and those of a text that comes with us),
 * or a file with an id on each line. Freed with dtl_draft_vocab_close. DT_EINPUT: neither, with file and line. */
dt_status dtl_draft_vocab_open(const char *given, dt_draft_vocab *out, dt_error *err);
void dtl_draft_vocab_close(dt_draft_vocab *vocab); /* zeros are allowed */

typedef struct {
  const char *target, *draft; /* as users name them, or NULL: see dtl_resolve_models */
  dtl_need need;
  const char *draft_vocab; /* see dtl_draft_vocab_open; NULL: the draft guesses all ids */
  const dt_message *texts; /* [n_texts] whose ids it guesses besides */
  int n_texts;
  dt_pair_options how; /* all but the models and draft_vocab */
  bool shown; /* on standard error: a line while it loads, on a terminal; how long it took, if more than a second */
} dtl_load_options;

/* Opens the pair that a user named. *found: its draft was found, not named. One that was found and cannot be loaded is left out,
 * unless it is needed. */
dt_status dtl_load(const dtl_load_options *options, dt_pair **out, bool *found, dt_error *err);

/* ---- conversations ----------------------------------------------------------------------------------------------------- */

/* The conversation as dt_chat_text gives it; date: what a template that tells the date says, NULL: today's. */
dt_status dtl_conversation(const dt_chat *chat, const dt_message *system, const dt_message *turns, int n,
                           const char *date, char **text, size_t *len, dt_error *err);

/* ---- measuring --------------------------------------------------------------------------------------------------------- */

/* What had happened to this process (its threads; or those of its children that have ended) by now. */
typedef struct {
  double wall_ms, cpu_ms, steal_ms; /* steal: taken from all processors by other machines on the same hardware */
  long switches;                    /* taken off a processor against its will */
} dtl_usage;

dtl_usage dtl_usage_now(bool children);

#define DTL_WHY 80

/* Whether others had the processors between the two, so that times taken then are not to be trusted; why[size], DTL_WHY or
 * more: in words. `computes`: some thread was to compute all the time, as on a CPU; not so beside a GPU or a disk. */
bool dtl_disturbed(const dtl_usage *before, const dtl_usage *after, bool computes, char *why, size_t size);

/* ---- what passes cost --------------------------------------------------------------------------------------------------- */

#define DTL_COST_ROWS 96
#define DTL_COST_CONTEXTS 8

/* Milliseconds of a pass over `batch` sequences, by the rows that each has in it and the tokens before them. What lies
 * between is interpolated: attention grows in a straight line with the context, so few contexts do. */
typedef struct {
  int batch, n_contexts, n_rows;
  bool has_draft;
  bool disturbed;                                      /* measured on a busy machine, however often */
  int context[DTL_COST_CONTEXTS], rows[DTL_COST_ROWS]; /* ascending */
  double target[DTL_COST_CONTEXTS][DTL_COST_ROWS];     /* strictly increasing in rows */
  double draft[DTL_COST_CONTEXTS][DTL_COST_ROWS];      /* after another draft pass */
  double first[DTL_COST_CONTEXTS]; /* of one row each, after a target pass: its weights are in no near cache */
  double target_draw, draft_draw;  /* more, for each row of all, where tokens are drawn and guesses know the noise */
} dtl_costs;

typedef struct {
  int context;                                       /* as the request's: 0 is the target's */
  int batch;                                         /* sequences at once; 0 is 1 */
  bool fresh;                                        /* measure, whatever the cache has */
  void (*progress)(void *user, int done, int total); /* or NULL; called while measuring, at last with done == total */
  void (*note)(void *user, const char *line);        /* or NULL; what did not stop it: an unreadable cache */
  void *user;
  dtl_usage (*usage)(bool children);      /* NULL: dtl_usage_now */
  const volatile sig_atomic_t *interrupt; /* or NULL */
} dtl_calibration;

/* Notes on standard error, and progress where that is a terminal. */
dtl_calibration dtl_calibration_shown(const volatile sig_atomic_t *interrupt);

/* What the pair's passes cost on this machine: from the user's cache folder, or measured (some seconds) and put there. If it
 * was disturbed it is measured once more; a table that is still disturbed serves ten minutes. */
dt_status dtl_calibrate(dt_pair *pair, const dtl_calibration *how, dtl_costs *costs, dt_error *err);

/* The same, learned: costs begin as a reckoning (the bytes of the models, and a quarter of a second of passes where they are
 * short), and each pass of a run betters them. What was learned is kept in the user's cache folder for each pair, machine and
 * way of running it; programs, builds and contexts share it. For one thread at a time, like its pair, which it does not outlive. */
typedef struct dtl_learned dtl_learned;

typedef struct {
  void (*note)(void *user,
               const char *line); /* or NULL; what did not stop anything: a file that is not used, or cannot be kept */
  void *user;
  const volatile sig_atomic_t *interrupt; /* or NULL */
} dtl_learning;

dtl_learning dtl_learning_shown(const volatile sig_atomic_t *interrupt); /* notes on standard error */

dtl_learned *dtl_learned_open(dt_pair *pair, const dtl_learning *how); /* NULL: out of memory, or one of them is */
void dtl_learned_close(dtl_learned *learned);                          /* keeps it; NULL is allowed */

/* Milliseconds that plain decoding takes for a token after `context` of them, in runs like the last one: 1000 over this are the
 * tokens a second to compare a run with. 0: no pass over one row was seen yet. */
double dtl_learned_plain(const dtl_learned *learned, int context);

/* ---- what lies between runs --------------------------------------------------------------------------------------------- */

/* What policies leave for their later runs with one pair, in tables of their own (uses.memory) and as texts to look things up
 * in (uses.corpus): those of the four that ran last, each known by its text. */
typedef struct dtl_memory dtl_memory;

dtl_memory *dtl_memory_open(void); /* NULL: out of memory */
void dtl_memory_forget(dtl_memory *memory);
void dtl_memory_close(dtl_memory *memory); /* NULL is allowed */

/* Files as such a text: an index of all of them, some seconds for ten million tokens. The pair's ids. */
typedef struct dtl_corpus dtl_corpus;

/* n >= 1 files. DT_EINPUT: there are none, or one is missing, empty or too long. */
dt_status dtl_corpus_open(const dt_pair *pair, const char *const *files, int n, dtl_corpus **out, dt_error *err);
void dtl_corpus_close(dtl_corpus *corpus); /* NULL is allowed */

/* ---- generation -------------------------------------------------------------------------------------------------------- */

/* Where generated text comes from. */
typedef enum {
  DTL_DRAFTED,  /* a guess that was accepted */
  DTL_BONUS,    /* the target's own token behind the last guess */
  DTL_CORRECTED /* the target's own token where there were guesses and none was right */
} dtl_origin;

/* Runs written down, iteration by iteration: a file of schema dtrun.trace/1, described in policies/README.md. */
typedef struct dtl_trace dtl_trace;

dt_status dtl_trace_open(const char *path, dtl_trace **out, dt_error *err); /* DT_EINPUT: the file cannot be written */
/* DT_EDEVICE: not all of it could be written; the run itself is none the worse. NULL is allowed. */
dt_status dtl_trace_close(dtl_trace *trace, dt_error *err);

typedef struct {
  const char *text; /* or NULL with prefix */
  size_t len;
  bool whole; /* the text says everything itself: see dt_encode_whole */
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
  int answers; /* of each prompt, which share its pass: 0 is 1. Where n is said of prompts below, it is of answers */
  int places;  /* sequences at once: 1..DTL_PLACES; 0: a single prompt, which is no batch */
  dt_seq_options seq;       /* answer i, from 0, has its seed plus i: of sampling, and of its policy's math.random */
  const dtl_costs *costs;   /* a table, for a policy with uses_costs; copied. NULL: it counts with what is learned */
  dtl_learned *learned;     /* or NULL: what a policy needs is then opened for this request */
  dtl_memory *memory;       /* or NULL, unless the policy uses memory or corpus */
  const dtl_corpus *corpus; /* or NULL: no files */
  int context;              /* 0: the target's */
  dt_window window;         /* zeros: all of a text is seen */
  dt_session *session;      /* or NULL; of one prompt, with which its sequence 0 continues */
  /* Called as each sequence ends, in whatever order; or NULL. False: nobody wants the others; those that run end as
   * "interrupted", and no more begin. */
  bool (*done)(void *user, int prompt, dtl_result *result);
  /* Or NULL; of one prompt; bytes as they may be shown. False: enough, the text ends as "interrupted". */
  bool (*on_text)(void *user, const char *bytes, size_t len);
  /* Or NULL; of one prompt whose sequence wants log-probabilities: those of the n tokens that an iteration committed, before their
   * text. Theirs until it returns. */
  void (*on_logprobs)(void *user, const int32_t *ids, const dtl_logprob *logprobs, int n);
  void (*begin_line)(void); /* or NULL; before a policy's print, whose line begins on standard error */
  void (*on_origin)(void *user, dtl_origin origin); /* or NULL; before each on_text, whose bytes then have one origin */
  void *user;
  dtl_trace *trace;                       /* or NULL; of all prompts; serves one request */
  const volatile sig_atomic_t *interrupt; /* or NULL; ends the run as "interrupted", within a policy's call too */
} dtl_request;

/* What a sequence gave; also what it gave until it failed. Everything is the result's own. */
struct dtl_result {
  int32_t *tokens, *prompt_ids;
  int n_tokens, n_prompt;
  char *text; /* valid UTF-8, cut before the stop string */
  size_t text_len;
  const char *finish_reason; /* "length", "eos", "stop", "context", "interrupted", "policy", "error": static */
  char *policy, *params;     /* its name; parameters as given, a JSON object as text */
  char source[DTL_DIGEST];   /* a digest of the policy's text */
  uint64_t seed;
  dt_sampling sampling;
  bool coupled;
  char *target, *draft; /* folders; draft NULL: none loaded */
#define DTL_FACT(name, of_draft) char *name;
  DT_PAIR_FACTS(DTL_FACT) /* as in dt_pair_info */
#undef DTL_FACT
  char *backend;
  int threads;
  double load_ms;    /* what opening the pair took, once for all its runs; in no other time */
  int index, places; /* which answer, from 1, and how many ran at once; places 0: it was no batch */
  int prompt;        /* whose prompt, from 1: several answers may have one */
  dt_shifts shifts;  /* zeros: none. Its biases are the result's own */
  dtl_logprob *logprobs, *prompt_logprobs; /* [n_tokens], [n_prompt]; NULL: not asked for */
  int32_t *top_ids;                        /* what those point into */
  float *top_logps;
  dt_stats stats;
  double policy_ms, other_ms;
  dtl_notes notes;
  dt_window window;                 /* zeros: none */
  const char *costs;                /* "table", "learn": what its policy counted with; NULL: with no costs. Static */
  bool uses_memory, uses_corpus;    /* then earlier runs had their say: */
  long remembered, earlier_tokens;  /* entries of the memory, and tokens of outputs, that were there when it began */
  long corpus_tokens;               /* of the files */
  char corpus[DTL_DIGEST];          /* a digest of their ids */
  int ids_without_row;              /* the tokenizer's that the target cannot read */
  size_t peak_memory;               /* of the process */
  size_t weight_bytes, cache_bytes; /* on the host or on the device */
  size_t device_memory;             /* those and scratch, on the device; 0: they are on the host */
  bool failed;
  dt_error failure; /* why it ended early */
};

/* Generates from all prompts, `places` at a time: their passes are shared, and a sequence that ends makes room for the
 * next. Each sequence is what it would be alone. An object of the policy serves each prompt; one of scope "batch" serves all.
 * Where several answers to each prompt are wanted, they stand one behind the other in results. Fills results[n] whatever happens; the caller frees each with dtl_result_free. A failure: nothing was begun, or a policy of scope
 * "batch" failed: then `done` was not called for the prompts not begun. What fails of one sequence alone is told by its result
 * only. */
dt_status dtl_generate(dt_pair *pair, const dtl_policy *policy, const dtl_request *request, dtl_result *results,
                       dt_error *err);
void dtl_result_free(dtl_result *result);

#define DTL_JSON_BRIEF 1u /* without prompt_ids, tokens and text */
#define DTL_JSON_LINE 2u  /* on one line */

/* The result as JSON text in schema dtrun.result/1, described in lua/cli/RESULTS.md: malloc'd, NUL-terminated,
 * ends in a newline; NULL when out of memory, or for an unknown flag. */
char *dtl_result_json(const dtl_result *result, unsigned flags);
/* FNV-1a 64 over the ids as little-endian int32: tells outputs of one pair apart, as long as nobody makes up ids to fool it. */
uint64_t dtl_output_hash(const int32_t *tokens, int n);
/* Prompt included: from the start of its pass to the last token. */
double dtl_tokens_per_second(const dtl_result *result);

/* ---- drivers ----------------------------------------------------------------------------------------------------------- */

/* Runs a driver (a path or an installed name) with full Lua and the module `dt`. Returns the process's exit status; 2: no such driver. */
int dtl_run_driver(const char *driver, int argc, char **argv, const volatile sig_atomic_t *interrupt);

/* ---- other languages --------------------------------------------------------------------------------------------------- */

/* What drivers have, for programs in languages that do not read this header: all values are JSON, and lua/dt/bridge.lua says
 * what can be called. scripts/python is such a program. A bridge is used by one thread at a time. */
typedef struct dtl_bridge dtl_bridge;

/* A piece of the text, as it comes; of several prompts the answer for each, as JSON. False: no more is wanted. */
typedef bool (*dtl_listener)(void *user, const char *bytes, size_t len);

dtl_bridge *dtl_bridge_open(void); /* NULL: out of memory */
/* And all pairs that it loaded. NULL is allowed; in a call of its own (from its listener) this does nothing. */
void dtl_bridge_close(dtl_bridge *bridge);

/* Calls a function with an object of options (JSON). listener: or NULL. The answer is {"value": ...} or {"error": {"kind":,
 * "message":, ...}}: malloc'd JSON, to be freed with dtl_bridge_free; NULL: out of memory. A call from a listener is an error. */
char *dtl_bridge_call(dtl_bridge *bridge, const char *function, const char *options, dtl_listener listener, void *user);
void dtl_bridge_free(char *answer); /* NULL is allowed */

/* The call at hand, or the next, fails with "interrupted"; false: no longer, which no call sets by itself. From any thread or
 * signal handler. */
void dtl_bridge_interrupt(dtl_bridge *bridge, bool interrupted);
/* From now on this signal does that, before it goes to its present handler; number 0: no longer. One bridge of a process at a
 * time. False: there is no such signal. */
bool dtl_bridge_catch(dtl_bridge *bridge, int number);

#pragma GCC visibility pop

#endif
