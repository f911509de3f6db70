/* OpenAI's Responses API: answers. Bodies are read by responses_body.c. An answer is a list of items (answer_items.h),
 * and its stream a list of events with numbers. */
#include "serve/answer_items.h"
#include "serve/api.h"
#include "serve/responses_body.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PREFIX "resp_" /* of the ids of answers */

/* What a stream has sent. */
typedef struct {
  answer_items items;
  int events;
} sent;

/* ---- items ------------------------------------------------------------------------------------------------------- */

static void put_item_id(json_text *out, const char *name, const answer_head *head, const answer_item *item) {
  const char *kind = item->kind == PART_REASONING ? "rs" : item->kind == PART_CALL ? "fc" : "msg";
  answer_put(out, "\"%s\":\"%s_%s_%d\"", name, kind, head->id + strlen(PREFIX), item->number);
}

static void put_part(json_text *out, const answer_item *item) {
  if (item->kind == PART_REASONING)
    answer_json(out, "{\"type\":\"reasoning_text\",\"text\":", &item->text);
  else
    answer_json(out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":", &item->text);
  json_raw(out, "}");
}

/* status: in_progress, completed or incomplete. An item in progress has no content yet. */
static void put_item(json_text *out, const answer_head *head, const answer_item *item, const char *status) {
  char call[ANSWER_CALL_ID];
  json_raw(out, "{");
  put_item_id(out, "id", head, item);
  answer_put(out, ",\"status\":\"%s\"", status);
  if (item->kind == PART_CALL) {
    answer_call_id(call, head, 0, item->number);
    answer_put(out, ",\"type\":\"function_call\",\"call_id\":\"%s\"", call);
    answer_json(out, ",\"name\":", &item->name);
    answer_json(out, ",\"arguments\":", &item->text);
  } else {
    json_raw(out, item->kind == PART_REASONING ? ",\"type\":\"reasoning\",\"summary\":[],\"content\":["
                                               : ",\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
    if (strcmp(status, "in_progress") != 0) put_part(out, item);
    json_raw(out, "]");
  }
  json_raw(out, "}");
}

static const char *item_status(bool complete) { return complete ? "completed" : "incomplete"; }

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* Writes a member of the client's body; `otherwise`, JSON, if it is missing. */
static void put_given(json_text *out, const answer_head *head, const char *name, const char *otherwise) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(head->ask->given, name);
  const bool given = v && !cJSON_IsNull(v);
  char *text = given ? cJSON_PrintUnformatted(v) : NULL;
  if (given && !text) out->failed = true;
  answer_put(out, ",\"%s\":", name);
  json_raw(out, text ? text : otherwise);
  free(text);
}

/* Writes a number of the client's body, or the one that was used instead. */
static void put_number(json_text *out, const answer_head *head, const char *name, float used) {
  json_text number = {0};
  json_float(&number, used);
  if (number.bytes) put_given(out, head, name, number.bytes);
  if (number.failed) out->failed = true;
  free(number.bytes);
}

static void put_settings(json_text *out, const answer_head *head) {
  const dt_sampling *sampling = &head->ask->in.request.seq.sampling;
  const cJSON *text = cJSON_GetObjectItemCaseSensitive(head->ask->given, "text");
  const bool has_format = cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(text, "format"));
  put_given(out, head, "instructions", "null");
  put_given(out, head, "max_output_tokens", "null");
  put_given(out, head, "metadata", "{}");
  put_given(out, head, "parallel_tool_calls", "true");
  put_given(out, head, "reasoning", "{\"effort\":null,\"summary\":null}");
  put_number(out, head, "temperature", sampling->temp);
  put_number(out, head, "top_p", sampling->top_p > 0 ? sampling->top_p : 1); /* 0: off */
  if (has_format)
    put_given(out, head, "text", "");
  else
    json_raw(out, ",\"text\":{\"format\":{\"type\":\"text\"}}");
  put_given(out, head, "tool_choice", "\"auto\"");
  put_given(out, head, "tools", "[]");
  put_given(out, head, "user", "null");
  json_raw(out, ",\"background\":false,\"previous_response_id\":null,\"service_tier\":\"default\","
                "\"top_logprobs\":0,\"truncation\":\"disabled\"");
}

