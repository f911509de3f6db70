/* Generates from one prompt or many: see dtl_generate. If several policy objects are at work, each runs until it waits
 * for a pass. Then the requested draft steps run as one; when all wait for the target, one verify pass serves them all.
 * A single policy object makes its passes itself. */
#include "generate/stepper.h"
#include "measure/costs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  bool taken;
  int prompt;
  generation g;
  stepper *s;
} place;

typedef struct {
  dt_pair *pair;
  const dtl_policy *policy;
  const dtl_request *request;
  int n;               /* number of answers to all prompts */
  dtl_result *results; /* [n] */
  /* [request->n] prefixes of prompts with several answers, from the first answer to the last; NULL: no prompt has
   * several */
  dt_prefix **shared;
  dt_session *session;
  dtl_learned *learned; /* the request's, or one for this request only */
  bool owns_learned;
  course *course; /* learns from its passes; NULL: nothing learns */
  int n_places, n_steppers;
  place *places;      /* [n_places] */
  stepper *steppers;  /* one per place, or one for all places */
  int next;           /* next prompt to begin */
  bool over, stopped; /* over: the policy that served all sequences failed; stopped: on_done said so */
  dt_error failure;
} work;

/* ---- begin and end of a sequence --------------------------------------------------------------------------------- */

/* Reports a sequence's result, and frees its place. */
static void leave(work *w, place *p, const dt_error *failure) {
  const dtl_request *r = w->request;
  dtl_result *result = &w->results[p->prompt];
  result->failed = failure != NULL;
  if (failure) result->failure = *failure;
  if (r->done && !r->done(r->user, p->prompt, result)) w->stopped = true;
  generation_close(&p->g);
  if (!w->policy->info.batch) stepper_close(p->s);
  p->taken = false;
}

static void end(work *w, place *p, const dt_error *failure) {
  dt_error err;
  if (generation_end(&p->g, failure, &err) && !failure) failure = &err;
  stepper_leave(p->s, &p->g);
  const dtl_result *result = p->g.result;
  if (result->uses_corpus) corpus_add(&p->s->memory->outputs, result->tokens, result->n_tokens);
  leave(w, p, failure);
}

/* Ends all sequences of this stepper. */
static void fail(work *w, stepper *s, const dt_error *failure) {
  for (int i = 0; i < w->n_places; i++)
    if (w->places[i].taken && w->places[i].s == s) end(w, &w->places[i], failure);
  if (!w->policy->info.batch) return;
  w->over = true;
  w->failure = *failure;
}

/* Gives the sequence of this place its stepper: the only one, or the one with the place's index. */
static dt_status find_stepper(work *w, place *p, dt_error *err) {
  const ptrdiff_t index = p - w->places;
  p->s = &w->steppers[w->n_steppers > 1 ? index : 0];
  uint64_t seed = w->request->seq.sampling.seed + (uint64_t)p->prompt;
  return w->policy->info.batch ? DT_OK : stepper_open(p->s, w->policy, seed, w->request, err);
}

/* Records how much it finds from earlier runs. */
static void note_memory(const work *w, const place *p, dtl_result *result) {
  const dtl_policy_info *info = &w->policy->info;
  result->uses_memory = info->uses_memory, result->uses_corpus = p->s->looks_up;
  if (info->uses_memory) result->remembered = (long)p->s->memory->table.n;
  if (result->uses_corpus) result->earlier_tokens = (long)p->s->memory->outputs.tokens;
  if (result->uses_corpus && w->request->corpus) {
    result->corpus_tokens = w->request->corpus->index.n;
    memcpy(result->corpus, w->request->corpus->hash, sizeof result->corpus);
  }
}

/* Learned costs already include drawing tokens. */
static void set_clock(const work *w, dtl_run *run) {
  const dtl_costs *table = w->request->costs;
  const int *revision;
  run->clock = (run_clock){.costs = table ? table : learn_costs(w->course, &revision)};
  if (!table || run->temp == 0) return;
  run->clock.target_draw = table->target_draw;
  if (!w->request->seq.uncoupled) run->clock.draft_draw = table->draft_draw;
}

static int answers_of(const dtl_request *r) { return r->answers ? r->answers : 1; }

