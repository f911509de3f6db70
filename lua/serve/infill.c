/* /infill, with the bodies and answers of llama.cpp's server. */
#include "serve/api.h"
#include "serve/infill_prompt.h"
#include "serve/raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static const char *const own[] = {"input_prefix", "input_suffix",    "input_extra", "prompt",
                                  "samplers",     "response_fields", NULL};

static bool wrong(const char *name, const char *expected, refusal *why) {
  *why = refusal_say(400, INVALID, "%s: expected %s", name, expected);
  return false;
}

static bool read_text(const cJSON *root, const char *name, const char **out, refusal *why) {
  *out = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, name));
  return *out || wrong(name, "a text", why);
}

static bool check_extra(const cJSON *extra, refusal *why) {
  static const char *const taken[] = {"text", "filename", NULL};
  char place[48];
  const cJSON *one;
  int i = 0;
  if (!cJSON_IsArray(extra)) return wrong("input_extra", "a list of {text, filename}", why);
  cJSON_ArrayForEach(one, extra) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(one, "filename");
    const bool named = cJSON_IsString(name) || !name || cJSON_IsNull(name);
    snprintf(place, sizeof place, "input_extra[%d]", i++);
    if (!named || !cJSON_IsString(cJSON_GetObjectItemCaseSensitive(one, "text")))
      return wrong(place, "{text, filename}, both texts", why);
    snprintf(place, sizeof place, "input_extra[%d].", i - 1);
    if (!others_pass_all(one, taken, place, IN_PART, why)) return false;
  }
  return true;
}

/* Answers have no place for what these fields ask for. */
static bool check_fields(const cJSON *root, refusal *why) {
  static const char *const without[] = {"echo", "logprobs"};
  for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(root, without[i]);
    if (field && !others_pass(field, "", IN_INFILL, why)) return false;
  }
  return true;
}

/* Samplers that llama.cpp's plug-ins for editors name, and the values of fields with which they do nothing. */
static const struct {
  const char *name;
  double off;
} samplers[] = {{"top_k", 0}, {"top_p", 1}, {"min_p", 0}, {"temperature", 0}, {"infill", 0}};
enum { N_SAMPLERS = sizeof samplers / sizeof *samplers };

static int sampler_of(const cJSON *name) {
  int i = 0;
  while (i < N_SAMPLERS && !(cJSON_IsString(name) && strcmp(name->valuestring, samplers[i].name) == 0)) i++;
  return i;
}

/* dtrun applies its own samplers, in its own order; so the list must have all that the body sets. */
static bool check_samplers(const cJSON *root, refusal *why) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "samplers"), *one;
  bool listed[N_SAMPLERS + 1] = {false};
  if (!list || cJSON_IsNull(list)) return true;
  if (!cJSON_IsArray(list)) return wrong("samplers", "a list of names", why);
  cJSON_ArrayForEach(one, list) listed[sampler_of(one)] = true;
  if (listed[N_SAMPLERS]) return wrong("samplers", "top_k, top_p, min_p, temperature or infill", why);
  for (int i = 0; i < N_SAMPLERS; i++) {
    const cJSON *set = cJSON_GetObjectItemCaseSensitive(root, samplers[i].name);
    if (listed[i] || !cJSON_IsNumber(set) || set->valuedouble == samplers[i].off) continue;
    *why = refusal_say(400, INVALID, "samplers: expected %s, which the body sets", samplers[i].name);
    return false;
  }
  return true;
}

static bool check_response_fields(const cJSON *root, refusal *why) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "response_fields"), *one;
  if (!list || cJSON_IsNull(list)) return true;
  if (!cJSON_IsArray(list)) return wrong("response_fields", "a list of texts", why);
  cJSON_ArrayForEach(one, list) if (!cJSON_IsString(one)) return wrong("response_fields", "a list of texts", why);
  if (cJSON_GetArraySize(list) && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "stream")))
    return wrong("response_fields", "an empty list together with stream", why);
  return true;
}