static void put_usage(json_text *out, const answer_head *head, const dtl_result *r) {
  const int reasoning = parts_reasoning_tokens(head->server, head->ask, r);
  if (reasoning < 0) out->failed = true;
  answer_put(out,
             ",\"usage\":{\"input_tokens\":%d,\"input_tokens_details\":{\"cached_tokens\":%ld,\"cache_write_tokens\":0}"
             ",\"output_tokens\":%d,\"output_tokens_details\":{\"reasoning_tokens\":%d},\"total_tokens\":%d}",
             r->n_prompt, (long)r->stats.cached_tokens, r->n_tokens, reasoning, r->n_prompt + r->n_tokens);
}

/* Writes a response up to its output. */
static void begin_response(json_text *out, const answer_head *head, const char *status) {
  answer_put(out, "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%ld,\"status\":\"%s\",", head->id,
             head->created, status);
  answer_text(out, "\"model\":", head->ask->model);
  put_settings(out, head);
}

/* Writes a response that has ended. */
static void put_response(json_text *out, const answer_head *head, const dtl_result *r, const answer_items *items,
                         const json_text *trace) {
  const bool complete = answer_is_complete(r);
  begin_response(out, head, item_status(complete));
  if (complete)
    answer_put(out, ",\"completed_at\":%ld,\"error\":null,\"incomplete_details\":null", (long)time(NULL));
  else
    json_raw(out, ",\"error\":null,\"incomplete_details\":{\"reason\":\"max_output_tokens\"}");
  put_usage(out, head, r);
  answer_statistics(out, head, r, trace);
  json_raw(out, ",\"output\":[");
  for (int i = 0; i < items->n; i++) {
    if (i) json_raw(out, ",");
    put_item(out, head, &items->list[i], item_status(items->list[i].complete));
  }
  json_raw(out, "]}");
}

