/* The table of fields that dtrun does not implement: see others.h. Their names come from the schemas in
 * tests/serve/fields.txt. */
#include "serve/others.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  const char *name;
  int where;
  const char *only; /* NULL: no value changes the text. Otherwise the values that do not change it, separated by "or";
                       "": none */
} other_field;

/* lua/cli/SERVE.md lists the fields that are ignored whatever their value is. */
static const other_field others[] = {
    {"model", IN_TOKENS, NULL},
    {"user", IN_BODY | IN_RESPONSE, NULL},
    {"metadata", IN_BODY | IN_RESPONSE | IN_ANTHROPIC, NULL},
    {"store", IN_BODY | IN_RESPONSE, NULL},
    {"service_tier", IN_BODY | IN_RESPONSE | IN_ANTHROPIC, NULL},
    {"safety_identifier", IN_BODY | IN_RESPONSE, NULL},
    {"prompt_cache_key", IN_BODY | IN_RESPONSE, NULL},
    {"prompt_cache_options", IN_BODY | IN_RESPONSE, NULL},
    {"prompt_cache_retention", IN_BODY | IN_RESPONSE, NULL},
    {"prediction", IN_CHAT, NULL},
    {"verbosity", IN_CHAT, NULL},
    {"cache_control", IN_CHAT | IN_ANTHROPIC | IN_MESSAGE | IN_PART | IN_TOOL, NULL},
    {"request_id", IN_BODY, NULL},
    {"session_id", IN_BODY, NULL},
    {"priority", IN_BODY, NULL},
    {"stream_interval", IN_BODY, NULL},
    {"continuous_usage_stats", IN_BODY | IN_STREAM, NULL},
    {"include_obfuscation", IN_STREAM, NULL},
    {"spaces_between_special_tokens", IN_BODY, NULL},
    {"truncation_side", IN_BODY, NULL},
    {"media_io_kwargs", IN_CHAT, NULL},
    {"mm_processor_kwargs", IN_CHAT, NULL},
    {"return_mm_kwargs", IN_BODY, NULL},
    {"return_token_offsets", IN_BODY, NULL},
    {"timings_per_token", IN_BODY, NULL},
    {"return_progress", IN_BODY, NULL},
    {"sse_ping_interval", IN_BODY, NULL},
    {"id_slot", IN_BODY, NULL},
    {"t_max_prompt_ms", IN_BODY, NULL}, /* llama.cpp's server ignores it, too */
    {"n_keep", IN_BODY, NULL},
    {"n_discard", IN_BODY, NULL},
    {"n_cache_reuse", IN_BODY, NULL},
    {"backend_sampling", IN_BODY, NULL},
    {"parse_tool_calls", IN_CHAT, NULL},
    {"xtc_threshold", IN_BODY, NULL},
    {"dynatemp_exponent", IN_BODY, NULL},
    {"dry_base", IN_BODY, NULL},
    {"dry_allowed_length", IN_BODY, NULL},
    {"dry_penalty_last_n", IN_BODY, NULL},
    {"dry_sequence_breakers", IN_BODY, NULL},
    {"mirostat_tau", IN_BODY | IN_OLLAMA_OPTIONS, NULL},
    {"mirostat_eta", IN_BODY | IN_OLLAMA_OPTIONS, NULL},
    {"adaptive_decay", IN_BODY, NULL},
    {"reasoning_budget_start_tag", IN_BODY, NULL},
    {"reasoning_budget_end_tag", IN_BODY, NULL},
    {"reasoning_budget_end_tags", IN_BODY, NULL},
    {"reasoning_budget_message", IN_BODY, NULL},
    {"speculative.n_max", IN_BODY, NULL},
    {"speculative.n_min", IN_BODY, NULL},
    {"speculative.p_min", IN_BODY, NULL},
    {"speculative.type", IN_BODY, NULL},
    {"speculative.ngram_size_n", IN_BODY, NULL},
    {"speculative.ngram_size_m", IN_BODY, NULL},
    {"speculative.ngram_min_hits", IN_BODY, NULL},
    {"annotations", IN_MESSAGE | IN_PART, NULL},
    {"thinking_blocks", IN_MESSAGE, NULL},
    {"provider_specific_fields", IN_MESSAGE, NULL},
    {"function_call", IN_CHAT, "\"none\" or \"auto\""},
    {"audio", IN_CHAT, ""},
    {"modalities", IN_CHAT, "[\"text\"]"},
    {"moderation", IN_BODY | IN_RESPONSE, ""},
    {"web_search_options", IN_CHAT, ""},
    {"best_of", IN_BODY, "1"},
    {"use_beam_search", IN_BODY, "false"},
    {"watermarking", IN_BODY, "false"},
    {"length_penalty", IN_BODY, "1"},
    {"stop_token_ids", IN_BODY, "[]"},
    {"include_stop_str_in_output", IN_BODY, "false"},
    {"skip_special_tokens", IN_BODY, "true"},
    {"truncate_prompt_tokens", IN_BODY, ""},
    {"prompt_logprobs", IN_BODY, ""},
    {"logprob_token_ids", IN_BODY, ""},
    {"allowed_token_ids", IN_BODY, ""},
    {"bad_words", IN_BODY, "[]"},
    {"echo", IN_CHAT | IN_INFILL, "false"},
    {"logprobs", IN_INFILL, "0"},
    {"keep_alive", IN_OLLAMA, NULL},
    {"truncate", IN_OLLAMA, NULL},
    {"shift", IN_OLLAMA, NULL},
    {"images", IN_OLLAMA | IN_OLLAMA_MESSAGE, "[]"},
    {"context", IN_OLLAMA, "[]"},
    {"template", IN_OLLAMA, "\"\""},
    {"logprobs", IN_OLLAMA, "false"},
    {"top_logprobs", IN_OLLAMA, "0"},
    {"width", IN_OLLAMA, "0"},
    {"height", IN_OLLAMA, "0"},
    {"steps", IN_OLLAMA, "0"},
    {"numa", IN_OLLAMA_OPTIONS, NULL},
    {"num_batch", IN_OLLAMA_OPTIONS, NULL},
    {"num_gpu", IN_OLLAMA_OPTIONS, NULL},
    {"main_gpu", IN_OLLAMA_OPTIONS, NULL},
    {"num_thread", IN_OLLAMA_OPTIONS, NULL},
    {"num_keep", IN_OLLAMA_OPTIONS, NULL},
    {"low_vram", IN_OLLAMA_OPTIONS, NULL},
    {"f16_kv", IN_OLLAMA_OPTIONS, NULL},
    {"logits_all", IN_OLLAMA_OPTIONS, NULL},
    {"use_mmap", IN_OLLAMA_OPTIONS, NULL},
    {"use_mlock", IN_OLLAMA_OPTIONS, NULL},
    {"vocab_only", IN_OLLAMA_OPTIONS, "false"},
    {"embedding_only", IN_OLLAMA_OPTIONS, "false"},
    {"penalize_newline", IN_OLLAMA_OPTIONS, "true"},
    {"tfs_z", IN_OLLAMA_OPTIONS, "1"},
    {"add_special_tokens", IN_TEXT, "true"},
    {"add_special_tokens", IN_CHAT, "false"},
    {"chat_template", IN_CHAT, ""},
    {"include_reasoning", IN_CHAT, "true"},
    {"return_tokens_as_token_ids", IN_BODY, "false"},
    {"return_token_ids", IN_BODY, "false"},
    {"routed_experts_prompt_start", IN_BODY, "0"},
    {"return_prompt_text", IN_CHAT, "false"},
    {"cache_salt", IN_BODY, ""},
    {"kv_transfer_params", IN_BODY, ""},
    {"ec_transfer_params", IN_BODY, ""},
    {"vllm_xargs", IN_BODY, "{}"},
    {"repetition_detection", IN_BODY, ""},
    {"prompt_embeds", IN_TEXT, ""},
    {"verbose", IN_BODY, "false"},
    {"return_tokens", IN_BODY, "false"},
    {"n_indent", IN_CHAT, "0"},
    {"t_max_predict_ms", IN_CHAT, "-1"},
    {"response_fields", IN_BODY, "[]"},
    {"top_n_sigma", IN_BODY, "-1"},
    {"xtc_probability", IN_BODY, "0"},
    {"typical_p", IN_BODY | IN_OLLAMA_OPTIONS, "1"},
    {"dynatemp_range", IN_BODY, "0"},
    {"repeat_last_n", IN_BODY | IN_OLLAMA_OPTIONS, "-1"},
    {"dry_multiplier", IN_BODY, "0"},
    {"mirostat", IN_BODY | IN_OLLAMA_OPTIONS, "0"},
    {"adaptive_target", IN_BODY, "-1"},
    {"n_probs", IN_BODY, "0"},
    {"min_keep", IN_BODY, "0"},
    {"post_sampling_probs", IN_BODY, "false"},
    {"lora", IN_BODY, "[]"},
    {"grammar_lazy", IN_BODY, "false"},
    {"chat_format", IN_BODY, ""},
    {"generation_prompt", IN_BODY, "\"\""},
    {"chat_parser", IN_BODY, "\"\""},
    {"preserved_tokens", IN_BODY, "[]"},
    {"grammar_triggers", IN_BODY, "[]"},
    {"reasoning_control", IN_BODY, "false"},
    {"samplers", IN_BODY, ""},
    {"function_call", IN_MESSAGE, ""},
    {"audio", IN_MESSAGE, ""},
    {"refusal", IN_MESSAGE, "\"\""},
    {"prefix", IN_MESSAGE, NULL},
    {"partial", IN_MESSAGE, NULL},
    {"access_programs", IN_RESPONSE, NULL},
    {"background", IN_RESPONSE, "false"},
    {"background_options", IN_RESPONSE, NULL},
    {"context_management", IN_RESPONSE, ""},
    {"conversation", IN_RESPONSE, ""},
    {"image", IN_RESPONSE, NULL},
    {"max_tool_calls", IN_RESPONSE, NULL}, /* calls of OpenAI's own tools */
    {"previous_response_id", IN_RESPONSE, ""},
    {"prompt", IN_RESPONSE, ""},
    {"top_logprobs", IN_RESPONSE, "0"},
    {"truncation", IN_RESPONSE, "\"disabled\""},
    {"id", IN_ITEM, NULL},
    {"status", IN_ITEM, NULL},
    {"phase", IN_ITEM, NULL},
    {"name", IN_ITEM, NULL}, /* of the result of a call, which has the call's id */
    {"summary", IN_ITEM, NULL},
    {"encrypted_content", IN_ITEM, NULL},
    {"caller", IN_ITEM | IN_PART, NULL},
    {"namespace", IN_ITEM, ""},
    {"async", IN_ITEM | IN_TOOL, "false"},
    {"logprobs", IN_PART, NULL},
    {"prompt_cache_breakpoint", IN_PART, NULL},
    {"allowed_callers", IN_TOOL, "[\"direct\"]"},
    {"defer_loading", IN_TOOL, "false"},
    {"output_schema", IN_TOOL, ""},
    {"summary", IN_REASONING, NULL},
    {"generate_summary", IN_REASONING, NULL},
    {"context", IN_REASONING, "\"auto\""},
    {"mode", IN_REASONING, "\"standard\""},
    {"display", IN_REASONING, NULL},
    {"billing_policy", IN_ANTHROPIC, NULL},
    {"compaction", IN_ANTHROPIC, ""},
    {"container", IN_ANTHROPIC, ""},
    {"context_management", IN_ANTHROPIC,
     "{\"edits\":[]} or {\"edits\":[{\"type\":\"clear_thinking_20251015\",\"keep\":\"all\"}]}"},
    {"fallback_credit_token", IN_ANTHROPIC, NULL},
    {"fallbacks", IN_ANTHROPIC, NULL},
    {"thread", IN_ANTHROPIC, ""},
    {"diagnostics", IN_ANTHROPIC, NULL},
    {"inference_geo", IN_ANTHROPIC, NULL},
    {"mcp_servers", IN_ANTHROPIC, "[]"},
    {"speed", IN_ANTHROPIC, NULL},
    {"user_profile_id", IN_ANTHROPIC, NULL},
    {"workspace_id", IN_ANTHROPIC, NULL},
    {"citations", IN_PART, NULL},
    {"is_error", IN_PART, NULL},
    {"toolset_name", IN_PART, ""},
    {"eager_input_streaming", IN_TOOL, NULL},
    {"input_examples", IN_TOOL, "[]"},
};

/* Returns whether a value is in a list of values. */
static bool is_among(const cJSON *v, const char *list) {
  bool found = false;
  for (const char *at = list, *end; *at && !found; at = end + strspn(end, " or")) {
    cJSON *one = cJSON_ParseWithOpts(at, &end, 0);
    /* cJSON reads an infinity as any number */
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
    *why = *o->only ? refusal_say(400, INVALID, "%s%s: only %s is supported", path, o->name, o->only)
                    : refusal_say(400, INVALID, "%s%s: not supported", path, o->name);
    return false;
  }
  *why = refusal_say(400, INVALID, "%s%.100s: unknown field", path, field->string);
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
