/* Reads requests: see ask.h. One table has the fields. */
#include "serve/ask.h"
#include "serve/policies.h"
#include "serve/raw.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INVALID "invalid_request_error"

refusal refusal_say(int status, const char *type, const char *format, ...) {
  char line[sizeof((refusal *)0)->message];
  refusal why = {.status = status, .type = type};
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  dtl_clean(why.message, sizeof why.message, line, n < 0 ? 0 : strlen(line));
  return why;
}

refusal refusal_of(const dt_error *err) {
  switch (err->status) {
  case DT_EINPUT:
  case DT_EPOLICY: return refusal_say(400, INVALID, "%s", err->message);
  case DT_ECONTEXT: return refusal_say(400, "exceed_context_size_error", "%s", err->message);
  default: return refusal_say(500, "server_error", "%s", err->message);
  }
}

/* What a field's reader works on. */
typedef struct {
  const ask_server *server;
  ask *a;
  refusal *why;
  const char *name; /* the field's */
  raw_json body;
} reading;

static bool wrong(reading *r, const char *expected) {
  *r->why = refusal_say(400, INVALID, "%s: expected %s", r->name, expected);
  return false;
}

static bool twice(reading *r, const char *name) {
  *r->why = refusal_say(400, INVALID, "%.100s: it is given twice", name);
  return false;
}

static bool failed(reading *r, const dt_error *err) {
  *r->why = refusal_of(err);
  return false;
}

static bool starved(reading *r) {
  *r->why = refusal_say(500, "server_error", "out of memory: the request");
  return false;
}

/* A whole number between low and high. */
static bool whole(reading *r, const cJSON *v, double low, double high, int *out) {
  char expected[80];
  bool fits =
      cJSON_IsNumber(v) && v->valuedouble == floor(v->valuedouble) && v->valuedouble >= low && v->valuedouble <= high;
  if (fits) *out = (int)v->valuedouble;
  snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f", low, high);
  return fits || wrong(r, expected);
}

/* ---- prompts ----------------------------------------------------------------------------------------------------- */

static bool add_prompt(reading *r, int32_t *ids, int n) {
  ask *a = r->a;
  struct ask_prompt *grown = realloc(a->prompts, sizeof *grown * (size_t)(a->n_prompts + 1));
  if (!grown) {
    free(ids);
    return starved(r);
  }
  a->prompts = grown;
  a->prompts[a->n_prompts++] = (struct ask_prompt){ids, n};
  return true;
}

static bool add_text(reading *r, const char *text, size_t len, bool is_whole) {
  int32_t *ids;
  int n;
  dt_error err;
  if ((is_whole ? dt_encode_whole : dt_encode)(r->server->pair, text, len, &ids, &n, &err)) return failed(r, &err);
  return add_prompt(r, ids, n);
}

static bool add_ids(reading *r, const cJSON *list) {
  int n = 0;
  const cJSON *v;
  int32_t *ids = malloc(sizeof *ids * ((size_t)cJSON_GetArraySize(list) + 1));
  if (!ids) return starved(r);
  cJSON_ArrayForEach(v, list) {
    if (!whole(r, v, 0, INT32_MAX, &ids[n++])) {
      free(ids);
      return false;
    }
  }
  return add_prompt(r, ids, n);
}

static bool read_prompt(reading *r, const cJSON *v) {
  const cJSON *first = cJSON_GetArrayItem(v, 0), *one;
  if (cJSON_IsString(v)) return add_text(r, v->valuestring, strlen(v->valuestring), false);
  if (!cJSON_IsArray(v) || !first) return wrong(r, "a text, a list of ids, or a list of either that is not empty");
  if (cJSON_IsNumber(first)) return add_ids(r, v);
  if (cJSON_GetArraySize(v) > ASK_TEXTS) return wrong(r, "at most 128 prompts");
  cJSON_ArrayForEach(one, v) {
    if (cJSON_IsString(one)  ? !add_text(r, one->valuestring, strlen(one->valuestring), false)
        : cJSON_IsArray(one) ? !add_ids(r, one)
                             : !wrong(r, "texts, or lists of ids"))
      return false;
  }
  return true;
}

