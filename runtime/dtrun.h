/* dtrun: speculative decoding with token trees. Whatever tree the caller grows, the output is bit-for-bit identical to
 * that of plain decoding.
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
 * Errors, here and in host.h: a call that can fail returns a dt_status: DT_OK or the kind of failure. On failure it
 * fills *err (unless err is NULL) with the status and one line of text. Unless its comment says otherwise, it leaves
 * the object unchanged and sets no output. Arguments are checked: a NULL that is not allowed, a negative count, an
 * unknown flag and a number out of range give DT_EINPUT; a sequence or node that does not exist gives DT_ESTATE. Calls
 * that return no dt_status return NULL, 0 or false for a bad argument, unless their comment says otherwise. Two
 * mistakes cannot be detected: a handle that is already closed, and a list that is shorter than its count.
 *
 * Words: a forward pass of a model processes tokens, one row per token. The row is the token's hidden state on its way
 * through the layers, and also what the pass stores of it in the cache: its keys and values, which later rows read. The
 * root of a tree is the last committed token; each other node is a guess for the token after its parent. A draft's
 * result at a node has candidates, of which the caller makes some nodes. A tree is open (it can grow), sealed (it is
 * settled which nodes are verified), verified (the target's pass has run) and finished (committed). runtime/GLOSSARY.md
 * has more.
 *
 * There is no global state, except the ranks that a process joins. Handles are not thread-safe, but two threads may use
 * two different pairs. A child of fork() does not inherit a pair's threads, so it must open its own pair. */
#ifndef DT_DTRUN_H
#define DT_DTRUN_H

#include "backend/sample.h"
#include "backend/window.h"
#include "chat/calls.h"
#include "chat/chat.h"
#include "chat/reasoning.h"
#include "model/rope.h"
#include "system/clock.h"
#include "system/paths.h"
#include "system/status.h"
#include "system/version.h"
#include "text/infill.h"
#include "tree/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct dt_pair dt_pair;       /* the loaded weights of a target and its draft, which share one tokenizer */
typedef struct dt_session dt_session; /* the sequences that are being generated with a pair: their caches and state */
typedef struct dt_prefix dt_prefix;   /* a copy of a prompt's cache rows, from which sequences can start */

/* Returns the number of processors that this process may use: those of its affinity mask, limited by the quota of its
 * control group. More threads than that only wait for each other. */
int dt_processors(void);

/* ---- pair -------------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *text; /* bytes, used unchanged */
  size_t len;
} dt_text;

/* The token ids that the draft may propose. Only their rows of the draft's output matrix are loaded, so a
 * draft pass reads less memory; the committed tokens stay the same. The set is the union of: the `lowest` ids, which
 * byte-pair encoders give to frequent tokens; the list `ids`; the tokens of `text` and `texts`; and the end-of-text
 * tokens, which are always included. */
typedef struct {
  const char *name;     /* names the set in results and in the keys of measurements; copied */
  int lowest;           /* the number of lowest ids: 0..lowest-1. -1: an eighth of all ids, but 8192 at least */
  const int32_t *ids;   /* [n_ids] */
  const char *text;     /* NULL: none */
  const dt_text *texts; /* [n_texts] */
  int n_ids, n_texts;
} dt_draft_vocab;

