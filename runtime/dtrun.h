/* dtrun: speculative decoding with token trees. The output is plain decoding's, to the bit, however the tree is grown.
 *
 *   dt_pair *pair;  dt_session *s;  dt_error err;
 *   dt_pair_options po = {.target = "models/mini-target", .draft = "models/mini-draft", .backend = "auto"};
 *   if (dt_pair_open(&po, &pair, &err)) { puts(err.message); exit(1); }
 *   dt_session_options so = {.sequences = 1, .use_draft = true};
 *   dt_session_open(pair, &so, &s, &err);
 *   dt_encode(pair, text, strlen(text), &ids, &n, &err);
 *   dt_seq_options qo = {.max_tokens = 100};
 *   dt_seq_start(s, 0, ids, n, &qo, &err);                       // the prompt pass
 *   for (int seq = 0; dt_seq_finish(s, 0) == DT_RUNNING;) {       // one iteration per turn
 *     dt_rollback(s, 0, &err);                                    // an empty tree over the last committed token
 *     dt_node_ref root = {.seq = 0, .node = 0};
 *     dt_draft_step(s, &root, 1, &err);
 *     dt_tree_branch(dt_seq_tree(s, 0), 0, 4, &first, &last, &err);  // four guesses
 *     dt_verify_tree(s, &seq, 1, &verdict, &err);
 *     dt_commit(s, &seq, 1, 0, &block, &err);
 *     fwrite(block.text, 1, block.text_len, stdout);
 *   }
 *   dt_session_close(s);  dt_pair_close(pair);
 *
 * Errors, here and in host.h: a call that can fail returns a dt_status, DT_OK or the kind of failure. On failure it
 * fills *err (may be NULL) with the status and one line of text, leaves its object as it was, and sets no output.
 * Arguments are checked: a NULL where none is allowed, a negative count, an unknown flag and a number out of range are
 * DT_EINPUT; a sequence or node that does not exist is DT_ESTATE. Calls without a dt_status answer NULL, 0 or false to
 * a bad argument, unless their comment says otherwise. Two mistakes cannot be noticed: a closed handle, and a list
 * shorter than its count.
 *
 * There is no global state, except the ranks that a process joins. Handles are not thread-safe; two threads may use two
 * pairs. A child of fork() has none of a pair's threads: it opens its own pair. */
#ifndef DT_DTRUN_H
#define DT_DTRUN_H

#include "backend/sample.h"
#include "backend/window.h"
#include "system/clock.h"
#include "system/paths.h"
#include "system/status.h"
#include "system/version.h"
#include "text/chat_layout.h"
#include "text/reasoning.h"
#include "tree/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct dt_pair dt_pair;       /* a target and its drafts, which share one tokenizer: loaded weights */
typedef struct dt_session dt_session; /* sequences being generated with a pair: caches and state */
typedef struct dt_prefix dt_prefix;   /* the result of a prompt pass, to start sequences from */

/* The number of processors that this process may use: its affinity mask, limited by its control group's quota. More
 * threads than that only wait for each other. */
int dt_processors(void);

/* ---- pair -------------------------------------------------------------------------------------------------------- */

/* The ids that the draft may guess (CPU). The draft's output matrix keeps only their rows, so a pass reads less memory.
 * The set joins the lowest ids, which byte-pair encoders give to frequent tokens; a list of ids; the tokens of texts;
 * and always the end-of-text tokens. Committed tokens stay the same. */
typedef struct {
  const char *name;        /* its name in results and in keys of measurements; copied */
  int lowest;              /* ids 0..lowest-1 */
  const int32_t *ids;      /* [n_ids] */
  const char *text;        /* NULL: none */
  const dt_message *texts; /* [n_texts] */
  int n_ids, n_texts;
} dt_draft_vocab;

