/* The interfaces of OpenAI's completions and chats: answers. Bodies are read by ask.c. See api.h. */
#include "serve/answer_message.h"
#include "serve/api.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- log-probabilities ------------------------------------------------------------------------------------------- */

/* Writes a token's text; bytes that are only part of a character become U+FFFD. */
static void put_token(json_text *out, const dt_pair *pair, int32_t id) {
  size_t len = 0;
  char *text = dt_decode(pair, &id, 1, false, &len);
  if (!text) out->failed = true;
  json_string(out, text ? text : "", len);
  free(text);
}

/* Writes a token of a completion, whose log-probabilities come without a list of bytes. A part of a character is
 * written as OpenAI does, bytes:\xf0, so that different parts have different names in top_logprobs. */
static void put_text_token(json_text *out, const dt_pair *pair, int32_t id) {
  char buffer[16], shown[8];
  size_t len, whole;
  const char *bytes = dt_token_bytes(pair, id, false, buffer, &len);
  char *text = dt_utf8(bytes, len, &whole);
  if (!text) out->failed = true;
  if (!text || (whole == len && memcmp(text, bytes, len) == 0)) {
    json_string(out, text ? text : "", text ? len : 0);
  } else {
    json_raw(out, "\"bytes:");
    for (size_t i = 0; i < len; i++) {
      snprintf(shown, sizeof shown, "\\\\x%02x", (unsigned char)bytes[i]);
      json_raw(out, shown);
    }
    json_raw(out, "\"");
  }
  free(text);
}

/* Counts the characters of a text whose tokens may end within one. Returns the number of the character in which the
 * bytes begin. */
static size_t count_characters(answer_offset *at, const char *bytes, size_t len) {
  size_t begins = at->characters - (at->left > 0);
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)bytes[i];
    const bool continues = at->left > 0 && (c & 0xC0) == 0x80;
    if (i == 0 && !continues) begins = at->characters;
    at->left = continues ? at->left - 1 : c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC2 ? 1 : 0;
    at->characters += !continues;
  }
  return begins;
}

/* JSON has no infinity. */
/* Writes -9999 for a token that cannot be chosen, as OpenAI's servers do. */
static void put_logp(json_text *out, float logp) { json_float(out, isinf(logp) ? -9999.0f : logp); }

static void put_chat_token(json_text *out, const dt_pair *pair, int32_t id, float logp) {
  char buffer[16];
  size_t len;
  const char *bytes = dt_token_bytes(pair, id, false, buffer, &len);
  json_raw(out, "{\"token\":");
  put_token(out, pair, id);
  json_raw(out, ",\"logprob\":");
  put_logp(out, logp);
  json_raw(out, ",\"bytes\":");
  answer_bytes(out, bytes, len);
}

static void put_chat_logprobs(json_text *out, const dt_pair *pair, const int32_t *ids, const dtl_logprob *list, int n) {
  json_raw(out, "{\"content\":[");
  for (int i = 0; i < n; i++) {
    if (i) json_raw(out, ",");
    put_chat_token(out, pair, ids[i], list[i].logp);
    json_raw(out, ",\"top_logprobs\":[");
    for (int k = 0; k < list[i].n; k++) {
      if (k) json_raw(out, ",");
      put_chat_token(out, pair, list[i].id[k], list[i].logps[k]);
      json_raw(out, "}");
    }
    json_raw(out, "]}");
  }
  json_raw(out, "],\"refusal\":null}");
}

typedef struct {
  const int32_t *ids;
  const dtl_logprob *list;
  int n;
} token_list; /* tokens of a prompt, and the generated ones after it */

