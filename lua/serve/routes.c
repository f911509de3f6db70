/* The routes: one table. See http.h. */
#include "serve/api.h"
#include "serve/body.h"
#include "serve/conversation.h"
#include "serve/drawing.h"
#include "serve/http.h"
#include "serve/ollama.h"
#include "serve/others.h"
#include "serve/policies.h"
#include "serve/tokens.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct routes {
  ask_server server;
  dt_chat *chat;
  dt_call_format *calls;
  char no_chat[256];
  work *work;
  drawing *drawing;
  int slots;
};

/* Returns the folder of an absolute path, with its final slash; NULL: it has none, or out of memory. */
static char *folder_of(const char *path) {
  const char *slash = path && *path == '/' ? strrchr(path, '/') : NULL;
  return slash && slash > path ? strndup(path, (size_t)(slash + 1 - path)) : NULL;
}

/* Messages to clients call the model by its name for clients, and show other files without their folders. */
static void find_secrets(ask_server *s, const dt_pair_info *info) {
  const char *const paths[] = {info->draft.path, dtl_policy_describe(s->policy)->path};
  if (info->target.path[0] == '/') s->secrets[0] = (refusal_secret){strdup(info->target.path), s->models[0]};
  for (int i = 1; i < ASK_SECRETS; i++) s->secrets[i] = (refusal_secret){folder_of(paths[i - 1]), ""};
}

/* The variables that the command line sets for all conversations. */
static dt_status find_settings(ask_server *s, const serve_pair *what, dt_error *err) {
  const char *think;
  dt_status status = dtl_think(s->chat, what->think, &think, err);
  if (status) return status;
  if (what->variables) s->settings[s->n_settings++] = what->variables;
  if (think) s->settings[s->n_settings++] = think;
  return DT_OK;
}

dt_status routes_open(const serve_options *o, const serve_pair *what, routes **out, dt_error *err) {
  routes *r = calloc(1, sizeof *r);
  dt_error no_chat;
  dt_pair_info info;
  if (!r) return dt_fail_memory(err, "the routes", sizeof *r);
  if (dt_pair_chat(what->pair, what->chat, &r->chat, &no_chat))
    memcpy(r->no_chat, no_chat.message, sizeof r->no_chat - 1);
  dt_pair_describe(what->pair, &info);
  r->server = (ask_server){.pair = what->pair,
                           .chat = r->chat,
                           .no_chat = r->no_chat,
                           .template_raw = what->template_raw,
                           .policy = what->policy,
                           .defaults = what->defaults,
                           .models = what->models,
                           .n_models = what->n_models,
                           .context = what->context,
                           .vocab = info.target.vocab,
                           .started = (long)time(NULL)};
  find_secrets(&r->server, &info);
  r->slots = o->slots;
  work_options how = {&r->server, o->slots, o->queue, o->seconds, what->learned, o->prefix_cache_bytes};
  dt_status status = what->chat && !r->chat ? dt_fail(err, DT_EINPUT, "%s", no_chat.message) : DT_OK;
  if (!status && r->chat) status = find_settings(&r->server, what, err);
  if (!status && r->chat) status = dt_call_format_open(r->chat, &r->calls, err);
  r->server.calls = r->calls;
  if (!status && !(r->drawing = drawing_open())) status = dt_fail_memory(err, "the drawing of traces", 0);
  if (!status) status = work_open(&how, &r->work, err);
  if (status)
    routes_close(r);
  else
    *out = r;
  return status;
}

void routes_stop(routes *r, double grace_ms) { work_stop(r->work, grace_ms); }

