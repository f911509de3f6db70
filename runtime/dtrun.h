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
 * Errors, here and in host.h alike: a call that can fail returns a dt_status, DT_OK or the kind of failure, and on failure fills
 * *err (may be NULL) with that and one line; its object is then as it was, and what it would have given is not set. Arguments are
 * checked: a NULL that is not said to be allowed, a negative number of things, an unknown flag and a number out of its range are
 * DT_EINPUT; a sequence or a node that is not there is DT_ESTATE. The other calls have no error to fill: they answer NULL, 0 or
 * false, or what is said beside them. What cannot be checked: a handle that is closed, a list that is
 * shorter than the number beside it.
 * There is no global state, but for the ranks that a process joins. Handles are not thread-safe; two pairs may be used from two
 * threads. A child of fork() has none of a pair's threads: it opens a pair of its own. */
#ifndef DT_DTRUN_H
#define DT_DTRUN_H

#include "backend/draw.h"
#include "backend/window.h"
#include "system/clock.h"
#include "system/paths.h"
#include "system/status.h"
#include "system/version.h"
#include "text/chat.h"
#include "tree/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

typedef struct dt_pair dt_pair;       /* a target and a draft model that share one tokenizer: loaded weights */
typedef struct dt_session dt_session; /* sequences being generated with a pair: caches and state */
typedef struct dt_prefix dt_prefix;   /* the result of a prompt pass, to start sequences from */

/* Processors that this process may keep busy: those of its affinity mask, within its control group's quota. More threads only
 * wait for each other. */
int dt_processors(void);

/* ---- pair ------------------------------------------------------------------------------------------------------------ */

/* The ids that the draft may guess. Its output matrix keeps their rows only, so a pass reads less (CPU). They are the lowest ids,
 * which byte-pair encoders give to frequent tokens; the ids of a list; the tokens of texts; and always the ends of a text.
 * Committed tokens stay the same. */
typedef struct {
  const char *name;        /* what results and keys of measurements call it; copied */
  int lowest;              /* ids 0..lowest-1 */
  const int32_t *ids;      /* [n_ids] */
  const char *text;        /* NULL: none */
  const dt_message *texts; /* [n_texts] */
  int n_ids, n_texts;
} dt_draft_vocab;

