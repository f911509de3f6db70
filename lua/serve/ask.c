/* Reads requests: see ask.h. The fields are in one table. */
#include "serve/ask.h"
#include "serve/api.h"
#include "serve/ask_reading.h"
#include "serve/body.h"
#include "serve/conversation.h"
#include "serve/infill_prompt.h"
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

/* Reads a whole number from low to high. */
static bool whole(reading *r, const cJSON *v, double low, double high, int *out) {
  char expected[80];
  bool fits =
      cJSON_IsNumber(v) && v->valuedouble == floor(v->valuedouble) && v->valuedouble >= low && v->valuedouble <= high;
  if (fits) *out = (int)v->valuedouble;
  snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f", low, high);
  return fits || ask_wrong(r, expected);
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
  if (!grown) return ask_starved(r);
  a->prompts = grown;
  if (n == 0) return ask_wrong(r, "at least one token");
  if (n >= context) {
    *r->why = refusal_say(400, "exceed_context_size_error",
                          "%s: it has %d tokens and the context %d: at most %d leave room for a new token", r->name, n,
                          context, context - 1);
    r->why->prompt_tokens = n, r->why->context = context;
    return false;
  }
  a->prompts[a->n_prompts++] = (struct ask_prompt){ids, n};
  return true;
}

/* The text after the one that a completion writes; NULL: none is given. */
static const char *suffix_of(const reading *r) {
  const char *suffix = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r->a->body, "suffix"));
  return suffix && *suffix ? suffix : NULL;
}

static bool add_text(reading *r, const char *text) {
  const infill_texts gap = {.prefix = text, .suffix = suffix_of(r)};
  int32_t *ids;
  int n;
  dt_error err;
  if (gap.suffix) return infill_encode(r->server, &gap, "suffix", &ids, &n, r->why) && add_prompt(r, ids, n);
  if (dt_encode(r->server->pair, text, strlen(text), &ids, &n, &err)) return ask_failed(r, &err);
  return add_prompt(r, ids, n);
}

static bool add_ids(reading *r, const char *name, const cJSON *list) {
  int n = 0;
  const cJSON *v;
  int32_t *ids = malloc(sizeof *ids * ((size_t)cJSON_GetArraySize(list) + 1));
  if (!ids) return ask_starved(r);
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
  if (cJSON_IsString(v)) return add_text(r, v->valuestring);
  if (!cJSON_IsArray(v) || !first) return ask_wrong(r, "a text, a list of ids, or a list of either that is not empty");
  if (cJSON_IsNumber(first)) return add_ids(r, name, v);
  if (cJSON_GetArraySize(v) > ASK_TEXTS) return ask_wrong(r, "at most 128 prompts");
  cJSON_ArrayForEach(one, v) {
    snprintf(place, sizeof place, "%s[%d]", name, i++);
    r->name = place;
    if (cJSON_IsString(one)  ? !add_text(r, one->valuestring)
        : cJSON_IsArray(one) ? !add_ids(r, place, one)
                             : !ask_wrong(r, "a text, or a list of ids"))
      return false;
  }
  r->name = name;
  return true;
}

/* read_prompt uses it. */
static bool read_suffix(reading *r, const cJSON *v) {
  const cJSON *prompt = cJSON_GetObjectItemCaseSensitive(r->a->body, "prompt"), *one;
  if (!cJSON_IsString(v)) return ask_wrong(r, "a text");
  if (!suffix_of(r)) return true;
  cJSON_ArrayForEach(one, prompt) if (!cJSON_IsString(one)) return ask_wrong(
      r, "a prompt that is a text, not a list of ids");
  return !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(r->a->body, "echo")) || ask_wrong(r, "echo to be false");
}

/* Reads all members that describe the conversation, of which one is `messages`. */
static bool read_messages(reading *r, const cJSON *v) {
  dt_chat_prompt prompt = {0};
  int32_t *ids;
  int n;
  dt_error err;
  (void)v;
  if (!tools_read(r->a->body, r->body, &r->a->tools, r->why)) return false;
  if (!conversation_write(r->server, r->a->body, r->body, &r->a->tools, &prompt, r->why)) return false;
  bool fine = ask_done(r, dt_encode_chat(r->server->pair, &prompt, &ids, &n, &err), &err) && add_prompt(r, ids, n);
  r->a->reasoning = prompt.reasoning;
  dt_chat_prompt_free(&prompt);
  return fine;
}