void routes_close(routes *r) {
  work_close(r->work);
  drawing_close(r->drawing);
  dt_call_format_close(r->calls);
  dt_chat_close(r->chat);
  for (int i = 0; i < ASK_SECRETS; i++) free(r->server.secrets[i].text);
  free(r);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static bool begin_text(routes *r, const api_form *api, const char *body, size_t len, route_answer *out, refusal *why) {
  ask a;
  if (!ask_read(&r->server, api, body, len, &a, why)) {
    ask_free(&a);
    return false;
  }
  out->ticket = work_submit(r->work, &a, why);
  return out->ticket != NULL;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static bool run_health(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  (void)r, (void)body, (void)len, (void)why;
  json_raw(&out->text, "{\"status\":\"ok\"}");
  return true;
}

static void put_model(const routes *r, const char *name, json_text *out) {
  answer_text(out, "{\"id\":", name);
  answer_put(out, ",\"object\":\"model\",\"created\":%ld,\"owned_by\":\"dtrun\",\"max_model_len\":%d}",
             r->server.started, r->server.context);
}

static bool run_models(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  (void)body, (void)len, (void)why;
  json_raw(&out->text, "{\"object\":\"list\",\"data\":[");
  for (int i = 0; i < r->server.n_models; i++) {
    if (i) json_raw(&out->text, ",");
    put_model(r, r->server.models[i], &out->text);
  }
  json_raw(&out->text, "]}");
  return true;
}

/* The model is found by any name, as in requests. */
static bool run_model(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  const char *slash = strstr(out->url, "/models/");
  (void)body, (void)len, (void)why;
  put_model(r, ask_model(&r->server, slash ? slash + strlen("/models/") : ""), &out->text);
  return true;
}

static bool run_props(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  dt_pair_info info;
  (void)body, (void)len, (void)why;
  dt_pair_describe(r->server.pair, &info);
  answer_put(&out->text, "{\"default_generation_settings\":{\"n_ctx\":%d,\"temperature\":%g},\"total_slots\":%d,",
             r->server.context, (double)r->server.defaults.seq.sampling.temp, r->slots);
  answer_text(&out->text, "\"model_alias\":", r->server.models[0]);
  answer_text(&out->text, ",\"build_info\":", dt_version());
  answer_text(&out->text, ",\"chat_template\":", r->chat ? dt_chat_text(r->chat) : NULL);
  answer_text(&out->text, ",\"dtrun\":{\"policy\":", dtl_policy_describe(r->server.policy)->name);
  answer_text(&out->text, ",\"backend\":", info.backend);
  answer_put(&out->text, ",\"draft\":%s,\"threads\":%d}}", info.draft.path ? "true" : "false", info.threads);
  return true;
}

static void put_count(json_text *out, const char *name, const char *type, const char *help, double value) {
  answer_put(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

static bool run_metrics(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  work_counts c = work_count(r->work);
  json_text *t = &out->text;
  (void)body, (void)len, (void)why;
  out->type = "text/plain; version=0.0.4";
  put_count(t, "llamacpp:prompt_tokens_total", "counter", "Prompt tokens that were computed.", (double)c.prompt_tokens);
  put_count(t, "llamacpp:prompt_seconds_total", "counter", "Seconds spent on prompts.", c.prompt_ms / 1e3);
  put_count(t, "llamacpp:tokens_predicted_total", "counter", "Generated tokens.", (double)c.tokens);
  put_count(t, "llamacpp:tokens_predicted_seconds_total", "counter", "Seconds spent on generation.", c.text_ms / 1e3);
  put_count(t, "llamacpp:requests_processing", "gauge", "Texts that are being generated.", c.processing);
  put_count(t, "llamacpp:requests_deferred", "gauge", "Requests that wait in the queue.", c.deferred);
  put_count(t, "vllm:spec_decode_num_drafts_total", "counter", "Verify passes.", (double)c.drafts);
  put_count(t, "vllm:spec_decode_num_draft_tokens_total", "counter", "Verified guesses.", (double)c.drafted);
  put_count(t, "vllm:spec_decode_num_accepted_tokens_total", "counter", "Accepted guesses.", (double)c.accepted);
  json_raw(t, "# HELP vllm:spec_decode_num_accepted_tokens_per_pos_total Accepted guesses by depth.\n"
              "# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_total counter\n");
  for (int i = 1; i <= DT_TREE_VERIFY && (i == 1 || c.accepted_at[i]); i++)
    answer_put(t, "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"%d\"} %ld\n", i - 1, c.accepted_at[i]);
  put_count(t, "dtrun:requests_total", "counter", "Requests that have ended.", (double)c.requests);
  put_count(t, "dtrun:prompt_tokens_cached_total", "counter", "Prompt tokens taken from the prefix cache.",
            (double)c.cached_tokens);
  put_count(t, "dtrun:prompt_cache_bytes", "gauge", "Size of the prefix cache in bytes.", (double)c.cached_bytes);
  return true;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* Reads the body of a small route: an object without other fields than `taken` (NULL: they are checked later). */
static cJSON *object_of(const char *body, size_t len, const char *const *taken, refusal *why) {
  cJSON *root;
  if (!body_read(&(raw_json){body, len}, &root, why)) return NULL;
  if (!taken || others_pass_all(root, taken, "", IN_TOKENS, why)) return root;
  cJSON_Delete(root);
  return NULL;
}

static bool run_tokenize(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  cJSON *root = object_of(body, len, NULL, why);
  bool fine = root && tokens_of_text(&r->server, root, &out->text, why);
  cJSON_Delete(root);
  return fine;
}

static bool run_detokenize(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  cJSON *root = object_of(body, len, NULL, why);
  bool fine = root && tokens_as_text(&r->server, root, &out->text, why);
  cJSON_Delete(root);
  return fine;
}

static bool run_template(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  static const char *const taken[] = {"messages",
                                      "documents",
                                      "chat_template_kwargs",
                                      "reasoning_effort",
                                      "continue_final_message",
                                      "add_generation_prompt",
                                      "tools",
                                      "tool_choice",
                                      "parallel_tool_calls",
                                      NULL};
  cJSON *root;
  raw_json object = {body, len};
  dt_chat_prompt prompt = {0};
  request_tools tools = {0};
  if (!body_read(&object, &root, why)) return false;
  bool fine = others_pass_all(root, taken, "", IN_TOKENS, why) && tools_read(root, object, &tools, why) &&
              conversation_write(&r->server, root, object, &tools, &prompt, why);
  tools_free(&tools);
  cJSON_Delete(root);
  if (!fine) return false;
  json_raw(&out->text, "{\"prompt\":");
  json_string(&out->text, prompt.text, prompt.len);
  json_raw(&out->text, "}");
  dt_chat_prompt_free(&prompt);
  return true;
}

/* Counts the tokens of a prompt, also of one that does not fit into the context. -1: *why says what is wrong. */
static int count_tokens(routes *r, const api_form *api, const char *body, size_t len, refusal *why) {
  ask a;
  bool fine = ask_read(&r->server, api, body, len, &a, why);
  int n = fine ? a.prompts[0].n : why->prompt_tokens;
  ask_free(&a);
  return fine || why->context ? n : -1;
}

static bool run_count(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  const int n = count_tokens(r, &api_anthropic_counts, body, len, why);
  answer_put(&out->text, "{\"input_tokens\":%d}", n);
  return n >= 0;
}

static bool run_input_tokens(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  const int n = count_tokens(r, &api_responses, body, len, why);
  answer_put(&out->text, "{\"object\":\"response.input_tokens\",\"input_tokens\":%d}", n);
  return n >= 0;
}

/* ---- policies ---------------------------------------------------------------------------------------------------- */

static bool run_policies(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  (void)r, (void)body, (void)len;
  return policies_list(&out->text, why);
}

static bool run_check(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  static const char *const taken[] = {"source", NULL};
  cJSON *root = object_of(body, len, taken, why);
  const cJSON *source = cJSON_GetObjectItemCaseSensitive(root, "source");
  bool fine = cJSON_IsString(source);
  (void)r;
  if (root && !fine) *why = refusal_say(400, INVALID, "source: expected a policy's text");
  if (fine) policies_check(&out->text, source->valuestring);
  cJSON_Delete(root);
  return fine;
}

static bool run_draw(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  return drawing_run(r->drawing, body, len, &out->text, why);
}

/* ---- ollama's API ------------------------------------------------------------------------------------------------ */

static bool run_ollama(routes *r, const api_form *api, const char *body, size_t len, route_answer *out, refusal *why) {
  const bool is_chat = api == &api_ollama_chat;
  const char *model;
  bool loads;
  if (!ollama_loads(&r->server, is_chat, (raw_json){body, len}, &model, &loads, why)) return false;
  if (!loads) return begin_text(r, api, body, len, out, why);
  ollama_loaded(&out->text, is_chat, model);
  return true;
}

static bool run_ollama_chat(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  return run_ollama(r, &api_ollama_chat, body, len, out, why);
}

static bool run_ollama_generate(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  return run_ollama(r, &api_ollama_generate, body, len, out, why);
}

static bool run_ollama_version(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  (void)r, (void)body, (void)len, (void)why;
  ollama_version(&out->text);
  return true;
}

static bool run_ollama_tags(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  (void)body, (void)len;
  return ollama_tags(&r->server, false, &out->text, why);
}

static bool run_ollama_ps(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  (void)body, (void)len;
  return ollama_tags(&r->server, true, &out->text, why);
}

static bool run_ollama_show(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  static const char *const taken[] = {"model", "name", "verbose", NULL};
  cJSON *root = object_of(body, len, taken, why);
  cJSON_Delete(root);
  return root && ollama_show(&r->server, &out->text, why);
}

static bool run_one_model(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  (void)r, (void)body, (void)len;
  *why =
      refusal_say(400, INVALID,
                  "%.60s: this server has one model, which it was started with; dtrun pull downloads others", out->url);
  return false;
}

static bool run_embeddings(routes *r, const char *body, size_t len, route_answer *out, refusal *why) {
  (void)r, (void)body, (void)len;
  *why = refusal_say(400, INVALID,
                     "%.60s: embeddings are not supported; a server with an embedding model has them, such as "
                     "llama-server --embeddings",
                     out->url);
  return false;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

struct route {
  const char *method, *url; /* url: also valid without /v1; if it ends in a slash, a name follows */
  bool is_public;
  bool (*run)(routes *r, const char *body, size_t len, route_answer *out, refusal *why); /* NULL: it generates texts */
  const api_form *api;                                                                   /* NULL: OpenAI's */
};

static const route all[] = {
    {"GET", "/health", true, run_health, NULL},
    {"GET", "/v1/models", true, run_models, NULL},
    {"GET", "/v1/models/", true, run_model, NULL},
    {"POST", "/v1/completions", false, NULL, &api_completions},
    {"POST", "/v1/chat/completions", false, NULL, &api_chats},
    {"POST", "/v1/responses", false, NULL, &api_responses},
    {"POST", "/v1/responses/input_tokens", false, run_input_tokens, &api_responses},
    {"POST", "/v1/messages", false, NULL, &api_anthropic},
    {"POST", "/v1/messages/count_tokens", false, run_count, &api_anthropic_counts},
    {"POST", "/infill", false, NULL, &api_infill},
    {"POST", "/v1/embeddings", false, run_embeddings, NULL},
    {"POST", "/api/chat", false, run_ollama_chat, &api_ollama_chat},
    {"POST", "/api/generate", false, run_ollama_generate, &api_ollama_generate},
    {"GET", "/api/version", true, run_ollama_version, &api_ollama_chat},
    {"GET", "/api/tags", true, run_ollama_tags, &api_ollama_chat},
    {"GET", "/api/ps", false, run_ollama_ps, &api_ollama_chat},
    {"POST", "/api/show", false, run_ollama_show, &api_ollama_chat},
    {"POST", "/api/embed", false, run_embeddings, &api_ollama_chat},
    {"POST", "/api/embeddings", false, run_embeddings, &api_ollama_chat},
    {"POST", "/api/pull", false, run_one_model, &api_ollama_chat},
    {"POST", "/api/push", false, run_one_model, &api_ollama_chat},
    {"POST", "/api/create", false, run_one_model, &api_ollama_chat},
    {"POST", "/api/copy", false, run_one_model, &api_ollama_chat},
    {"DELETE", "/api/delete", false, run_one_model, &api_ollama_chat},
    {"POST", "/api/blobs/", false, run_one_model, &api_ollama_chat},
    {"GET", "/v1/policies", false, run_policies, NULL},
    {"POST", "/v1/policies/check", false, run_check, NULL},
    {"POST", "/v1/traces/draw", false, run_draw, NULL},
    {"GET", "/metrics", false, run_metrics, NULL},
    {"GET", "/props", false, run_props, NULL},
    {"POST", "/tokenize", false, run_tokenize, NULL},
    {"POST", "/detokenize", false, run_detokenize, NULL},
    {"POST", "/apply-template", false, run_template, NULL},
};

static bool is_url(const char *is, const char *url) {
  size_t n = strlen(is);
  return is[n - 1] == '/' ? strncmp(is, url, n) == 0 && url[n] : strcmp(is, url) == 0;
}

static bool is_at(const route *r, const char *url) {
  return is_url(r->url, url) || (strncmp(r->url, "/v1", 3) == 0 && is_url(r->url + 3, url));
}

const route *route_find(const char *method, const char *url, refusal *why) {
  *why = refusal_say(404, "not_found_error", "unknown route: %.100s", url);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!is_at(&all[i], url)) continue;
    const bool head = strcmp(method, "HEAD") == 0 && strcmp(all[i].method, "GET") == 0; /* like GET, without the body */
    if (head || strcmp(all[i].method, method) == 0) return &all[i];
    *why = refusal_say(405, INVALID, "%.100s takes %s", url, all[i].method);
  }
  return NULL;
}

/* How many bytes at the beginning of a route's URL, with or without /v1, are those of this one. */
static size_t common(const route *r, const char *url) {
  const char *of = strncmp(url, "/v1", 3) && !strncmp(r->url, "/v1", 3) ? r->url + 3 : r->url;
  size_t n = 0;
  while (of[n] && of[n] == url[n]) n++;
  return n;
}

void route_refuse(const char *url, const refusal *why, json_text *out) {
  const route *nearest = all;
  for (size_t i = 1; i < sizeof all / sizeof *all; i++)
    if (common(&all[i], url) > common(nearest, url)) nearest = &all[i];
  const api_form *api = nearest->api ? nearest->api : &api_chats;
  api->refuses(out, why);
}

bool route_is_public(const route *r) { return r->is_public; }

bool route_run(const route *r, routes *state, const char *body, size_t len, route_answer *out, refusal *why) {
  if (r->run ? r->run(state, body, len, out, why) : begin_text(state, r->api, body, len, out, why)) return true;
  refusal_hide(why, state->server.secrets, ASK_SECRETS);
  return false;
}