typedef struct {
  /* A folder (config.json, *.safetensors, tokenizer.json), or a GGUF file (of a model in several files, any of
   * them). */
  const char *target;
  /* The folder or file of a model, or of a head for this target; or "mtp", the target's own layer for
   * multi-token prediction. NULL: no draft. */
  const char *draft;
  /* "auto" (also NULL), "cuda", "cpu", or "cpu:" and a variant: amx, avx512vnni, avxvnni, avx512, avx2; i8mm,
   * dotprod, neon; scalar. "auto" uses a GPU if there is one, and the CPU if the pair cannot be opened on the GPU;
   * dt_pair_info.device_left_out then says why. */
  const char *backend;
  /* How the target is split between GPUs and the CPU. The output depends on it, and is the same under every policy.
   * Draft heads need a target whose layers are all on one GPU, or a CPU alone.
   * gpu_layers: how many of its last layers GPUs compute ("99", more than there are: all); the CPU computes the others.
   * "auto": as many as fit in their free memory. NULL, "all": all. */
  const char *gpu_layers;
  int gpus;        /* how many GPUs share these layers, in proportion to their free memory; 0: one */
  int cpu_experts; /* layers 1 to this one have their experts, router and MLP on the CPU in any case; 0: none */
  int threads;     /* 0: one for each physical core among dt_processors() that is nearly as fast as the fastest */
  /* Machines with several NUMA nodes, and processors with cores of different speed (CPU). NULL, "distribute": threads
   * are distributed over the nodes, each stays on its node and among cores of one speed, and the weights are spread
   * over these nodes. "isolate": the same on the node of the calling thread alone. "off": the system places both. */
  const char *numa;
  /* The type of the weights in memory. NULL: as in the files. "q8", "q4" (CPU): matrices with more bits are rounded to
   * Q8_0 or Q4_1 when they are loaded. A rounded target is a different model and generates different text; a rounded
   * draft only makes different guesses. "f32": matrices are widened when they are loaded. draft_weights may also be
   * "file", which is NULL, or "auto": q8 for heads if the backend can round, and the types of the files otherwise. */
  const char *target_weights, *draft_weights;
  /* The type of the draft's output matrix ("q8", "q4"; CPU). A draft that uses the target's output gets a copy of it
   * in that type: its passes read less, and the copy takes memory. NULL, "file": as the draft's other weights, and the
   * target's own output where the draft has none. "auto": the same, but q4 for a wide head with an output of its own,
   * if draft_weights is "auto", too. */
  const char *draft_output;
  const dt_draft_vocab *draft_vocab; /* NULL: all ids */
  /* The draft sees this many most recent tokens, and the first DT_DRAFT_SINKS ones of the text; 0: the whole text. The
   * output does not depend on it. A Medusa head sees no earlier tokens, and is refused. */
  int draft_window;
  bool draft_optional; /* if the only draft cannot be loaded, the pair opens without it; dt_pair_info.draft_left_out
                          says why */
  /* "2,15,27": the layers of the target whose inputs the head reads; NULL: those that its files name. */
  const char *head_layers;
  /* The type of keys and values in the caches; NULL: the backend's default. cpu: "f16", "f32" or "q8" (8-bit codes,
   * with an f16 scale for every 32 numbers of a head). cuda: "16-bit" or "q8". Each number is rounded when it is
   * written; a number that the type cannot represent becomes NaN, and the resulting error suggests "f32". The text may
   * differ between types, but is the same under every policy. */
  const char *cache_dtype;
  /* The precision of the activations (rows) that the target's quantized matrices multiply; NULL: "8". cpu: "8" rounds
   * each number to 8 bits, with a scale for every 32 numbers; "16" rounds it to two bytes, which hold 10 to 15 bits,
   * depending on the type of the weights, for about twice the arithmetic. The text may differ between the two, but is
   * the same under every policy. Drafts always use "8". cuda: does not have this option. */
  const char *activations;
  /* A folder in which the weights are kept as the device stores them, so that the next start only reads them: models of
   * 32 MB and more, on the CPU. It is created if it is missing, and holds up to 20 GB or a tenth of its disk. A file
   * is written while processors are idle; what is missing when the pair closes, a later one writes. If it cannot be
   * written, nothing is kept. NULL: no folder. */
  const char *packed;
  dt_rope rope; /* how the target encodes positions */
} dt_pair_options;

/* Loads the models. The caller closes the pair, after its sessions and prefixes. DT_EINPUT: a folder or file is missing
 * or invalid, the tokenizers of the models differ, or there is no such backend. */
dt_status dt_pair_open(const dt_pair_options *options, dt_pair **out, dt_error *err);
void dt_pair_close(dt_pair *pair); /* NULL is allowed */

/* What a target takes on the GPUs of this machine, from the headers of its files. */
typedef struct {
  int layers, context;                   /* of the model; positions of the session whose memory is counted */
  size_t weights, caches, scratch, host; /* bytes on GPUs if they have all layers; on the host in that case */
  size_t free;                           /* bytes that are free on the GPUs */
  int gpu_layers;  /* the most layers for dt_pair_options.gpu_layers that fit; `layers`: all of them; 0: none */
  int cpu_experts; /* the least dt_pair_options.cpu_experts with which the rest fits; 0: none is needed, or none helps
                    */
} dt_needs;

/* Computes what `options.target` takes with options.gpus GPUs and options.rope.context positions. DT_EDEVICE: there is
 * no GPU; DT_EINPUT: a GPU does not compute the model. */
dt_status dt_pair_needs(const dt_pair_options *options, dt_needs *out, dt_error *err);

/* What identifies a model, taken from the headers of its files and from its tokenizer. Hashes are FNV-1a 64. */
typedef struct {
  const char *family; /* "llama"; static */
  /* Hash of the weights of the final norm, rounded to bfloat16, so that it does not depend on the quantization. */
  uint64_t norm;
  /* Hash of the tokenizer's bytes. It is equal for equal tokenizers in files of the same format; 0: no tokenizer. */
  uint64_t tokenizer;
  uint64_t bytes;   /* total size of the weight files */
  const char *type; /* the type that most weights of the layers have, such as "Q4_K"; static */
  char name[96];    /* general.name of a GGUF file, cut to its length; "" without one */
  /* Bytes that a pass over one row reads of the files: the layers, without experts, and the output; `output` is the
   * output's part. All experts of all layers have `all_experts` bytes, of which a row reads the part chosen_experts /
   * experts (0, 0: the model has none). */
  uint64_t pass, output, all_experts;
  int experts, chosen_experts;
} dt_model_facts;

