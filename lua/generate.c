/* One generation: prompt pass, then iterations of the policy's step until the text ends. Whatever happens, the result says
 * what was committed until then, and all of it has been handed to on_text. */
#include "costs.h"
#include "policy.h"
#include "trace.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct {
  dtl_policy *policy;
  const dtl_request *request;
  dtl_result *result;
  dtl_run *run;
  size_t emitted;  /* bytes of the text handed to on_text */
  uint8_t *origin; /* [context] of each generated token; NULL: nobody asks */
  int at;          /* the token that the next byte to emit belongs to, or one before it */
} generation;

static bool out_of_memory(dtl_error *err) {
  return dtl_fail(err, DTL_DEVICE, "out of memory: the result of a generation");
}

static char *copy(const char *text) { return text ? strdup(text) : NULL; }

/* What can be said before anything runs. */
static bool fill_head(const generation *g, const dt_pair_info *pair, dtl_error *err) {
  dtl_result *r = g->result;
  const char *draft = g->policy->info.uses_draft ? pair->draft.path : NULL;
  r->finish_reason = "error";
  r->policy = copy(g->policy->info.name);
  r->params = copy(g->policy->params_json);
  r->seed = g->policy->seed;
  r->sampling = g->request->seq.sampling;
  r->coupled = !g->request->seq.uncoupled;
  r->target = copy(pair->target.path);
  r->draft = copy(draft);
  r->draft_dtype = draft ? pair->draft_dtype : NULL;
  r->backend = copy(pair->backend);
  r->threads = pair->threads;
  if (!r->policy || !r->params || !r->target || !r->backend || (draft && !r->draft)) return out_of_memory(err);
  return true;
}

/* What was generated. Tokens and text as far as memory allows: a failed copy is a failed run. */
static bool fill_tail(const generation *g, const dt_pair *pair, dtl_error *err) {
  dtl_result *r = g->result;
  const dt_session *session = g->run->session;
  dt_seq_stats(session, 0, &r->stats);
  const int32_t *tokens = dt_seq_tokens(session, 0);
  int length = dt_seq_length(session, 0);
  size_t text_len;
  const char *text = dt_seq_text(session, 0, &text_len);
  r->n_prompt = r->stats.prompt_tokens;
  r->n_tokens = length - r->n_prompt;
  r->prompt_ids = malloc(sizeof(int32_t) * (size_t)(r->n_prompt + 1));
  r->tokens = malloc(sizeof(int32_t) * (size_t)(r->n_tokens + 1));
  r->text = dt_utf8(text, text_len, &r->text_len);
  if (!r->prompt_ids || !r->tokens || !r->text) {
    r->n_prompt = r->n_tokens = 0;
    return out_of_memory(err);
  }
  memcpy(r->prompt_ids, tokens, sizeof(int32_t) * (size_t)r->n_prompt);
  memcpy(r->tokens, tokens + r->n_prompt, sizeof(int32_t) * (size_t)r->n_tokens);
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  r->weight_bytes = info.weight_bytes;
  r->cache_bytes = info.cache_bytes;
  r->device_memory = info.on_device ? info.weight_bytes + info.cache_bytes + info.scratch_bytes : 0;
  struct rusage usage;
  if (!getrusage(RUSAGE_SELF, &usage)) r->peak_memory = (size_t)usage.ru_maxrss * 1024;
  return true;
}

/* How many of the len bytes to emit next have one origin, which is announced. A character that tokens share is of the
 * first one's. */
static size_t announce_origin(generation *g, const char *bytes, size_t len) {
  const size_t *end = dt_seq_text_ends(g->run->session, 0);
  while (end[g->at] <= g->emitted) g->at++;
  int last = g->at;
  while (end[last] < g->emitted + len && g->origin[last + 1] == g->origin[g->at]) last++;
  size_t n = end[last] - g->emitted < len ? end[last] - g->emitted : len;
  while (n < len && ((unsigned char)bytes[n] & 0xC0) == 0x80) n++;
  g->request->on_origin(g->request->user, (dtl_origin)g->origin[g->at]);
  return n;
}