/* What tools were called before. */
static bool read_functions(reading *r, const cJSON *v) {
  return (cJSON_IsArray(v) && !cJSON_GetArraySize(v)) ||
         ask_wrong(r, "the newer field tools: [{type: function, function: {name, parameters}}]");
}

/* tools_read and conversation_write read it. */
static bool read_with_messages(reading *r, const cJSON *v) {
  (void)r, (void)v;
  return true;
}

/* ---- other fields ------------------------------------------------------------------------------------------------ */

static dt_seq_options *seq_of(reading *r) { return &r->a->in.request.seq; }

static bool add_text_of(reading *r, const char *text) {
  dt_error err;
  return ask_done(r, request_text(&r->a->in, r->field, r->name, text, &err), &err);
}

static bool read_stop(reading *r, const cJSON *v) {
  const cJSON *one;
  int i = 0;
  if (cJSON_IsString(v)) return add_text_of(r, v->valuestring);
  if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) > 64) return ask_wrong(r, "a text, or a list of at most 64");
  cJSON_ArrayForEach(one, v) {
    at_element(r, "stop", i++);
    if (!cJSON_IsString(one) ? !ask_wrong(r, "a text") : !add_text_of(r, one->valuestring)) return false;
  }
  return true;
}

static bool read_number(reading *r, const cJSON *v) {
  dt_error err;
  if (!cJSON_IsNumber(v)) return ask_wrong(r, r->field->kind == FIELD_REAL ? "a number" : "a whole number");
  const double x = v->valuedouble, value = x > 0 && x < FLT_MIN ? 0 : x; /* it would become 0 as a float */
  return ask_done(r, request_number(&r->a->in, r->field, r->name, value, &err), &err);
}

/* 0 means that the likeliest token is taken, as in the servers of llama.cpp and vLLM. */
static bool read_top_p(reading *r, const cJSON *v) {
  r->greedy = cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < FLT_MIN;
  return r->greedy || read_number(r, v);
}

/* A seed is any 64-bit number; null, or -1 as in llama.cpp, means any seed. A double would lose digits. */
static bool read_seed(reading *r, const cJSON *v) {
  char digits[24];
  raw_json raw = raw_member(r->body, r->name);
  const bool negative = raw.len && *raw.at == '-';
  size_t n = strspn(raw.at + negative, "0123456789") + negative;
  errno = 0;
  if (!cJSON_IsNumber(v) || n != raw.len || n >= sizeof digits) return ask_wrong(r, "a whole number of 64 bits");
  memcpy(digits, raw.at, n);
  digits[n] = 0;
  request_seed(&r->a->in, r->field, r->name,
               negative ? (uint64_t)strtoll(digits, NULL, 10) : strtoull(digits, NULL, 10));
  r->a->seeded = strcmp(digits, "-1") != 0;
  return errno == 0 || ask_wrong(r, "a whole number of 64 bits");
}

/* 0 with echo means that no text is generated. */
static bool read_tokens(reading *r, const cJSON *v) {
  if (!read_number(r, v)) return false;
  r->a->no_tokens = seq_of(r)->max_tokens == 0;
  if (r->a->no_tokens) seq_of(r)->max_tokens = 1;
  return true;
}

/* 0 and -1 mean all tokens, as in llama.cpp and vLLM. */
static bool read_top_k(reading *r, const cJSON *v) {
  if (!read_number(r, v)) return false;
  int *k = &seq_of(r)->sampling.top_k;
  if (*k == -1) *k = 0;
  return true;
}

/* For a completion it is the number of likeliest tokens; for a chat it is true or false, and top_logprobs is the
 * number. */
static bool read_logprobs(reading *r, const cJSON *v) {
  if (cJSON_IsBool(v)) {
    r->logprobs = v;
    return true;
  }
  if (r->a->is_chat) return ask_wrong(r, "true or false");
  return read_number(r, v);
}