typedef struct {
  const char *target; /* model folder (config.json, *.safetensors, tokenizer.json) */
  const char *draft;  /* folder of a model or of a head for this target; a part of it: dt_draft_is_own; NULL: none */
  /* A second draft in addition to it, whose weights and ids are as its files say; one of the two at most is a head.
   * NULL: none. */
  const char *draft2;
  /* "auto" (NULL), "cuda", "cpu", or one variant: "cpu:amx", avx512vnni, avx512, avx2; i8mm, dotprod, neon; scalar.
   * "auto" takes a GPU if there is one and, if the pair cannot be opened there, the CPU: see device_left_out. */
  const char *backend;
  bool needs_logits; /* sequences use dt_adjustments or log-probabilities: refuse a backend that has none */
  int threads;       /* 0: one for each physical core of dt_processors() */
  /* NULL: the types of the files. "q8", "q4" (CPU): loading rounds matrices of more bits to Q8_0 or Q4_1. A rounded
   * target is another target; a rounded draft guesses differently. "f32": loading widens them. */
  const char *target_weights, *draft_weights;
  const dt_draft_vocab *draft_vocab; /* NULL: all ids */
  bool draft_optional; /* if the only draft cannot be loaded, the pair opens without it: see draft_left_out */
  const char
      *head_layers; /* "2,15,27": a head reads the inputs of these layers of the target; NULL: as its files say */
  /* The type of keys and values in the caches; NULL: the backend's default. cpu: "f16", "f32" or "q8", codes of 8 bits
   * with a scale in f16 for each 32 numbers of a head. Each number is rounded when it is written; one that the type
   * cannot hold becomes NaN, and the failure names "f32". The text may differ between types, and is the same under
   * every policy. cuda: "16-bit" or "q8". */
  const char *cache_dtype;
  /* The precision of the rows that the target's quantized matrices multiply; NULL: "8". cpu: "8" rounds each number to
   * one digit of 8 bits, with a scale for each 32 numbers; "16" to two digits, at about twice the arithmetic. The text
   * may differ between them, and is the same under every policy. A draft always takes "8". cuda: has none. */
  const char *activations;
} dt_pair_options;

/* The caller closes the pair after its sessions and prefixes. DT_EINPUT: a folder or file is missing or bad, the two
 * models' tokenizers differ, no such backend. */
dt_status dt_pair_open(const dt_pair_options *options, dt_pair **out, dt_error *err);
void dt_pair_close(dt_pair *pair); /* NULL is allowed */

/* A model's identity, from the headers of its files and its tokenizer. Hashes are FNV-1a 64. */
typedef struct {
  const char *family; /* "llama"; static */
  uint64_t norm; /* of the numbers of its final norm, rounded to bfloat16: the same however the model is quantized */
  uint64_t tokenizer; /* of its tokenizer's bytes: files of one kind with the same have the same; 0: it has none */
  uint64_t bytes;     /* of its weights' files */
  const char *type;   /* "Q4_K": of most of its layers' weights; static */
} dt_model_facts;

/* Checks as dt_pair_open does that a model's files exist and are supported, without loading the weights. facts: or
 * NULL. */
dt_status dt_model_look(const char *path, dt_model_facts *facts, dt_error *err);

/* *is: the files at path are a draft head, for any target; false also if they cannot be read. *bytes: size of the
 * weights' files. */
dt_status dt_head_look(const char *path, bool *is, uint64_t *bytes, dt_error *err);

/* Whether a draft's name is of a part of the target, and of no files: "mtp", the layer that it has for that; "exit:N",
 * its first N layers, its final norm and its output, 1 <= N < all. False: NULL. */
bool dt_draft_is_own(const char *draft);

typedef enum { DT_FITS_NOT, DT_FITS_HEAD, DT_FITS_MODEL } dt_fit;

/* Whether the files at `path` can draft for this target. A head fits if its config.json names the target's norm:
 * {"dtrun_target": {"final_norm": "16 hexadecimal digits"}}. A model fits if it has the target's family and tokenizer
 * (byte for byte), at most half as many bytes, and is not the target in fewer bits. *bytes: size of the weights'
 * files. */
dt_fit dt_draft_fits(const dt_model_facts *target, const char *path, uint64_t *bytes);
/* The same for a model whose facts are known. */
bool dt_model_fits(const dt_model_facts *target, const dt_model_facts *draft);

#define DT_CONTEXT 4096 /* most positions of a session that names no context: all of a model's may be too many */