typedef struct {
  const char *target; /* model folder (config.json, *.safetensors, tokenizer.json) */
  const char *draft;  /* model folder, that of a draft head for this target (CPU), or NULL: no draft model */
  /* "auto" (NULL), "cuda", "cpu", or one variant: "cpu:amx", "cpu:avx512vnni", "cpu:avx512", "cpu:avx2", "cpu:scalar" */
  const char *backend;
  int threads; /* 0: one for each physical core of dt_processors() */
  /* NULL: as the files have them. "q8", "q4" (CPU): matrices held in more bits are rounded to Q8_0, to Q4_1 when they are
   * loaded: another target in effect, a draft that guesses otherwise. "f32": widened. */
  const char *target_weights, *draft_weights;
  const dt_draft_vocab *draft_vocab; /* NULL: all ids */
  bool draft_optional;     /* where the draft cannot be loaded, the pair opens without it: see draft_left_out */
  const char *head_layers; /* "2,15,27": a head reads what enters these layers of the target; NULL: as its files say */
  /* How keys and values are held; NULL: the backend's own type. cpu: "f32" or, rounded when written (to infinity from
   * 65520 on), "f16": other results than with f32, but for all policies alike those of plain decoding. cuda: "16-bit". */
  const char *cache_dtype;
  /* How finely rows that enter the target's quantized matrices are rounded; NULL: "8". cpu: "8", one digit of 8 bits for each 32
   * numbers; "16", two digits, which costs about twice the arithmetic: other results, but for all policies alike those of
   * plain decoding. A draft takes "8", whatever the target does. cuda: none. */
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

/* Whether the files of one model are there and of a kind that is supported, without loading it: as dt_pair_open. facts: or
 * NULL. */
dt_status dt_model_look(const char *path, dt_model_facts *facts, dt_error *err);

/* *is: what lies there is a draft head, whoever's; false too where nothing can be read. *bytes: of its weights' files. */
dt_status dt_head_look(const char *path, bool *is, uint64_t *bytes, dt_error *err);

typedef enum { DT_FITS_NOT, DT_FITS_HEAD, DT_FITS_MODEL } dt_fit;

/* Whether the files at `path` say that they can guess for that target. A head: its config.json names the target's norm, as
 * {"dtrun_target": {"final_norm": "16 hexadecimal digits"}}. A model: it has the target's family and its tokenizer, byte for byte,
 * at most half as many bytes, and is not the target in fewer bits. *bytes: of the weights' files. */
dt_fit dt_draft_fits(const dt_model_facts *target, const char *path, uint64_t *bytes);
/* The same of a model whose facts are known. */
bool dt_model_fits(const dt_model_facts *target, const dt_model_facts *draft);

#define DT_CONTEXT                                                                                                     \
  4096 /* positions of a session that asks for none, at most: a model may have too many for the memory */

typedef struct {
  const char *path;
  int vocab, context, layers, hidden;
  int window;          /* the context is what its layers see at once, though it has more positions; 0: it has no more */
  size_t weight_bytes; /* as they are held here */
  size_t token_bytes;  /* of a token's keys and values in a session */
} dt_model_info;

typedef struct {
  dt_model_info target, draft; /* draft.path is NULL when there is none */
  /* Types of the weights, rounded or as the files have them: "f16", "q4_k", "mixed"; without a draft its is NULL. */
  const char *target_dtype, *draft_dtype;
  const char *draft_vocab;    /* the name of what its output was cut to, NULL: to nothing */
  const char *draft_left_out; /* why there is none, though an optional one was named; NULL: it was not so */
  const char *draft_head;     /* what a draft head reads of the target: "eagle3, layers 2,15,27"; NULL: it is a model */
  const char *cache_dtype;    /* "f32", "f16", "16-bit": of both models; static */
  const char *activations;    /* "8", "16": of the target; NULL: none of its matrices is quantized; static */
  const char *backend;        /* what runs: "cpu:avx512" */
  int threads;
  double load_ms;     /* what dt_pair_open took; a scripted pair: 0 */
  int context;        /* of a session that asks for none */
  int shared_vocab;   /* ids below this can be drafted */
  int tokenizer_size; /* 1 + the largest id that a text can have; a text with one from target.vocab on is refused */
  size_t weight_bytes, cache_bytes, scratch_bytes; /* held now */
  bool on_device;                                  /* those bytes are the device's */
} dt_pair_info;

/* The facts that are told wherever a pair's runs are: in results, traces, records, tuned presets, drivers, other languages. Each is
 * a text of dt_pair_info, NULL: none; of_draft: only of a run that drafts. A new one is a row here, its field there, its value in
 * dt_pair_describe, and a line in lua/cli/RESULTS.md. */
#define DT_PAIR_FACTS(FACT)                                                                                            \
  FACT(target_dtype, false)                                                                                            \
  FACT(draft_dtype, true)                                                                                              \
  FACT(draft_vocab, true)                                                                                              \
  FACT(draft_head, true)                                                                                               \
  FACT(cache_dtype, false)                                                                                             \
  FACT(activations, false)

/* Strings belong to the pair. Zeros: pair is NULL. */
void dt_pair_describe(const dt_pair *pair, dt_pair_info *info);

/* Bytes that the device's threads read from memory in a second, by a streaming sum, measured now; 0: it cannot be measured. */
double dt_pair_bandwidth(dt_pair *pair);

/* With the token that the model wants before every text, if the tokenizer says so and the text has it not. *ids is malloc'd
 * and the caller's. DT_EINPUT: the text has a token that the target has no row for. */
dt_status dt_encode(const dt_pair *pair, const char *text, size_t len, int32_t **ids, int *n, dt_error *err);
/* The same of a text that says everything itself, as a conversation does: no token that begins every text is put before it. */
dt_status dt_encode_whole(const dt_pair *pair, const char *text, size_t len, int32_t **ids, int *n, dt_error *err);
/* The text of n ids: malloc'd, NUL-terminated, invalid UTF-8 as U+FFFD; NULL when out of memory or n is below 0. *len may be NULL. `first`:
 * a text begins with them; some tokenizers put a space before every text, which its first token then does not show. */
char *dt_decode(const dt_pair *pair, const int32_t *ids, int n, bool first, size_t *len);
/* n bytes of text with invalid UTF-8 as U+FFFD: malloc'd, NUL-terminated; NULL when out of memory. */
char *dt_utf8(const char *bytes, size_t n, size_t *len);

/* The layout of conversations called `name`, or (NULL) that of the target's own chat template. DT_EINPUT: it has none, or none
 * that is known. Free with dt_chat_close. */
dt_status dt_pair_chat(const dt_pair *pair, const char *name, dt_chat **out, dt_error *err);

/* ---- session --------------------------------------------------------------------------------------------------------- */

typedef struct {
  int sequences;    /* 1..4096 */
  int context;      /* positions per sequence, at most the target's; 0: the smaller of those and DT_CONTEXT */
  bool use_draft;   /* false: no draft cache, dt_draft_step fails */
  dt_window window; /* zeros, or what the target sees of a text, which is another target in effect */
} dt_session_options;

/* Takes all memory the session will need; what the CPU's caches hold becomes the process's as texts grow. DT_EINPUT: more than
 * is free. The pair must outlive it. */
dt_status dt_session_open(dt_pair *pair, const dt_session_options *options, dt_session **out, dt_error *err);
/* The pair keeps the memory of the one session closed last: another of its shape then opens at once, and before any other
 * is opened it is freed. NULL is allowed. */
void dt_session_close(dt_session *session);
const dt_pair *dt_session_pair(const dt_session *session); /* that it was opened with */

typedef enum {
  DT_NO_SEQUENCE = -1,
  DT_RUNNING,
  DT_FINISH_LENGTH,
  DT_FINISH_EOS,
  DT_FINISH_STOP,
  DT_FINISH_CONTEXT
} dt_finish;

typedef struct {
  int max_tokens;          /* tokens wanted, >= 1; -1: until the context ends */
  bool ignore_eos;         /* end-of-text is a token like any other */
  const char *const *stop; /* [n_stop] strings that end the text; copied */
  int n_stop;
  dt_sampling sampling; /* zeros: the likeliest token */
  bool uncoupled; /* drafting does not know the noise that the target's tokens are drawn with: see dt_tree_draft */
  int candidates; /* what dt_seq_candidates tells of each verified row: 0..DT_TARGET_CANDIDATES */
} dt_seq_options;

#define DT_TARGET_CANDIDATES 8

/* Starts sequence `seq` (0..sequences-1), whatever it did before, and runs the prompt pass: rows 0..n-2.
 * DT_EINPUT: no tokens, an id past the target's vocabulary (its padding is in it; what a draft model lacks, it reads as id 0)
 * or another option out of range; DT_ECONTEXT: the prompt leaves no room for one token. Where the prompt is longer
 * than the draft model's context nothing can be drafted, and that model is not run. The draft model runs over the prompt in the
 * first dt_draft_step, which prompt_ms counts. */
dt_status dt_seq_start(dt_session *session, int seq, const int32_t *prompt, int n, const dt_seq_options *options,
                       dt_error *err);

/* Starts `seq` again with a prompt that begins as its text does (any other is as good as new): as dt_seq_start, but rows of
 * the tokens that both begin with are kept, and those behind them run. On a GPU, which sums whole long prompts in another
 * way, their last bits may then be others than dt_seq_start's, under every policy alike. */
dt_status dt_seq_continue(dt_session *session, int seq, const int32_t *prompt, int n, const dt_seq_options *options,
                          dt_error *err);

/* Starts `seq` for measuring what passes cost: over n tokens that say nothing, without the time of a prompt pass. Steps and
 * passes then cost what they would after any n tokens. `sampling`: how tokens are drawn; NULL: they are not. */
dt_status dt_seq_start_blank(dt_session *session, int seq, int n, const dt_sampling *sampling, dt_error *err);

/* Copies what the prompt pass of `seq` computed, in both models: only between its start and its first draft or verify step. Freed
 * by the caller, before the pair. Usable with any session of the same pair. */
dt_status dt_prefix_take(dt_session *session, int seq, dt_prefix **out, dt_error *err);
dt_status dt_seq_start_from(dt_session *session, int seq, const dt_prefix *prefix, const dt_seq_options *options,
                            dt_error *err);
void dt_prefix_free(dt_prefix *prefix); /* NULL is allowed */
const int32_t *dt_prefix_tokens(const dt_prefix *prefix, int *n);
double dt_prefix_ms(const dt_prefix *prefix); /* what its prompt pass took, in both models */

/* Of a sequence that is not there: NULL, 0, false, DT_NO_SEQUENCE, zeros. Of one that was never started: no tokens, DT_RUNNING. */
dt_tree *dt_seq_tree(dt_session *session, int seq);
int dt_seq_length(const dt_session *session, int seq);            /* committed tokens, the prompt's included */
const int32_t *dt_seq_tokens(const dt_session *session, int seq); /* [length] */
int dt_seq_left(const dt_session *session, int seq);              /* tokens that may still be generated */
bool dt_seq_is_coupled(const dt_session *session, int seq); /* drafts know the noise that its tokens are drawn with */
dt_finish dt_seq_finish(const dt_session *session, int seq);
/* All text generated so far, cut before a completed stop string; raw bytes, the session's. len may be NULL. */
const char *dt_seq_text(const dt_session *session, int seq, size_t *len);
/* [length] of a generated token: how long that text was after it. The prompt's entries mean nothing. */
const size_t *dt_seq_text_ends(const dt_session *session, int seq);

/* ---- the four primitives ---------------------------------------------------------------------------------------------- */

typedef struct {
  int seq, node;
} dt_node_ref;

/* One draft pass over all the nodes; afterwards each has candidates, a confidence and an entropy. Committed tokens and
 * ancestors that lack a row in the draft cache ride along. A node that has its result costs nothing. A node past the draft
 * model's context gets no candidates; nor does one that, with its ancestors, would be more than DT_TREE_DRAFTS nodes of its
 * tree drafted from in this iteration. DT_ESTATE: a sealed or finished tree, no such node. */
dt_status dt_draft_step(dt_session *session, const dt_node_ref *nodes, int n, dt_error *err);

typedef struct {
  int seq;
  int drafted; /* nodes verified */
  int depth;   /* of the deepest of them */
  int accepted;
  const int32_t *path; /* [accepted] nodes, from a child of the root downwards; the session's, until the next verify */
  int32_t bonus;
} dt_verdict;

/* One target pass over root and kept nodes of every named sequence, and the accepted path of each; a tree that was not
 * sealed is. DT_EDEVICE: the device failed, or the target returned NaN for the sequences whose bonus is -1: these cannot be
 * committed, the others are verified. DT_EWEIGHTS: NaN, too, where its files hold numbers that are not finite. DT_ESTATE: a finished or verified tree, one of more than DT_TREE_VERIFY nodes, a
 * sequence named twice. */
dt_status dt_verify_tree(dt_session *session, const int *seqs, int n, dt_verdict *verdicts, dt_error *err);

/* The target's own opinion after a verified node or the root, accepted or not, from the verify pass to the next tree: its
 * likeliest tokens by falling log-probability, of the logits at temperature 1 whether tokens are sampled or not. *token and
 * *logp are the session's; *n: those that the sequence's options asked for or all there are, and 0 for a row with a NaN.
 * DT_ESTATE: the tree is not verified, the node was not. */
dt_status dt_seq_candidates(const dt_session *session, int seq, int node, const int32_t **token, const float **logp,
                            int *n, dt_error *err);

#define DT_COMMIT_REBUILD 1u /* run root and accepted tokens through the target again instead of moving their rows */

typedef struct {
  int seq;
  int n;                 /* tokens committed */
  const int32_t *tokens; /* [n] the session's */
  int accepted;          /* of them drafted ones */
  bool corrected;        /* the bonus token stands where there were drafted ones, and none was right */
  const char *text;      /* [text_len] bytes that may be shown now; the session's, until the next commit */
  size_t text_len;
  dt_finish finish;
} dt_committed;

/* Appends accepted tokens and bonus token, cut where the text ends (end-of-text, stop string, tokens wanted, context).
 * DT_ESTATE: a tree that is not verified, a sequence named twice. DT_EDEVICE: the device failed: what was generated can
 * still be read, but these sequences go on only from a new start. */
dt_status dt_commit(dt_session *session, const int *seqs, int n, unsigned flags, dt_committed *blocks, dt_error *err);

/* Drops the tree, verified or not, and gives an empty one over the last committed token: also how an iteration begins. */
dt_status dt_rollback(dt_session *session, int seq, dt_error *err);

/* ---- what happened ---------------------------------------------------------------------------------------------------- */

typedef struct {
  int prompt_tokens, generated;
  int kept_tokens;        /* of the prompt: their rows were there */
  long iterations;        /* verify passes */
  long committed;         /* tokens */
  long drafted, accepted; /* nodes verified; of them committed */
  long depth_sum;         /* of the verified trees' depths */
  long draft_passes, draft_rows;
  long verified_at[DT_TREE_VERIFY + 1], accepted_at[DT_TREE_VERIFY + 1]; /* [depth] iterations */
  double prompt_ms, draft_ms, verify_ms, commit_ms;
  double ttft_ms;     /* start of the sequence to its first committed token */
  double total_ms;    /* start of the sequence to its last committed token */
  bool shared_prefix; /* prompt_ms is what the prefix took in the models used here; ttft and total include it */
} dt_stats;

void dt_seq_stats(const dt_session *session, int seq, dt_stats *stats);

#pragma GCC visibility pop

#endif