/* Reads the bias of a token, which is given by its id or by its text; false bans the token. */
static bool add_bias(reading *r, const cJSON *id, const char *token, const cJSON *bias) {
  dt_error err;
  int32_t number = 0;
  if (!cJSON_IsFalse(bias) && !cJSON_IsNumber(bias)) return ask_wrong(r, "a number, or false, which bans the token");
  float b = cJSON_IsFalse(bias) ? -INFINITY : (float)bias->valuedouble;
  if (id && !whole(r, id, 0, r->server->vocab - 1, &number)) return false;
  if (!id && dtl_token(r->server->pair, token, strlen(token), &number, &err)) return ask_failed(r, &err);
  return ask_done(r, request_add_bias(&r->a->in, (dt_bias){.id = number, .bias = b}, &err), &err);
}

/* Reads {id: bias}, where a name that is not a number is a token's text. */
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
  if (!cJSON_IsArray(v)) return ask_wrong(r, "an object {id: bias} or a list of [id or text, bias]");
  cJSON_ArrayForEach(one, v) {
    const cJSON *token = cJSON_GetArrayItem(one, 0);
    const char *text = cJSON_GetStringValue(token);
    at_element(r, "logit_bias", i++);
    if (!cJSON_IsArray(one) || cJSON_GetArraySize(one) != 2 || !(text || cJSON_IsNumber(token)))
      return ask_wrong(r, "[id or text, bias]");
    if (!add_bias(r, text ? NULL : token, text, token->next)) return false;
  }
  return true;
}

/* The values are llama.cpp's. */
static bool read_reasoning(reading *r, const cJSON *v) {
  const char *form = cJSON_IsString(v) ? v->valuestring : "";
  r->a->whole = strcmp(form, "none") == 0;
  return r->a->whole || strcmp(form, "auto") == 0 || strcmp(form, "deepseek") == 0 ||
         ask_wrong(r, "auto, deepseek or none");
}

static bool read_stream_options(reading *r, const cJSON *v) {
  if (!cJSON_IsObject(v)) return ask_wrong(r, "an object");
  static const char *const taken[] = {"include_usage", NULL};
  const cJSON *usage = cJSON_GetObjectItemCaseSensitive(v, "include_usage");
  if (usage && !cJSON_IsNull(usage) && !cJSON_IsBool(usage)) return ask_wrong(r, "include_usage to be true or false");
  r->a->usage = cJSON_IsTrue(usage);
  return others_pass_all(v, taken, "stream_options.", IN_STREAM, r->why);
}

/* Clients of ollama write NAME:latest. */
static bool is_named(const char *model, const char *name) {
  const size_t n = strlen(model);
  return strncmp(model, name, n) == 0 && (!name[n] || strcmp(name + n, ":latest") == 0);
}

const char *ask_model(const ask_server *server, const char *name) {
  for (int i = 0; i < server->n_models; i++)
    if (is_named(server->models[i], name)) return server->models[i];
  return server->models[0];
}

/* Any name is accepted. */
static bool read_model(reading *r, const cJSON *v) {
  if (!cJSON_IsString(v)) return ask_wrong(r, "a text");
  r->a->model = ask_model(r->server, v->valuestring);
  return true;
}

/* ---- the policy -------------------------------------------------------------------------------------------------- */

#define MOST_PARAMS 64

/* Returns a parameter's value as text; text[size] has room for a number. NULL: it is not a number, a boolean or a
 * text. */
static const char *param_text(const cJSON *v, char *text, size_t size) {
  if (cJSON_IsString(v)) return v->valuestring;
  if (cJSON_IsBool(v)) return cJSON_IsTrue(v) ? "true" : "false";
  if (!cJSON_IsNumber(v)) return NULL;
  snprintf(text, size, "%.17g", v->valuedouble);
  return text;
}

/* An installed policy must be given by its name: a path could reach any file of this machine. */
static bool is_name(const char *text) { return *text && !strchr(text, '/') && !strchr(text, '.'); }