/* Checks that a model's files exist and are supported, as dt_pair_open does, but without loading the weights. `facts`
 * may be NULL. */
dt_status dt_model_look(const char *path, dt_model_facts *facts, dt_error *err);

/* Returns whether the model's own files have a layer that can draft for it (the draft "mtp"). */
bool dt_has_mtp(const char *path);

/* Sets *is to whether the files at `path` are a draft head (for any target); a path that cannot be read gives false.
 * *bytes is the total size of the weight files. */
dt_status dt_head_look(const char *path, bool *is, uint64_t *bytes, dt_error *err);

/* Returns whether a draft's name denotes a part of the target instead of files: "mtp". NULL gives false. */
bool dt_draft_is_own(const char *draft);

typedef enum { DT_FITS_NOT, DT_FITS_HEAD, DT_FITS_MODEL } dt_fit;

/* Returns whether the files at `path` can draft for this target. A head fits if its config.json names the target's
 * norm: {"dtrun_target": {"final_norm": "16 hexadecimal digits"}}. A model fits if it has the target's family and, byte
 * for byte, its tokenizer, if its weight files are at most half as large, and if it is not the target itself with fewer
 * bits. *bytes is the total size of the weight files. */
dt_fit dt_draft_fits(const dt_model_facts *target, const char *path, uint64_t *bytes);
/* The same for a model whose facts are already known. */
bool dt_model_fits(const dt_model_facts *target, const dt_model_facts *draft);

typedef struct {
  const char *path;
  int vocab, context, layers, hidden;
  int window;          /* its layers see this many tokens, and `context` is limited to it; 0: they see all positions */
  size_t weight_bytes; /* in memory */
  size_t token_bytes;  /* keys and values of one token in a session */
  int rope_context;    /* a model whose rotation was computed for this many positions, which limit `context`; or 0 */
  int deepest;         /* maximum depth of a tree; 0: no limit */
  int block;           /* a block head: how many tokens one pass of it guesses at most; 0: it is none */
  int experts, chosen_experts; /* experts in a layer, and how many of them a row uses; 0: the model has none */
} dt_model_info;

typedef struct {
  dt_model_info target, draft; /* the draft's path is NULL when there is none */
  /* Types of the weights in memory: "f16", "q4_k", "mixed". NULL if there is no draft. */
  const char *target_dtype, *draft_dtype;
  const char *draft_vocab;  /* name of the dt_draft_vocab; NULL: the draft guesses all ids */
  const char *draft_output; /* the type that the draft's output was rounded to apart from its other weights, or NULL */
  const char *device_left_out; /* why "auto" did not use the GPU: an old driver, or a failure to open; or NULL */
  const char *draft_left_out;  /* why an optional draft was not loaded; NULL: it was loaded, or none was named */
  /* The layout of a head and the inputs that it reads: "eagle3, layers 2,15,27"; NULL: the draft is a model. */
  const char *draft_head;
  const char *draft_window; /* which tokens the draft sees: "1024+4", the last and the first ones; NULL: all */
  const char *cache_dtype;  /* "f16", "f32", "q8", "16-bit": the same for all models; static */
  const char *activations;  /* "8", "16": the target's; NULL: none of its matrices is quantized; static */
  /* What decided the target's rotation apart from its files: options, such as "yarn 4 of 32768", and the number of
   * positions if it depends on that: "dynamic 2, 8192 positions"; NULL: nothing. */
  const char *rope_scaling;
  const char *backend; /* "cpu:avx512" */
  int threads;
  double load_ms;     /* time of dt_pair_open; a scripted pair: 0 */
  int context;        /* positions of a session that names no context */
  int shared_vocab;   /* ids below this can be drafted */
  int tokenizer_size; /* 1 + the tokenizer's largest id; dt_encode refuses a text with an id of target.vocab or more */
  size_t weight_bytes, cache_bytes, scratch_bytes; /* bytes that are allocated now */
  bool on_device;                                  /* these bytes are in the GPU's memory */
} dt_pair_info;

/* The facts about a pair that appear in results, traces, records, tuned presets, drivers and bindings. Each is a string
 * of dt_pair_info (NULL: none); the second argument says whether only runs with a draft report it. To add a fact, add a
 * line here, a field in dt_pair_info, its value in dt_pair_describe, and a line in lua/cli/RESULTS.md. */
#define DT_PAIR_FACTS(FACT)                                                                                            \
  FACT(target_dtype, false)                                                                                            \
  FACT(draft_dtype, true)                                                                                              \
  FACT(draft_vocab, true)                                                                                              \
  FACT(draft_output, true)                                                                                             \
  FACT(draft_head, true)                                                                                               \
  FACT(draft_window, true)                                                                                             \
  FACT(cache_dtype, false)                                                                                             \
  FACT(activations, false)                                                                                             \
  FACT(rope_scaling, false)

