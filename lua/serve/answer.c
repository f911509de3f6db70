/* Writes answers: see answer.h. */
#include "serve/answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void answer_put(json_text *out, const char *format, ...) {
  char piece[512];
  va_list args;
  va_start(args, format);
  vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  json_raw(out, piece);
}

void answer_text(json_text *out, const char *before, const char *text) {
  json_raw(out, before);
  json_string(out, text ? text : "", text ? strlen(text) : 0);
}

/* ---- log-probabilities ------------------------------------------------------------------------------------------- */

bool answer_keep(answer_logprobs *kept, const int32_t *ids, const dtl_logprob *list, int n) {
  if (kept->n + n > kept->room) {
    int room = 2 * (kept->n + n);
    int32_t *more_ids = realloc(kept->ids, sizeof *more_ids * (size_t)room);
    if (more_ids) kept->ids = more_ids;
    dtl_logprob *more = realloc(kept->list, sizeof *more * (size_t)room);
    if (more) kept->list = more;
    int32_t *top_id = realloc(kept->top_id, sizeof *top_id * (size_t)room * DT_LOGPROBS);
    if (top_id) kept->top_id = top_id;
    float *top_logp = realloc(kept->top_logp, sizeof *top_logp * (size_t)room * DT_LOGPROBS);
    if (top_logp) kept->top_logp = top_logp;
    if (!more_ids || !more || !top_id || !top_logp) return false;
    kept->room = room;
  }
  for (int i = 0; i < n; i++) {
    size_t at = (size_t)kept->n * DT_LOGPROBS, bytes = (size_t)list[i].n;
    kept->ids[kept->n] = ids[i];
    kept->list[kept->n++] = list[i];
    if (!bytes) continue;
    memcpy(kept->top_id + at, list[i].id, bytes * sizeof *kept->top_id);
    memcpy(kept->top_logp + at, list[i].logps, bytes * sizeof *kept->top_logp);
  }
  for (int i = 0; i < kept->n; i++) /* realloc may have moved the arrays */
    kept->list[i].id = kept->top_id + (size_t)i * DT_LOGPROBS,
    kept->list[i].logps = kept->top_logp + (size_t)i * DT_LOGPROBS;
  return true;
}

void answer_drop(answer_logprobs *kept) {
  free(kept->ids), free(kept->list), free(kept->top_id), free(kept->top_logp);
  *kept = (answer_logprobs){0};
}

/* Writes a token's text; bytes that are only part of a character become U+FFFD. */
static void put_token(json_text *out, const dt_pair *pair, int32_t id) {
  size_t len = 0;
  char *text = dt_decode(pair, &id, 1, false, &len);
  if (!text) out->failed = true;
  json_string(out, text ? text : "", len);
  free(text);
}