static bool read_dtrun(reading *r, const cJSON *v) {
  dtl_setting settings[MOST_PARAMS];
  char numbers[MOST_PARAMS][32];
  const char *name = NULL, *source = NULL;
  dtl_policy_options how = {.settings = settings, .quiet = true};
  const cJSON *one, *param;
  dt_error err;
  if (!cJSON_IsObject(v)) return ask_wrong(r, "an object");
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
        if (!text) return ask_wrong(r, "params to be numbers, texts, true or false");
        settings[how.n_settings++] = (dtl_setting){param->string, text};
      }
    } else {
      *r->why = refusal_say(
          400, INVALID,
          "dtrun.%.100s: expected policy, source or preset (a text), params (an object of at most %d members) "
          "or trace (true or false)",
          one->string, MOST_PARAMS);
      return false;
    }
  }
  if (!name && !source) {
    if (how.preset || how.n_settings) return ask_wrong(r, "a policy together with preset and params");
    return true;
  }
  if (name && !is_name(name) && !source) return ask_wrong(r, "the name of an installed policy");
  how.policy = source ? SOURCE_NAME : name;
  how.source = source, how.source_len = source ? strlen(source) : 0;
  how.call_seconds =
      source ? SOURCE_SECONDS : 0; /* an installed policy has its usual time limit, since the machine may be busy */
  r->a->has_source = source != NULL;
  return !dtl_policy_open(&how, &r->a->own, &err) || ask_failed(r, &err);
}

static bool read_lines(reading *r, const cJSON *v) { return lines_read(&r->a->lines, v, r->why); }

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef bool reader(reading *r, const cJSON *v);

/* Members that are not fields of the table in request/fields.h, and fields whose values in bodies need a reader of
 * their own. */
static const struct {
  const char *name;
  int where;
  size_t at; /* without a reader: offset of a bool in ask */
  reader *read;
} members[] = {
    {"prompt", IN_TEXT, 0, read_prompt},
    {"suffix", IN_TEXT, 0, read_suffix},
    {"model", IN_BODY, 0, read_model},
    {"messages", IN_CHAT, 0, read_messages},
    {"top_p", IN_BODY, 0, read_top_p},
    {"top_k", IN_BODY, 0, read_top_k},
    {"seed", IN_BODY, 0, read_seed},
    {"stop", IN_BODY, 0, read_stop},
    {"max_tokens", IN_BODY, 0, read_tokens},
    {"max_completion_tokens", IN_BODY, 0, read_tokens},
    {"n_predict", IN_BODY, 0, read_tokens},
    {"logprobs", IN_BODY, 0, read_logprobs},
    {"top_logprobs", IN_CHAT, 0, read_number},
    {"echo", IN_TEXT, offsetof(ask, echo), NULL},
    {"logit_bias", IN_BODY, 0, read_bias},
    {"n_indent", IN_TEXT, 0, read_lines},
    {"t_max_predict_ms", IN_TEXT, 0, read_lines},
    {"grammar", IN_BODY, 0, ask_read_grammar},
    {"json_schema", IN_BODY, 0, ask_read_schema},
    {"response_format", IN_BODY, 0, ask_read_format},
    {"structured_outputs", IN_BODY, 0, ask_read_structured},
    {"guided_json", IN_BODY, 0, ask_read_json},
    {"guided_regex", IN_BODY, 0, ask_read_regex},
    {"guided_choice", IN_BODY, 0, ask_read_choice},
    {"guided_grammar", IN_BODY, 0, ask_read_grammar},
    {"regex", IN_BODY, 0, ask_read_regex},
    {"reasoning_format", IN_CHAT, 0, read_reasoning},
    {"tools", IN_CHAT, 0, read_with_messages},
    {"tool_choice", IN_CHAT, 0, read_with_messages},
    {"parallel_tool_calls", IN_CHAT, 0, read_with_messages},
    {"functions", IN_CHAT, 0, read_functions},
    {"documents", IN_CHAT, 0, read_with_messages},
    {"chat_template_kwargs", IN_CHAT, 0, read_with_messages},
    {"reasoning_effort", IN_CHAT, 0, read_with_messages},
    {"continue_final_message", IN_CHAT, 0, read_with_messages},
    {"add_generation_prompt", IN_CHAT, 0, read_with_messages},
    {"cache_prompt", IN_BODY, offsetof(ask, cached), NULL},
    {"stream", IN_BODY, offsetof(ask, stream), NULL},
    {"stream_options", IN_BODY, 0, read_stream_options},
    {"dtrun", IN_BODY, 0, read_dtrun},
};

