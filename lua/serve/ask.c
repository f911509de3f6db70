/* Reads requests: see ask.h. One table has the fields. */
#include "serve/ask.h"
#include "serve/body.h"
#include "serve/messages.h"
#include "serve/others.h"
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

/* What a field's reader works on. */
typedef struct {
  const ask_server *server;
  ask *a;
  refusal *why;
  const char *name; /* the field's, or: */
  char place[64];   /* that of a part of it, such as prompt[1] */
  raw_json body;
  bool greedy;           /* top_p is 0: only the likeliest token is left */
  const cJSON *logprobs; /* of a chat: true or false; NULL: not given */
} reading;

static bool wrong(reading *r, const char *expected) {
  *r->why = refusal_say(400, INVALID, "%s: expected %s", r->name, expected);
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

/* Names an element of the field in messages. */
static void at_element(reading *r, const char *name, int i) {
  char place[sizeof r->place];
  snprintf(place, sizeof place, "%s[%d]", name, i);
  memcpy(r->place, place, sizeof place);
  r->name = r->place;
}

/* ---- prompts ----------------------------------------------------------------------------------------------------- */

static bool add_prompt(reading *r, int32_t *ids, int n) {
  ask *a = r->a;
  const int context = r->server->context;
  struct ask_prompt *grown = realloc(a->prompts, sizeof *grown * (size_t)(a->n_prompts + 1));
  if (!grown || n == 0 || n >= context) free(ids);
  if (!grown) return starved(r);
  a->prompts = grown;
  if (n == 0) return wrong(r, "at least one token");
  if (n >= context) {
    *r->why = refusal_say(400, "exceed_context_size_error",
                          "%s: it has %d tokens and the context %d: at most %d leave room for one more", r->name, n,
                          context, context - 1);
    r->why->prompt_tokens = n, r->why->context = context;
    return false;
  }
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

static bool add_ids(reading *r, const char *name, const cJSON *list) {
  int n = 0;
  const cJSON *v;
  int32_t *ids = malloc(sizeof *ids * ((size_t)cJSON_GetArraySize(list) + 1));
  if (!ids) return starved(r);
  cJSON_ArrayForEach(v, list) {
    at_element(r, name, n);
    if (!whole(r, v, 0, r->server->vocab - 1, &ids[n++])) {
      free(ids);
      return false;
    }
  }
  r->name = name;
  return add_prompt(r, ids, n);
}

static bool read_prompt(reading *r, const cJSON *v) {
  static const char name[] = "prompt";
  const cJSON *first = cJSON_GetArrayItem(v, 0), *one;
  char place[32];
  int i = 0;
  if (cJSON_IsString(v)) return add_text(r, v->valuestring, strlen(v->valuestring), false);
  if (!cJSON_IsArray(v) || !first) return wrong(r, "a text, a list of ids, or a list of either that is not empty");
  if (cJSON_IsNumber(first)) return add_ids(r, name, v);
  if (cJSON_GetArraySize(v) > ASK_TEXTS) return wrong(r, "at most 128 prompts");
  cJSON_ArrayForEach(one, v) {
    snprintf(place, sizeof place, "%s[%d]", name, i++);
    r->name = place;
    if (cJSON_IsString(one)  ? !add_text(r, one->valuestring, strlen(one->valuestring), false)
        : cJSON_IsArray(one) ? !add_ids(r, place, one)
                             : !wrong(r, "a text, or a list of ids"))
      return false;
  }
  r->name = name;
  return true;
}

bool ask_conversation(const ask_server *server, const cJSON *messages, char **text, size_t *len, refusal *why) {
  if (server->chat) return messages_text(server->chat, messages, text, len, why);
  *why = refusal_say(400, INVALID, "%s", server->no_chat);
  return false;
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
  if (!*text) return wrong(r, "a text that is not empty");
  char **grown = realloc(r->a->stop, sizeof *grown * (size_t)(seq->n_stop + 1));
  if (grown) r->a->stop = grown, seq->stop = (const char *const *)grown;
  if (!grown || !(grown[seq->n_stop] = strdup(text))) return starved(r);
  seq->n_stop++;
  return true;
}

static bool read_stop(reading *r, const cJSON *v) {
  const cJSON *one;
  int i = 0;
  if (cJSON_IsString(v)) return add_stop(r, v->valuestring);
  if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) > 64) return wrong(r, "a text, or a list of at most 64");
  cJSON_ArrayForEach(one, v) {
    at_element(r, "stop", i++);
    if (!cJSON_IsString(one) ? !wrong(r, "a text") : !add_stop(r, one->valuestring)) return false;
  }
  return true;
}