typedef struct {
  const char *path;
  int vocab, context, layers, hidden;
  int window;          /* its layers see this many tokens, and context is cut to it; 0: they see all positions */
  size_t weight_bytes; /* in memory */
  size_t token_bytes;  /* keys and values of one token in a session */
  int deepest;         /* levels of a tree, at most; 0: any number */
  int experts, chosen_experts; /* of a layer with experts, and those that a row takes; 0: no layer has any */
} dt_model_info;

typedef struct {
  dt_model_info target, draft, second; /* a draft's path is NULL when there is none */
  int drafts;                          /* 0..DT_DRAFTS */
  /* Types of the weights in memory: "f16", "q4_k", "mixed". NULL without that draft. */
  const char *target_dtype, *draft_dtype, *draft2_dtype;
  const char *draft_vocab;     /* name of the dt_draft_vocab; NULL: the draft guesses all ids */
  const char *device_left_out; /* why "auto" did not take a GPU: an old driver, or the pair failed to open; or NULL */
  const char *draft_left_out;  /* why an optional draft was not loaded; NULL: it was, or none was named */
  /* Layout of a head and its inputs: "eagle3, layers 2,15,27"; NULL: the draft is a model. */
  const char *draft_head, *draft2_head;
  const char *draft2;      /* second.path */
  const char *cache_dtype; /* "f16", "f32", "q8", "16-bit": of all models; static */
  const char *activations; /* "8", "16": of the target; NULL: none of its matrices is quantized; static */
  const char *backend;     /* "cpu:avx512" */
  int threads;
  double load_ms;     /* time of dt_pair_open; a scripted pair: 0 */
  int context;        /* positions of a session that names none */
  int shared_vocab;   /* ids below this can be drafted by the first draft */
  int tokenizer_size; /* 1 + the tokenizer's largest id; dt_encode refuses a text with an id of target.vocab or more */
  size_t weight_bytes, cache_bytes, scratch_bytes; /* allocated now */
  bool on_device;                                  /* these bytes lie in the device's memory */
} dt_pair_info;

/* Facts about a pair that results, traces, records, tuned presets, drivers and other languages all name. Each is a text
 * of dt_pair_info (NULL: none); with of_draft only a run that drafts names it. To add one: a row here, its field in
 * dt_pair_info, its value in dt_pair_describe, and a line in lua/cli/RESULTS.md. */
#define DT_PAIR_FACTS(FACT)                                                                                            \
  FACT(target_dtype, false)                                                                                            \
  FACT(draft_dtype, true)                                                                                              \
  FACT(draft_vocab, true)                                                                                              \
  FACT(draft_head, true)                                                                                               \
  FACT(draft2, true)                                                                                                   \
  FACT(draft2_dtype, true)                                                                                             \
  FACT(draft2_head, true)                                                                                              \
  FACT(cache_dtype, false)                                                                                             \
  FACT(activations, false)

/* Strings belong to the pair. Zeros: pair is NULL. */
void dt_pair_describe(const dt_pair *pair, dt_pair_info *info);

/* Measures how many bytes per second the device's threads read from memory in a streaming sum; 0: cannot be
 * measured. */
double dt_pair_bandwidth(dt_pair *pair);

/* Encodes a text. If the tokenizer asks for a begin-of-text token and the text has none, it comes first. *ids is
 * malloc'd; the caller frees it. DT_EINPUT: the target's vocabulary lacks a token of the text. */
dt_status dt_encode(const dt_pair *pair, const char *text, size_t len, int32_t **ids, int *n, dt_error *err);
/* The same without a begin-of-text token: for a conversation, whose layout has it. */
dt_status dt_encode_whole(const dt_pair *pair, const char *text, size_t len, int32_t **ids, int *n, dt_error *err);
/* The text of n ids: malloc'd, NUL-terminated, invalid UTF-8 as U+FFFD; NULL: out of memory, or n < 0. len may be NULL.
 * `first`: the ids begin a text. Some tokenizers put a space before every text; it is then left out. */
char *dt_decode(const dt_pair *pair, const int32_t *ids, int n, bool first, size_t *len);
/* The bytes of one token, as the first of a text or as a later one: often a part of a character. They lie in the pair,
 * or, of a scripted pair, in `buffer`. No bytes: there is no such token. */
