/* Writes traces: see trace.h. Each line is built in memory and written in one call. */
#include "generate/trace.h"

#include "box/notes.h"
#include "files/json_text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dtl_trace {
  FILE *file; /* NULL: lines go to `tell` */
  char *path;
  void (*tell)(void *user, const char *line);
  void *user;
  const dt_pair *pair; /* the pair whose tokens are written */
  json_text line;      /* the current line; its memory is reused */
  long iterations;     /* number written, of all sequences */
  int failure;         /* errno of the first failed write; 0: none */
};

dt_status dtl_trace_open(const char *path, dtl_trace **out, dt_error *err) {
  NEED(path, "path");
  NEED(out, "out");
  dtl_trace *trace = calloc(1, sizeof *trace);
  char *copy = strdup(path);
  if (!trace || !copy) {
    free(trace), free(copy);
    return dtl_fail_memory(err, "the trace");
  }
  trace->path = copy;
  trace->file = fopen(path, "wb");
  if (!trace->file) {
    dt_status status = dtl_fail(err, errno == ENOMEM ? DT_ENOMEM : DT_EINPUT, "trace %s: %s", path,
                                *path ? strerror(errno) : "expected a file name");
    dtl_trace_close(trace, NULL);
    return status;
  }
  *out = trace;
  return DT_OK;
}

dt_status dtl_trace_open_lines(void (*tell)(void *user, const char *line), void *user, dtl_trace **out, dt_error *err) {
  NEED(tell, "tell");
  NEED(out, "out");
  dtl_trace *trace = calloc(1, sizeof *trace);
  if (!trace) return dtl_fail_memory(err, "the trace");
  trace->tell = tell, trace->user = user;
  *out = trace;
  return DT_OK;
}

dt_status dtl_trace_close(dtl_trace *trace, dt_error *err) {
  dt_status status = DT_OK;
  if (!trace) return DT_OK;
  if (trace->file && fclose(trace->file) && !trace->failure) trace->failure = errno;
  if (trace->failure)
    status = dtl_fail(err, DT_EDEVICE, "trace %s: %s: it ends after about %ld iterations",
                      trace->path ? trace->path : "of a request", strerror(trace->failure), trace->iterations);
  free(json_finish(&trace->line));
  free(trace->path);
  free(trace);
  return status;
}

/* ---- pieces of a line -------------------------------------------------------------------------------------------- */