static bool read_texts(const cJSON *root, infill_texts *out, refusal *why) {
  const cJSON *extra = cJSON_GetObjectItemCaseSensitive(root, "input_extra");
  const cJSON *begun = cJSON_GetObjectItemCaseSensitive(root, "prompt");
  *out = (infill_texts){.extra = cJSON_IsNull(extra) ? NULL : extra};
  if (!read_text(root, "input_prefix", &out->prefix, why) || !read_text(root, "input_suffix", &out->suffix, why))
    return false;
  if (begun && !cJSON_IsNull(begun) && !read_text(root, "prompt", &out->begun, why)) return false;
  return !out->extra || check_extra(out->extra, why);
}

static bool is_name(raw_json name, const char *text) {
  return name.len == strlen(text) + 2 && memcmp(name.at + 1, text, strlen(text)) == 0;
}

static bool is_own(raw_json name) {
  for (int i = 0; own[i]; i++)
    if (is_name(name, own[i])) return true;
  return false;
}

/* llama.vscode asks for several answers but sets no temperature: at temperature 0 they are the same, and it gets one.
 */
static bool answers_agree(const ask_server *server, const cJSON *root) {
  const cJSON *n = cJSON_GetObjectItemCaseSensitive(root, "n_cmpl");
  const cJSON *temp = cJSON_GetObjectItemCaseSensitive(root, "temperature");
  const bool is_greedy = cJSON_IsNumber(temp) ? temp->valuedouble == 0 : server->defaults.seq.sampling.temp == 0;
  return is_greedy && cJSON_IsNumber(n) && n->valuedouble > 1 && n->valuedouble <= ASK_TEXTS;
}

/* Writes the body of a completion: the ids as its prompt, and all other members as they are. */
static char *write_body(raw_json body, const int32_t *ids, int n, bool one_answer) {
  json_text out = {0};
  raw_json name, value;
  json_raw(&out, "{\"prompt\":[");
  for (int i = 0; i < n; i++) answer_put(&out, i ? ",%d" : "%d", ids[i]);
  json_raw(&out, "]");
  while (raw_next(&body, &name, &value)) {
    if (is_own(name) || (one_answer && is_name(name, "n_cmpl"))) continue;
    json_raw(&out, ",");
    json_bytes(&out, name.at, name.len);
    json_raw(&out, ":");
    json_bytes(&out, value.at, value.len);
  }
  json_raw(&out, "}");
  return json_finish(&out);
}