/* The text of a message: a string, or a list of parts of type text. malloc'd; NULL: neither, or out of memory. */
static char *content_of(const cJSON *message) {
  const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content"), *part;
  if (cJSON_IsString(content)) return strdup(content->valuestring);
  size_t len = 0;
  char *text = cJSON_IsArray(content) ? strdup("") : NULL;
  if (!text) return NULL;
  cJSON_ArrayForEach(part, content) {
    const cJSON *piece = cJSON_GetObjectItemCaseSensitive(part, "text");
    char *grown = cJSON_IsString(piece) ? realloc(text, len + strlen(piece->valuestring) + 1) : NULL;
    if (!grown) {
      free(text);
      return NULL;
    }
    text = grown;
    strcpy(text + len, piece->valuestring);
    len += strlen(piece->valuestring);
  }
  return text;
}

static bool is_role(const cJSON *message, const char *name) {
  const cJSON *role = cJSON_GetObjectItemCaseSensitive(message, "role");
  return cJSON_IsString(role) && strcmp(role->valuestring, name) == 0;
}

/* Fills texts[i] with each message's text, after checking that roles take turns. */
static bool read_turns(reading *r, const cJSON *list, bool has_system, dt_message *texts) {
  const cJSON *message;
  int i = 0;
  cJSON_ArrayForEach(message, list) {
    bool system = has_system && i == 0, user = (i - has_system) % 2 == 0;
    char *text = content_of(message);
    if (text) texts[i] = (dt_message){text, strlen(text)};
    if (!system && !is_role(message, user ? "user" : "assistant")) {
      *r->why = refusal_say(400, INVALID,
                            "messages[%d]: expected role %s: user and assistant take turns, after a system text", i,
                            user ? "user" : "assistant");
      return false;
    }
    if (!text) {
      *r->why = refusal_say(400, INVALID, "messages[%d]: expected content, a text or parts of type text", i);
      return false;
    }
    i++;
  }
  if ((i - has_system) % 2 == 1) return true;
  return wrong(r, "the last message to be the user's");
}

bool ask_conversation(const ask_server *server, const cJSON *messages, char **text, size_t *len, refusal *why) {
  reading r = {.server = server, .why = why, .name = "messages"};
  const cJSON *first = cJSON_GetArrayItem(messages, 0);
  int n = cJSON_GetArraySize(messages);
  bool has_system = is_role(first, "system") || is_role(first, "developer");
  dt_error err;
  if (!server->chat) {
    *why = refusal_say(400, INVALID, "%s", server->no_chat);
    return false;
  }
  if (!cJSON_IsArray(messages) || !first) return wrong(&r, "a list of {role, content}");
  dt_message *texts = calloc((size_t)n, sizeof *texts);
  bool fine = texts ? read_turns(&r, messages, has_system, texts) : starved(&r);
  if (fine && dtl_conversation(server->chat, has_system ? texts : NULL, texts + has_system, n - has_system, NULL, text,
                               len, &err))
    fine = failed(&r, &err);
  for (int i = 0; texts && i < n; i++) free((char *)texts[i].text);
  free(texts);
  return fine;
}

static bool read_messages(reading *r, const cJSON *v) {
  char *text;
  size_t len;
  if (!ask_conversation(r->server, v, &text, &len, r->why)) return false;
  bool fine = add_text(r, text, len, true);
  free(text);
  return fine;
}

/* ---- other fields ------------------------------------------------------------------------------------------------- */

static bool add_stop(reading *r, const char *text) {
  dt_seq_options *seq = &r->a->seq;
  if (!*text) return wrong(r, "texts that are not empty");
  char **grown = realloc(r->a->stop, sizeof *grown * (size_t)(seq->n_stop + 1));
  if (grown) r->a->stop = grown, seq->stop = (const char *const *)grown;
  if (!grown || !(grown[seq->n_stop] = strdup(text))) return starved(r);
  seq->n_stop++;
  return true;
}

