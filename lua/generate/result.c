/* The result as JSON, schema dtrun.result/1. */
#include "host.h"

#include "files/json_text.h"
#include "system/hash.h"

#include <cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t dtl_output_hash(const int32_t *tokens, int n) {
  uint64_t hash = HASH_START;
  for (int i = 0; tokens && i < n; i++) {
    uint32_t id = (uint32_t)tokens[i];
    unsigned char bytes[4] = {id & 0xFF, id >> 8 & 0xFF, id >> 16 & 0xFF, id >> 24};
    hash = hash_bytes(hash, bytes, sizeof bytes);
  }
  return hash;
}

double dtl_tokens_per_second(const dtl_result *result) {
  return result && result->stats.total_ms > 0 ? result->stats.generated / result->stats.total_ms * 1000 : 0;
}

/* Adds a string that may have NUL bytes or invalid UTF-8, which cJSON does not accept. */
static void add_string(cJSON *object, const char *key, const char *bytes, size_t len) {
  json_text out = {0};
  json_string(&out, bytes, len);
  char *text = json_finish(&out);
  if (text) cJSON_AddRawToObject(object, key, text);
  free(text);
}

static void add_text(cJSON *object, const char *key, const char *text) {
  if (text)
    add_string(object, key, text, strlen(text));
  else
    cJSON_AddNullToObject(object, key);
}

static void add_ids(cJSON *object, const char *key, const int32_t *ids, int n) {
  cJSON_AddItemToObject(object, key, ids && n > 0 ? cJSON_CreateIntArray(ids, n) : cJSON_CreateArray());
}

/* Adds a measured or averaged number, rounded to a millionth. */
static void add_real(cJSON *object, const char *key, double value) {
  cJSON_AddNumberToObject(object, key, round(value * 1e6) / 1e6);
}

static void add_ratio(cJSON *object, const char *key, double a, double b) {
  if (b > 0)
    add_real(object, key, a / b);
  else
    cJSON_AddNullToObject(object, key);
}

static void add_depths(cJSON *stats, const dt_stats *s) {
  cJSON *list = cJSON_AddArrayToObject(stats, "accepted_by_depth");
  for (int depth = 1; depth <= DT_TREE_VERIFY && s->verified_at[depth] > 0; depth++) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddNumberToObject(row, "depth", depth);
    cJSON_AddNumberToObject(row, "verified", (double)s->verified_at[depth]);
    cJSON_AddNumberToObject(row, "accepted", (double)s->accepted_at[depth]);
    cJSON_AddItemToArray(list, row);
  }
}

/* Adds the policy's tags and logged numbers, as objects by name; {} if there are none. */
static void add_notes(cJSON *stats, const dtl_notes *notes) {
  cJSON *tags = cJSON_AddObjectToObject(stats, "tags"), *log = cJSON_AddObjectToObject(stats, "log");
  for (int i = 0; i < notes->n_tags; i++) {
    const dtl_tag *tag = &notes->tag[i];
    cJSON *entry = cJSON_AddObjectToObject(tags, tag->name);
    cJSON_AddNumberToObject(entry, "verified", (double)tag->verified);
    cJSON_AddNumberToObject(entry, "decided", (double)tag->decided);
    add_real(entry, "expected", tag->expected);
    cJSON_AddNumberToObject(entry, "accepted", (double)tag->accepted);
  }
  for (int i = 0; i < notes->n_logged; i++) {
    const dtl_logged *logged = &notes->logged[i];
    cJSON *entry = cJSON_AddObjectToObject(log, logged->name);
    cJSON_AddNumberToObject(entry, "n", (double)logged->n);
    cJSON_AddNumberToObject(entry, "mean", logged->sum / (double)logged->n);
    cJSON_AddNumberToObject(entry, "least", logged->least);
    cJSON_AddNumberToObject(entry, "most", logged->most);
    cJSON_AddNumberToObject(entry, "last", logged->last);
  }
}

static void add_memory(cJSON *stats, const dtl_result *r) {
  cJSON *memory = cJSON_AddObjectToObject(stats, "peak_memory_bytes");
  cJSON_AddNumberToObject(memory, "host", (double)r->peak_memory);
  if (r->device_memory)
    cJSON_AddNumberToObject(memory, "device", (double)r->device_memory);
  else
    cJSON_AddNullToObject(memory, "device");
  cJSON_AddNumberToObject(memory, "weights", (double)r->weight_bytes);
  cJSON_AddNumberToObject(memory, "caches", (double)r->cache_bytes);
}

