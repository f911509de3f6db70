/* Answers of ollama's /api/chat and /api/generate: see ollama.h. Streams are lines of JSON. */
#include "serve/ollama.h"
#include "serve/answer_message.h"
#include "serve/body.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void ollama_put_time(json_text *out, long seconds, long nanoseconds) {
  time_t t = (time_t)seconds;
  struct tm tm;
  char text[32];
  gmtime_r(&t, &tm);
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
  answer_put(out, "\"%s.%09ldZ\"", text, nanoseconds);
}

static void put_head(json_text *out, const char *model) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  answer_text(out, "{\"model\":", model);
  json_raw(out, ",\"created_at\":");
  ollama_put_time(out, now.tv_sec, now.tv_nsec);
}

void ollama_loaded(json_text *out, bool chat, const char *model) {
  put_head(out, model);
  json_raw(out, chat ? ",\"message\":{\"role\":\"assistant\",\"content\":\"\"}" : ",\"response\":\"\"");
  json_raw(out, ",\"done\":true,\"done_reason\":\"load\"}\n");
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static bool is_chat(const answer_head *head) { return head->ask->api == &api_ollama_chat; }

static void put_text(json_text *out, const char *before, const char *text, size_t len) {
  json_raw(out, before);
  json_string(out, text ? text : "", len);
}

/* Writes arguments as an object on one line. cJSON, which has accepted them, takes more than clients do: what the
 * strict reader refuses is written again. */
static void put_arguments(json_text *out, const json_text *arguments) {
  size_t n = 0;
  char *text = dt_utf8(arguments->bytes, arguments->len, &n), *printed = NULL;
  raw_json whole = {text, n};
  cJSON *root = NULL;
  refusal ignored;
  if (text && body_read(&whole, &root, &ignored)) {
    for (size_t i = 0; i < n; i++)
      if (text[i] == '\n' || text[i] == '\r') text[i] = ' '; /* outside of strings, where they are escaped */
    json_bytes(out, whole.at, whole.len);
  } else {
    root = text ? cJSON_ParseWithLength(text, n) : NULL;
    printed = cJSON_PrintUnformatted(root);
    if (printed) json_raw(out, printed);
    if (!printed) out->failed = true;
  }
  cJSON_free(printed);
  cJSON_Delete(root);
  free(text);
}

static void put_call(json_text *out, const answer_head *head, int i, const message_call *call) {
  char id[ANSWER_CALL_ID];
  answer_call_id(id, head, 0, i);
  answer_put(out, "{\"id\":\"%s\",\"function\":{\"index\":%d", id, i);
  put_text(out, ",\"name\":", call->name.bytes, call->name.len);
  json_raw(out, ",\"arguments\":");
  put_arguments(out, &call->arguments);
  json_raw(out, "}}");
}

typedef struct {
  const char *content, *reasoning;
  size_t content_len, reasoning_len;
  const message_call *calls; /* [from..to) */
  int from, to;
} message_part;

/* Writes a message, or what a text's answer has instead. */
static void put_part(json_text *out, const answer_head *head, const message_part *p) {
  put_text(out, is_chat(head) ? ",\"message\":{\"role\":\"assistant\",\"content\":" : ",\"response\":", p->content,
           p->content_len);
  if (p->reasoning_len) put_text(out, ",\"thinking\":", p->reasoning, p->reasoning_len);
  if (p->to > p->from) json_raw(out, ",\"tool_calls\":[");
  for (int i = p->from; i < p->to; i++) {
    if (i > p->from) json_raw(out, ",");
    put_call(out, head, i, &p->calls[i]);
  }
  if (p->to > p->from) json_raw(out, "]");
  if (is_chat(head)) json_raw(out, "}");
}

static long long nanoseconds(double ms) { return ms > 0 ? (long long)(ms * 1e6) : 0; }

static void put_end(json_text *out, const dtl_result *r) {
  const dt_stats *s = &r->stats;
  answer_put(out,
             ",\"done\":true,\"done_reason\":\"%s\",\"total_duration\":%lld,\"load_duration\":0,"
             "\"prompt_eval_count\":%d,\"prompt_eval_duration\":%lld,\"eval_count\":%d,\"eval_duration\":%lld}\n",
             answer_is_complete(r) ? "stop" : "length", nanoseconds(s->total_ms), r->n_prompt,
             nanoseconds(s->prompt_ms), r->n_tokens, nanoseconds(s->total_ms - s->prompt_ms));
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* A call is sent when it is complete. */
static bool open_stream(answer_head *head) {
  head->state = calloc(1, sizeof(answer_message));
  return head->state;
}

static void close_stream(answer_head *head) {
  if (head->state) message_free(head->state);
  free(head->state);
}

static void write_begin(json_text *out, const answer_head *head, int index) { (void)out, (void)head, (void)index; }

static void write_chunk(json_text *out, const answer_head *head, const message_part *p) {
  put_head(out, head->ask->model);
  put_part(out, head, p);
  json_raw(out, ",\"done\":false}\n");
}

static void write_piece(json_text *out, const answer_head *head, int index, part_kind kind, int call, const char *text,
                        size_t len, answer_logprobs *kept, answer_offset *offset) {
  answer_message *m = head->state;
  (void)index, (void)call, (void)kept, (void)offset;
  switch (kind) {
  case PART_CONTENT:
  case PART_BROKEN: write_chunk(out, head, &(message_part){.content = text, .content_len = len}); break;
  case PART_REASONING: write_chunk(out, head, &(message_part){.reasoning = text, .reasoning_len = len}); break;
  default: break;
  }
  if (kind == PART_CONTENT || kind == PART_REASONING) return;
  message_add(m, kind, text, len);
  if (m->failed) out->failed = true;
  if (kind == PART_END && !m->failed)
    write_chunk(out, head, &(message_part){.calls = m->calls, .from = m->n_calls - 1, .to = m->n_calls});
}

static void write_trace(json_text *out, const answer_head *head, int index, const char *line) {
  (void)out, (void)head, (void)index, (void)line;
}

static void write_end(json_text *out, const answer_head *head, int index, const dtl_result *r, int calls,
                      answer_logprobs *kept, answer_offset *offset) {
  (void)index, (void)calls, (void)kept, (void)offset;
  put_head(out, head->ask->model);
  put_part(out, head, &(message_part){0});
  put_end(out, r);
}

static void write_close(json_text *out, const answer_head *head, const dtl_result *results, int n) {
  (void)out, (void)head, (void)results, (void)n;
}

/* ---- whole answers and refusals ---------------------------------------------------------------------------------- */

static void write_whole(json_text *out, const answer_head *head, const dtl_result *r, const json_text *traces, int n) {
  answer_message m = {0};
  message_part p = {.content = r->text, .content_len = r->text_len};
  (void)traces, (void)n;
  if (head->ask->is_chat) {
    if (!message_read(head, r, &m)) out->failed = true;
    p = (message_part){m.content.bytes, m.reasoning.bytes, m.content.len, m.reasoning.len, m.calls, 0, m.n_calls};
  }
  put_head(out, head->ask->model);
  put_part(out, head, &p);
  put_end(out, r);
  message_free(&m);
}

static void write_refusal(json_text *out, const refusal *why) {
  answer_text(out, "{\"error\":", why->message);
  json_raw(out, "}\n");
}

static void write_failure(json_text *out, const answer_head *head, const refusal *why) {
  (void)head;
  write_refusal(out, why);
}

/* ---- the two routes ---------------------------------------------------------------------------------------------- */

static const char *const names[][2] = {{"max_tokens", "options.num_predict"},
                                       {"temperature", "options.temperature"},
                                       {"top_p", "options.top_p"},
                                       {"top_k", "options.top_k"},
                                       {"min_p", "options.min_p"},
                                       {"seed", "options.seed"},
                                       {"stop", "options.stop"},
                                       {"repeat_penalty", "options.repeat_penalty"},
                                       {"presence_penalty", "options.presence_penalty"},
                                       {"frequency_penalty", "options.frequency_penalty"},
                                       {"messages", "prompt"}}; /* the last one is for texts only */

enum { NAMES = sizeof names / sizeof *names };

#define FORM(body, n)                                                                                                  \
  .where = IN_CHAT, .translate = (body), .names = names, .n_names = (n), .stream_type = "application/x-ndjson",        \
  .open = open_stream, .close = close_stream, .begins = write_begin, .piece = write_piece, .traced = write_trace,      \
  .ends = write_end, .closes = write_close, .fails = write_failure, .whole = write_whole, .refuses = write_refusal

const api_form api_ollama_chat = {.id = "ollama-", FORM(ollama_chat_body, NAMES - 1)};
const api_form api_ollama_generate = {.id = "ollama-", FORM(ollama_generate_body, NAMES)};