/* Describes a pair. Strings belong to the pair. If pair is NULL, *info is zeroed. */
void dt_pair_describe(const dt_pair *pair, dt_pair_info *info);

/* Measures the memory bandwidth in bytes per second, with a streaming sum in all threads of the backend. 0: it cannot
 * be measured. */
double dt_pair_bandwidth(dt_pair *pair);

/* Encodes a text of `len` bytes as token ids. If the tokenizer asks for a begin-of-text token and the text does not
 * start with one, it is put first. *ids is malloc'd; the caller frees it. DT_EINPUT: the target's vocabulary lacks a
 * token of the text. */
dt_status dt_encode(const dt_pair *pair, const char *text, size_t len, int32_t **ids, int *n, dt_error *err);
/* The same without adding a begin-of-text token. */
dt_status dt_encode_whole(const dt_pair *pair, const char *text, size_t len, int32_t **ids, int *n, dt_error *err);
/* The same for a conversation (dt_chat_write), which contains a begin-of-text token if its template writes one. A
 * control token that a message spells becomes ordinary tokens. */
dt_status dt_encode_chat(const dt_pair *pair, const dt_chat_prompt *prompt, int32_t **ids, int *n, dt_error *err);

/* Returns the id of the longest added token that a text of n bytes begins with, such as <|tool_call>, if it is a
 * control token, and sets *len to its length; -1: it is none, or it ends a text. A model may also spell the string of
 * an added token that is no control token, such as Qwen2.5's <tool_call>. */
int32_t dt_token_at(const dt_pair *pair, const char *text, size_t n, size_t *len);

/* Returns whether the target's vocabulary has the tokens prefix, suffix and middle of fill-in-the-middle: those that
 * its GGUF file names, or control tokens with a known spelling, such as <|fim_prefix|>. *marks is a copy of their ids;
 * -1 for each token that the vocabulary lacks, and for all of them if `pair` is NULL or has no tokenizer. */
bool dt_pair_infill(const dt_pair *pair, dt_infill *marks);
/* Decodes n ids to text: malloc'd and NUL-terminated, with invalid UTF-8 replaced by U+FFFD; NULL if out of memory or n
 * < 0. `len` may be NULL. `first`: the ids are the beginning of a text, so the space that some tokenizers put before
 * every text is removed. */
char *dt_decode(const dt_pair *pair, const int32_t *ids, int n, bool first, size_t *len);
/* Returns the bytes of one token, as the first or as a later token of a text; they may be only a part of a character.
 * They belong to the pair, or are in `buffer` if the pair is scripted. *len is 0 if there is no such token. */
const char *dt_token_bytes(const dt_pair *pair, int32_t id, bool first, char buffer[16], size_t *len);
/* Copies n bytes of text and replaces invalid UTF-8 by U+FFFD: malloc'd, NUL-terminated; NULL if out of memory. */
char *dt_utf8(const char *bytes, size_t n, size_t *len);

/* Opens the chat template of the pair's target, as dt_model_chat does. */
dt_status dt_pair_chat(const dt_pair *pair, const char *name, dt_chat **out, dt_error *err);

/* ---- session ----------------------------------------------------------------------------------------------------- */

typedef struct {
  int sequences;    /* 1..4096 */
  int context;      /* positions per sequence, at most the target's; 0: the target's, but at most DT_CONTEXT */
  bool use_draft;   /* false: the draft gets no cache, and dt_draft_step fails */
  dt_window window; /* which tokens the target sees; zeros: all. With a window the target generates other text */
} dt_session_options;

/* Opens a session and reserves all memory that it will need; on a CPU, the caches become resident only as texts grow.
 * The pair must outlive the session. DT_EINPUT: there is not enough memory. */
dt_status dt_session_open(dt_pair *pair, const dt_session_options *options, dt_session **out, dt_error *err);
/* Closes a session; NULL is allowed. The pair keeps the memory of the last closed session: a new session with the same
 * options reuses it, and one with other options frees it. */
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
  float bias; /* -1000..1000; -INFINITY: the token is never generated */
} dt_bias;

/* A limit on the tokens of an answer's reasoning, the text between two marks at its beginning. If this many tokens of
 * reasoning have been generated and the end mark is not complete, the next tokens are those of `end`: all others are
 * banned, whatever the other adjustments say. The limit has no effect afterwards. With a grammar, only those of these
 * tokens are forced that it allows: where it allows another token only, the limit ends. */