const char *dt_token_bytes(const dt_pair *pair, int32_t id, bool first, char buffer[16], size_t *len);
/* n bytes of text with invalid UTF-8 as U+FFFD: malloc'd, NUL-terminated; NULL when out of memory. */
char *dt_utf8(const char *bytes, size_t n, size_t *len);

/* The layout of conversations called `name`; NULL: the one that the target's chat template has. DT_EINPUT: there is no
 * such layout, or the template is missing or unknown. Free with dt_chat_close. */
dt_status dt_pair_chat(const dt_pair *pair, const char *name, dt_chat **out, dt_error *err);
/* The same of a model's files, which are not loaded. */
dt_status dt_model_chat(const char *path, const char *name, dt_chat **out, dt_error *err);

/* ---- session ----------------------------------------------------------------------------------------------------- */

typedef struct {
  int sequences;    /* 1..4096 */
  int context;      /* positions per sequence, at most the target's; 0: the smaller of those and DT_CONTEXT */
  bool use_draft;   /* false: no cache of the pair's drafts, dt_draft_step fails */
  dt_window window; /* the tokens that the target sees; zeros: all. A target with a window is another target */
} dt_session_options;

/* Reserves all memory that the session will need; on a CPU the caches become resident as texts grow. DT_EINPUT: there
 * is not so much. The pair must outlive the session. */
dt_status dt_session_open(dt_pair *pair, const dt_session_options *options, dt_session **out, dt_error *err);
/* The pair keeps the memory of the session closed last. A session of the same options takes it over; opening another
 * one frees it. NULL is allowed. */
void dt_session_close(dt_session *session);
const dt_pair *dt_session_pair(const dt_session *session); /* the pair it was opened with */

typedef enum {
  DT_NO_SEQUENCE = -1,
  DT_RUNNING,
  DT_FINISH_LENGTH,
  DT_FINISH_EOS,
  DT_FINISH_STOP,
  DT_FINISH_CONTEXT
} dt_finish;

typedef struct {
  int32_t id;
  float bias; /* -1000..1000; -INFINITY: the token never comes */
} dt_bias;

/* Adjustments of the target's logits, before the likeliest token is taken or one is sampled. A row's adjustments follow
 * from the text and the path before it, so the tokens are those of plain decoding under every policy. In this order:
 *   bias        is added; biases of one id add up
 *   ends        never come while fewer than min_tokens are generated (Hugging Face's min_new_tokens)
 *   repeat      an id that the prompt or the generated text holds: a logit above 0 is divided by it, one below
 *               multiplied (Hugging Face's repetition_penalty)
 *   presence, frequency   an id that is c > 0 times in the generated text: presence + frequency * c is subtracted
 *                         (OpenAI's)
 *   grammar     a token that its rules do not allow after the text never comes; the text ends where they allow it
 * llama.cpp counts all three over the last 64 tokens, the prompt's among them. The draft's logits are adjusted in
 * the same way before its guesses are ranked (a Medusa head's by the text alone, and without the grammar). Backends
 * without support refuse everything but zeros. */
typedef struct {
  float repeat;              /* 0.01..100; 0 and 1: none */
  float presence, frequency; /* -100..100 */
  const dt_bias *bias;       /* [n_bias] copied */
  int n_bias;
  int min_tokens;
  const char *grammar; /* the text's, in llama.cpp's language (GBNF); copied; NULL: none */
} dt_adjustments;

/* Whether any of them is asked for; NULL: none. */
bool dt_adjustments_wanted(const dt_adjustments *asked);

/* The grammar of the JSON texts that a JSON schema takes, malloc'd. lua/cli/OPTIONS.md lists the keywords. DT_EINPUT:
 * not JSON, or another keyword. */
dt_status dt_schema_grammar(const char *json, char **grammar, dt_error *err);
/* The same of the texts that a regular expression matches as a whole. DT_EINPUT: the fault and its column. */
dt_status dt_regex_grammar(const char *regex, char **grammar, dt_error *err);
/* Whether a text can be held to a grammar. DT_EINPUT: the fault, with line and column. */
dt_status dt_check_grammar(const char *grammar, dt_error *err);

#define DT_LOGPROBS 20