static void put_text_logprobs(json_text *out, const dt_pair *pair, const token_list parts[2], answer_offset *offset) {
  static const char *const columns[] = {"\"tokens\":[", "],\"token_logprobs\":[", "],\"top_logprobs\":[",
                                        "],\"text_offset\":["};
  json_raw(out, "{");
  for (int column = 0; column < 4; column++) {
    bool first = true;
    json_raw(out, columns[column]);
    for (int part = 0; part < 2; part++)
      for (int i = 0; i < parts[part].n; i++, first = false) {
        const dtl_logprob *l = &parts[part].list[i];
        if (!first) json_raw(out, ",");
        if (column == 0) {
          put_text_token(out, pair, parts[part].ids[i]);
        } else if (column == 1) {
          put_logp(out, l->logp);
        } else if (column == 2 && isnan(l->logp)) {
          json_raw(out, "null");
        } else if (column == 2) {
          json_raw(out, "{");
          for (int k = 0; k < l->n; k++) {
            if (k) json_raw(out, ",");
            put_text_token(out, pair, l->id[k]);
            json_raw(out, ":");
            put_logp(out, l->logps[k]);
          }
          json_raw(out, "}");
        } else {
          char buffer[16];
          size_t len;
          const char *bytes = dt_token_bytes(pair, parts[part].ids[i], part == 0 && i == 0, buffer, &len);
          answer_put(out, "%zu", count_characters(offset, bytes, len));
        }
      }
  }
  json_raw(out, "]}");
}