typedef struct {
  /* The marks, such as "<think>" and "</think>"; copied. They are found in the generated text without the white space
   * around them, and `begin` only if nothing but white space precedes it. begin NULL: only `open` begins the
   * reasoning. What is forced is the whole of `end`, encoded by itself (dt_encode_whole). end NULL: no limit. */
  const char *begin, *end;
  bool open;  /* the prompt ends inside the reasoning, so the answer begins in it */
  int tokens; /* maximum number of tokens after the begin mark or, if open, of the answer; -1: no limit */
} dt_reasoning_limit;

/* Adjustments of the target's logits, applied before the likeliest token is taken or a token is sampled. The
 * adjustments of a row depend only on the text and the path before it, so under every policy the tokens are those of
 * plain decoding. They are applied in this order:
 *   bias        is added; biases of the same id add up
 *   min_tokens  end-of-text tokens are banned until this many tokens are generated (Hugging Face's min_new_tokens)
 *   repeat      if the id occurs in the prompt or the generated text, a positive logit is divided by `repeat` and a
 *               negative one is multiplied by it (Hugging Face's repetition_penalty)
 *   presence, frequency   if the id occurs c > 0 times in the generated text, presence + frequency * c is subtracted
 *                         (OpenAI's penalties)
 *   grammar     a token that the rules do not allow after the text is banned; the text can end only where they allow it
 *   reasoning   where the end mark of the reasoning is forced, all tokens but one are banned (dt_reasoning_limit)
 * By contrast, llama.cpp counts all three penalties over the last 64 tokens, including those of the prompt. The draft's
 * logits are adjusted in the same way before its guesses are ranked (those of a Medusa head by the text alone, and
 * without the grammar and the limit). A backend that does not support adjustments accepts only zeros. */
typedef struct {
  float repeat;              /* 0.01..100; 0 and 1: none */
  float presence, frequency; /* -100..100 */
  const dt_bias *bias;       /* [n_bias] copied */
  int n_bias;
  int min_tokens;
  const char *grammar; /* a grammar for the text, in llama.cpp's notation (GBNF); copied; NULL: none */
  dt_reasoning_limit reasoning;
} dt_adjustments;

/* Returns whether any adjustment is asked for; false for NULL. */
bool dt_adjustments_wanted(const dt_adjustments *asked);

typedef struct {
  /* Objects may have more properties than their schema lists, as the standard says. Otherwise a schema with
   * `properties` allows only those, the required ones and what additionalProperties and patternProperties say, and one
   * without `type` has the types of its keywords. */
  bool open;
  bool strict; /* refuse keywords that have no effect: unknown ones, and those of other types */
} dt_schema_options;

/* Converts a JSON schema to a grammar of the JSON texts that match it. options NULL: all false. *grammar is malloc'd;
 * the caller frees it. note: NULL, or 256 bytes that get a sentence about the first keyword without effect ("": there
 * is none). lua/cli/OPTIONS.md lists the supported keywords. DT_EINPUT: the schema is not JSON, or has an unsupported
 * keyword. */
dt_status dt_schema_grammar(const char *json, const dt_schema_options *options, char **grammar, char *note,
                            dt_error *err);
/* The same for the texts that a regular expression matches as a whole. DT_EINPUT: err names the mistake and its
 * column. */
dt_status dt_regex_grammar(const char *regex, char **grammar, dt_error *err);
/* Checks that a grammar can be used. DT_EINPUT: err names the mistake with its line and column. */
dt_status dt_check_grammar(const char *grammar, dt_error *err);

#define DT_LOGPROBS 20

/* Log-probabilities of tokens, computed from the target's logits at temperature 1, before adjustments and filters. */
typedef struct {
  bool wanted; /* record the log-probability of each generated token */
  int top;     /* and those of this many likeliest tokens at its position: 0..DT_LOGPROBS */
  /* Record them also for the prompt's tokens, except the first. The whole prompt is then computed, even if some of its
   * rows are cached. */
  bool prompt;
} dt_logprobs;

typedef struct {
  int max_tokens;          /* maximum number of tokens to generate, >= 1; -1: until the context is full */
  bool ignore_eos;         /* treat end-of-text like any other token */
  const char *const *stop; /* [n_stop] strings that end the text; copied */
  int n_stop;
  /* The mark that ends an answer in a chat (dt_chat_end). If the tokenizer has a token for it, that token ends the
   * text; otherwise the mark is a stop string. NULL: none. It has no effect with ignore_eos, nor with a grammar, which
   * itself says where the text ends. */
  const char *end;
  dt_sampling sampling; /* zeros: the likeliest token */
  /* A draft is coupled unless this is set: it ranks its guesses with the same random noise with which the target
   * samples, so that both tend to choose the same token (dt_tree_draft). */
  bool uncoupled;
  int candidates; /* how many tokens dt_seq_candidates returns for each verified row: 0..DT_TARGET_CANDIDATES */
  dt_adjustments adjustments; /* zeros: none */
  dt_logprobs logprobs;       /* zeros: none */
  /* The maximum number of prompt rows that the start computes; dt_seq_prompt computes the others. 0: all at once. */
  int piece;
  /* With `piece`: dt_seq_prompt also computes the draft's prompt rows. If this is not set, or without `piece`, the
   * first dt_draft_step computes them all at once. */
  bool drafts;
} dt_seq_options;