static void write_whole(json_text *out, const answer_head *head, const dtl_result *results, const json_text *traces,
                        int n) {
  answer_items items;
  (void)n;
  if (!items_read(head, results, &items)) out->failed = true;
  put_response(out, head, results, &items, traces);
  json_raw(out, "\n");
  items_free(&items);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static bool open_stream(answer_head *head) { return (head->state = calloc(1, sizeof(sent))) != NULL; }

static void close_stream(answer_head *head) {
  sent *s = head->state;
  if (s) items_free(&s->items);
  free(s);
  head->state = NULL;
}

static void begin_event(json_text *out, const answer_head *head, const char *type) {
  sent *s = head->state;
  answer_put(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d", type, type, s->events++);
}

static void end_event(json_text *out) { json_raw(out, "}\n\n"); }

/* Writes an event that has a response without output. */
static void put_state(json_text *out, const answer_head *head, const char *type, const char *status,
                      const refusal *why) {
  begin_event(out, head, type);
  json_raw(out, ",\"response\":");
  begin_response(out, head, status);
  if (why) answer_text(out, ",\"error\":{\"code\":\"server_error\",\"message\":", why->message);
  json_raw(out, why ? "}" : ",\"error\":null");
  json_raw(out, ",\"incomplete_details\":null,\"usage\":null,\"output\":[]}");
  end_event(out);
}

/* Writes an event about an item. */
static void put_whole_item(json_text *out, const answer_head *head, const answer_item *item, const char *type,
                           const char *status) {
  begin_event(out, head, type);
  answer_put(out, ",\"output_index\":%d,\"item\":", item->number);
  put_item(out, head, item, status);
  end_event(out);
}

/* Begins an event about the content of an item. */
static void begin_content(json_text *out, const answer_head *head, const answer_item *item, const char *type) {
  begin_event(out, head, type);
  answer_put(out, ",\"output_index\":%d,", item->number);
  put_item_id(out, "item_id", head, item);
  if (item->kind != PART_CALL) json_raw(out, ",\"content_index\":0");
}

static void put_whole_part(json_text *out, const answer_head *head, const answer_item *item, const char *type) {
  begin_content(out, head, item, type);
  json_raw(out, ",\"part\":");
  put_part(out, item);
  end_event(out);
}

static void on_begin(json_text *out, const answer_head *head, const answer_item *item) {
  put_whole_item(out, head, item, "response.output_item.added", "in_progress");
  if (item->kind != PART_CALL) put_whole_part(out, head, item, "response.content_part.added");
}

static void on_grow(json_text *out, const answer_head *head, const answer_item *item, const char *bytes, size_t len) {
  begin_content(out, head, item,
                item->kind == PART_CALL        ? "response.function_call_arguments.delta"
                : item->kind == PART_REASONING ? "response.reasoning_text.delta"
                                               : "response.output_text.delta");
  if (item->kind == PART_CONTENT) json_raw(out, ",\"logprobs\":[]");
  json_raw(out, ",\"delta\":");
  json_string(out, bytes, len);
  end_event(out);
}

static void on_end(json_text *out, const answer_head *head, const answer_item *item) {
  begin_content(out, head, item,
                item->kind == PART_CALL        ? "response.function_call_arguments.done"
                : item->kind == PART_REASONING ? "response.reasoning_text.done"
                                               : "response.output_text.done");
  if (item->kind == PART_CONTENT) json_raw(out, ",\"logprobs\":[]");
  answer_json(out, item->kind == PART_CALL ? ",\"arguments\":" : ",\"text\":", &item->text);
  end_event(out);
  if (item->kind != PART_CALL) put_whole_part(out, head, item, "response.content_part.done");
  put_whole_item(out, head, item, "response.output_item.done", item_status(item->complete));
}

static const items_events on_items = {on_begin, on_grow, on_end};

static void write_begin(json_text *out, const answer_head *head, int index) {
  (void)index;
  put_state(out, head, "response.created", "in_progress", NULL);
  put_state(out, head, "response.in_progress", "in_progress", NULL);
}

static void write_piece(json_text *out, const answer_head *head, int index, part_kind kind, int call, const char *text,
                        size_t len, answer_logprobs *kept, answer_offset *offset) {
  sent *s = head->state;
  (void)index, (void)call, (void)kept, (void)offset;
  items_add(&s->items, kind, text, len, &on_items, out, head);
}

static void write_trace(json_text *out, const answer_head *head, int index, const char *line) {
  (void)index;
  begin_event(out, head, "dtrun.trace");
  json_raw(out, ",\"trace\":[");
  json_raw(out, line);
  json_raw(out, "]");
  end_event(out);
}

static void write_end(json_text *out, const answer_head *head, int index, const dtl_result *r, int calls,
                      answer_logprobs *kept, answer_offset *offset) {
  sent *s = head->state;
  const bool complete = answer_is_complete(r);
  (void)index, (void)calls, (void)kept, (void)offset;
  items_end(&s->items, complete, &on_items, out, head);
  begin_event(out, head, complete ? "response.completed" : "response.incomplete");
  json_raw(out, ",\"response\":");
  put_response(out, head, r, &s->items, NULL);
  end_event(out);
}

/* The last event has been written by write_end, since there is one text. */
static void write_close(json_text *out, const answer_head *head, const dtl_result *results, int n) {
  (void)out, (void)head, (void)results, (void)n;
}

static void write_failure(json_text *out, const answer_head *head, const refusal *why) {
  put_state(out, head, "response.failed", "failed", why);
}

const api_form api_responses = {.id = PREFIX,
                                .where = IN_CHAT,
                                .translate = responses_translate,
                                .names = responses_names,
                                .n_names = RESPONSES_NAMES,
                                .stream_type = API_EVENTS,
                                .ping = API_PING,
                                .open = open_stream,
                                .close = close_stream,
                                .begins = write_begin,
                                .piece = write_piece,
                                .traced = write_trace,
                                .ends = write_end,
                                .closes = write_close,
                                .fails = write_failure,
                                .whole = write_whole,
                                .refuses = openai_refuse};