/* Returns the index of a member in this table; -1: it is not there. */
static int member_of(const char *name, int where) {
  for (int i = 0; i < (int)(sizeof members / sizeof *members); i++)
    if ((members[i].where & where) && strcmp(members[i].name, name) == 0) return i;
  return -1;
}

static bool read_field(reading *r, const cJSON *v) {
  dt_error err;
  switch (r->field->kind) {
  case FIELD_FLAG:
    return cJSON_IsBool(v) ? ask_done(r, request_flag(&r->a->in, r->field, r->name, cJSON_IsTrue(v), &err), &err)
                           : ask_wrong(r, "true or false");
  case FIELD_TEXT: return cJSON_IsString(v) ? add_text_of(r, v->valuestring) : ask_wrong(r, "a text");
  default: return read_number(r, v);
  }
}

/* Returns false if a member before `end` is another name of the same field with another value. */
static bool names_agree(reading *r, const cJSON *root, const cJSON *end, int where) {
  for (const cJSON *v = root->child; v != end && r->field; v = v->next) {
    if (cJSON_IsNull(v) || request_field_in_body(v->string, (unsigned)where) != r->field || cJSON_Compare(v, end, 1))
      continue;
    if (r->field->kind == FIELD_LOGPROBS) continue; /* this field has two members: whether, and how many */
    *r->why =
        refusal_say(400, INVALID, "%s and %s: two names of one field, with different values", v->string, end->string);
    return false;
  }
  return true;
}

static bool read_member(reading *r, const cJSON *root, const cJSON *v, int where) {
  const int i = member_of(v->string, where);
  r->name = v->string;
  r->field = request_field_in_body(v->string, (unsigned)where);
  if (i < 0 && !r->field) return others_pass(v, "", where, r->why);
  if (!names_agree(r, root, v, where)) return false;
  if (i < 0) return read_field(r, v);
  if (members[i].read) return members[i].read(r, v);
  if (!cJSON_IsBool(v)) return ask_wrong(r, "true or false");
  *(bool *)((char *)r->a + members[i].at) = cJSON_IsTrue(v);
  return true;
}

static bool read_members(reading *r, const cJSON *root) {
  const int where = r->a->is_chat ? IN_CHAT : IN_TEXT;
  const cJSON *v;
  cJSON_ArrayForEach(v, root) if (!cJSON_IsNull(v) && !read_member(r, root, v, where)) return false;
  return true;
}

/* A grammar makes sure that calls are those of tools. With another grammar, answers are no calls; but response_format
 * is for texts, and a call that is required has none. */
static bool hold_to_tools(reading *r) {
  request_tools *tools = &r->a->tools;
  const ask_server *server = r->server;
  char *grammar;
  dt_error err;
  r->name = "tool_choice";
  if (tools->list && r->a->in.grammar && !(tools->required && r->formatted)) {
    if (tools->required) return ask_wrong(r, "none or auto together with a grammar or a schema");
    tools_free(tools);
    tools->list = NULL;
  }
  if (!tools->list) return true;
  dt_calls *unused; /* opening it checks the tools */
  if (dt_calls_open(server->calls, tools->list, &unused, &err)) return ask_failed(r, &err);
  dt_calls_close(unused);
  if (dtl_call_grammar(server->pair, server->chat, server->calls, tools->list, tools->required, tools->several,
                       r->a->reasoning, &grammar, &err))
    return ask_failed(r, &err);
  bool fine = !grammar || ask_done(r, request_grammar(&r->a->in, "grammar", grammar, &err), &err);
  free(grammar);
  return fine;
}

