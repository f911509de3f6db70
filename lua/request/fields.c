/* The table of fields: see fields.h. */
#include "request/fields.h"

#include "request/input.h"

#include <string.h>

#define PAIR(member) offsetof(request_input, load.member)
#define HOW(member) offsetof(request_input, load.how.member)
#define ASKED(member) offsetof(request_input, request.member)
#define SEQ(member) offsetof(request_input, request.seq.member)
#define ADJUSTMENTS(member) offsetof(request_input, request.seq.adjustments.member)
#define SAMPLING(member) offsetof(request_input, request.seq.sampling.member)

enum { ALL = ON_LINE | IN_BODY | IN_DRIVER, SAMPLED = ALL | IN_SET };

/* clang-format off */
static const request_field fields[] = {
    /* options of the pair */
    {"target", "-m --target", "--model -hf -hfr --hf-repo", NULL, FIELD_TEXT, PAIR(target), ON_LINE | IN_LOAD,
     "MODEL", "model: folder, .gguf file or name in dtrun ls (bundled); -m is optional", NULL},
    {"draft", "-md --draft",
     "--model-draft -hfd -hfrd --hf-repo-draft --assistant-model --draft-model --speculative-model", NULL,
     FIELD_TEXT, PAIR(draft), ON_LINE | IN_LOAD,
     "MODEL", "draft model (searched for); mtp: the target's MTP layer; none: no draft", NULL},
    {"weights", "--weights", NULL, NULL, FIELD_TEXT, HOW(target_weights), ON_LINE | IN_LOAD,
     "TYPE", "round the target's weights to q8 or q4: another model (unchanged)", "q8 q4"},
    {"draft_weights", "--draft-weights", "--draft-dtype", NULL, FIELD_TEXT, HOW(draft_weights), ON_LINE | IN_LOAD,
     "TYPE", "round the draft's weights to q8 or q4; file: unchanged (file; heads: q8)", "q8 q4 file"},
    {"draft_vocab", "--draft-vocab", NULL, NULL, FIELD_TEXT, PAIR(draft_vocab), ON_LINE | IN_LOAD,
     "N|FILE", "ids that the draft may guess: the N lowest, auto, or those in FILE (all)", NULL},
    {"draft_output", "--draft-output", NULL, NULL, FIELD_TEXT, HOW(draft_output), ON_LINE | IN_LOAD,
     "TYPE", "round the draft's output to q8 or q4 (as its weights; wide heads: q4)", "q8 q4 file"},
    {"draft_window", "--draft-window", NULL, NULL, FIELD_WHOLE, HOW(draft_window), ON_LINE | IN_LOAD | NO_ZERO,
     "N", "the draft sees the last N tokens and the first four of a text (all)", NULL},
    {"head_layers", "--head-layers", NULL, NULL, FIELD_TEXT, HOW(head_layers), ON_LINE | IN_LOAD,
     "A,B,C", "layers of the target whose inputs a draft head reads (given in its files)", NULL},
    {"cache_dtype", "--cache-dtype", NULL, NULL, FIELD_TEXT, HOW(cache_dtype), ON_LINE | IN_LOAD,
     "TYPE", "KV cache type: f16, f32 or q8 (f16); on a GPU: 16-bit or q8 (16-bit)", "f16 f32 q8 16-bit"},
    {"activations", "--activations", NULL, NULL, FIELD_TEXT, HOW(activations), ON_LINE | IN_LOAD,
     "BITS", "bits of the activations for quantized target weights on a CPU: 8 or 16 (8)", "8 16"},
    {"backend", "--backend", NULL, NULL, FIELD_TEXT, HOW(backend), ON_LINE | IN_LOAD,
     "NAME", "auto, cpu or cuda (auto)", "auto cpu cuda"},
    {"gpu_layers", "-ngl --gpu-layers", "--n-gpu-layers", NULL, FIELD_TEXT, HOW(gpu_layers), ON_LINE | IN_LOAD,
     "N", "a GPU has the last N layers (auto: as many as fit), the CPU the rest (all)", "auto all"},
    {"gpus", "--gpus", NULL, NULL, FIELD_WHOLE, HOW(gpus), ON_LINE | IN_LOAD | NO_ZERO,
     "N", "N GPUs share the target's layers, in proportion to their free memory (1)", NULL},
    {"cpu_experts", "-ncmoe --cpu-experts", "--n-cpu-moe", NULL, FIELD_WHOLE, HOW(cpu_experts),
     ON_LINE | IN_LOAD | NO_ZERO,
     "N", "the CPU computes the experts of the first N layers, a GPU all else (none)", NULL},
    {"threads", "-t --threads", "--num-thread --num-threads --n-threads", NULL, FIELD_WHOLE, HOW(threads),
     ON_LINE | IN_LOAD,
     "N", "number of threads (the physical cores that dtrun may use)", NULL},
    {"numa", "--numa", NULL, NULL, FIELD_TEXT, HOW(numa), ON_LINE | IN_LOAD,
     "MODE", "NUMA nodes: distribute over all, isolate on one, or off (distribute)", "distribute isolate off"},
    {"no_packed_cache", "--no-packed-cache", NULL, NULL, FIELD_FLAG, PAIR(no_packed_cache), ON_LINE | IN_LOAD,
     NULL, "do not keep packed weights of models for the next start", NULL},
    {"ctx", "-c --ctx", "--ctx-size --max-model-len --n-ctx --num-ctx", NULL, FIELD_WHOLE, ASKED(context),
     ON_LINE | IN_LOAD,
     "N", "context length: prompt and new tokens (the target's, at most 4096)", NULL},
    {"rope_scaling", "--rope-scaling", NULL, NULL, FIELD_TEXT, HOW(rope.scaling), ON_LINE | IN_LOAD,
     "TYPE", "scale positions: none, linear, dynamic, yarn (as the target's files say)", "none linear dynamic yarn"},
    {"rope_scale", "--rope-scale", NULL, NULL, FIELD_REAL, HOW(rope.scale), ON_LINE | IN_LOAD | NO_ZERO,
     "N", "with --rope-scaling: the factor by which the target's context grows", NULL},
    {"yarn_orig_ctx", "--yarn-orig-ctx", NULL, NULL, FIELD_WHOLE, HOW(rope.original), ON_LINE | IN_LOAD | NO_ZERO,
     "N", "with yarn: the context with which the target was trained (in its files)", NULL},
    {"costs", "--costs", NULL, NULL, FIELD_TEXT, offsetof(request_input, costs), ON_LINE | IN_DRIVER,
     "KIND", "costs of passes: learn from runs, or a measured table (learn)", "learn table"},

    /* options of the text */
    {"tokens", "-n --tokens",
     "--n-predict --max-new-tokens --predict --max-tokens --max-completion-tokens --num-predict",
     "max_tokens max_completion_tokens n_predict", FIELD_WHOLE, SEQ(max_tokens), SAMPLED,
     "N", "maximum number of new tokens (128, in a chat 512; -1: no maximum)", NULL},
    {"window", "--window", NULL, NULL, FIELD_WHOLE, ASKED(window.last), ON_LINE | IN_DRIVER | NO_ZERO,
     "N", "the target sees only the last N tokens, which changes the text (all)", NULL},
    {"sinks", "--sinks", NULL, NULL, FIELD_WHOLE, ASKED(window.sinks), ON_LINE | IN_DRIVER,
     "M", "with --window: the target also sees the first M tokens, as in StreamingLLM", NULL},
    {"temp", "--temp --temperature", NULL, "temperature", FIELD_REAL, SAMPLING(temp), SAMPLED,
     "T", "sampling temperature, 0.001 to 100 (0: always take the likeliest token)", NULL},
    {"top_k", "--top-k", NULL, "top_k", FIELD_WHOLE, SAMPLING(top_k), SAMPLED,
     "K", "sample from the K likeliest tokens only (0: from all)", NULL},
    {"top_p", "--top-p", NULL, "top_p", FIELD_REAL, SAMPLING(top_p), SAMPLED | NO_ZERO,
     "P", "sample from the fewest likeliest tokens whose probabilities add up to P", NULL},
    {"min_p", "--min-p", NULL, "min_p", FIELD_REAL, SAMPLING(min_p), SAMPLED,
     "P", "sample from tokens with at least P times the highest probability", NULL},
    {"repeat_penalty", "--repeat-penalty", "--repetition-penalty", "repetition_penalty repeat_penalty", FIELD_REAL,
     ADJUSTMENTS(repeat),
     SAMPLED | NO_ZERO, "R", "tokens of the text: divide logits above 0 by R, multiply others by R (1)", NULL},
    {"presence_penalty", "--presence-penalty", NULL, "presence_penalty", FIELD_REAL, ADJUSTMENTS(presence), SAMPLED,
     "P", "subtract P from the logits of tokens that were generated (0)", NULL},
    {"frequency_penalty", "--frequency-penalty", NULL, "frequency_penalty", FIELD_REAL, ADJUSTMENTS(frequency), SAMPLED,
     "F", "subtract F from a token's logit for each time that it was generated (0)", NULL},
    {"logit_bias", "--logit-bias", NULL, "logit_bias", FIELD_BIAS, 0, ALL,
     "TOKEN+BIAS", "add to a token's logit: 15043+1, ' the=-2'; 15043-inf bans it (repeatable)", NULL},
    {"min_tokens", "--min-tokens", "--min-new-tokens", "min_tokens", FIELD_WHOLE, ADJUSTMENTS(min_tokens), ALL,
     "N", "no end-of-text token before N tokens are generated", NULL},
    {"think_tokens", "--think-tokens", "--reasoning-budget",
     "think_tokens thinking_budget thinking_token_budget reasoning_budget_tokens", FIELD_WHOLE,
     ADJUSTMENTS(reasoning.tokens), SAMPLED,
     "N", "end the model's reasoning after at most N tokens (-1: no maximum)", NULL},
    {"grammar", "--grammar", NULL, "grammar", FIELD_GRAMMAR, 0, SAMPLED,
     "TEXT", "the text follows this GBNF grammar: 'root ::= \"yes\" | \"no\"'", NULL},
    {"json_schema", "-j --json-schema", NULL, "json_schema", FIELD_GRAMMAR, 0, SAMPLED,
     "TEXT", "the text is JSON that is valid under this schema", NULL},
    {"schema_extra", "--schema-extra", NULL, "schema_extra", FIELD_FLAG, offsetof(request_input, how.open), ALL,
     NULL, "objects of a schema may have properties that it does not list", NULL},
    {"strict_schema", "--strict-schema", NULL, "strict_schema", FIELD_FLAG, offsetof(request_input, how.strict), ALL,
     NULL, "refuse a schema with keywords that have no effect", NULL},
    {"regex", "--regex", "--guided-regex", NULL, FIELD_GRAMMAR, 0, ON_LINE | IN_DRIVER | IN_SET,
     "TEXT", "the whole text matches this regular expression", NULL},
    {"seed", "-s --seed", NULL, "seed", FIELD_SEED, SAMPLING(seed), SAMPLED,
     "N", "seed of sampling and of the policy's random numbers (0)", NULL},
    {"answers", "--answers", "--num-return-sequences", "n n_cmpl", FIELD_WHOLE, ASKED(answers), ALL | NO_ZERO,
     "N", "answers per prompt, which is computed once; answer i uses seed + i - 1 (1)", NULL},
    {"slots", "-np --parallel", "--max-num-seqs", NULL, FIELD_WHOLE, ASKED(slots), ON_LINE | IN_DRIVER | NO_ZERO,
     "N", "with several prompts: number of texts that are generated at once (8)", NULL},
    {"logprobs", "--logprobs", "--top-logprobs --n-probs", "logprobs top_logprobs", FIELD_LOGPROBS, SEQ(logprobs), ALL,
     "K", "log-probabilities of tokens and the K likeliest (0 to 20), in the result", NULL},
    {"echo", "--echo", NULL, NULL, FIELD_FLAG, SEQ(logprobs.prompt), ON_LINE | IN_DRIVER,
     NULL, "with --logprobs: also for the prompt's tokens", NULL},
    {"uncoupled", "--uncoupled", NULL, NULL, FIELD_FLAG, SEQ(uncoupled), ON_LINE | IN_DRIVER,
     NULL, "draft without the noise that the target's sampling uses", NULL},
    {"ignore_eos", "--ignore-eos", NULL, "ignore_eos", FIELD_FLAG, SEQ(ignore_eos), ALL,
     NULL, "treat end-of-text as an ordinary token, which does not end the text", NULL},
    {"stop", "--stop", NULL, "stop", FIELD_STOP, 0, ALL, "TEXT", "end the text before this string (repeatable)", NULL},
};
/* clang-format on */

enum { N = sizeof fields / sizeof *fields };
_Static_assert(N <= REQUEST_FIELDS, "request_input has room for their names");

const request_field *request_field_at(int i) { return i < N ? &fields[i] : NULL; }

int request_field_index(const request_field *field) { return (int)(field - fields); }

bool request_has_name(const char *names, const char *name, size_t n) {
  for (const char *at = names; at && *at; at += strspn(at, " ")) {
    size_t length = strcspn(at, " "), i = 0;
    while (length == n && i < n && (at[i] == name[i] || (i > 1 && at[i] == '-' && name[i] == '_'))) i++;
    if (length == n && i == n) return true;
    at += length;
  }
  return false;
}

const request_field *request_field_named(const char *name, unsigned where) {
  for (int i = 0; i < N; i++)
    if ((fields[i].where & where) && strcmp(fields[i].name, name) == 0) return &fields[i];
  return NULL;
}

const request_field *request_field_in_body(const char *name, unsigned where) {
  for (int i = 0; i < N; i++)
    if ((fields[i].where & where) && request_has_name(fields[i].body, name, strlen(name))) return &fields[i];
  return NULL;
}