/* Log-probabilities of tokens: of the target's logits at temperature 1, before adjustments and filters. */
typedef struct {
  bool wanted; /* of each generated token, */
  int top;     /* and of as many likeliest tokens in its place: 0..DT_LOGPROBS; */
  bool prompt; /* of the prompt's tokens too, but the first: all its rows then run, whatever the sequence had before */
} dt_logprobs;

typedef struct {
  int max_tokens;          /* tokens wanted, >= 1; -1: until the context ends */
  bool ignore_eos;         /* end-of-text is a token like any other */
  const char *const *stop; /* [n_stop] strings that end the text; copied */
  int n_stop;
  /* The mark that ends an answer of a chat (dt_chat_end): its token, if the tokenizer has one; otherwise its text is a
   * stop string. NULL: none. Without effect under ignore_eos, and under a grammar, which says itself where the text
   * ends. */
  const char *end;
  dt_sampling sampling;       /* zeros: the likeliest token */
  bool uncoupled;             /* drafting does not use the noise that the target samples with: see dt_tree_draft */
  int candidates;             /* how many dt_seq_candidates gives for each verified row: 0..DT_TARGET_CANDIDATES */
  dt_adjustments adjustments; /* zeros: none */
  dt_logprobs logprobs;       /* zeros: none */
  int piece;   /* rows of the prompt that the start runs, at most; dt_seq_prompt then runs the others. 0: all at once */
  bool drafts; /* with pieces: those of the draft model follow, which else its first dt_draft_step runs as one */
} dt_seq_options;

/* Checks the values that need no model, as dt_seq_start does. DT_EINPUT: a message that begins with the option's name,
 * "temp: ". */
dt_status dt_check_options(const dt_seq_options *options, dt_error *err);

#define DT_TARGET_CANDIDATES 32

/* Starts sequence `seq` (0..sequences-1) in any state, and runs the prompt pass: rows 0..n-2 through the target. The
 * draft model reads the prompt in the first dt_draft_step; prompt_ms counts that. A prompt longer than the draft
 * model's context is not drafted for. The draft model reads an id that it lacks as id 0.
 * DT_EINPUT: no tokens, an id of the target's vocab or more, an option out of range. DT_ECONTEXT: no room for one
 * token. */
dt_status dt_seq_start(dt_session *session, int seq, const int32_t *prompt, int n, const dt_seq_options *options,
                       dt_error *err);

/* As dt_seq_start, for a prompt that begins as the sequence's text does: the cached rows of the common beginning are
 * reused, and only the others run. Any prompt is allowed. A GPU sums long prompts in another order, so the last bits
 * may there differ from dt_seq_start's, under every policy alike. */
dt_status dt_seq_continue(dt_session *session, int seq, const int32_t *prompt, int n, const dt_seq_options *options,
                          dt_error *err);

/* Runs at most `rows` more rows of a prompt whose start ran a piece of it, so that passes of other sequences fit in
 * between. *left: rows that are still to run; while there are any, the sequence takes no part in the primitives. A GPU
 * sums long prompts in another order, so pieces may there differ from a whole prompt in the last bits. DT_ESTATE: no
 * such sequence, or it never started. */
dt_status dt_seq_prompt(dt_session *session, int seq, int rows, int *left, dt_error *err);

/* Starts `seq` for measurements: n meaningless tokens, without a prompt pass. Its passes cost as much as after any n
 * tokens. `sampling`: NULL takes the likeliest tokens. */
dt_status dt_seq_start_blank(dt_session *session, int seq, int n, const dt_sampling *sampling, dt_error *err);

/* Copies the rows that the prompt pass of `seq` computed, in both models: only between its start and its first draft or
 * verify pass. The caller frees it before the pair. Any session of the pair can use it. */
dt_status dt_prefix_take(dt_session *session, int seq, dt_prefix **out, dt_error *err);
dt_status dt_seq_start_from(dt_session *session, int seq, const dt_prefix *prefix, const dt_seq_options *options,
                            dt_error *err);
void dt_prefix_free(dt_prefix *prefix); /* NULL is allowed */

/* Copies the rows of the first n tokens of a sequence's text, or of as many as have rows, in both models: in any state,
 * between two calls. DT_EINPUT: fewer than 1. DT_ESTATE: it has no rows. */