static void emit(generation *g, const char *bytes, size_t len) {
  while (len > 0) {
    size_t n = g->origin ? announce_origin(g, bytes, len) : len;
    if (g->request->on_text) g->request->on_text(g->request->user, bytes, n);
    g->emitted += n, bytes += n, len -= n;
  }
}

static void emit_block(generation *g) {
  const dt_committed *block = &g->run->block;
  int first = dt_seq_length(g->run->session, 0) - block->n;
  for (int i = 0; g->origin && i < block->n; i++)
    g->origin[first + i] = i < block->accepted ? DTL_DRAFTED : block->corrected ? DTL_CORRECTED : DTL_BONUS;
  emit(g, block->text, block->text_len);
}

/* Main thread: object, host -> object, host, seq, costs; out of the box's sight until a call hands them in. */
static int make_objects(lua_State *L) {
  generation *g = lua_touserdata(L, 1);
  sandbox_seed(L, g->policy->seed, RUN_SEQ_ID);
  lib_seq_push(L, g->run);
  if (g->policy->info.uses_costs)
    lib_costs_push(L, g->request->costs);
  else
    lua_pushnil(L);
  return 2;
}

/* Calls host.METHOD(object, seq, costs), at first as `entry`. */
static bool call_policy(generation *g, const char *method, const char *entry, dtl_error *err) {
  dtl_box *box = &g->policy->box;
  lua_State *L = box->L;
  lua_settop(box->co, 0);
  lua_getfield(L, POLICY_HOST, method); /* host is a plain table, and method is a key in it: nothing is allocated */
  lua_pushvalue(L, POLICY_OBJECT);
  lua_pushvalue(L, POLICY_SEQ);
  lua_pushvalue(L, POLICY_COSTS);
  lua_xmove(L, box->co, 4);
  g->run->engine_ms = 0;
  double start = dt_clock_ms();
  bool ok = box_call(box, entry, 3, err);
  g->result->policy_ms += dt_clock_ms() - start - g->run->engine_ms;
  if (!ok && box->state == BOX_ENGINE_FAILED) dtl_fail_engine(err, &g->run->failure);
  return ok;
}

static const char *finish_name(dt_finish finish) {
  switch (finish) {
  case DT_FINISH_EOS: return "eos";
  case DT_FINISH_STOP: return "stop";
  case DT_FINISH_CONTEXT: return "context";
  default: return "length";
  }
}

static bool interrupted(const dtl_request *request) { return request->interrupt && *request->interrupt; }

/* One iteration. */
static bool step(generation *g, dtl_error *err) {
  dtl_run *run = g->run;
  dt_error engine;
  if (dt_rollback(run->session, 0, &engine)) return dtl_fail_engine(err, &engine);
  run->phase = RUN_DRAFT;
  run->rollbacks = 0;
  run->draft_ms = run->verify_ms = run->commit_ms = 0;
  double policy_ms = g->result->policy_ms;
  bool ok = call_policy(g, "step", "draft", err);
  if (run->phase == RUN_COMMITTED) {
    emit_block(g);
    if (g->request->trace) trace_iteration(g->request->trace, run, g->result->policy_ms - policy_ms);
  }
  if (!ok) return false;
  if (run->phase != RUN_COMMITTED)
    return dtl_fail(err, DTL_POLICY, "%s: step returned without a commit", g->policy->info.path);
  return true;
}

static bool iterate(generation *g, dtl_error *err) {
  dtl_run *run = g->run;
  dtl_box *box = &g->policy->box;
  run->tree = dt_seq_tree(run->session, 0);
  box->run = run;
  if (!box_host(box, make_objects, g, 2)) return out_of_memory(err);
  run->phase = RUN_INIT;
  bool ok = call_policy(g, "init", "init", err);
  while (ok && dt_seq_finish(run->session, 0) == DT_RUNNING && !interrupted(g->request)) ok = step(g, err);
  return ok;
}