#define LEAST_TEMP 0.001f /* below it the likeliest token is always chosen */

/* Checks that involve several fields. */
static bool check_all(reading *r) {
  ask *a = r->a;
  dtl_request *q = &a->in.request;
  dt_logprobs *logprobs = &q->seq.logprobs;
  dt_error err;
  r->name = a->is_chat ? "messages" : "prompt";
  if (!a->n_prompts) return ask_wrong(r, "a value, but it is missing");
  if (r->greedy || (q->seq.sampling.temp > 0 && q->seq.sampling.temp < LEAST_TEMP)) q->seq.sampling.temp = 0;
  r->name = "max_tokens";
  if (a->no_tokens && !a->echo && !a->api->primes)
    return ask_wrong(r, "at least 1 (or 0 with echo, or -1: until the context ends)");
  if (r->logprobs) logprobs->wanted = cJSON_IsTrue(r->logprobs);
  if (!logprobs->wanted) logprobs->top = 0;
  r->name = "logprobs"; /* they are those of tokens, and a line may end within one */
  if (logprobs->wanted && a->lines.indent) return ask_wrong(r, "0 together with n_indent");
  r->name = "echo";
  if (a->echo && a->stream) return ask_wrong(r, "stream to be false");
  if (a->echo && logprobs->wanted && q->answers > 1) return ask_wrong(r, "n = 1 together with logprobs");
  logprobs->prompt = a->echo && logprobs->wanted;
  if (!hold_to_tools(r)) return false;
  /* A grammar of the client's begins with the answer's first token, so there is no reasoning. */
  const bool limited = q->seq.adjustments.reasoning.tokens >= 0 && (a->tools.list || !a->in.grammar);
  if (a->is_chat) dtl_chat_options(r->server->chat, a->reasoning, limited, q);
  if (q->answers > ASK_TEXTS || a->n_prompts * q->answers > ASK_TEXTS) {
    r->name = "n";
    return ask_wrong(r, "at most 128 answers to all prompts");
  }
  return ask_done(r, request_check(&a->in, &err), &err);
}

/* Clients know fields by other names than OpenAI's. */
static void rename_field(const api_form *api, refusal *why) {
  for (int i = 0; i < api->n_names; i++) {
    char rest[sizeof why->message];
    const size_t n = strlen(api->names[i][0]);
    if (strncmp(why->message, api->names[i][0], n) != 0 || !strchr(":.[", why->message[n])) continue;
    snprintf(rest, sizeof rest, "%s", why->message + n);
    snprintf(why->message, sizeof why->message, "%s%.400s", api->names[i][1], rest);
    return;
  }
}

/* Reads a body of another API. */
static bool read_translated(reading *r, raw_json body) {
  const api_form *api = r->a->api;
  unsigned where = api->where;
  char *text = NULL;
  if (!body_read(&body, &r->a->given, r->why) || !api->translate(r->server, r->a->given, body, &text, &where, r->why))
    return false;
  r->a->is_chat = where == IN_CHAT;
  r->body = (raw_json){text, strlen(text)};
  bool fine = body_read(&r->body, &r->a->body, r->why) && read_members(r, r->a->body) && check_all(r);
  if (!fine) rename_field(api, r->why);
  free(text);
  return fine;
}

bool ask_read(const ask_server *server, const api_form *api, const char *body, size_t len, ask *a, refusal *why) {
  *a = (ask){.api = api, .is_chat = api->where == IN_CHAT, .cached = true, .model = server->models[0]};
  a->in.request.answers = 1;
  a->in.request.seq = server->defaults.seq;
  reading r = {.server = server, .a = a, .why = why, .body = {body, len}};
  if (api->translate) return read_translated(&r, r.body);
  return body_read(&r.body, &a->body, why) && read_members(&r, a->body) && check_all(&r);
}

void ask_free(ask *a) {
  for (int i = 0; i < a->n_prompts; i++) free(a->prompts[i].ids);
  free(a->prompts);
  request_free(&a->in);
  tools_free(&a->tools);
  cJSON_Delete(a->given);
  cJSON_Delete(a->body);
  dtl_policy_close(a->own);
}