/* 0: as llama.cpp's and vLLM's servers take it, the likeliest token. */
static bool read_top_p(reading *r, const cJSON *v) {
  double p = cJSON_GetNumberValue(v);
  r->a->seq.sampling.top_p = (float)p;
  r->greedy = r->a->seq.sampling.top_p <= 0;
  return (p >= 0 && p <= 1) || wrong(r, "a number from 0 to 1");
}

/* Any 64-bit number; null, or -1 as in llama.cpp: any seed. A double would lose digits. */
static bool read_seed(reading *r, const cJSON *v) {
  char digits[24];
  raw_json raw = raw_member(r->body, r->name);
  const bool negative = raw.len && *raw.at == '-';
  size_t n = strspn(raw.at + negative, "0123456789") + negative;
  errno = 0;
  if (!cJSON_IsNumber(v) || n != raw.len || n >= sizeof digits) return wrong(r, "a whole number of 64 bits");
  memcpy(digits, raw.at, n);
  digits[n] = 0;
  r->a->seq.sampling.seed = negative ? (uint64_t)strtoll(digits, NULL, 10) : strtoull(digits, NULL, 10);
  r->a->seeded = strcmp(digits, "-1") != 0;
  return errno == 0 || wrong(r, "a whole number of 64 bits");
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
    r->logprobs = v;
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

/* A bias of a token that is given by its id, or else by its text. */
static bool add_bias(reading *r, const cJSON *id, const char *token, const cJSON *bias) {
  dt_shifts *s = &r->a->seq.shifts;
  dt_error err;
  int32_t number = 0;
  double b = cJSON_IsFalse(bias) ? 0 : cJSON_GetNumberValue(bias);
  if (!(b >= -1000 && b <= 1000)) return wrong(r, "biases from -1000 to 1000, or false, which bans a token");
  if (id && !whole(r, id, 0, r->server->vocab - 1, &number)) return false;
  if (!id && dtl_token(r->server->pair, token, strlen(token), &number, &err)) return failed(r, &err);
  dt_bias *grown = realloc(r->a->bias, sizeof *grown * (size_t)(s->n_bias + 1));
  if (!grown) return starved(r);
  r->a->bias = grown;
  grown[s->n_bias++] = (dt_bias){.id = number, .bias = cJSON_IsFalse(bias) ? -INFINITY : (float)b};
  s->bias = grown;
  return true;
}

/* {id: bias}, where a name that is no number is a token's text. */
static bool read_bias_object(reading *r, const cJSON *v) {
  const cJSON *one;
  cJSON_ArrayForEach(one, v) {
    const char *name = one->string;
    const bool is_id = *name && name[strspn(name, "0123456789")] == 0;
    cJSON id = {.type = cJSON_Number, .valuedouble = is_id ? strtod(name, NULL) : 0};
    if (!add_bias(r, is_id ? &id : NULL, name, one)) return false;
  }
  return true;
}

static bool read_bias(reading *r, const cJSON *v) {
  const cJSON *one;
  int i = 0;
  if (cJSON_IsObject(v)) return read_bias_object(r, v);
  if (!cJSON_IsArray(v)) return wrong(r, "an object {id: bias} or a list of [id or text, bias]");
  cJSON_ArrayForEach(one, v) {
    const cJSON *token = cJSON_GetArrayItem(one, 0);
    const char *text = cJSON_GetStringValue(token);
    at_element(r, "logit_bias", i++);
    if (!cJSON_IsArray(one) || cJSON_GetArraySize(one) != 2 || !(text || cJSON_IsNumber(token)))
      return wrong(r, "[id or text, bias]");
    if (!add_bias(r, text ? NULL : token, text, token->next)) return false;
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
  static const char *const taken[] = {"include_usage", NULL};
  const cJSON *usage = cJSON_GetObjectItemCaseSensitive(v, "include_usage");
  if (usage && !cJSON_IsNull(usage) && !cJSON_IsBool(usage)) return wrong(r, "include_usage, true or false");
  r->a->usage = cJSON_IsTrue(usage);
  return others_pass_all(v, taken, "stream_options.", IN_STREAM, r->why);
}

/* Only the layout of gpt-oss says how long to reason, and says "medium": elsewhere it changes nothing. */
static bool read_effort(reading *r, const cJSON *v) {
  const char *effort = cJSON_GetStringValue(v);
  const char *layout = dt_chat_name(r->server->chat);
  if (!effort) return wrong(r, "a text");
  return !layout || strcmp(layout, "harmony") != 0 || strcmp(effort, "medium") == 0 ||
         wrong(r, "medium: its template has no other effort here");
}

const char *ask_model(const ask_server *server, const char *name) {
  for (int i = 0; i < server->n_models; i++)
    if (strcmp(server->models[i], name) == 0) return server->models[i];
  return server->models[0];
}

/* Any name is taken. */
static bool read_model(reading *r, const cJSON *v) {
  if (!cJSON_IsString(v)) return wrong(r, "a text");
  r->a->model = ask_model(r->server, v->valuestring);
  return true;
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

/* ---- the table ---------------------------------------------------------------------------------------------------- */

typedef enum { REAL, WHOLE, FLAG, READ } field_kind;
enum { ONE, TOKENS, REPEAT }; /* fields that are several names of one */

typedef struct {
  const char *name;
  int where;
  field_kind kind;
  size_t at; /* REAL, WHOLE, FLAG: of ask */
  double low, high;
  bool (*read)(reading *r, const cJSON *v);
  int alias;
} field;

#define AT(member) offsetof(ask, member)

static const field fields[] = {
    {"prompt", IN_TEXT, READ, 0, 0, 0, read_prompt, ONE},
    {"model", IN_BOTH, READ, 0, 0, 0, read_model, ONE},
    {"messages", IN_CHAT, READ, 0, 0, 0, read_messages, ONE},
    {"temperature", IN_BOTH, REAL, AT(seq.sampling.temp), 0, 100, NULL, ONE},
    {"top_p", IN_BOTH, READ, 0, 0, 0, read_top_p, ONE},
    {"min_p", IN_BOTH, REAL, AT(seq.sampling.min_p), 0, 1, NULL, ONE},
    {"top_k", IN_BOTH, READ, 0, 0, 0, read_top_k, ONE},
    {"seed", IN_BOTH, READ, 0, 0, 0, read_seed, ONE},
    {"n", IN_BOTH, WHOLE, AT(answers), 1, ASK_TEXTS, NULL, ONE},
    {"stop", IN_BOTH, READ, 0, 0, 0, read_stop, ONE},
    {"max_tokens", IN_BOTH, READ, 0, 0, 0, read_tokens, TOKENS},
    {"max_completion_tokens", IN_BOTH, READ, 0, 0, 0, read_tokens, TOKENS},
    {"n_predict", IN_BOTH, READ, 0, 0, 0, read_tokens, TOKENS},
    {"min_tokens", IN_BOTH, WHOLE, AT(seq.shifts.min_tokens), 0, INT_MAX, NULL, ONE},
    {"logprobs", IN_BOTH, READ, 0, 0, 0, read_logprobs, ONE},
    {"top_logprobs", IN_CHAT, READ, 0, 0, 0, read_top_logprobs, ONE},
    {"echo", IN_TEXT, FLAG, AT(echo), 0, 0, NULL, ONE},
    {"logit_bias", IN_BOTH, READ, 0, 0, 0, read_bias, ONE},
    {"presence_penalty", IN_BOTH, REAL, AT(seq.shifts.presence), -100, 100, NULL, ONE},
    {"frequency_penalty", IN_BOTH, REAL, AT(seq.shifts.frequency), -100, 100, NULL, ONE},
    {"repetition_penalty", IN_BOTH, REAL, AT(seq.shifts.repeat), 0.01, 100, NULL, REPEAT},
    {"repeat_penalty", IN_BOTH, REAL, AT(seq.shifts.repeat), 0.01, 100, NULL, REPEAT},
    {"ignore_eos", IN_BOTH, FLAG, AT(seq.ignore_eos), 0, 0, NULL, ONE},
    {"grammar", IN_BOTH, READ, 0, 0, 0, read_grammar, ONE},
    {"json_schema", IN_BOTH, READ, 0, 0, 0, read_schema, ONE},
    {"response_format", IN_BOTH, READ, 0, 0, 0, read_format, ONE},
    {"reasoning_format", IN_CHAT, READ, 0, 0, 0, read_reasoning, ONE},
    {"reasoning_effort", IN_CHAT, READ, 0, 0, 0, read_effort, ONE},
    {"cache_prompt", IN_BOTH, FLAG, AT(cached), 0, 0, NULL, ONE},
    {"stream", IN_BOTH, FLAG, AT(stream), 0, 0, NULL, ONE},
    {"stream_options", IN_BOTH, READ, 0, 0, 0, read_stream_options, ONE},
    {"dtrun", IN_BOTH, READ, 0, 0, 0, read_dtrun, ONE},
};

static bool read_real(reading *r, const field *f, const cJSON *v) {
  char expected[80];
  double x = cJSON_GetNumberValue(v); /* NaN: no number */
  snprintf(expected, sizeof expected, "a number from %g to %g", f->low, f->high);
  if (!(x >= f->low && x <= f->high)) return wrong(r, expected);
  *(float *)((char *)r->a + f->at) = (float)x;
  return true;
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
  case READ: break;
  }
  return f->read(r, v);
}

static const field *find(const char *name, int where) {
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (strcmp(fields[i].name, name) == 0 && (fields[i].where & where)) return &fields[i];
  return NULL;
}

/* Whether no field before `end` is another name of this one with another value. */
static bool names_agree(reading *r, const field *f, const cJSON *root, const cJSON *end) {
  const int where = r->a->is_chat ? IN_CHAT : IN_TEXT;
  for (const cJSON *v = root->child; v != end && f->alias != ONE; v = v->next) {
    const field *other = cJSON_IsNull(v) ? NULL : find(v->string, where);
    if (!other || other->alias != f->alias || cJSON_Compare(v, end, 1)) continue;
    *r->why =
        refusal_say(400, INVALID, "%s and %s: two names of one field, with different values", v->string, end->string);
    return false;
  }
  return true;
}

static bool read_fields(reading *r, const cJSON *root) {
  const int where = r->a->is_chat ? IN_CHAT : IN_TEXT;
  const cJSON *v;
  cJSON_ArrayForEach(v, root) {
    const field *f = find(v->string, where);
    if (cJSON_IsNull(v)) continue;
    if (!f && !others_pass(v, "", where, r->why)) return false;
    if (f && (!names_agree(r, f, root, v) || !read_field(r, f, v))) return false;
  }
  return true;
}

#define LEAST_TEMP 0.001f /* below it there is no other token to choose */

/* What concerns several fields. */
static bool check_all(reading *r) {
  ask *a = r->a;
  r->name = a->is_chat ? "messages" : "prompt";
  if (!a->n_prompts) return wrong(r, "one: it is missing");
  if (a->n_prompts * a->answers > ASK_TEXTS) return wrong(r, "at most 128 answers to all prompts");
  if (r->greedy || a->seq.sampling.temp < LEAST_TEMP) a->seq.sampling.temp = 0;
  r->name = "max_tokens";
  if (a->no_tokens && !a->echo) return wrong(r, "at least 1 (or 0 with echo, or -1: until the context ends)");
  if (a->no_tokens) a->seq.max_tokens = 1;
  if (r->logprobs && cJSON_IsFalse(r->logprobs)) a->logprobs = 0;
  if (r->logprobs && cJSON_IsTrue(r->logprobs) && !a->logprobs) a->logprobs = 1;
  r->name = "echo";
  if (a->echo && a->stream) return wrong(r, "no stream with it");
  if (a->echo && a->logprobs && a->answers > 1) return wrong(r, "n = 1 with logprobs");
  a->seq.logprobs = (dt_logprobs){a->logprobs > 0, a->logprobs > 0 ? a->logprobs - 1 : 0, a->echo && a->logprobs};
  if (a->is_chat) a->seq.end = dt_chat_end(r->server->chat);
  return true;
}

bool ask_read(const ask_server *server, bool is_chat, const char *body, size_t len, ask *a, refusal *why) {
  *a = (ask){.is_chat = is_chat, .answers = 1, .cached = true, .model = server->models[0], .seq = server->defaults.seq};
  reading r = {.server = server, .a = a, .why = why, .body = {body, len}};
  cJSON *root;
  bool fine = body_read(&r.body, &root, why) && read_fields(&r, root) && check_all(&r);
  cJSON_Delete(root);
  return fine;
}

void ask_free(ask *a) {
  for (int i = 0; i < a->n_prompts; i++) free(a->prompts[i].ids);
  for (int i = 0; a->stop && i < a->seq.n_stop; i++) free(a->stop[i]);
  free(a->prompts), free(a->stop), free(a->bias), free(a->grammar);
  dtl_policy_close(a->own);
}
