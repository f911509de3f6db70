/* Sequences at once, in passes that they share: see places.h. */
#include "generate/places.h"

#include "measure/costs.h"

#include <stdlib.h>
#include <string.h>

dt_status places_open(places *ps, int n, bool one_stepper, dt_error *err) {
  ps->n = n;
  ps->one_stepper = one_stepper;
  ps->n_steppers = one_stepper ? 1 : n;
  ps->place = calloc((size_t)n, sizeof *ps->place);
  ps->steppers = calloc((size_t)ps->n_steppers, sizeof *ps->steppers);
  return ps->place && ps->steppers ? DT_OK : dtl_fail(err, DT_ENOMEM, "out of memory: the places of %d sequences", n);
}

void places_close(places *ps) {
  free(ps->place);
  free(ps->steppers);
}

/* ---- begin and end of a sequence --------------------------------------------------------------------------------- */

/* Reports a sequence's result, and frees its place. */
static void leave(places *ps, place *p, const dt_error *failure) {
  p->result->failed = failure != NULL;
  if (failure) p->result->failure = *failure;
  ps->left(ps->user, p);
  generation_close(&p->g);
  if (!ps->one_stepper) stepper_close(p->s);
  p->taken = false;
}

void places_end(places *ps, place *p, const dt_error *failure) {
  dt_error err;
  if (generation_end(&p->g, failure, &err) && !failure) failure = &err;
  if (p->joined) stepper_leave(p->s, &p->g);
  const dtl_result *result = p->result;
  if (result->uses_corpus) corpus_add(&p->s->memory->outputs, result->tokens, result->n_tokens);
  leave(ps, p, failure);
}

/* Ends all sequences of this stepper. */
static void fail(places *ps, const stepper *s, const dt_error *failure) {
  for (int i = 0; i < ps->n; i++)
    if (ps->place[i].taken && ps->place[i].s == s) places_end(ps, &ps->place[i], failure);
  if (!ps->one_stepper) return;
  ps->over = true;
  ps->failure = *failure;
}

/* Records how much it finds from earlier runs. */
static void note_memory(const place *p) {
  const dtl_policy_info *info = &p->policy->info;
  const dtl_corpus *corpus = p->request->corpus;
  dtl_result *result = p->result;
  result->uses_memory = info->uses_memory, result->uses_corpus = p->s->looks_up;
  if (info->uses_memory) result->remembered = (long)p->s->memory->table.n;
  if (result->uses_corpus) result->earlier_tokens = (long)p->s->memory->outputs.tokens;
  if (result->uses_corpus && corpus) {
    result->corpus_tokens = corpus->index.n;
    memcpy(result->corpus, corpus->hash, sizeof result->corpus);
  }
}

/* Learned costs already include sampling. */
static void set_clock(const place *p, const course *c) {
  const dtl_costs *table = p->request->costs;
  dtl_run *run = p->g.run;
  const int *revision;
  run->clock.costs = table ? table : learn_costs(c, &revision);
  if (!table || run->temp == 0) return;
  run->clock.target_sample = table->target_sample;
  if (!p->request->seq.uncoupled) run->clock.draft_sample = table->draft_sample;
}

void places_count(place *p, const learned_view *costs) {
  p->s->costs = *costs;
  p->g.run->course = costs->course;
  if (p->policy->info.uses_costs) set_clock(p, costs->course);
}

static dt_status start(places *ps, place *p, dt_pair *pair, const learned_view *costs, dt_prefix **shared,
                       dt_error *err) {
  const dtl_request *r = p->request;
  const ptrdiff_t index = p - ps->place;
  p->s = &ps->steppers[ps->one_stepper ? 0 : index];
  uint64_t seed = r->seq.sampling.seed + (uint64_t)p->number;
  dt_status status = ps->one_stepper ? DT_OK : stepper_open(p->s, p->policy, seed, r, err);
  if (!status) status = generation_open(&p->g, pair, p->policy, r, p->number, p->result, err);
  if (status) return status;
  p->result->index = p->number + 1;
  p->result->places = r->places;
  p->result->prompt = p->number / (r->answers ? r->answers : 1) + 1;
  if (p->policy->info.uses_costs) p->result->costs = r->costs ? "table" : "learn";
  p->g.run->lockstep = ps->n_steppers > 1;
  places_count(p, costs);
  note_memory(p);
  return generation_start(&p->g, ps->session, (int)index, shared, err);
}

dt_status places_begin(places *ps, place *p, dt_pair *pair, const learned_view *costs, dt_prefix **shared) {
  dt_error err;
  p->taken = true;
  dt_status status = start(ps, p, pair, costs, shared, &err);
  if (status) leave(ps, p, &err);
  return status;
}

void places_join(places *ps, place *p) {
  dt_error err, lost;
  stepper *s = p->s;
  p->joined = !stepper_join(s, &p->g, &err);
  if (p->joined) return;
  generation_end(&p->g, &err, &lost);
  leave(ps, p, &err);
  fail(ps, s, &err);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* After a policy had control: complete sequences leave. */
static void settle(places *ps, stepper *s, dt_status status, const dt_error *err) {
  if (status) {
    fail(ps, s, err);
  } else if (!stepper_waits(s)) {
    for (int i = 0; i < ps->n; i++) {
      place *p = &ps->place[i];
      if (p->taken && p->s == s && (!generation_runs(&p->g) || ps->stopped)) places_end(ps, p, NULL);
    }
  }
}

/* Begins iterations, and runs each until it is over or waits for a pass. */
static void step_all(places *ps) {
  dt_error err;
  for (int i = 0; i < ps->n_steppers; i++) {
    stepper *s = &ps->steppers[i];
    if (s->group.n && !stepper_waits(s)) settle(ps, s, stepper_step(s, &err), &err);
  }
}

/* Lists the steppers that wait for this pass. */
static int collect(places *ps, run_pass pass, stepper **waiting, dtl_run **runs) {
  int n = 0;
  for (int i = 0; i < ps->n_steppers; i++) {
    stepper *s = &ps->steppers[i];
    if (!s->group.n || !stepper_waits(s) || s->group.run[0]->awaits != pass) continue;
    waiting[n] = s;
    runs[n++] = s->group.run[0];
  }
  return n;
}

bool places_turn(places *ps) {
  stepper *waiting[DTL_PLACES];
  dtl_run *runs[DTL_PLACES];
  dt_error err;
  step_all(ps);
  int n = collect(ps, RUN_DRAFT_PASS, waiting, runs);
  bool drafts = n > 0;
  if (drafts) {
    run_draft(runs, n);
  } else {
    n = collect(ps, RUN_VERIFY_PASS, waiting, runs);
    if (n) run_verify(runs, n);
  }
  for (int i = 0; i < n; i++) settle(ps, waiting[i], stepper_resume(waiting[i], &err), &err);
  return drafts;
}