static dt_status start(work *w, place *p, dt_error *err) {
  dtl_result *result = &w->results[p->prompt];
  dt_status status = find_stepper(w, p, err);
  if (!status) status = generation_open(&p->g, w->pair, w->policy, w->request, p->prompt, result, err);
  if (status) return status;
  result->index = p->prompt + 1;
  result->places = w->request->places;
  p->g.run->lockstep = w->n_steppers > 1;
  p->g.run->course = w->course;
  if (w->policy->info.uses_costs) {
    result->costs = w->request->costs ? "table" : "learn";
    set_clock(w, p->g.run);
  }
  note_memory(w, p, result);
  result->prompt = p->prompt / answers_of(w->request) + 1;
  dt_prefix **shared = w->shared ? &w->shared[result->prompt - 1] : NULL;
  bool last = w->shared && (p->prompt + 1) % answers_of(w->request) == 0;
  status = generation_start(&p->g, w->session, (int)(p - w->places), shared, err);
  if (last) dt_prefix_free(*shared), *shared = NULL;
  return status;
}

/* Starts the next prompt at this place. */
static void begin(work *w, place *p) {
  dt_error err, lost;
  *p = (place){.taken = true, .prompt = w->next++};
  if (start(w, p, &err)) {
    leave(w, p, &err);
  } else if (stepper_join(p->s, &p->g, &err)) {
    generation_end(&p->g, &err, &lost);
    leave(w, p, &err);
    fail(w, p->s, &err);
  }
}

static bool interrupted(const work *w) {
  const volatile sig_atomic_t *interrupt = w->request->interrupt;
  return w->stopped || (interrupt && *interrupt);
}

/* Starts waiting prompts at the free places. The first starts even after an interrupt, so that its result describes the
 * run. False: no place is taken any more. */