static bool read_stop(reading *r, const cJSON *v) {
  const cJSON *one;
  if (cJSON_IsString(v)) return add_stop(r, v->valuestring);
  if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) > 64) return wrong(r, "a text, or a list of at most 64");
  cJSON_ArrayForEach(one,
                     v) if (!cJSON_IsString(one) ? !wrong(r, "texts") : !add_stop(r, one->valuestring)) return false;
  return true;
}

/* null, or -1 as in llama.cpp: any seed. */
static bool read_seed(reading *r, const cJSON *v) {
  if (!cJSON_IsNumber(v) || v->valuedouble != floor(v->valuedouble) || fabs(v->valuedouble) > 9007199254740992.0)
    return wrong(r, "a whole number of at most 2^53");
  r->a->seeded = v->valuedouble != -1;
  r->a->seq.sampling.seed = (uint64_t)(int64_t)v->valuedouble;
  return true;
}

static bool read_tokens(reading *r, const cJSON *v) {
  if (!whole(r, v, -1, INT_MAX, &r->a->seq.max_tokens)) return false;
  r->a->no_tokens = r->a->seq.max_tokens == 0;
  return true;
}

/* 0 and -1: all, as in llama.cpp and vLLM. */
static bool read_top_k(reading *r, const cJSON *v) {
  int k = 0;
  if (!whole(r, v, -1, INT_MAX, &k)) return false;
  r->a->seq.sampling.top_k = k > 0 ? k : 0;
  return true;
}

/* A completion's is a number, a chat's whether there are any. */
static bool read_logprobs(reading *r, const cJSON *v) {
  int top = 0;
  if (cJSON_IsBool(v)) {
    if (!r->a->logprobs) r->a->logprobs = cJSON_IsTrue(v);
    return true;
  }
  if (r->a->is_chat) return wrong(r, "true or false");
  if (!whole(r, v, 0, DT_LOGPROBS, &top)) return false;
  r->a->logprobs = top + 1;
  return true;
}

static bool read_top_logprobs(reading *r, const cJSON *v) {
  int top = 0;
  if (!whole(r, v, 0, DT_LOGPROBS, &top)) return false;
  r->a->logprobs = top + 1;
  return true;
}

static bool add_bias(reading *r, const char *token, const cJSON *bias) {
  dt_shifts *s = &r->a->seq.shifts;
  dt_error err;
  char *end;
  dt_bias b = {.bias = cJSON_IsFalse(bias) ? -INFINITY : (float)cJSON_GetNumberValue(bias)};
  if (isnan(b.bias)) return wrong(r, "numbers, or false, which bans a token");
  long id = strtol(token, &end, 10);
  b.id = id < 0 || id > INT_MAX ? -1 : (int32_t)id;
  if ((end == token || *end) && dtl_token(r->server->pair, token, strlen(token), &b.id, &err)) return failed(r, &err);
  dt_bias *grown = realloc(r->a->bias, sizeof *grown * (size_t)(s->n_bias + 1));
  if (!grown) return starved(r);
  r->a->bias = grown;
  grown[s->n_bias++] = b;
  s->bias = grown;
  return true;
}

static bool read_bias(reading *r, const cJSON *v) {
  const cJSON *one;
  char id[32];
  if (!cJSON_IsObject(v) && !cJSON_IsArray(v)) return wrong(r, "an object {id: bias} or a list of [id or text, bias]");
  cJSON_ArrayForEach(one, v) {
    const cJSON *token = cJSON_GetArrayItem(one, 0), *bias = cJSON_IsObject(v) ? one : cJSON_GetArrayItem(one, 1);
    const char *name = cJSON_IsObject(v) ? one->string : cJSON_GetStringValue(token);
    if (!cJSON_IsObject(v) && cJSON_IsNumber(token)) snprintf(id, sizeof id, "%.0f", token->valuedouble), name = id;
    if (!name || !bias) return wrong(r, "a list of [id or text, bias]");
    if (!add_bias(r, name, bias)) return false;
  }
  return true;
}