static void put(dtl_trace *trace, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(dtl_trace *trace, const char *format, ...) {
  char piece[256];
  va_list args;
  va_start(args, format);
  vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  json_raw(&trace->line, piece);
}

static void put_text(dtl_trace *trace, const char *key, const char *bytes, size_t len) {
  put(trace, "\"%s\":", key);
  json_string(&trace->line, bytes, len);
}

static void put_name(dtl_trace *trace, const char *key, const char *text) {
  if (text)
    put_text(trace, key, text, strlen(text));
  else
    put(trace, "\"%s\":null", key);
  put(trace, ",");
}

/* Writes the text of n tokens, even if it ends inside a character. `first`: the tokens begin the text. */
static void put_tokens(dtl_trace *trace, const char *key, const int32_t *ids, int n, bool first) {
  size_t len = 0;
  char *text = dt_decode(trace->pair, ids, n, first, &len);
  if (!text) trace->line.failed = true;
  put_text(trace, key, text ? text : "", len);
  free(text);
}

static void write_line(dtl_trace *trace) {
  json_text *line = &trace->line;
  if (trace->file) put(trace, "\n");
  if (line->failed && !trace->failure) trace->failure = ENOMEM;
  if (trace->tell && !trace->failure) trace->tell(trace->user, line->bytes);
  if (trace->file && !trace->failure && fwrite(line->bytes, 1, line->len, trace->file) != line->len)
    trace->failure = errno;
  line->len = 0;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* With several sequences, each line names its own. */
static void put_sequence(dtl_trace *trace, const trace_state *state) {
  if (state->sequence) put(trace, "\"sequence\":%d,", state->sequence);
}

void trace_begin(dtl_trace *trace, trace_state *state, const dt_pair *pair, const dtl_run *run, const dtl_result *r) {
  *state = (trace_state){.sequence = r->slots ? r->index : 0};
  trace->pair = pair;
  put(trace, "{\"schema\":\"dtrun.trace/1\",\"version\":\"%s\",", dt_version());
  put_sequence(trace, state);
  put_name(trace, "policy", r->policy);
  put(trace, "\"params\":");
  json_raw(&trace->line, r->params);
  put(trace, ",\"seed\":\"%" PRIu64 "\",", r->seed);
  put_name(trace, "target", r->target);
  put_name(trace, "draft", r->draft);
#define PUT(name, of_draft) put_name(trace, #name, r->name);
  DT_PAIR_FACTS(PUT)
#undef PUT
  put_name(trace, "backend", r->backend);
  int n = dt_seq_length(run->session, run->seq);
  put(trace, "\"threads\":%d,\"prompt_tokens\":%d,", r->threads, n);
  put_tokens(trace, "prompt", dt_seq_tokens(run->session, run->seq), n, true);
  put(trace, "}");
  write_line(trace);
}

/* Whether the policy added v itself: v is not a candidate of its parent's draft. */
static bool is_copied(const dt_tree *t, int v) {
  const dt_tree_draft *d = dt_tree_draft_of(t, t->parent[v]);
  for (int i = 0; d && i < d->count; i++)
    if (d->token[i] == t->token[v]) return false;
  return true;
}

static void put_node(dtl_trace *trace, const dtl_run *run, int v) {
  const dt_tree *t = run->tree;
  put(trace, "%s{\"id\":%d,", v ? "," : "", v);
  if (v > 0) put(trace, "\"parent\":%d,", t->parent[v]);
  put(trace, "\"token\":%d,", t->token[v]);
  put_tokens(trace, "text", &t->token[v], 1, false);
  if (v > 0 && isinf(t->logp[v]))
    put(trace, ",\"logp\":null,\"p\":0");
  else if (v > 0)
    put(trace, ",\"logp\":%.9g,\"p\":%.6g,\"q\":%.6g", (double)t->logp[v], exp(t->cumlogp[v]), exp((double)t->own[v]));
  const dt_tree_draft *d = dt_tree_draft_of(t, v);
  if (d && d->count) put(trace, ",\"confidence\":%.6g,\"entropy\":%.6g", (double)d->confidence, (double)d->entropy);
  if (v > 0 && is_copied(t, v)) put(trace, ",\"copied\":true");
  if (notes_tag_of(run, v)) put(trace, ",\"tag\":\"%s\"", notes_tag_of(run, v));
  if (v > 0) put(trace, ",\"kept\":%s", t->kept[v] ? "true" : "false");
  if (v > 0 && t->verdict[v] >= 0) put(trace, ",\"accepted\":%s", t->verdict[v] ? "true" : "false");
  put(trace, "}");
}

/* Returns `at` or, if that lies inside a character, the beginning of the character, since a character belongs to the
 * token that completes it. */
static size_t whole_characters(const char *text, size_t at) {
  for (size_t back = 1; back <= 3 && back <= at; back++) {
    unsigned char c = (unsigned char)text[at - back];
    if (c < 0x80) return at;
    if (c >= 0xC0) return back < (c >= 0xF0 ? 4u : c >= 0xE0 ? 3u : 2u) ? at - back : at;
  }
  return at;
}

static void put_committed(dtl_trace *trace, trace_state *state, const dtl_run *run) {
  const dt_committed *block = &run->block;
  size_t len;
  const char *text = dt_seq_text(run->session, run->seq, &len);
  int first = dt_seq_length(run->session, run->seq) - block->n;
  const size_t *ends = dt_seq_text_ends(run->session, run->seq) + first;
  put(trace, "\"committed\":[");
  for (int i = 0; i < block->n; i++) {
    size_t end = whole_characters(text, ends[i] < len ? ends[i] : len);
    bool last = i == block->n - 1 && block->finish != DT_RUNNING;
    if (last) end = len;
    size_t begin = state->shown < end ? state->shown : end;
    const char *origin = i < block->accepted ? "drafted" : block->corrected ? "corrected" : "bonus";
    put(trace, "%s{\"token\":%d,\"origin\":\"%s\",", i ? "," : "", block->tokens[i], origin);
    put_text(trace, "text", text + begin, end - begin);
    put(trace, "}");
    state->shown = end;
  }
  put(trace, "]");
}

/* Writes the numbers that the policy logged in this iteration, the last one of each name. */
static void put_logged(dtl_trace *trace, const dtl_run *run) {
  const dtl_notes *notes = run->notes;
  bool any = false;
  for (int i = 0; i < notes->n_logged; i++) {
    if (!run->is_new[i]) continue;
    put(trace, "%s\"%s\":%.9g", any ? "," : ",\"log\":{", notes->logged[i].name, notes->logged[i].last);
    any = true;
  }
  if (any) put(trace, "}");
}

void trace_iteration(dtl_trace *trace, trace_state *state, const dtl_run *run, double policy_ms) {
  const dt_tree *t = run->tree;
  if (trace->failure) return;
  trace->iterations++;
  put(trace, "{");
  put_sequence(trace, state);
  put(trace, "\"iteration\":%ld,\"length\":%d,\"rollbacks\":%d,\"nodes\":[", ++state->iterations,
      dt_seq_length(run->session, run->seq) - run->block.n, run->rollbacks);
  for (int v = 0; v < t->nodes; v++) put_node(trace, run, v);
  put(trace, "],\"bonus\":{\"token\":%d,", run->verdict.bonus);
  put_tokens(trace, "text", &run->verdict.bonus, 1, false);
  put(trace, "},");
  put_committed(trace, state, run);
  put_logged(trace, run);
  if (run->verdict.experts_read) put(trace, ",\"experts_read\":%d", run->verdict.experts_read);
  put(trace, ",\"ms\":{\"draft\":%.6f,\"verify\":%.6f,\"commit\":%.6f,\"policy\":%.6f}}", run->draft_ms, run->verify_ms,
      run->commit_ms, policy_ms);
  write_line(trace);
}

void trace_end(dtl_trace *trace, const trace_state *state, const dtl_result *r) {
  put(trace, "{");
  put_sequence(trace, state);
  put(trace, "\"finish_reason\":\"%s\",\"tokens\":%d,\"total_ms\":%.6f}", r->finish_reason, r->n_tokens,
      r->stats.total_ms);
  write_line(trace);
}