dt_status dt_prefix_save(dt_session *session, int seq, int n, dt_prefix **out, dt_error *err);
/* Gives a sequence a prefix's rows instead of its own, for a dt_seq_continue that keeps them. Until then it has not
 * started. */
dt_status dt_seq_adopt(dt_session *session, int seq, const dt_prefix *prefix, dt_error *err);
int dt_seq_rows(const dt_session *session, int seq);    /* how many tokens of its text have rows */
size_t dt_prefix_bytes(const dt_prefix *prefix);        /* of its rows, on the host or on the device, */
size_t dt_rows_bytes(const dt_session *session, int n); /* which is this for n tokens */
const int32_t *dt_prefix_tokens(const dt_prefix *prefix, int *n);
double dt_prefix_ms(const dt_prefix *prefix); /* time of its prompt pass, in both models */

/* A sequence that does not exist answers NULL, 0, false, DT_NO_SEQUENCE, zeros; one that never started has no tokens,
 * DT_RUNNING. */
dt_tree *dt_seq_tree(dt_session *session, int seq);
int dt_seq_length(const dt_session *session, int seq);            /* committed tokens, the prompt's included */
const int32_t *dt_seq_tokens(const dt_session *session, int seq); /* [length] */
int dt_seq_left(const dt_session *session, int seq);              /* tokens that may still be generated */
/* Committed tokens before the last one that a draft has not read: its next step does, which takes that many rows more.
 * Those of a dt_prefix count until the first step, as its time does. 0 for a head that reads the target's rows, or if
 * there is no such draft. */
int dt_seq_unread(const dt_session *session, int seq, int draft);
bool dt_seq_is_coupled(const dt_session *session, int seq); /* drafts use the noise that the target samples with */
dt_finish dt_seq_finish(const dt_session *session, int seq);
/* All text generated so far, cut before a completed stop string; raw bytes, owned by the session. len may be NULL. */
const char *dt_seq_text(const dt_session *session, int seq, size_t *len);
/* [length] for each generated token the length of that text after it; the prompt's entries are undefined. */
const size_t *dt_seq_text_ends(const dt_session *session, int seq);

/* Whether a grammar holds the text. */
bool dt_seq_has_grammar(const dt_session *session, int seq);
/* Whether the grammar allows the token after a node of the tree; true without a grammar. A guess that it forbids is
 * not verified. DT_ESTATE: no such node, token or tree, as after a commit. */
dt_status dt_seq_allowed(const dt_session *session, int seq, int node, int32_t token, bool *allowed, dt_error *err);

#define DT_FORCED 64

/* The first token of the text that the grammar forces after a node of the tree, as the tokenizer splits that text
 * alone; other tokens may spell it, too. *left: the bytes that it forces after that token, of DT_FORCED that are
 * looked at. *token: -1 if several bytes may follow, or the text may end, and 0 is left. */
dt_status dt_seq_forced(const dt_session *session, int seq, int node, int32_t *token, int *left, dt_error *err);

/* The log-probability of the token at position `at` (0..length-1) of the text, and the likeliest tokens there by
 * falling log-probability: *token and *top are the session's, *n of them as asked for, or all there are. DT_ESTATE: it
 * is not known, as of the text's first token and where it was not asked for. */
dt_status dt_seq_logprobs(const dt_session *session, int seq, int at, float *logp, const int32_t **token,
                          const float **top, int *n, dt_error *err);

/* ---- the four primitives ----------------------------------------------------------------------------------------- */

typedef struct {
  int seq, node;
  int draft; /* which of the pair's drafts reads it: 0, the first, or 1, the second */
} dt_node_ref;

/* One draft pass over all nodes of a draft, which are adjacent in the list; afterwards each has that draft's
 * candidates, confidence and entropy, whatever another draft said of it. Committed tokens and ancestors that lack a row
 * in the draft's cache join the pass. A node that this draft has read already is left out of it. A node gets no
 * candidates past the draft's context, nor where it and its ancestors would exceed DT_TREE_DRAFTS nodes drafted from in
 * this iteration's tree, by all drafts together. DT_ESTATE: a sealed or finished tree, no such node, no such draft. */