static bool fill(work *w) {
  bool any = false;
  for (int i = 0; i < w->n_places; i++) {
    place *p = &w->places[i];
    while (!p->taken && w->next < w->n && !w->over && (!interrupted(w) || w->next == 0)) begin(w, p);
    any |= p->taken;
  }
  return any;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* After a policy had control: complete sequences leave. */
static void settle(work *w, stepper *s, dt_status status, const dt_error *err) {
  if (status) {
    fail(w, s, err);
  } else if (!stepper_waits(s)) {
    for (int i = 0; i < w->n_places; i++) {
      place *p = &w->places[i];
      if (p->taken && p->s == s && (!generation_runs(&p->g) || w->stopped)) end(w, p, NULL);
    }
  }
}

/* Begins iterations, and runs each until it is over or waits for a pass. */
static void step_all(work *w) {
  dt_error err;
  for (int i = 0; i < w->n_steppers; i++) {
    stepper *s = &w->steppers[i];
    if (s->group.n && !stepper_waits(s)) settle(w, s, stepper_step(s, &err), &err);
  }
}

/* Lists the steppers that wait for this pass. */
static int collect(work *w, run_pass pass, stepper **waiting, dtl_run **runs) {
  int n = 0;
  for (int i = 0; i < w->n_steppers; i++) {
    stepper *s = &w->steppers[i];
    if (!s->group.n || !stepper_waits(s) || s->group.run[0]->awaits != pass) continue;
    waiting[n] = s;
    runs[n++] = s->group.run[0];
  }
  return n;
}

static void share_pass(work *w) {
  stepper *waiting[DTL_PLACES];
  dtl_run *runs[DTL_PLACES];
  dt_error err;
  int n = collect(w, RUN_DRAFT_PASS, waiting, runs);
  if (n) {
    run_draft(runs, n);
  } else {
    n = collect(w, RUN_VERIFY_PASS, waiting, runs);
    if (n) run_verify(runs, n);
  }
  for (int i = 0; i < n; i++) settle(w, waiting[i], stepper_resume(waiting[i], &err), &err);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Chooses the costs that learn from the passes. A policy that uses costs gets learned ones, unless there is a table. */
static dt_status open_course(work *w, dt_error *err) {
  const dtl_request *r = w->request;
  bool counts = w->policy->info.uses_costs && !r->costs;
  w->learned = r->learned;
  if (!w->learned && counts) {
    w->learned = dtl_learned_open(w->pair, &(dtl_learning){.interrupt = r->interrupt});
    w->owns_learned = true;
    if (!w->learned) return dtl_fail(err, DT_ENOMEM, "out of memory: what passes cost");
  }
  return w->learned ? learn_course(w->learned, w->n_places, &r->seq, counts, &w->course, err) : DT_OK;
}

static void close_course(work *w, bool failed) {
  for (int i = 0; i < w->n; i++) failed |= w->results[i].failed;
  if (w->course) learn_keep(w->learned, w->course, failed);
  if (w->owns_learned) dtl_learned_close(w->learned);
}

static dt_status check_request(const dt_pair *pair, const dtl_request *r, dt_error *err) {
  NEED_LIST(r->prompts, r->n, "prompts");
  for (int i = 0; i < r->n; i++)
    if (!r->prompts[i].prefix && !r->prompts[i].ids && r->prompts[i].len) NEED(r->prompts[i].text, "a prompt's text");
  NEED_LIST(r->seq.stop, r->seq.n_stop, "stop");
  if (r->session && dt_session_pair(r->session) != pair)
    return dtl_fail(err, DT_EINPUT, "the session was opened with another pair");
  if (r->learned && learn_pair(r->learned) != pair) return dtl_fail(err, DT_EINPUT, "learned: it is of another pair");
  const char *wrong = r->costs ? costs_wrong(r->costs) : NULL;
  return wrong ? dtl_fail(err, DT_EINPUT, "costs: %s", wrong) : DT_OK;
}

static dt_status prepare(work *w, dt_error *err) {
  const dtl_request *r = w->request;
  NEED(w->pair, "pair");
  NEED(w->policy, "policy");
  dt_status status = check_request(w->pair, r, err);
  if (status) return status;
  if (r->places < 0 || r->places > DTL_PLACES)
    return dtl_fail(err, DT_EINPUT, "batch: %d sequences at once is out of range: 1..%d", r->places, DTL_PLACES);
  if (w->n > 1 && (r->on_text || r->on_logprobs || r->on_origin || r->session))
    return dtl_fail(err, DT_EINPUT, "the text of one prompt can be followed or continued: there are %d", w->n);
  if (w->n > 1 && !r->places) return dtl_fail(err, DT_EINPUT, "%d answers need places", w->n);
  if ((status = stepper_check(w->policy, w->pair, r, err))) return status;
  dt_pair_info pair;
  dt_pair_describe(w->pair, &pair);
  w->n_places = r->places ? r->places : 1;
  w->n_steppers = w->policy->info.batch ? 1 : w->n_places;
  w->places = calloc((size_t)w->n_places, sizeof *w->places);
  w->steppers = calloc((size_t)w->n_steppers, sizeof *w->steppers);
  bool shares = answers_of(r) > 1;
  if (shares && !(r->seq.sampling.temp > 0))
    return dtl_fail(err, DT_EINPUT, "answers: at temperature 0 all %d are the same: give temp", r->answers);
  if (shares && r->seq.logprobs.prompt)
    return dtl_fail(err, DT_EINPUT, "echo: %d answers share their prompt's pass: ask for one answer", r->answers);
  if (shares) w->shared = calloc((size_t)r->n, sizeof(dt_prefix *));
  if (!w->places || !w->steppers || (shares && !w->shared))
    return dtl_fail(err, DT_ENOMEM, "out of memory: the places of %d sequences", w->n_places);
  if ((status = open_course(w, err))) return status;
  dt_session_options options = {.sequences = w->n_places,
                                .context = r->context,
                                .use_draft = w->policy->info.draft != DTL_NO_DRAFT && pair.draft.path,
                                .window = r->window};
  if (w->policy->info.batch) status = stepper_open(w->steppers, w->policy, r->seq.sampling.seed, r, err);
  if (status) return status;
  w->session = r->session;
  return w->session ? DT_OK : dt_session_open(w->pair, &options, &w->session, err);
}

dt_status dtl_generate(dt_pair *pair, const dtl_policy *policy, const dtl_request *request, dtl_result *results,
                       dt_error *err) {
  work w = {.pair = pair, .policy = policy, .request = request, .results = results};
  NEED(request, "request");
  if (request->answers < 0 || request->answers > DTL_ANSWERS)
    return dtl_fail(err, DT_EINPUT, "answers: %d is out of range: 1..%d", request->answers, DTL_ANSWERS);
  if (request->n > INT_MAX / answers_of(request))
    return dtl_fail(err, DT_EINPUT, "%d answers to each of %d prompts are too many", request->answers, request->n);
  w.n = request->n * answers_of(request);
  NEED_LIST(results, w.n, "results");
  for (int i = 0; i < w.n; i++) results[i] = (dtl_result){.finish_reason = "error"};
  dt_status status = prepare(&w, err);
  while (!status && fill(&w)) {
    step_all(&w);
    share_pass(&w);
  }
  if (!status && w.over) {
    status = w.failure.status;
    if (err) *err = w.failure;
  }
  if (!request->session) dt_session_close(w.session);
  close_course(&w, status);
  if (w.steppers && policy->info.batch) stepper_close(w.steppers);
  for (int i = 0; w.shared && i < request->n; i++) dt_prefix_free(w.shared[i]);
  free(w.shared);
  free(w.places);
  free(w.steppers);
  return status;
}
