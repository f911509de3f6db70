/* Generating several sequences at once: see dtl_generate_batch. The policies' calls go on until each waits for a pass:
 * then the drafts that are asked for run as one, and when all wait for the target, one verify pass serves them all. */
#include "stepper.h"

#include <stdlib.h>

typedef struct {
  bool taken;
  int prompt;
  dtl_request request;
  dtl_result result;
  generation g;
  stepper *s;
  dtl_policy *policy; /* its own; NULL where one serves all */
} place;

typedef struct {
  dt_pair *pair;
  const dtl_batch *batch;
  dt_session *session;
  place *places;     /* [batch->places] */
  stepper *steppers; /* one for each place, or one for all */
  int n_steppers;
  dtl_policy *first; /* opened before anything else: that of the first prompt, or the one that serves all */
  bool shared;
  int next;           /* prompt to begin */
  bool over, stopped; /* the policy that served all has failed; done said so */
  dtl_error failure;
} work;

static bool open_policy(const work *w, int prompt, dtl_policy **out, dtl_error *err) {
  dtl_policy_options options = *w->batch->policy;
  options.seed += (uint64_t)prompt;
  return dtl_policy_open(&options, out, err);
}

/* ---- a sequence's beginning and end ------------------------------------------------------------------------------------ */

/* Its result is told, and the place free. */
static void leave(work *w, place *p, const dtl_error *failure) {
  if (!w->batch->done(w->batch->user, p->prompt, &p->result, failure)) w->stopped = true;
  dtl_result_free(&p->result);
  generation_close(&p->g);
  dtl_policy_close(p->policy);
  p->policy = NULL;
  p->taken = false;
}

static void end(work *w, place *p, const dtl_error *failure) {
  dtl_error err;
  if (!generation_end(&p->g, failure, &err) && !failure) failure = &err;
  stepper_leave(p->s, &p->g);
  leave(w, p, failure);
}

/* The end of all sequences that a policy served. */
static void fail(work *w, stepper *s, const dtl_error *failure) {
  for (int i = 0; i < w->batch->places; i++)
    if (w->places[i].taken && w->places[i].s == s) end(w, &w->places[i], failure);
  if (!w->shared) return;
  w->over = true;
  w->failure = *failure;
}

/* Who will serve the sequence of this place. */
static bool find_stepper(work *w, place *p, dtl_error *err) {
  if (w->shared) {
    p->s = w->steppers;
    return true;
  }
  p->s = &w->steppers[p - w->places];
  p->policy = w->first;
  w->first = NULL;
  if (!p->policy && !open_policy(w, p->prompt, &p->policy, err)) return false;
  stepper_open(p->s, p->policy, w->batch->request->costs, w->batch->places);
  return true;
}

static bool start(work *w, place *p, dtl_error *err) {
  const dtl_prompt *prompt = &w->batch->prompts[p->prompt];
  p->request = *w->batch->request;
  p->request.text = prompt->text;
  p->request.text_len = prompt->len;
  p->request.prefix = prompt->prefix;
  p->request.on_text = NULL, p->request.on_origin = NULL, p->request.trace = NULL;
  p->request.seq.sampling.seed += (uint64_t)p->prompt;
  if (!find_stepper(w, p, err)) return false;
  if (!generation_open(&p->g, w->pair, p->s->policy, &p->request, &p->result, err)) return false;
  p->result.index = p->prompt + 1;
  p->result.places = w->batch->places;
  p->g.run->lockstep = !w->shared;
  return generation_start(&p->g, w->session, (int)(p - w->places), err);
}

/* The next prompt takes this place. */
static void begin(work *w, place *p) {
  dtl_error err, lost;
  *p = (place){.taken = true, .prompt = w->next++, .result = {.finish_reason = "error"}};
  if (!start(w, p, &err)) {
    leave(w, p, &err);
  } else if (!stepper_join(p->s, &p->g, &err)) {
    generation_end(&p->g, &err, &lost);
    leave(w, p, &err);
    fail(w, p->s, &err);
  }
}

static bool interrupted(const work *w) {
  const volatile sig_atomic_t *interrupt = w->batch->request->interrupt;
  return w->stopped || (interrupt && *interrupt);
}

/* Waiting prompts take the free places. False: none is taken any more. */
static bool fill(work *w) {
  bool any = false;
  for (int i = 0; i < w->batch->places; i++) {
    place *p = &w->places[i];
    while (!p->taken && w->next < w->batch->n && !w->over && !interrupted(w)) begin(w, p);
    any |= p->taken;
  }
  return any;
}

/* ---- turns --------------------------------------------------------------------------------------------------------------- */

/* A policy has had control: sequences that are complete leave. */
static void settle(work *w, stepper *s, bool ok, const dtl_error *err) {
  if (!ok) {
    fail(w, s, err);
  } else if (!stepper_waits(s)) {
    for (int i = 0; i < w->batch->places; i++) {
      place *p = &w->places[i];
      if (p->taken && p->s == s && (!generation_runs(&p->g) || w->stopped)) end(w, p, NULL);
    }
  }
}

/* Iterations begin, and go on until they are over or wait for a pass. */
static void step_all(work *w) {
  dtl_error err;
  for (int i = 0; i < w->n_steppers; i++) {
    stepper *s = &w->steppers[i];
    if (s->group.n && !stepper_waits(s)) settle(w, s, stepper_step(s, &err), &err);
  }
}

/* Those that wait for this pass. */
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
  dtl_error err;
  int n = collect(w, RUN_DRAFT_PASS, waiting, runs);
  if (n) {
    run_draft(runs, n);
  } else {
    n = collect(w, RUN_VERIFY_PASS, waiting, runs);
    if (n) run_verify(runs, n);
  }
  for (int i = 0; i < n; i++) settle(w, waiting[i], stepper_resume(waiting[i], &err), &err);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

static bool prepare(work *w, dtl_error *err) {
  const dtl_batch *b = w->batch;
  dt_error engine;
  if (b->places < 1 || b->places > DTL_PLACES)
    return dtl_fail(err, DTL_INPUT, "batch: %d sequences at once is out of range: 1..%d", b->places, DTL_PLACES);
  if (!open_policy(w, 0, &w->first, err) || !stepper_check(w->first, w->pair, b->request->costs, err)) return false;
  w->shared = w->first->info.batch;
  w->n_steppers = w->shared ? 1 : b->places;
  w->places = calloc((size_t)b->places, sizeof *w->places);
  w->steppers = calloc((size_t)w->n_steppers, sizeof *w->steppers);
  if (!w->places || !w->steppers) return dtl_fail(err, DTL_DEVICE, "out of memory: a batch");
  dt_session_options options = {
      .sequences = b->places, .context = b->request->context, .use_draft = w->first->info.uses_draft};
  if (w->shared) stepper_open(w->steppers, w->first, b->request->costs, b->places);
  return !dt_session_open(w->pair, &options, &w->session, &engine) || dtl_fail_engine(err, &engine);
}

bool dtl_generate_batch(dt_pair *pair, const dtl_batch *batch, dtl_error *err) {
  work w = {.pair = pair, .batch = batch};
  bool ok = prepare(&w, err);
  while (ok && fill(&w)) {
    step_all(&w);
    share_pass(&w);
  }
  if (ok && w.over) {
    ok = false;
    if (err) *err = w.failure;
  }
  dt_session_close(w.session);
  dtl_policy_close(w.first);
  free(w.places);
  free(w.steppers);
  return ok;
}