static bool take_grammar(reading *r, char *grammar) {
  if (!grammar) return starved(r);
  if (r->a->grammar) {
    free(grammar);
    *r->why = refusal_say(400, INVALID, "grammar, json_schema and response_format: give one of them");
    return false;
  }
  r->a->seq.shifts.grammar = r->a->grammar = grammar;
  return true;
}

static bool read_grammar(reading *r, const cJSON *v) {
  return cJSON_IsString(v) ? take_grammar(r, strdup(v->valuestring)) : wrong(r, "a text in GBNF");
}

/* With the digits of its numbers. */
static bool take_schema(reading *r, raw_json schema) {
  char *grammar, *json = strndup(schema.at ? schema.at : "", schema.len);
  dt_error err;
  if (!json) return starved(r);
  dt_status status = dt_schema_grammar(json, &grammar, &err);
  free(json);
  return status ? failed(r, &err) : take_grammar(r, grammar);
}

static bool read_schema(reading *r, const cJSON *v) {
  (void)v;
  return take_schema(r, raw_member(r->body, r->name));
}

static bool read_format(reading *r, const cJSON *v) {
  static const char any_object[] = "{\"type\":\"object\"}";
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(v, "type");
  const char *name = cJSON_IsString(type) ? type->valuestring : "";
  bool is_schema = strcmp(name, "json_schema") == 0, is_object = strcmp(name, "json_object") == 0;
  raw_json format = raw_member(r->body, r->name), named = {NULL, 0}, schema = {NULL, 0};
  if (is_schema || is_object) named = raw_member(format, "json_schema");
  if (is_schema || is_object) schema = raw_member(named.at ? named : format, "schema");
  if (strcmp(name, "text") == 0) return true;
  if (schema.at) return take_schema(r, schema);
  if (is_object) return take_schema(r, (raw_json){any_object, sizeof any_object - 1});
  return wrong(r, "type text, json_object, or json_schema with json_schema.schema");
}

/* As in llama.cpp. */
static bool read_reasoning(reading *r, const cJSON *v) {
  const char *form = cJSON_IsString(v) ? v->valuestring : "";
  r->a->whole = strcmp(form, "none") == 0;
  return r->a->whole || strcmp(form, "auto") == 0 || strcmp(form, "deepseek") == 0 ||
         wrong(r, "auto, deepseek or none");
}

static bool read_stream_options(reading *r, const cJSON *v) {
  if (!cJSON_IsObject(v)) return wrong(r, "an object");
  r->a->usage = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(v, "include_usage"));
  return true;
}

static bool read_best_of(reading *r, const cJSON *v) {
  int best;
  if (!whole(r, v, 1, ASK_TEXTS, &best)) return false;
  return best == 1 || wrong(r, "1: n gives several answers");
}

/* ---- the policy ---------------------------------------------------------------------------------------------------- */

#define MOST_PARAMS 64

/* The text of a parameter's value: `text` has room for a number. NULL: neither number, truth nor text. */
static const char *param_text(const cJSON *v, char *text, size_t size) {
  if (cJSON_IsString(v)) return v->valuestring;
  if (cJSON_IsBool(v)) return cJSON_IsTrue(v) ? "true" : "false";
  if (!cJSON_IsNumber(v)) return NULL;
  snprintf(text, size, "%.17g", v->valuedouble);
  return text;
}

/* An installed policy by its name alone: a path would reach any file of this machine. */
static bool is_name(const char *text) { return *text && !strchr(text, '/') && !strchr(text, '.'); }

