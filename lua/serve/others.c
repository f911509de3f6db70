/* The table of fields that are not taken: see others.h. tests/serve/fields.txt has the schemas that their names come from. */
#include "serve/others.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  const char *name;
  int where;
  const char
      *only; /* NULL: any value changes no text. Otherwise the values that change none, with "or" between; "": none */
} other_field;

/* lua/cli/SERVE.md lists those that are ignored whatever their value. */
static const other_field others[] = {
    {"model", IN_TOKENS, NULL},
    {"user", IN_BOTH, NULL},
    {"metadata", IN_BOTH, NULL},
    {"store", IN_BOTH, NULL},
    {"service_tier", IN_BOTH, NULL},
    {"safety_identifier", IN_BOTH, NULL},
    {"prompt_cache_key", IN_BOTH, NULL},
    {"prompt_cache_options", IN_BOTH, NULL},
    {"prompt_cache_retention", IN_BOTH, NULL},
    {"prediction", IN_CHAT, NULL},
    {"parallel_tool_calls", IN_CHAT, NULL},
    {"verbosity", IN_CHAT, NULL},
    {"cache_control", IN_CHAT | IN_MESSAGE | IN_PART, NULL},
    {"request_id", IN_BOTH, NULL},
    {"session_id", IN_BOTH, NULL},
    {"priority", IN_BOTH, NULL},
    {"stream_interval", IN_BOTH, NULL},
    {"continuous_usage_stats", IN_BOTH | IN_STREAM, NULL},
    {"include_obfuscation", IN_STREAM, NULL},
    {"spaces_between_special_tokens", IN_BOTH, NULL},
    {"truncation_side", IN_BOTH, NULL},
    {"media_io_kwargs", IN_CHAT, NULL},
    {"mm_processor_kwargs", IN_CHAT, NULL},
    {"return_mm_kwargs", IN_BOTH, NULL},
    {"return_token_offsets", IN_BOTH, NULL},
    {"timings_per_token", IN_BOTH, NULL},
    {"return_progress", IN_BOTH, NULL},
    {"sse_ping_interval", IN_BOTH, NULL},
    {"id_slot", IN_BOTH, NULL},
    {"n_keep", IN_BOTH, NULL},
    {"n_discard", IN_BOTH, NULL},
    {"n_cache_reuse", IN_BOTH, NULL},
    {"backend_sampling", IN_BOTH, NULL},
    {"parse_tool_calls", IN_CHAT, NULL},
    {"xtc_threshold", IN_BOTH, NULL},
    {"dynatemp_exponent", IN_BOTH, NULL},
    {"dry_base", IN_BOTH, NULL},
    {"dry_allowed_length", IN_BOTH, NULL},
    {"dry_penalty_last_n", IN_BOTH, NULL},
    {"dry_sequence_breakers", IN_BOTH, NULL},
    {"mirostat_tau", IN_BOTH, NULL},
    {"mirostat_eta", IN_BOTH, NULL},
    {"adaptive_decay", IN_BOTH, NULL},
    {"reasoning_budget_start_tag", IN_BOTH, NULL},
    {"reasoning_budget_end_tag", IN_BOTH, NULL},
    {"reasoning_budget_end_tags", IN_BOTH, NULL},
    {"reasoning_budget_message", IN_BOTH, NULL},
    {"speculative.n_max", IN_BOTH, NULL},
    {"speculative.n_min", IN_BOTH, NULL},
    {"speculative.p_min", IN_BOTH, NULL},
    {"speculative.type", IN_BOTH, NULL},
    {"speculative.ngram_size_n", IN_BOTH, NULL},
    {"speculative.ngram_size_m", IN_BOTH, NULL},
    {"speculative.ngram_min_hits", IN_BOTH, NULL},
    {"name", IN_MESSAGE, NULL},
    {"annotations", IN_MESSAGE | IN_PART, NULL},
    {"reasoning_content", IN_MESSAGE, NULL},
    {"reasoning", IN_MESSAGE, NULL},
    {"thinking_blocks", IN_MESSAGE, NULL},
    {"provider_specific_fields", IN_MESSAGE, NULL},
    {"tools", IN_CHAT, "[]"},
    {"tool_choice", IN_CHAT, "\"none\" or \"auto\""},
    {"functions", IN_CHAT, "[]"},
    {"function_call", IN_CHAT, "\"none\" or \"auto\""},
    {"audio", IN_CHAT, ""},
    {"modalities", IN_CHAT, "[\"text\"]"},
    {"moderation", IN_BOTH, ""},
    {"web_search_options", IN_CHAT, ""},
    {"suffix", IN_TEXT, "\"\""},
    {"best_of", IN_BOTH, "1"},
    {"use_beam_search", IN_BOTH, "false"},
    {"watermarking", IN_BOTH, "false"},
    {"length_penalty", IN_BOTH, "1"},
    {"stop_token_ids", IN_BOTH, "[]"},
    {"include_stop_str_in_output", IN_BOTH, "false"},
    {"skip_special_tokens", IN_BOTH, "true"},
    {"truncate_prompt_tokens", IN_BOTH, ""},
    {"prompt_logprobs", IN_BOTH, ""},
    {"logprob_token_ids", IN_BOTH, ""},
    {"allowed_token_ids", IN_BOTH, ""},
    {"bad_words", IN_BOTH, "[]"},
    {"echo", IN_CHAT, "false"},
    {"add_generation_prompt", IN_CHAT, "true"},
    {"continue_final_message", IN_CHAT, "false"},
    {"add_special_tokens", IN_TEXT, "true"},
    {"add_special_tokens", IN_CHAT, "false"},
    {"documents", IN_CHAT, "[]"},
    {"chat_template", IN_CHAT, ""},
    {"chat_template_kwargs", IN_CHAT, "{}"},
    {"structured_outputs", IN_BOTH, ""},
    {"guided_json", IN_BOTH, ""},
    {"guided_regex", IN_BOTH, ""},
    {"guided_choice", IN_BOTH, ""},
    {"guided_grammar", IN_BOTH, ""},
    {"thinking_token_budget", IN_BOTH, "-1"},
    {"include_reasoning", IN_CHAT, "true"},
    {"return_tokens_as_token_ids", IN_BOTH, "false"},
    {"return_token_ids", IN_BOTH, "false"},
    {"routed_experts_prompt_start", IN_BOTH, "0"},
    {"return_prompt_text", IN_CHAT, "false"},
    {"cache_salt", IN_BOTH, ""},
    {"kv_transfer_params", IN_BOTH, ""},
    {"ec_transfer_params", IN_BOTH, ""},
    {"vllm_xargs", IN_BOTH, "{}"},
    {"repetition_detection", IN_BOTH, ""},
    {"prompt_embeds", IN_TEXT, ""},
    {"verbose", IN_BOTH, "false"},
    {"return_tokens", IN_BOTH, "false"},
    {"n_indent", IN_BOTH, "0"},
    {"n_cmpl", IN_BOTH, "1"},
    {"t_max_predict_ms", IN_BOTH, "-1"},
    {"response_fields", IN_BOTH, "[]"},
    {"top_n_sigma", IN_BOTH, "-1"},
    {"xtc_probability", IN_BOTH, "0"},
    {"typical_p", IN_BOTH, "1"},
    {"dynatemp_range", IN_BOTH, "0"},
    {"repeat_last_n", IN_BOTH, "-1"},
    {"dry_multiplier", IN_BOTH, "0"},
    {"mirostat", IN_BOTH, "0"},
    {"adaptive_target", IN_BOTH, "-1"},
    {"n_probs", IN_BOTH, "0"},
    {"min_keep", IN_BOTH, "0"},
    {"post_sampling_probs", IN_BOTH, "false"},
    {"lora", IN_BOTH, "[]"},
    {"grammar_lazy", IN_BOTH, "false"},
    {"chat_format", IN_BOTH, ""},
    {"generation_prompt", IN_BOTH, "\"\""},
    {"chat_parser", IN_BOTH, "\"\""},
    {"preserved_tokens", IN_BOTH, "[]"},
    {"grammar_triggers", IN_BOTH, "[]"},
    {"reasoning_control", IN_BOTH, "false"},
    {"reasoning_budget_tokens", IN_BOTH, "-1"},
    {"samplers", IN_BOTH, ""},
    {"tool_calls", IN_MESSAGE, "[]"},
    {"function_call", IN_MESSAGE, ""},
    {"tool_call_id", IN_MESSAGE, ""},
    {"audio", IN_MESSAGE, ""},
    {"refusal", IN_MESSAGE, "\"\""},
    {"prefix", IN_MESSAGE, "false"},
    {"partial", IN_MESSAGE, "false"},
};