/* Checks those values of the options that can be checked without a model, as dt_seq_start does. DT_EINPUT: the message
 * begins with the name of the option, such as "temp: ". */
dt_status dt_check_options(const dt_seq_options *options, dt_error *err);

#define DT_TARGET_CANDIDATES 32

/* Starts sequence `seq` (0..sequences-1), whatever its state, and runs the prompt pass: rows 0..n-2 through the target.
 * The draft model processes the prompt in the first dt_draft_step, and prompt_ms includes that time. If the prompt is
 * longer than the draft model's context, nothing is drafted. A draft model that lacks an id of the text reads id 0
 * instead. DT_EINPUT: the prompt is empty, an id is not in the target's vocabulary, or an option is out of range.
 * DT_ECONTEXT: the context has no room for one more token. If a pass fails, here, in dt_seq_prompt or in the other
 * calls that start or restore a sequence, the sequence must be started again. */
dt_status dt_seq_start(dt_session *session, int seq, const int32_t *prompt, int n, const dt_seq_options *options,
                       dt_error *err);

/* Does the same as dt_seq_start, but reuses the cached rows of the longest prefix that the prompt shares with the
 * sequence's text, and computes only the others, with the same bits. Any prompt is allowed. A GPU computes each whole
 * chunk of 512 rows of a prompt in another way than other rows, so that of a text that went on beyond a multiple of 512
 * it may reuse fewer rows. */
dt_status dt_seq_continue(dt_session *session, int seq, const int32_t *prompt, int n, const dt_seq_options *options,
                          dt_error *err);

/* Computes at most `rows` more rows (0: none) of a prompt that was started with `piece`, so that passes of other
 * sequences can run in between. *left is the number of rows that the target, and with dt_seq_options.drafts also the
 * draft, still lack. Until it is 0, dt_draft_step, dt_verify_tree, dt_commit and dt_rollback refuse the sequence. On a
 * GPU, a piece has at least 512 rows as long as 512 are left. DT_ESTATE: there is no such sequence, or it was never
 * started. */
dt_status dt_seq_prompt(dt_session *session, int seq, int rows, int *left, dt_error *err);

/* Starts `seq` for measurements, over n meaningless tokens and without a prompt pass. Its passes take the same time as
 * after any other n tokens. Its rows do not depend on its tokens, so dt_seq_rows is 0: they can be neither reused nor
 * copied. If `sampling` is NULL, the likeliest tokens are taken. */
dt_status dt_seq_start_blank(dt_session *session, int seq, int n, const dt_sampling *sampling, dt_error *err);

/* Copies the cache rows of the prompt of `seq`, in the target and its draft. First it runs the draft over the prompt,
 * which the start leaves to the first draft step; that takes time, and stays done if the call fails. Allowed only
 * between the start of the sequence and its first draft or verify pass. Any session of the pair can use the prefix; the
 * caller frees it before it closes the pair. */
dt_status dt_prefix_take(dt_session *session, int seq, dt_prefix **out, dt_error *err);
/* Starts a sequence as dt_seq_start does, with the prompt of the prefix and its rows instead of a prompt pass. */
dt_status dt_seq_start_from(dt_session *session, int seq, const dt_prefix *prefix, const dt_seq_options *options,
                            dt_error *err);
void dt_prefix_free(dt_prefix *prefix); /* NULL is allowed */

/* Copies the cache rows of the first n tokens of a sequence's text (fewer if fewer have rows), in the target and its
 * draft. Allowed in any state. DT_EINPUT: n is less than 1. DT_ESTATE: the sequence has no rows. */
dt_status dt_prefix_save(dt_session *session, int seq, int n, dt_prefix **out, dt_error *err);
/* Replaces the rows of a sequence by those of a prefix, so that a following dt_seq_continue can reuse them. Until that
 * call the sequence counts as not started. */
dt_status dt_seq_adopt(dt_session *session, int seq, const dt_prefix *prefix, dt_error *err);
int dt_seq_rows(const dt_session *session, int seq); /* the number of tokens of its text that have rows */
/* How many rows of a sequence dt_seq_continue would reuse for a prompt of n tokens, and how many of a prefix after
 * dt_seq_adopt. 0: there is no such sequence, or the prompt is NULL. */
int dt_seq_reusable(const dt_session *session, int seq, const int32_t *prompt, int n);
int dt_prefix_reusable(const dt_prefix *prefix, const int32_t *prompt, int n);
size_t dt_prefix_bytes(const dt_prefix *prefix);        /* the size of its rows, in the host's or the GPU's memory */
size_t dt_rows_bytes(const dt_session *session, int n); /* the same for the rows of n tokens */
const int32_t *dt_prefix_tokens(const dt_prefix *prefix, int *n);
double dt_prefix_ms(const dt_prefix *prefix); /* the time of its prompt pass, in the target and its draft */