static bool start_sequence(const generation *g, dt_pair *pair, dtl_error *err) {
  const dtl_request *request = g->request;
  dt_error engine;
  dt_status status;
  if (request->prefix) {
    status = dt_seq_start_from(g->run->session, 0, request->prefix, &request->seq, &engine);
  } else {
    int32_t *ids;
    int n;
    status = dt_encode(pair, request->text, request->text_len, &ids, &n, &engine);
    if (!status) {
      if (n == 0) {
        free(ids);
        return dtl_fail(err, DTL_INPUT, "the prompt is empty: at least one token is needed");
      }
      status = dt_seq_start(g->run->session, 0, ids, n, &request->seq, &engine);
      free(ids);
    }
  }
  return status ? dtl_fail_engine(err, &engine) : true;
}

/* With a session open: the sequence from its start to its result. */
static bool generate(generation *g, dt_pair *pair, dtl_error *err) {
  dtl_result *r = g->result;
  double start = dt_clock_ms();
  if (!start_sequence(g, pair, err)) return false;
  g->at = dt_seq_length(g->run->session, 0);
  dtl_trace *trace = g->request->trace;
  if (trace) trace_begin(trace, pair, g->run->session, r);
  dtl_error failure;
  bool ok = iterate(g, &failure);
  size_t len;
  const char *text = dt_seq_text(g->run->session, 0, &len);
  if (len > g->emitted) emit(g, text + g->emitted, len - g->emitted);
  double wall = dt_clock_ms() - start;
  if (!fill_tail(g, pair, ok ? err : NULL) && ok) return false;
  const dt_stats *s = &r->stats;
  double known = s->draft_ms + s->verify_ms + s->commit_ms + r->policy_ms + (s->shared_prefix ? 0 : s->prompt_ms);
  r->other_ms = wall > known ? wall - known : 0;
  if (ok) {
    bool ended = dt_seq_finish(g->run->session, 0) != DT_RUNNING;
    r->finish_reason = ended ? finish_name(dt_seq_finish(g->run->session, 0)) : "interrupted";
  } else {
    r->finish_reason = failure.kind == DTL_POLICY ? "policy" : "error";
    if (err) *err = failure;
  }
  if (trace) trace_end(trace, r);
  return ok;
}

bool dtl_generate(dt_pair *pair, dtl_policy *policy, const dtl_request *request, dtl_result *result, dtl_error *err) {
  memset(result, 0, sizeof *result);
  result->finish_reason = "error";
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  bool uses_draft = policy->info.uses_draft;
  if (policy->used || !policy->box.L)
    return dtl_fail(err, DTL_INPUT, "%s: a policy object serves one sequence: open it again", policy->info.name);
  if (uses_draft && !info.draft.path)
    return dtl_fail(err, DTL_INPUT, "%s needs a draft model: give --draft DIR", policy->info.name);
  if (policy->info.uses_costs && !request->costs)
    return dtl_fail(err, DTL_INPUT, "%s needs the costs of passes: calibrate first", policy->info.name);
  policy->used = true;
  dtl_run *run = calloc(1, sizeof *run);
  if (!run) return out_of_memory(err);
  run->uses_draft = uses_draft;
  generation g = {.policy = policy, .request = request, .result = result, .run = run};
  dt_session_options options = {.sequences = 1, .context = request->context, .use_draft = uses_draft};
  dt_error engine;
  bool ok = fill_head(&g, &info, err);
  if (ok && request->on_origin && !(g.origin = malloc((size_t)info.target.context))) ok = out_of_memory(err);
  if (ok && dt_session_open(pair, &options, &run->session, &engine)) ok = dtl_fail_engine(err, &engine);
  if (ok) ok = generate(&g, pair, err);
  dt_session_close(run->session);
  policy->box.run = NULL;
  free(run);
  free(g.origin);
  return ok;
}

void dtl_result_free(dtl_result *result) {
  free(result->tokens), free(result->prompt_ids);
  free(result->text), free(result->policy), free(result->params);
  free(result->target), free(result->draft), free(result->backend);
  memset(result, 0, sizeof *result);
}