static bool read_dtrun(reading *r, const cJSON *v) {
  dtl_setting settings[MOST_PARAMS];
  char numbers[MOST_PARAMS][32];
  const char *name = NULL, *source = NULL;
  dtl_policy_options how = {.settings = settings, .quiet = true};
  const cJSON *one, *param;
  dt_error err;
  if (!cJSON_IsObject(v)) return wrong(r, "an object");
  r->a->tells = true;
  cJSON_ArrayForEach(one, v) {
    if (cJSON_IsNull(one)) continue;
    if (cJSON_GetObjectItemCaseSensitive(v, one->string) != one) return twice(r, one->string);
    if (strcmp(one->string, "policy") == 0 && cJSON_IsString(one)) {
      name = one->valuestring;
    } else if (strcmp(one->string, "source") == 0 && cJSON_IsString(one)) {
      source = one->valuestring;
    } else if (strcmp(one->string, "preset") == 0 && cJSON_IsString(one)) {
      how.preset = one->valuestring;
    } else if (strcmp(one->string, "trace") == 0 && cJSON_IsBool(one)) {
      r->a->trace = cJSON_IsTrue(one);
    } else if (strcmp(one->string, "params") == 0 && cJSON_IsObject(one) && cJSON_GetArraySize(one) <= MOST_PARAMS) {
      cJSON_ArrayForEach(param, one) {
        if (cJSON_GetObjectItemCaseSensitive(one, param->string) != param) return twice(r, param->string);
        const char *text = param_text(param, numbers[how.n_settings], sizeof *numbers);
        if (!text) return wrong(r, "params of numbers, texts, true and false");
        settings[how.n_settings++] = (dtl_setting){param->string, text};
      }
    } else {
      *r->why = refusal_say(400, INVALID,
                            "dtrun.%.100s: expected policy, source or preset, a text, params, an object of at most %d, "
                            "or trace, true or false",
                            one->string, MOST_PARAMS);
      return false;
    }
  }
  if (!name && !source) {
    if (how.preset || how.n_settings) return wrong(r, "a policy beside preset and params");
    return true;
  }
  if (name && !is_name(name) && !source) return wrong(r, "the name of an installed policy");
  how.policy = source ? PAGE_NAME : name;
  how.source = source, how.source_len = source ? strlen(source) : 0;
  how.call_seconds = source ? PAGE_SECONDS : 0; /* an installed policy has its usual time, on a busy machine too */
  r->a->is_page = source != NULL;
  return !dtl_policy_open(&how, &r->a->own, &err) || failed(r, &err);
}

static bool unsupported(reading *r) {
  *r->why = refusal_say(501, "not_supported_error", "%s: not supported here", r->name);
  return false;
}

/* Clients send "none" or "auto" beside an empty list of tools. */
static bool read_tool_choice(reading *r, const cJSON *v) {
  const char *choice = cJSON_GetStringValue(v);
  return (choice && (!strcmp(choice, "none") || !strcmp(choice, "auto"))) || unsupported(r);
}

/* ---- the table ---------------------------------------------------------------------------------------------------- */

typedef enum { REAL, WHOLE, FLAG, READ, IGNORED, UNSUPPORTED } field_kind;
enum { TEXT = 1, CHAT = 2, BOTH = 3 };

typedef struct {
  const char *name;
  int where;
  field_kind kind;
  size_t at; /* REAL, WHOLE, FLAG: of ask */
  double low, high;
  bool (*read)(reading *r, const cJSON *v);
} field;

#define AT(member) offsetof(ask, member)