/* "logprobs": those of the prompt, if they are wanted, and then those of the generated tokens. */
static void put_logprobs(json_text *out, const answer_head *head, token_list prompt, token_list text,
                         answer_offset *offset) {
  const dt_pair *pair = head->server->pair;
  json_raw(out, ",\"logprobs\":");
  if (!head->ask->in.request.seq.logprobs.wanted)
    json_raw(out, "null");
  else if (head->ask->is_chat)
    put_chat_logprobs(out, pair, text.ids, text.list, text.n);
  else
    put_text_logprobs(out, pair, (token_list[]){prompt, text}, offset);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

#define CONTENT "\"content\":" /* names in an answer of its content and its reasoning, as in llama.cpp */
#define REASONING "\"reasoning_content\":"

static void put_call_id(json_text *out, const answer_head *head, int index, int call) {
  char id[ANSWER_CALL_ID];
  answer_call_id(id, head, index, call);
  answer_put(out, "\"id\":\"%s\",\"type\":\"function\"", id);
}

/* Writes the message of a whole answer. Returns the number of its calls. */
static int put_message(json_text *out, const answer_head *head, int index, const dtl_result *r) {
  answer_message m;
  if (!message_read(head, r, &m)) out->failed = true;
  json_raw(out, "\"message\":{\"role\":\"assistant\"");
  if (m.n_calls > 0 && !m.content.len)
    json_raw(out, "," CONTENT "null");
  else
    answer_json(out, "," CONTENT, &m.content);
  if (m.reasoning.len) answer_json(out, "," REASONING, &m.reasoning);
  for (int i = 0; i < m.n_calls; i++) {
    json_raw(out, i ? ",{" : ",\"tool_calls\":[{");
    put_call_id(out, head, index, i);
    answer_json(out, ",\"function\":{\"name\":", &m.calls[i].name);
    answer_json(out, ",\"arguments\":", &m.calls[i].arguments);
    json_raw(out, "}}");
  }
  const int n_calls = m.n_calls;
  json_raw(out, n_calls ? "]}" : "}");
  message_free(&m);
  return n_calls;
}

/* ---- parts of answers -------------------------------------------------------------------------------------------- */

static const char *finish_of(const dtl_result *r, int calls) {
  return !answer_is_complete(r) ? "length" : calls ? "tool_calls" : "stop";
}

/* Writes {"id":... up to the choices */
static void put_head(json_text *out, const answer_head *head, const char *object) {
  answer_put(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%ld,", head->id, object, head->created);
  answer_text(out, "\"model\":", head->ask->model);
  answer_put(out, ",\"system_fingerprint\":\"dtrun-%s\",", dt_version());
}

static void put_usage(json_text *out, const answer_head *head, const dtl_result *results, int n) {
  long prompt = 0, cached = 0, text = 0;
  for (int i = 0; i < n; i++) {
    if (i % head->ask->in.request.answers == 0) prompt += results[i].n_prompt, cached += results[i].stats.cached_tokens;
    text += head->ask->no_tokens ? 0 : results[i].n_tokens;
  }
  answer_put(out,
             "\"usage\":{\"prompt_tokens\":%ld,\"completion_tokens\":%ld,\"total_tokens\":%ld,"
             "\"prompt_tokens_details\":{\"cached_tokens\":%ld}}",
             prompt, text, prompt + text, cached);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static void begin_chunk(json_text *out, const answer_head *head, int index) {
  json_raw(out, "data: ");
  put_head(out, head, head->ask->is_chat ? "chat.completion.chunk" : "text_completion");
  answer_put(out, "\"choices\":[{\"index\":%d,", index);
}

static void end_chunk(json_text *out) { json_raw(out, "}]}\n\n"); }

static void write_begin(json_text *out, const answer_head *head, int index) {
  if (!head->ask->is_chat) return;
  begin_chunk(out, head, index);
  json_raw(out, "\"delta\":{\"role\":\"assistant\",\"content\":null},\"logprobs\":null,\"finish_reason\":null");
  end_chunk(out);
}

/* Writes a call's name or a part of its arguments. */
static void put_call(json_text *out, const answer_head *head, int index, part_kind kind, int call, const char *text,
                     size_t len) {
  answer_put(out, "\"delta\":{\"tool_calls\":[{\"index\":%d,", call);
  if (kind == PART_CALL) put_call_id(out, head, index, call);
  json_raw(out, kind == PART_CALL ? ",\"function\":{\"name\":" : "\"function\":{\"arguments\":");
  json_string(out, text, len);
  json_raw(out, kind == PART_CALL ? ",\"arguments\":\"\"}}]}" : "}}]}");
}

static void put_piece(json_text *out, const answer_head *head, bool reasoning, const char *text, size_t len) {
  json_raw(out, !head->ask->is_chat ? "\"text\":" : reasoning ? "\"delta\":{" REASONING : "\"delta\":{" CONTENT);
  json_string(out, text, len);
  if (head->ask->is_chat) json_raw(out, "}");
}

static void put_kept(json_text *out, const answer_head *head, answer_logprobs *kept, answer_offset *offset) {
  put_logprobs(out, head, (token_list){0}, (token_list){kept->ids, kept->list, kept->n}, offset);
  kept->n = 0;
}

static void write_piece(json_text *out, const answer_head *head, int index, part_kind kind, int call, const char *text,
                        size_t len, answer_logprobs *kept, answer_offset *offset) {
  if (kind == PART_END || kind == PART_BROKEN) return; /* a client sees that a call is incomplete */
  begin_chunk(out, head, index);
  if (kind == PART_CALL || kind == PART_ARGUMENTS)
    put_call(out, head, index, kind, call, text, len);
  else
    put_piece(out, head, kind == PART_REASONING, text, len);
  put_kept(out, head, kept, offset);
  json_raw(out, ",\"finish_reason\":null");
  end_chunk(out);
}

static void write_trace(json_text *out, const answer_head *head, int index, const char *line) {
  begin_chunk(out, head, index);
  json_raw(out, head->ask->is_chat ? "\"delta\":{}" : "\"text\":\"\"");
  json_raw(out, ",\"logprobs\":null,\"finish_reason\":null,\"dtrun\":{\"trace\":[");
  json_raw(out, line);
  json_raw(out, "]}");
  end_chunk(out);
}

static void write_end(json_text *out, const answer_head *head, int index, const dtl_result *r, int calls,
                      answer_logprobs *kept, answer_offset *offset) {
  begin_chunk(out, head, index);
  if (head->ask->is_chat)
    json_raw(out, "\"delta\":{}");
  else
    put_piece(out, head, false, "", 0);
  put_kept(out, head, kept, offset);
  answer_put(out, ",\"finish_reason\":\"%s\"", finish_of(r, calls));
  answer_statistics(out, head, r, NULL);
  json_raw(out, "}]");
  answer_timings(out, r, 1);
  json_raw(out, "}\n\n");
}

static void write_close(json_text *out, const answer_head *head, const dtl_result *results, int n) {
  if (head->ask->usage) {
    json_raw(out, "data: ");
    put_head(out, head, head->ask->is_chat ? "chat.completion.chunk" : "text_completion");
    json_raw(out, "\"choices\":[],");
    put_usage(out, head, results, n);
    answer_timings(out, results, n);
    json_raw(out, "}\n\n");
  }
  json_raw(out, "data: [DONE]\n\n");
}

/* ---- whole answers ----------------------------------------------------------------------------------------------- */

/* Writes the text of a completion; with echo, the prompt's text comes first. */
static void put_whole_text(json_text *out, const answer_head *head, const dtl_result *r) {
  json_raw(out, "\"text\":");
  size_t n = 0, len = head->ask->no_tokens ? 0 : r->text_len;
  char *prompt = head->ask->echo ? dt_decode(head->server->pair, r->prompt_ids, r->n_prompt, true, &n) : NULL;
  char *text = malloc(n + len + 1);
  if (!text || (head->ask->echo && !prompt)) {
    out->failed = true;
  } else {
    if (n) memcpy(text, prompt, n);
    if (len) memcpy(text + n, r->text, len);
    json_string(out, text, n + len);
  }
  free(prompt), free(text);
}

static void put_choice(json_text *out, const answer_head *head, int index, const dtl_result *r,
                       const json_text *trace) {
  token_list prompt = {r->prompt_ids, r->prompt_logprobs, r->prompt_logprobs ? r->n_prompt : 0};
  token_list text = {r->tokens, r->logprobs, r->logprobs && !head->ask->no_tokens ? r->n_tokens : 0};
  answer_offset offset = {0};
  answer_put(out, "%s{\"index\":%d,", index ? "," : "", index);
  int calls = 0;
  if (head->ask->is_chat)
    calls = put_message(out, head, index, r);
  else
    put_whole_text(out, head, r);
  put_logprobs(out, head, prompt, text, &offset);
  answer_put(out, ",\"finish_reason\":\"%s\"", finish_of(r, calls));
  answer_statistics(out, head, r, trace);
  json_raw(out, "}");
}

static void write_whole(json_text *out, const answer_head *head, const dtl_result *results, const json_text *traces,
                        int n) {
  put_head(out, head, head->ask->is_chat ? "chat.completion" : "text_completion");
  json_raw(out, "\"choices\":[");
  for (int i = 0; i < n; i++) put_choice(out, head, i, &results[i], &traces[i]);
  json_raw(out, "],");
  put_usage(out, head, results, n);
  answer_timings(out, results, n);
  json_raw(out, "}\n");
}

void openai_refuse(json_text *out, const refusal *why) {
  answer_put(out, "{\"error\":{\"code\":%d", why->status);
  answer_text(out, ",\"message\":", why->message);
  if (why->context) answer_put(out, ",\"n_prompt_tokens\":%d,\"n_ctx\":%d", why->prompt_tokens, why->context);
  answer_put(out, ",\"type\":\"%s\"}}", why->type);
}

static void write_failure(json_text *out, const answer_head *head, const refusal *why) {
  (void)head;
  json_raw(out, "data: ");
  openai_refuse(out, why);
  json_raw(out, "\n\n");
}

#define WRITERS                                                                                                        \
  .stream_type = API_EVENTS, .ping = API_PING, .begins = write_begin, .piece = write_piece, .traced = write_trace,     \
  .ends = write_end, .closes = write_close, .fails = write_failure, .whole = write_whole, .refuses = openai_refuse

const api_form api_completions = {.id = "cmpl-", .where = IN_TEXT, WRITERS};
const api_form api_chats = {.id = "chatcmpl-", .where = IN_CHAT, WRITERS};