dt_status dt_draft_step(dt_session *session, const dt_node_ref *nodes, int n, dt_error *err);

typedef struct {
  int seq;
  int drafted; /* nodes verified */
  int depth;   /* of the deepest of them */
  int accepted;
  const int32_t
      *path; /* [accepted] nodes, from a child of the root down; owned by the session, until the next verify */
  int32_t bonus;
  int experts_read; /* by the whole pass: the distinct experts of each layer, of 64 rows at a time; 0: it has none */
} dt_verdict;

/* One target pass over root and kept nodes of every named sequence, and the accepted path of each; it seals an open
 * tree. DT_EDEVICE: the device failed, or the target returned NaN for the sequences whose bonus is -1: these cannot be
 * committed, the others are verified. DT_EWEIGHTS: the same NaN, and the target's files hold numbers that are not
 * finite. DT_ESTATE: a finished or verified tree, one of more than DT_TREE_VERIFY nodes, a sequence named twice. */
dt_status dt_verify_tree(dt_session *session, const int *seqs, int n, dt_verdict *verdicts, dt_error *err);

/* The target's likeliest tokens after the root or a verified node, accepted or not, by falling log-probability of the
 * logits at temperature 1. Valid from the verify pass to the next tree; *token and *logp are the session's. *n:
 * `candidates` of the sequence's options, or the whole vocabulary if that is smaller; 0 for a row with a NaN.
 * DT_ESTATE: the tree or the node is not verified. */
dt_status dt_seq_candidates(const dt_session *session, int seq, int node, const int32_t **token, const float **logp,
                            int *n, dt_error *err);

/* The experts that the target took for the root or a verified node: *id is the session's, [layers][chosen_experts] of
 * the target's dt_model_info, those of a layer rising, -1 in a layer without experts; NULL: the target has none. Valid,
 * and fails, as dt_seq_candidates. */
dt_status dt_seq_experts(const dt_session *session, int seq, int node, const int32_t **id, dt_error *err);

#define DT_COMMIT_REBUILD 1u /* run root and accepted tokens through the target again instead of moving their rows */

typedef struct {
  int seq;
  int n;                 /* tokens committed */
  const int32_t *tokens; /* [n] owned by the session */
  int accepted;          /* how many of them were drafted */
  bool corrected;        /* the tree had guesses at the bonus token's place, all wrong */
  const char *text;      /* [text_len] bytes that may be shown now; owned by the session, until the next commit */
  size_t text_len;
  dt_finish finish;
} dt_committed;

/* Appends accepted tokens and bonus token, up to the end of the text (end-of-text, stop string, max_tokens, context).
 * DT_ESTATE: a tree that is not verified, a sequence named twice. DT_EDEVICE: the device failed; the texts can still be
 * read, but the sequences must be started again. */
dt_status dt_commit(dt_session *session, const int *seqs, int n, unsigned flags, dt_committed *blocks, dt_error *err);

/* Drops the tree, verified or not, and begins an empty one over the last committed token. Each iteration begins so. */
dt_status dt_rollback(dt_session *session, int seq, dt_error *err);

/* ---- what happened ----------------------------------------------------------------------------------------------- */

typedef struct {
  int prompt_tokens, generated;
  int cached_tokens;      /* prompt tokens whose rows were cached already */
  long iterations;        /* verify passes */
  long committed;         /* tokens */
  long drafted, accepted; /* nodes verified; nodes committed */
  long depth_sum;         /* sum of the verified trees' depths */
  long draft_passes, draft_rows;
  long experts_read;                                                     /* of all verify passes: see dt_verdict */
  long verified_at[DT_TREE_VERIFY + 1], accepted_at[DT_TREE_VERIFY + 1]; /* [depth] iterations */
  double prompt_ms, draft_ms, verify_ms, commit_ms;
  double ttft_ms;     /* start of the sequence to its first committed token */
  double total_ms;    /* start of the sequence to its last committed token */
  bool shared_prefix; /* prompt_ms is the prefix's time in the target, and in the drafts once one is asked; ttft_ms and
                         total_ms include it */
} dt_stats;

void dt_seq_stats(const dt_session *session, int seq, dt_stats *stats);

#pragma GCC visibility pop

#endif