static const field fields[] = {
    {"prompt", TEXT, READ, 0, 0, 0, read_prompt},
    {"messages", CHAT, READ, 0, 0, 0, read_messages},
    {"temperature", BOTH, REAL, AT(seq.sampling.temp), 0, 100, NULL},
    {"top_p", BOTH, REAL, AT(seq.sampling.top_p), (double)FLT_MIN, 1, NULL},
    {"min_p", BOTH, REAL, AT(seq.sampling.min_p), 0, 1, NULL},
    {"top_k", BOTH, READ, 0, 0, 0, read_top_k},
    {"seed", BOTH, READ, 0, 0, 0, read_seed},
    {"n", BOTH, WHOLE, AT(answers), 1, ASK_TEXTS, NULL},
    {"best_of", TEXT, READ, 0, 0, 0, read_best_of},
    {"stop", BOTH, READ, 0, 0, 0, read_stop},
    {"max_tokens", BOTH, READ, 0, 0, 0, read_tokens},
    {"max_completion_tokens", BOTH, READ, 0, 0, 0, read_tokens},
    {"n_predict", BOTH, READ, 0, 0, 0, read_tokens},
    {"min_tokens", BOTH, WHOLE, AT(seq.shifts.min_tokens), 0, INT_MAX, NULL},
    {"logprobs", BOTH, READ, 0, 0, 0, read_logprobs},
    {"top_logprobs", CHAT, READ, 0, 0, 0, read_top_logprobs},
    {"echo", TEXT, FLAG, AT(echo), 0, 0, NULL},
    {"logit_bias", BOTH, READ, 0, 0, 0, read_bias},
    {"presence_penalty", BOTH, REAL, AT(seq.shifts.presence), -100, 100, NULL},
    {"frequency_penalty", BOTH, REAL, AT(seq.shifts.frequency), -100, 100, NULL},
    {"repetition_penalty", BOTH, REAL, AT(seq.shifts.repeat), 0.01, 100, NULL},
    {"repeat_penalty", BOTH, REAL, AT(seq.shifts.repeat), 0.01, 100, NULL},
    {"ignore_eos", BOTH, FLAG, AT(seq.ignore_eos), 0, 0, NULL},
    {"grammar", BOTH, READ, 0, 0, 0, read_grammar},
    {"json_schema", BOTH, READ, 0, 0, 0, read_schema},
    {"response_format", BOTH, READ, 0, 0, 0, read_format},
    {"reasoning_format", CHAT, READ, 0, 0, 0, read_reasoning},
    {"cache_prompt", BOTH, FLAG, AT(cached), 0, 0, NULL},
    {"stream", BOTH, FLAG, AT(stream), 0, 0, NULL},
    {"stream_options", BOTH, READ, 0, 0, 0, read_stream_options},
    {"dtrun", BOTH, READ, 0, 0, 0, read_dtrun},
    /* They change no text here: the model is the server's, the others are notes. */
    {"model", BOTH, IGNORED, 0, 0, 0, NULL},
    {"continuous_usage_stats", BOTH, IGNORED, 0, 0, 0, NULL},
    {"user", BOTH, IGNORED, 0, 0, 0, NULL},
    {"metadata", BOTH, IGNORED, 0, 0, 0, NULL},
    {"store", BOTH, IGNORED, 0, 0, 0, NULL},
    {"service_tier", BOTH, IGNORED, 0, 0, 0, NULL},
    {"parallel_tool_calls", CHAT, IGNORED, 0, 0, 0, NULL},
    {"tools", CHAT, UNSUPPORTED, 0, 0, 0, NULL},
    {"tool_choice", CHAT, READ, 0, 0, 0, read_tool_choice},
    {"functions", CHAT, UNSUPPORTED, 0, 0, 0, NULL},
    {"audio", CHAT, UNSUPPORTED, 0, 0, 0, NULL},
    {"suffix", TEXT, UNSUPPORTED, 0, 0, 0, NULL},
};

static bool read_real(reading *r, const field *f, const cJSON *v) {
  char expected[80];
  float x = (float)cJSON_GetNumberValue(v); /* NaN: no number */
  if (x >= (float)f->low && x <= (float)f->high) {
    *(float *)((char *)r->a + f->at) = x;
    return true;
  }
  if (f->low == (double)FLT_MIN)
    snprintf(expected, sizeof expected, "a number above 0, at most %g", f->high);
  else
    snprintf(expected, sizeof expected, "a number from %g to %g", f->low, f->high);
  return wrong(r, expected);
}

/* Whether a field that is not supported asks for nothing: an empty list of tools, an empty text. */
static bool asks_nothing(const cJSON *v) {
  const char *text = cJSON_GetStringValue(v);
  return cJSON_IsArray(v) ? cJSON_GetArraySize(v) == 0 : text && !*text;
}