/* For a sequence that does not exist, the following calls return NULL, 0, false, DT_NO_SEQUENCE or zeros. A sequence
 * that was never started has no tokens and is DT_RUNNING. */
dt_tree *dt_seq_tree(dt_session *session, int seq);
int dt_seq_length(const dt_session *session, int seq);            /* committed tokens, including the prompt */
const int32_t *dt_seq_tokens(const dt_session *session, int seq); /* [length] */
int dt_seq_left(const dt_session *session, int seq);              /* tokens that may still be generated */
/* Returns how many committed tokens before the last one the draft has not processed yet. Its next step computes that
 * many additional rows. Tokens that come from a dt_prefix count until the first step, as the time of the prefix does. 0
 * for a Medusa or a cross-attention head, which have no rows of the text, or if the session does not draft. */
int dt_seq_unread(const dt_session *session, int seq);
/* Returns whether drafts are coupled: see dt_seq_options.uncoupled. False at temperature 0. */
bool dt_seq_is_coupled(const dt_session *session, int seq);
dt_finish dt_seq_finish(const dt_session *session, int seq);
/* Returns all text generated so far, cut before a completed stop string, as raw bytes that the session owns. `len` may
 * be NULL. */
const char *dt_seq_text(const dt_session *session, int seq, size_t *len);
/* Returns, for each generated token, the length of that text after the token: [length] numbers, of which those of the
 * prompt are undefined. */
const size_t *dt_seq_text_ends(const dt_session *session, int seq);

/* Returns whether the sequence has a grammar. */
bool dt_seq_has_grammar(const dt_session *session, int seq);
/* Sets *allowed to whether the grammar or the limit on reasoning allows the token after a node of the tree; true
 * without them. A guess that they forbid is not verified. DT_ESTATE: there is no such node or token, or no tree, as
 * after a commit. */
dt_status dt_seq_allowed(const dt_session *session, int seq, int node, int32_t token, bool *allowed, dt_error *err);

#define DT_FORCED 64

/* Finds the text that the grammar forces after a node of the tree: at most the next DT_FORCED bytes that every allowed
 * continuation shares. *token is its first token when the tokenizer encodes that text alone; other tokens may also
 * spell it. *left is the number of forced bytes after that token. If nothing is forced, since several bytes may follow
 * or the text may end, *token is -1 and *left is 0. Where a limit on reasoning forces the end mark, *token is its next
 * token, and *left is the number of bytes of its other tokens. */
dt_status dt_seq_forced(const dt_session *session, int seq, int node, int32_t *token, int *left, dt_error *err);

/* Returns the log-probability of the token at position `at` (0..length-1) of the text, and the likeliest tokens at that
 * position in order of falling log-probability. *token and *top have *n entries (dt_logprobs.top, or the whole
 * vocabulary if that is smaller) and belong to the session. DT_ESTATE: nothing is known about this token: it is the
 * first of the text, or log-probabilities were not asked for. */
dt_status dt_seq_logprobs(const dt_session *session, int seq, int at, float *logp, const int32_t **token,
                          const float **top, int *n, dt_error *err);

/* ---- the four primitives ----------------------------------------------------------------------------------------- */

typedef struct {
  int seq, node;
  int width; /* how many tokens ahead of the root a block head guesses at most, 0: as many as it can; the first step of
                an iteration decides. Other drafts ignore it */
} dt_node_ref;

/* Runs the draft over these nodes. Afterwards each node has candidates, confidence and entropy. Nodes that the draft
 * has already processed are skipped. A node gets no candidates if it is beyond the draft's context, or if it and its
 * ancestors would exceed DT_TREE_DRAFTS, the number of nodes that can be drafted from in one iteration's tree.
 * DT_ESTATE: the tree is sealed or finished, or there is no such node or no draft. If a pass fails, the results of
 * earlier passes of the call remain.
 *
 * A draft model takes one pass. An EAGLE-like or cross-attention head takes one for each level of the tree at which one
 * of the nodes, or an ancestor of one, has no result yet. A Medusa head takes one for each
 * depth of the nodes, once in an iteration; a block head takes one for all depths. The rows that a draft's cache lacks
 * are computed too: those of ancestors and of up to 64 committed tokens in the same passes, those of the prompt and of
 * more tokens in separate passes first. For more than 8 sequences several passes may take the place of one. */
dt_status dt_draft_step(dt_session *session, const dt_node_ref *nodes, int n, dt_error *err);

