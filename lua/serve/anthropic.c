/* Anthropic's Messages API: answers. Bodies are read by anthropic_body.c. An answer is a list of blocks: the items of
 * answer_items.h. */
#include "serve/answer_items.h"
#include "serve/anthropic_body.h"
#include "serve/api.h"

#include <stdlib.h>
#include <string.h>

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void begin_call(json_text *out, const answer_head *head, const answer_item *item) {
  char id[ANSWER_CALL_ID];
  answer_call_id(id, head, 0, item->number);
  answer_put(out, "{\"type\":\"tool_use\",\"id\":\"%s\"", id);
  answer_json(out, ",\"name\":", &item->name);
  json_raw(out, ",\"input\":");
}

/* Writes a block of a whole answer. The input of a call that is not complete would not be JSON: its text is shown. */
static void put_block(json_text *out, const answer_head *head, const answer_item *item) {
  if (item->kind == PART_REASONING) {
    answer_json(out, "{\"type\":\"thinking\",\"thinking\":", &item->text);
    json_raw(out, ",\"signature\":\"\"}");
  } else if (item->kind == PART_CALL && item->complete) {
    begin_call(out, head, item);
    json_bytes(out, item->text.bytes, item->text.len); /* a JSON object */
    json_raw(out, "}");
  } else {
    answer_json(out, "{\"type\":\"text\",\"text\":", item->kind == PART_CALL ? &item->broken : &item->text);
    json_raw(out, "}");
  }
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Returns the stop sequence that ended a text; NULL: another text did, or none. Result texts lack it, but their tokens
 * have it. */
static const char *stop_of(const answer_head *head, const dtl_result *r, bool *failed) {
  const dt_seq_options *seq = &head->ask->in.request.seq;
  const char *found = NULL, *first = NULL;
  size_t len;
  if (strcmp(r->finish_reason, "stop") != 0) return NULL;
  char *text = dt_decode(head->server->pair, r->tokens, r->n_tokens, true, &len);
  *failed = !text;
  for (int i = 0; text && i < seq->n_stop; i++) {
    const char *at = strstr(text, seq->stop[i]);
    if (at && (!first || at < first)) first = at, found = seq->stop[i];
  }
  free(text);
  return found;
}

static const char *reason_of(const dtl_result *r, int calls, const char *stop) {
  if (strcmp(r->finish_reason, "context") == 0) return "model_context_window_exceeded";
  return !answer_is_complete(r) ? "max_tokens" : calls ? "tool_use" : stop ? "stop_sequence" : "end_turn";
}

/* Writes the members stop_reason and stop_sequence. */
static void put_end(json_text *out, const answer_head *head, const dtl_result *r, int calls) {
  bool failed = false;
  const char *stop = stop_of(head, r, &failed);
  if (failed) out->failed = true;
  answer_put(out, "\"stop_reason\":\"%s\",\"stop_sequence\":", reason_of(r, calls, stop));
  if (stop)
    answer_text(out, "", stop);
  else
    json_raw(out, "null");
}

/* Cached tokens are not among the input's. */
static void put_usage(json_text *out, const answer_head *head, const dtl_result *r) {
  const int thinking = parts_reasoning_tokens(head->server, head->ask, r);
  if (thinking < 0) out->failed = true;
  answer_put(out,
             ",\"usage\":{\"input_tokens\":%ld,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":%ld,"
             "\"output_tokens\":%d,\"output_tokens_details\":{\"thinking_tokens\":%d}}",
             r->n_prompt - (long)r->stats.cached_tokens, (long)r->stats.cached_tokens, r->n_tokens, thinking);
}

/* ---- whole answers ----------------------------------------------------------------------------------------------- */

static void begin_message(json_text *out, const answer_head *head) {
  answer_put(out, "{\"id\":\"%s\",\"type\":\"message\",\"role\":\"assistant\",", head->id);
  answer_text(out, "\"model\":", head->ask->model);
}

static void write_whole(json_text *out, const answer_head *head, const dtl_result *results, const json_text *traces,
                        int n) {
  answer_items items;
  int calls = 0;
  (void)n;
  if (!items_read(head, results, &items)) out->failed = true;
  begin_message(out, head);
  json_raw(out, ",\"content\":[");
  for (int i = 0; i < items.n; i++) {
    if (i) json_raw(out, ",");
    put_block(out, head, &items.list[i]);
    calls += items.list[i].kind == PART_CALL && items.list[i].complete;
  }
  json_raw(out, "],");
  put_end(out, head, results, calls);
  put_usage(out, head, results);
  answer_statistics(out, head, results, traces);
  json_raw(out, "}\n");
  items_free(&items);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static bool open_stream(answer_head *head) { return (head->state = calloc(1, sizeof(answer_items))) != NULL; }

static void close_stream(answer_head *head) {
  if (head->state) items_free(head->state);
  free(head->state);
  head->state = NULL;
}

static void begin_event(json_text *out, const char *type) {
  answer_put(out, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void end_event(json_text *out) { json_raw(out, "}\n\n"); }

static void begin_block_event(json_text *out, const char *type, const answer_item *item) {
  begin_event(out, type);
  answer_put(out, ",\"index\":%d", item->number);
}

static void on_begin(json_text *out, const answer_head *head, const answer_item *item) {
  begin_block_event(out, "content_block_start", item);
  json_raw(out, ",\"content_block\":");
  if (item->kind == PART_CALL) {
    begin_call(out, head, item);
    json_raw(out, "{}}");
  } else {
    put_block(out, head, item);
  }
  end_event(out);
}

static void on_grow(json_text *out, const answer_head *head, const answer_item *item, const char *bytes, size_t len) {
  (void)head;
  begin_block_event(out, "content_block_delta", item);
  json_raw(out, item->kind == PART_CALL        ? ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":"
                : item->kind == PART_REASONING ? ",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":"
                                               : ",\"delta\":{\"type\":\"text_delta\",\"text\":");
  json_string(out, bytes, len);
  json_raw(out, "}");
  end_event(out);
}

static void on_end(json_text *out, const answer_head *head, const answer_item *item) {
  (void)head;
  begin_block_event(out, "content_block_stop", item);
  end_event(out);
}

static const items_events on_items = {on_begin, on_grow, on_end};

/* How many tokens are cached is known at the end: message_delta has it. */
static void write_begin(json_text *out, const answer_head *head, int index) {
  (void)index;
  begin_event(out, "message_start");
  json_raw(out, ",\"message\":");
  begin_message(out, head);
  answer_put(out,
             ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"
             "\"usage\":{\"input_tokens\":%d,\"output_tokens\":0}}",
             head->ask->prompts[0].n);
  end_event(out);
}

static void write_piece(json_text *out, const answer_head *head, int index, part_kind kind, int call, const char *text,
                        size_t len, answer_logprobs *kept, answer_offset *offset) {
  answer_items *items = head->state;
  (void)index, (void)call, (void)kept, (void)offset;
  items_add(items, kind, text, len, &on_items, out, head);
}

static void write_trace(json_text *out, const answer_head *head, int index, const char *line) {
  (void)head, (void)index;
  begin_event(out, "dtrun.trace");
  json_raw(out, ",\"trace\":[");
  json_raw(out, line);
  json_raw(out, "]");
  end_event(out);
}

static void write_end(json_text *out, const answer_head *head, int index, const dtl_result *r, int calls,
                      answer_logprobs *kept, answer_offset *offset) {
  answer_items *items = head->state;
  (void)index, (void)kept, (void)offset;
  items_end(items, answer_is_complete(r), &on_items, out, head);
  begin_event(out, "message_delta");
  json_raw(out, ",\"delta\":{");
  put_end(out, head, r, calls);
  json_raw(out, "}");
  put_usage(out, head, r);
  answer_statistics(out, head, r, NULL);
  end_event(out);
}

static void write_close(json_text *out, const answer_head *head, const dtl_result *results, int n) {
  (void)head, (void)results, (void)n;
  begin_event(out, "message_stop");
  end_event(out);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const char *type_of(int status) {
  switch (status) {
  case 401: return "authentication_error";
  case 403: return "permission_error";
  case 404: return "not_found_error";
  case 413: return "request_too_large";
  case 500: return "api_error";
  case 503: return "overloaded_error";
  default: return "invalid_request_error";
  }
}

static void put_error(json_text *out, const refusal *why) {
  answer_put(out, ",\"error\":{\"type\":\"%s\"", type_of(why->status));
  answer_text(out, ",\"message\":", why->message);
  /* For this reason the package anthropic sends the whole conversation instead. */
  if (strncmp(why->message, "thread:", strlen("thread:")) == 0)
    json_raw(out, ",\"details\":{\"error_code\":\"thread_unsupported_request\"}");
  json_raw(out, "}");
}

static void write_refusal(json_text *out, const refusal *why) {
  json_raw(out, "{\"type\":\"error\"");
  put_error(out, why);
  json_raw(out, "}");
}

static void write_failure(json_text *out, const answer_head *head, const refusal *why) {
  (void)head;
  begin_event(out, "error");
  put_error(out, why);
  end_event(out);
}

const api_form api_anthropic = {.id = "msg_",
                                .where = IN_CHAT,
                                .translate = anthropic_translate,
                                .names = anthropic_names,
                                .n_names = ANTHROPIC_NAMES,
                                .stream_type = API_EVENTS,
                                .ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n",
                                .open = open_stream,
                                .close = close_stream,
                                .begins = write_begin,
                                .piece = write_piece,
                                .traced = write_trace,
                                .ends = write_end,
                                .closes = write_close,
                                .fails = write_failure,
                                .whole = write_whole,
                                .refuses = write_refusal};

const api_form api_anthropic_counts = {.where = IN_CHAT,
                                       .translate = anthropic_translate_counted,
                                       .names = anthropic_names,
                                       .n_names = ANTHROPIC_NAMES,
                                       .refuses = write_refusal};