static void add_stats(cJSON *root, const dtl_result *r) {
  const dt_stats *s = &r->stats;
  char hash[17];
  snprintf(hash, sizeof hash, "%016" PRIx64, dtl_output_hash(r->tokens, r->n_tokens));
  cJSON *stats = cJSON_AddObjectToObject(root, "stats");
  add_real(stats, "tokens_per_second", dtl_tokens_per_second(r));
  add_real(stats, "load_ms", r->load_ms);
  add_real(stats, "ttft_ms", s->ttft_ms);
  add_ratio(stats, "tpot_ms", s->total_ms - s->ttft_ms, s->generated - 1);
  cJSON_AddNumberToObject(stats, "iterations", (double)s->iterations);
  add_ratio(stats, "tokens_per_iteration", (double)s->committed, (double)s->iterations);
  add_ratio(stats, "path_length", (double)s->accepted, (double)s->iterations);
  cJSON_AddNumberToObject(stats, "drafted", (double)s->drafted);
  cJSON_AddNumberToObject(stats, "accepted", (double)s->accepted);
  add_ratio(stats, "acceptance_rate", (double)s->accepted, (double)s->drafted);
  add_depths(stats, s);
  add_ratio(stats, "tree_nodes_mean", (double)s->drafted, (double)s->iterations);
  add_ratio(stats, "tree_depth_mean", (double)s->depth_sum, (double)s->iterations);
  if (s->experts_read) add_ratio(stats, "experts_per_pass", (double)s->experts_read, (double)s->iterations);
  cJSON *time = cJSON_AddObjectToObject(stats, "time_ms");
  add_real(time, "prompt", s->prompt_ms);
  add_real(time, "draft", s->draft_ms);
  add_real(time, "verify", s->verify_ms);
  add_real(time, "commit", s->commit_ms);
  add_real(time, "policy", r->policy_ms);
  add_real(time, "other", r->other_ms);
  add_notes(stats, &r->notes);
  add_memory(stats, r);
  cJSON_AddBoolToObject(stats, "shared_prefix", s->shared_prefix);
  cJSON_AddStringToObject(stats, "output_hash", hash);
}

/* Adds the settings of sampling; null if each token is the likeliest one. A filter that allows all tokens is null, too.
 */
static void add_sampling(cJSON *root, const dtl_result *r) {
  const dt_sampling *p = &r->sampling;
  if (p->temp == 0) {
    cJSON_AddNullToObject(root, "sampling");
    return;
  }
  cJSON *sampling = cJSON_AddObjectToObject(root, "sampling");
  add_real(sampling, "temp", (double)p->temp);
  add_ratio(sampling, "top_k", p->top_k, p->top_k ? 1 : 0);
  add_ratio(sampling, "top_p", (double)p->top_p, p->top_p > 0 ? 1 : 0);
  add_ratio(sampling, "min_p", (double)p->min_p, p->min_p > 0 ? 1 : 0);
  cJSON_AddBoolToObject(sampling, "coupled", r->coupled);
}

/* Adds the logit adjustments; null if there were none. A ban is false. */
static void add_adjustments(cJSON *root, const dtl_result *r) {
  const dt_adjustments *s = &r->adjustments;
  const dt_reasoning_limit *limit = &s->reasoning;
  bool repeats = s->repeat != 0 && s->repeat != 1;
  if (!dt_adjustments_wanted(s)) {
    cJSON_AddNullToObject(root, "adjustments");
    return;
  }
  cJSON *adjustments = cJSON_AddObjectToObject(root, "adjustments");
  add_real(adjustments, "repeat_penalty", repeats ? (double)s->repeat : 1);
  add_real(adjustments, "presence_penalty", (double)s->presence);
  add_real(adjustments, "frequency_penalty", (double)s->frequency);
  cJSON *list = cJSON_AddArrayToObject(adjustments, "logit_bias");
  for (int i = 0; i < s->n_bias; i++) {
    cJSON *pair = cJSON_CreateArray();
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(s->bias[i].id));
    cJSON_AddItemToArray(pair,
                         isinf(s->bias[i].bias) ? cJSON_CreateFalse() : cJSON_CreateNumber((double)s->bias[i].bias));
    cJSON_AddItemToArray(list, pair);
  }
  cJSON_AddNumberToObject(adjustments, "min_tokens", s->min_tokens);
  if (s->grammar)
    cJSON_AddStringToObject(adjustments, "grammar", s->grammar);
  else
    cJSON_AddNullToObject(adjustments, "grammar");
  add_ratio(adjustments, "think_tokens", limit->tokens, limit->end && limit->tokens >= 0 ? 1 : 0);
}

/* Adds whether the prompt turned reasoning on or off; null: the model decides, or it is no chat. */
static void add_reasoning(cJSON *root, dt_reasoning_state reasoning) {
  if (reasoning == DT_REASONING_FREE)
    cJSON_AddNullToObject(root, "reasoning");
  else
    cJSON_AddStringToObject(root, "reasoning", reasoning == DT_REASONING_OPEN ? "on" : "off");
}

/* Adds log-probabilities: [{"id":, "logprob":, "top": [[id, logprob], ..]}, ..], with null for a token without any;
 * null instead of the list if they were not wanted. */