typedef struct {
  int seq;
  int drafted;  /* verified nodes, without the root, whatever guessed them: drafts, copies or a grammar */
  int depth;    /* of the deepest verified node */
  int accepted; /* accepted nodes */
  /* [accepted] The accepted nodes, from a child of the root down; owned by the session, until the next verify. */
  const int32_t *path;
  /* The target's own token after the last accepted node, whether the tree had no guess for it or only wrong ones; -1:
   * none (a NaN, or the grammar allows none). */
  int32_t bonus;
  /* The number of distinct experts that the whole pass read, for all listed sequences together. A pass runs in chunks
   * of at most 64 rows; an expert counts once for each chunk and layer that read it. 0: the target has no experts. */
  int experts_read;
} dt_verdict;

/* Runs one target pass over the root and the kept nodes of each listed sequence, and returns its accepted path in
 * verdicts[i]. A tree that is still open is sealed first, and stays sealed if the pass fails. DT_EDEVICE: the backend
 * failed, or the target returned NaN for the sequences whose bonus is -1; these cannot be committed, but the others are
 * verified. DT_EWEIGHTS: the target returned NaN, and its files contain numbers that are not finite. DT_ESTATE: a tree
 * is finished or already verified, or has more than DT_TREE_VERIFY nodes, or a sequence is listed twice. */
dt_status dt_verify_tree(dt_session *session, const int *seqs, int n, dt_verdict *verdicts, dt_error *err);

/* Returns the target's likeliest tokens after the root or a verified node (accepted or not), in order of falling
 * log-probability of the logits at temperature 1. *token and *logp belong to the session and are valid from the verify
 * pass until the next tree begins. *n is `candidates` of the sequence's options, or the size of the vocabulary if that
 * is smaller; it is 0 if the row has a NaN. DT_ESTATE: the tree or the node is not verified. */
dt_status dt_seq_candidates(const dt_session *session, int seq, int node, const int32_t **token, const float **logp,
                            int *n, dt_error *err);

/* Returns the experts that the target chose for the root or a verified node: *id is [layers][chosen_experts] (of the
 * target's dt_model_info), in rising order within a layer, and -1 in a layer without experts. It is NULL if the target
 * has no experts. Ownership, validity and errors are those of dt_seq_candidates. */
dt_status dt_seq_experts(const dt_session *session, int seq, int node, const int32_t **id, dt_error *err);

#define DT_COMMIT_REBUILD 1u /* compute the rows of the root and the accepted tokens again instead of moving them */

typedef struct {
  int seq;
  int n;                 /* tokens committed */
  const int32_t *tokens; /* [n] owned by the session */
  int accepted;          /* how many of the tokens are accepted nodes */
  bool corrected;        /* the tree had guesses for the bonus token, and all were wrong */
  const char *text;      /* [text_len] bytes that can be shown now; until the next commit of this sequence */
  size_t text_len;
  dt_finish finish;
} dt_committed;

/* Appends the accepted tokens and the bonus token to each listed sequence, up to the end of its text (end-of-text, stop
 * string, max_tokens, context). `flags` is 0 or DT_COMMIT_REBUILD. DT_ESTATE: a tree is not verified, or a sequence is
 * listed twice. DT_EDEVICE: the backend failed; the tokens are appended all the same, and the texts can be read, but
 * the sequences must be started again. */
dt_status dt_commit(dt_session *session, const int *seqs, int n, unsigned flags, dt_committed *blocks, dt_error *err);

/* Begins an iteration: an empty tree over the last committed token. A tree that is not committed is dropped, verified
 * or not, so the iteration starts again. Each iteration must begin with this call. */
dt_status dt_rollback(dt_session *session, int seq, dt_error *err);

/* ---- what happened ----------------------------------------------------------------------------------------------- */

typedef struct {
  int prompt_tokens, generated;
  int cached_tokens;      /* prompt tokens whose rows were already cached */
  long iterations;        /* verify passes */
  long committed;         /* generated tokens; the same number as `generated` */
  long drafted, accepted; /* verified nodes (dt_verdict.drafted); accepted nodes that were committed */
  long depth_sum;         /* sum of the verified trees' depths */
  long draft_passes, draft_rows;
  long experts_read; /* by all verify passes, each counted as in dt_verdict, with its other sequences */
  /* [depth] iterations whose verified tree was at least this deep, and iterations that accepted a node at this depth */
  long verified_at[DT_TREE_VERIFY + 1], accepted_at[DT_TREE_VERIFY + 1];
  double prompt_ms, draft_ms, verify_ms, commit_ms;
  double ttft_ms;  /* from the start of the sequence to its first committed token */
  double total_ms; /* from the start of the sequence to its last committed token */
  /* The sequence started from a prefix: prompt_ms is the time of the prefix in the target (and in the draft after the
   * first draft step), which ttft_ms and total_ms include. */
  bool shared_prefix;
} dt_stats;

void dt_seq_stats(const dt_session *session, int seq, dt_stats *stats);

#pragma GCC visibility pop

#endif