static bool translate(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                      refusal *why) {
  infill_texts texts;
  int32_t *ids;
  int n;
  (void)where;
  if (!check_fields(root, why) || !check_samplers(root, why) || !check_response_fields(root, why) ||
      !read_texts(root, &texts, why) || !infill_encode(server, &texts, "/infill", &ids, &n, why))
    return false;
  *out = write_body(body, ids, n, answers_agree(server, root));
  free(ids);
  if (!*out) *why = refusal_say(500, "server_error", "out of memory: the request");
  return *out != NULL;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static const char *stop_type(const dtl_result *r) {
  return strcmp(r->finish_reason, "eos") == 0 ? "eos" : strcmp(r->finish_reason, "stop") == 0 ? "word" : "limit";
}

static void put_begin(json_text *out, int index, const char *text, size_t len, bool stop) {
  answer_put(out, "{\"index\":%d,\"content\":", index);
  json_string(out, text, len);
  json_raw(out, stop ? ",\"stop\":true" : ",\"stop\":false");
}

/* Writes the members after those of put_begin. */
static void put_end(json_text *out, const answer_head *head, const dtl_result *r) {
  answer_text(out, ",\"model\":", head->ask->model);
  answer_put(out,
             ",\"stop_type\":\"%s\",\"tokens_predicted\":%d,\"tokens_evaluated\":%d,\"tokens_cached\":%d,"
             "\"truncated\":false",
             stop_type(r), head->ask->no_tokens ? 0 : r->n_tokens, r->n_prompt, r->stats.cached_tokens);
  answer_timings(out, r, 1);
  json_raw(out, "}");
}

static void write_begin(json_text *out, const answer_head *head, int index) { (void)out, (void)head, (void)index; }

static void write_piece(json_text *out, const answer_head *head, int index, part_kind kind, int call, const char *text,
                        size_t len, answer_logprobs *kept, answer_offset *offset) {
  (void)kind, (void)call, (void)offset;
  kept->n = 0;
  if (head->ask->no_tokens) return;
  json_raw(out, "data: ");
  put_begin(out, index, text, len, false);
  json_raw(out, "}\n\n");
}

static void write_trace(json_text *out, const answer_head *head, int index, const char *line) {
  (void)out, (void)head, (void)index, (void)line;
}

static void write_end(json_text *out, const answer_head *head, int index, const dtl_result *r, int calls,
                      answer_logprobs *kept, answer_offset *offset) {
  (void)calls, (void)offset;
  kept->n = 0;
  json_raw(out, "data: ");
  put_begin(out, index, "", 0, true);
  put_end(out, head, r);
  json_raw(out, "\n\n");
}

static void write_close(json_text *out, const answer_head *head, const dtl_result *results, int n) {
  (void)out, (void)head, (void)results, (void)n;
}

static void write_refusal(json_text *out, const refusal *why) { api_completions.refuses(out, why); }

static void write_failure(json_text *out, const answer_head *head, const refusal *why) {
  api_completions.fails(out, head, why);
}

static void put_whole(json_text *out, const answer_head *head, const dtl_result *r, int index) {
  put_begin(out, index, r->text, head->ask->no_tokens ? 0 : r->text_len, true);
  put_end(out, head, r);
}

/* Writes those members of an answer that `response_fields` names: a/b is b in the member a, and its name in the answer
 * is a/b. */
static void put_chosen(json_text *out, const cJSON *fields, char *answer) {
  cJSON *whole = cJSON_Parse(answer), *chosen = cJSON_CreateObject();
  const cJSON *one;
  cJSON_ArrayForEach(one, fields) {
    const cJSON *at = whole;
    char *path = strdup(one->valuestring);
    for (char *name = path, *end; at && name; name = end) {
      end = strchr(name, '/');
      if (end) *end++ = '\0';
      at = cJSON_GetObjectItemCaseSensitive(at, name);
    }
    if (at && path) cJSON_AddItemToObject(chosen, one->valuestring, cJSON_Duplicate(at, 1));
    if (!path) out->failed = true;
    free(path);
  }
  char *text = chosen ? cJSON_PrintUnformatted(chosen) : NULL;
  if (!whole || !text) out->failed = true;
  json_raw(out, text ? text : "");
  cJSON_free(text), cJSON_Delete(whole), cJSON_Delete(chosen);
}

/* Several answers are a list, as in llama.cpp. */
static void write_whole(json_text *out, const answer_head *head, const dtl_result *results, const json_text *traces,
                        int n) {
  const cJSON *fields = cJSON_GetObjectItemCaseSensitive(head->ask->given, "response_fields");
  (void)traces;
  if (n > 1) json_raw(out, "[");
  for (int i = 0; i < n; i++) {
    if (i) json_raw(out, ",");
    json_text one = {0};
    const bool chosen = cJSON_GetArraySize(fields) > 0;
    put_whole(chosen ? &one : out, head, &results[i], i);
    if (!chosen) continue;
    char *answer = json_finish(&one);
    if (answer)
      put_chosen(out, fields, answer);
    else
      out->failed = true;
    free(answer);
  }
  json_raw(out, n > 1 ? "]\n" : "\n");
}

const api_form api_infill = {.id = "infill-",
                             .where = IN_TEXT,
                             .primes = true,
                             .translate = translate,
                             .stream_type = API_EVENTS,
                             .ping = API_PING,
                             .begins = write_begin,
                             .piece = write_piece,
                             .traced = write_trace,
                             .ends = write_end,
                             .closes = write_close,
                             .fails = write_failure,
                             .whole = write_whole,
                             .refuses = write_refusal};
