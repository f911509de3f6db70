/* What all forms of answers use: see answer.h. */
#include "serve/answer.h"

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

void answer_json(json_text *out, const char *before, const json_text *text) {
  json_raw(out, before);
  json_string(out, text->bytes ? text->bytes : "", text->len);
}

void answer_bytes(json_text *out, const char *bytes, size_t len) {
  json_raw(out, "[");
  for (size_t i = 0; i < len; i++) answer_put(out, i ? ",%d" : "%d", (unsigned char)bytes[i]);
  json_raw(out, "]");
}

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

bool answer_has_room(size_t waiting, size_t len) { return waiting <= ANSWER_TRACE && len <= ANSWER_TRACE - waiting; }

bool answer_is_complete(const dtl_result *r) {
  return strcmp(r->finish_reason, "eos") == 0 || strcmp(r->finish_reason, "stop") == 0;
}

void answer_call_id(char id[ANSWER_CALL_ID], const answer_head *head, int index, int call) {
  static const char signs[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (const char *at = head->id; *at; at++) h = (h ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
  h = (h ^ ((uint64_t)index << 32) ^ (uint64_t)call) * UINT64_C(0x100000001B3);
  for (int i = 0; i < ANSWER_CALL_ID - 1; i++, h = h / 62 ^ h << 40) id[i] = signs[h % 62];
  id[ANSWER_CALL_ID - 1] = '\0';
}

void answer_statistics(json_text *out, const answer_head *head, const dtl_result *r, const json_text *trace) {
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

static double per_second(double n, double ms) { return ms > 0 ? n / ms * 1e3 : 0; }

void answer_timings(json_text *out, const dtl_result *results, int n) {
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