static void add_logprobs(cJSON *root, const char *key, const dtl_logprob *list, const int32_t *ids, int n) {
  json_text out = {0};
  json_raw(&out, list ? "[" : "null");
  for (int i = 0; i < n && list; i++) {
    char head[64];
    if (i) json_raw(&out, ",");
    if (isnan(list[i].logp) && !list[i].n) {
      json_raw(&out, "null");
      continue;
    }
    snprintf(head, sizeof head, "{\"id\":%d,\"logprob\":", ids[i]);
    json_raw(&out, head);
    json_float(&out, list[i].logp);
    json_raw(&out, ",\"top\":[");
    for (int k = 0; k < list[i].n; k++) {
      snprintf(head, sizeof head, "%s[%d,", k ? "," : "", list[i].id[k]);
      json_raw(&out, head);
      json_float(&out, list[i].logps[k]);
      json_raw(&out, "]");
    }
    json_raw(&out, "]}");
  }
  if (list) json_raw(&out, "]");
  char *text = json_finish(&out);
  if (text)
    cJSON_AddRawToObject(root, key, text);
  else
    errno = ENOMEM;
  free(text);
}

/* Adds facts about the batch; null if the text was generated alone. */
static void add_batch(cJSON *root, const dtl_result *r) {
  if (!r->slots) {
    cJSON_AddNullToObject(root, "batch");
    return;
  }
  cJSON *batch = cJSON_AddObjectToObject(root, "batch");
  cJSON_AddNumberToObject(batch, "index", r->index);
  cJSON_AddNumberToObject(batch, "slots", r->slots);
  cJSON_AddNumberToObject(batch, "prompt", r->prompt);
}

/* Adds the attention window; null if the target saw the whole text. */
static void add_window(cJSON *root, const dtl_result *r) {
  if (!r->window.last) {
    cJSON_AddNullToObject(root, "window");
    return;
  }
  cJSON *window = cJSON_AddObjectToObject(root, "window");
  cJSON_AddNumberToObject(window, "last", r->window.last);
  cJSON_AddNumberToObject(window, "sinks", r->window.sinks);
}

/* Adds what the policy found from earlier runs; null if it uses nothing that outlives a run. */
static void add_memory_found(cJSON *root, const dtl_result *r) {
  if (r->uses_memory)
    cJSON_AddNumberToObject(root, "memory", (double)r->remembered);
  else
    cJSON_AddNullToObject(root, "memory");
  if (!r->uses_corpus) {
    cJSON_AddNullToObject(root, "corpus");
    return;
  }
  cJSON *corpus = cJSON_AddObjectToObject(root, "corpus");
  cJSON_AddNumberToObject(corpus, "tokens", (double)r->corpus_tokens);
  if (r->corpus_tokens)
    cJSON_AddStringToObject(corpus, "hash", r->corpus);
  else
    cJSON_AddNullToObject(corpus, "hash");
  cJSON_AddNumberToObject(corpus, "earlier", (double)r->earlier_tokens);
}

char *dtl_result_json(const dtl_result *r, unsigned flags) {
  if (!r || flags & ~(DTL_JSON_BRIEF | DTL_JSON_LINE)) return NULL;
  errno = 0; /* if memory runs out, cJSON leaves out members without reporting it */
  cJSON *root = cJSON_CreateObject();
  char seed[24];
  snprintf(seed, sizeof seed, "%" PRIu64, r->seed);
  cJSON_AddStringToObject(root, "schema", "dtrun.result/1");
  cJSON_AddStringToObject(root, "version", dt_version());
  add_text(root, "policy", r->policy);
  cJSON_AddStringToObject(root, "source", r->source);
  cJSON_AddRawToObject(root, "params", r->params ? r->params : "{}");
  cJSON_AddStringToObject(root, "seed", seed);
  add_sampling(root, r);
  add_adjustments(root, r);
  add_reasoning(root, r->reasoning);
  add_batch(root, r);
  add_window(root, r);
  add_memory_found(root, r);
  add_text(root, "backend", r->backend);
  cJSON_AddNumberToObject(root, "threads", r->threads);
  add_text(root, "target", r->target);
  add_text(root, "draft", r->draft);
#define ADD(name, of_draft) add_text(root, #name, r->name);
  DT_PAIR_FACTS(ADD)
#undef ADD
  add_text(root, "costs", r->costs);
  cJSON_AddStringToObject(root, "finish_reason", r->finish_reason);
  cJSON_AddNumberToObject(root, "prompt_tokens", r->n_prompt);
  if (!(flags & DTL_JSON_BRIEF)) {
    add_ids(root, "prompt_ids", r->prompt_ids, r->n_prompt);
    add_ids(root, "tokens", r->tokens, r->n_tokens);
    add_string(root, "text", r->text ? r->text : "", r->text ? r->text_len : 0);
    add_logprobs(root, "logprobs", r->logprobs, r->tokens, r->n_tokens);
    add_logprobs(root, "prompt_logprobs", r->prompt_logprobs, r->prompt_ids, r->n_prompt);
  }
  add_stats(root, r);
  char *text = errno == ENOMEM ? NULL : flags & DTL_JSON_LINE ? cJSON_PrintUnformatted(root) : cJSON_Print(root);
  cJSON_Delete(root);
  if (!text) return NULL;
  size_t len = strlen(text);
  char *ended = realloc(text, len + 2);
  if (!ended) {
    free(text);
    return NULL;
  }
  memcpy(ended + len, "\n", 2);
  return ended;
}