void answer_bytes(json_text *out, const char *bytes, size_t len) {
  json_raw(out, "[");
  for (size_t i = 0; i < len; i++) answer_put(out, i ? ",%d" : "%d", (unsigned char)bytes[i]);
  json_raw(out, "]");
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

/* ---- traces ------------------------------------------------------------------------------------------------------ */

bool answer_has_room(size_t waiting, size_t len) { return waiting <= ANSWER_TRACE && len <= ANSWER_TRACE - waiting; }

/* ---- messages ---------------------------------------------------------------------------------------------------- */

#define CONTENT "\"content\":" /* names in an answer of its content and its reasoning, as in llama.cpp */
#define REASONING "\"reasoning_content\":"

/* Writes the id of a call, which differs from those of other calls. Some templates take only ids of nine letters and
 * digits. */
static void put_call_id(json_text *out, const answer_head *head, int index, int call) {
  static const char signs[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  char id[10] = "";
  for (const char *at = head->id; *at; at++) h = (h ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
  h = (h ^ ((uint64_t)index << 32) ^ (uint64_t)call) * UINT64_C(0x100000001B3);
  for (int i = 0; i < 9; i++, h = h / 62 ^ h << 40) id[i] = signs[h % 62];
  answer_put(out, "\"id\":\"%s\",\"type\":\"function\"", id);
}

/* The message of a whole answer while it is put together. */
typedef struct {
  const answer_head *head;
  int index;
  json_text text[2]; /* content and reasoning, as JSON without the quotes */
  json_text calls;
  int n_calls;
  size_t rewind; /* the length of `calls` before the call that is being written */
} message;

/* Adds bytes to a JSON text that is open. */
static void add_bytes(json_text *out, const char *bytes, size_t len) {
  json_text quoted = {0};
  json_string(&quoted, bytes, len);
  char *text = json_finish(&quoted);
  if (!text) {
    out->failed = true;
    return;
  }
  text[strlen(text) - 1] = '\0';
  json_raw(out, text + 1);
  free(text);
}

static void add_part(void *user, part_kind kind, int call, const char *bytes, size_t len) {
  message *m = user;
  switch (kind) {
  case PART_CONTENT: add_bytes(&m->text[0], bytes, len); break;
  case PART_REASONING: add_bytes(&m->text[1], bytes, len); break;
  case PART_CALL:
    m->rewind = m->calls.len;
    json_raw(&m->calls, m->n_calls ? ",{" : "{");
    put_call_id(&m->calls, m->head, m->index, call);
    json_raw(&m->calls, ",\"function\":{\"name\":");
    json_string(&m->calls, bytes, len);
    json_raw(&m->calls, ",\"arguments\":\"");
    break;
  case PART_ARGUMENTS: add_bytes(&m->calls, bytes, len); break;
  case PART_END:
    json_raw(&m->calls, "\"}}");
    m->n_calls++;
    break;
  case PART_BROKEN:
    m->calls.len = m->rewind;
    if (m->calls.bytes) m->calls.bytes[m->rewind] = '\0';
    add_bytes(&m->text[0], bytes, len);
  }
}

/* Writes a part between two texts, or nothing if it is not wanted, and frees it. */
static void put_part(json_text *out, bool wanted, const char *before, json_text *part, const char *after) {
  if (part->failed) out->failed = true;
  char *text = json_finish(part);
  if (wanted) {
    json_raw(out, before);
    json_raw(out, text ? text : "");
    json_raw(out, after);
  }
  free(text);
}

/* Writes the message of a whole answer. Returns the number of its calls. */
static int put_message(json_text *out, const answer_head *head, int index, const dtl_result *r) {
  message m = {.head = head, .index = index};
  answer_parts *parts;
  if (!parts_open(head->server, head->ask, &parts)) {
    out->failed = true;
    return 0;
  }
  parts_add(parts, r->text, r->text_len, add_part, &m);
  parts_end(parts, add_part, &m);
  parts_close(parts);
  const bool only_calls = m.n_calls > 0 && m.text[0].len == 0;
  json_raw(out, only_calls ? "\"message\":{\"role\":\"assistant\"," CONTENT "null"
                           : "\"message\":{\"role\":\"assistant\"," CONTENT);
  put_part(out, !only_calls, "\"", &m.text[0], "\"");
  put_part(out, m.text[1].len > 0, "," REASONING "\"", &m.text[1], "\"");
  put_part(out, m.n_calls > 0, ",\"tool_calls\":[", &m.calls, "]");
  json_raw(out, "}");
  return m.n_calls;
}

/* ---- parts of answers -------------------------------------------------------------------------------------------- */

static const char *finish_of(const dtl_result *r, int calls) {
  const bool ended = strcmp(r->finish_reason, "eos") == 0 || strcmp(r->finish_reason, "stop") == 0;
  return !ended ? "length" : calls ? "tool_calls" : "stop";
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

static double per_second(double n, double ms) { return ms > 0 ? n / ms * 1e3 : 0; }

static void put_timings(json_text *out, const dtl_result *results, int n) {
  double prompt_ms = 0, text_ms = 0;
  long prompt = 0, cached = 0, text = 0, drafted = 0, accepted = 0;
  for (int i = 0; i < n; i++) {
    const dt_stats *s = &results[i].stats;
    prompt += s->prompt_tokens - s->cached_tokens, cached += s->cached_tokens, text += s->generated;
    drafted += s->drafted, accepted += s->accepted;
    prompt_ms += s->prompt_ms, text_ms += s->total_ms > s->prompt_ms ? s->total_ms - s->prompt_ms : 0;
  }
  answer_put(
      out,
      ",\"timings\":{\"prompt_n\":%ld,\"prompt_ms\":%.3f,\"prompt_per_second\":%.3f,\"predicted_n\":%ld,"
      "\"predicted_ms\":%.3f,\"predicted_per_second\":%.3f,\"cache_n\":%ld,\"draft_n\":%ld,\"draft_n_accepted\":%ld}",
      prompt, prompt_ms, per_second((double)prompt, prompt_ms), text, text_ms, per_second((double)text, text_ms),
      cached, drafted, accepted);
}

/* trace: NULL for a stream, which has sent it line by line. */
static void put_statistics(json_text *out, const answer_head *head, const dtl_result *r, const json_text *trace) {
  if (!head->ask->tells) return;
  char *json = dtl_result_json(r, DTL_JSON_BRIEF | DTL_JSON_LINE);
  if (!json) {
    out->failed = true;
    return;
  }
  json[strcspn(json, "\n")] = 0;
  json_raw(out, ",\"dtrun\":");
  if (head->ask->trace && trace) {
    if (trace->failed) out->failed = true;
    json[strlen(json) - 1] = 0; /* the closing brace */
    json_raw(out, json);
    json_raw(out, ",\"trace\":[");
    json_raw(out, trace->bytes ? trace->bytes : "");
    json_raw(out, "]}");
  } else {
    json_raw(out, json);
  }
  free(json);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static void begin_chunk(json_text *out, const answer_head *head, int index) {
  json_raw(out, "data: ");
  put_head(out, head, head->ask->is_chat ? "chat.completion.chunk" : "text_completion");
  answer_put(out, "\"choices\":[{\"index\":%d,", index);
}

static void end_chunk(json_text *out) { json_raw(out, "}]}\n\n"); }

void answer_begins(json_text *out, const answer_head *head, int index) {
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

void answer_piece(json_text *out, const answer_head *head, int index, part_kind kind, int call, const char *text,
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

void answer_traced(json_text *out, const answer_head *head, int index, const char *line) {
  begin_chunk(out, head, index);
  json_raw(out, head->ask->is_chat ? "\"delta\":{}" : "\"text\":\"\"");
  json_raw(out, ",\"logprobs\":null,\"finish_reason\":null,\"dtrun\":{\"trace\":[");
  json_raw(out, line);
  json_raw(out, "]}");
  end_chunk(out);
}

void answer_ends(json_text *out, const answer_head *head, int index, const dtl_result *r, int calls,
                 answer_logprobs *kept, answer_offset *offset) {
  begin_chunk(out, head, index);
  if (head->ask->is_chat)
    json_raw(out, "\"delta\":{}");
  else
    put_piece(out, head, false, "", 0);
  put_kept(out, head, kept, offset);
  answer_put(out, ",\"finish_reason\":\"%s\"", finish_of(r, calls));
  put_statistics(out, head, r, NULL);
  json_raw(out, "}]");
  put_timings(out, r, 1);
  json_raw(out, "}\n\n");
}

void answer_closes(json_text *out, const answer_head *head, const dtl_result *results, int n) {
  if (head->ask->usage) {
    json_raw(out, "data: ");
    put_head(out, head, head->ask->is_chat ? "chat.completion.chunk" : "text_completion");
    json_raw(out, "\"choices\":[],");
    put_usage(out, head, results, n);
    put_timings(out, results, n);
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
  put_statistics(out, head, r, trace);
  json_raw(out, "}");
}

void answer_whole(json_text *out, const answer_head *head, const dtl_result *results, const json_text *traces, int n) {
  put_head(out, head, head->ask->is_chat ? "chat.completion" : "text_completion");
  json_raw(out, "\"choices\":[");
  for (int i = 0; i < n; i++) put_choice(out, head, i, &results[i], &traces[i]);
  json_raw(out, "],");
  put_usage(out, head, results, n);
  put_timings(out, results, n);
  json_raw(out, "}\n");
}

void answer_refusal(json_text *out, const refusal *why) {
  answer_put(out, "{\"error\":{\"code\":%d", why->status);
  answer_text(out, ",\"message\":", why->message);
  if (why->context) answer_put(out, ",\"n_prompt_tokens\":%d,\"n_ctx\":%d", why->prompt_tokens, why->context);
  answer_put(out, ",\"type\":\"%s\"}}", why->type);
}