/* Whether a value is among those of a list. */
static bool is_among(const cJSON *v, const char *list) {
  bool found = false;
  for (const char *at = list, *end; *at && !found; at = end + strspn(end, " or")) {
    cJSON *one = cJSON_ParseWithOpts(at, &end, 0);
    /* cJSON takes an infinity for any number */
    found = cJSON_IsNumber(v) ? cJSON_IsNumber(one) && one->valuedouble == v->valuedouble : cJSON_Compare(one, v, 1);
    cJSON_Delete(one);
  }
  return found;
}

bool others_pass(const cJSON *field, const char *path, int where, refusal *why) {
  if (cJSON_IsNull(field)) return true;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const other_field *o = &others[i];
    if (!(o->where & where) || strcmp(o->name, field->string) != 0) continue;
    if (!o->only || is_among(field, o->only)) return true;
    *why = *o->only ? refusal_say(400, INVALID, "%s%s: only %s is supported here", path, o->name, o->only)
                    : refusal_say(400, INVALID, "%s%s: it is not supported here", path, o->name);
    return false;
  }
  *why = refusal_say(400, INVALID, "%s%.100s: no such field here", path, field->string);
  return false;
}

bool others_pass_all(const cJSON *object, const char *const *taken, const char *path, int where, refusal *why) {
  const cJSON *field;
  cJSON_ArrayForEach(field, object) {
    int i = 0;
    while (taken[i] && strcmp(taken[i], field->string) != 0) i++;
    if (!taken[i] && !others_pass(field, path, where, why)) return false;
  }
  return true;
}