static bool read_field(reading *r, const field *f, const cJSON *v) {
  void *at = (char *)r->a + f->at;
  r->name = f->name;
  switch (f->kind) {
  case REAL: return read_real(r, f, v);
  case WHOLE: return whole(r, v, f->low, f->high, at);
  case FLAG:
    if (!cJSON_IsBool(v)) return wrong(r, "true or false");
    *(bool *)at = cJSON_IsTrue(v);
    return true;
  case READ: return f->read(r, v);
  case UNSUPPORTED: return asks_nothing(v) || unsupported(r);
  case IGNORED: break;
  }
  return true;
}

static const field *find(const char *name, bool is_chat) {
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (strcmp(fields[i].name, name) == 0 && (fields[i].where & (is_chat ? CHAT : TEXT))) return &fields[i];
  return NULL;
}

static bool read_fields(reading *r, const cJSON *root) {
  bool seen[sizeof fields / sizeof *fields] = {false};
  const cJSON *v;
  cJSON_ArrayForEach(v, root) {
    const field *f = find(v->string, r->a->is_chat);
    if (f && seen[f - fields]) return twice(r, v->string);
    if (f) seen[f - fields] = true;
    if (cJSON_IsNull(v)) continue;
    if (!f) {
      *r->why = refusal_say(400, INVALID, "%.100s: no such field here", v->string);
      return false;
    }
    if (!read_field(r, f, v)) return false;
  }
  return true;
}

/* What concerns several fields. */
static bool check_all(reading *r) {
  ask *a = r->a;
  r->name = a->is_chat ? "messages" : "prompt";
  if (!a->n_prompts) return wrong(r, "one: it is missing");
  if (a->n_prompts * a->answers > ASK_TEXTS) return wrong(r, "at most 128 answers to all prompts");
  for (int i = 0; i < a->n_prompts; i++) {
    if (a->prompts[i].n == 0) return wrong(r, "at least one token");
    if (a->prompts[i].n < r->server->context) continue;
    *r->why = refusal_say(400, "exceed_context_size_error",
                          "the prompt has %d tokens and the context %d: at most %d leave room for one more",
                          a->prompts[i].n, r->server->context, r->server->context - 1);
    return false;
  }
  r->name = "max_tokens";
  if (a->no_tokens && !a->echo) return wrong(r, "at least 1 (or 0 with echo, or -1: until the context ends)");
  if (a->no_tokens) a->seq.max_tokens = 1;
  r->name = "echo";
  if (a->echo && a->stream) return wrong(r, "no stream with it");
  if (a->echo && a->logprobs && a->answers > 1) return wrong(r, "n = 1 with logprobs");
  a->seq.logprobs = (dt_logprobs){a->logprobs > 0, a->logprobs > 0 ? a->logprobs - 1 : 0, a->echo && a->logprobs};
  if (a->is_chat) a->seq.end = dt_chat_end(r->server->chat);
  return true;
}

bool ask_read(const ask_server *server, bool is_chat, const char *body, size_t len, ask *a, refusal *why) {
  *a = (ask){.is_chat = is_chat, .answers = 1, .cached = true, .seq = server->defaults.seq};
  reading r = {.server = server, .a = a, .why = why, .body = {body, len}};
  cJSON *root = cJSON_ParseWithLength(body, len);
  if (!cJSON_IsObject(root)) {
    *why = refusal_say(400, INVALID, "the body is not a JSON object");
    cJSON_Delete(root);
    return false;
  }
  bool fine = read_fields(&r, root) && check_all(&r);
  cJSON_Delete(root);
  return fine;
}

void ask_free(ask *a) {
  for (int i = 0; i < a->n_prompts; i++) free(a->prompts[i].ids);
  for (int i = 0; a->stop && i < a->seq.n_stop; i++) free(a->stop[i]);
  free(a->prompts), free(a->stop), free(a->bias), free(a->grammar);
  dtl_policy_close(a->own);
}
