/* Slots that share passes: see slots.h. */
#include "generate/slots.h"

#include "measure/costs.h"

#include <stdlib.h>
#include <string.h>

dt_status slots_open(slots *all, int n, bool one_stepper, dt_error *err) {
  all->n = n;
  all->one_stepper = one_stepper;
  all->n_steppers = one_stepper ? 1 : n;
  all->slot = calloc((size_t)n, sizeof *all->slot);
  all->steppers = calloc((size_t)all->n_steppers, sizeof *all->steppers);
  return all->slot && all->steppers ? DT_OK : dtl_fail(err, DT_ENOMEM, "out of memory: %d slots", n);
}

void slots_close(slots *all) {
  free(all->slot);
  free(all->steppers);
}

/* ---- begin and end of a sequence --------------------------------------------------------------------------------- */

static bool runs(const slot *s) { return s->state == SLOT_PROMPT || s->state == SLOT_RUNNING; }

/* Reports a sequence's result, and frees its slot. */
static void leave(slots *all, slot *s, const dt_error *failure) {
  s->result->failed = failure != NULL;
  if (failure) s->result->failure = *failure;
  all->left(all->user, s);
  slot_close(s);
  if (!all->one_stepper) stepper_close(s->stepper);
  s->state = SLOT_FREE;
}

void slots_end(slots *all, slot *s, const dt_error *failure) {
  dt_error err;
  if (slot_end(s, failure, &err) && !failure) failure = &err;
  if (s->state == SLOT_RUNNING) stepper_leave(s->stepper, s);
  const dtl_result *result = s->result;
  if (result->uses_corpus) corpus_add(&s->stepper->memory->outputs, result->tokens, result->n_tokens);
  leave(all, s, failure);
}

/* Ends all sequences of this stepper with a failure. */
static void fail(slots *all, const stepper *of, const dt_error *failure) {
  for (int i = 0; i < all->n; i++)
    if (runs(&all->slot[i]) && all->slot[i].stepper == of) slots_end(all, &all->slot[i], failure);
  if (!all->one_stepper) return;
  all->over = true;
  all->failure = *failure;
}

/* Records in the result how much the policy finds from earlier runs. */
static void note_memory(const slot *s) {
  const dtl_policy_info *info = &s->policy->info;
  const dtl_corpus *corpus = s->request->corpus;
  dtl_result *result = s->result;
  result->uses_memory = info->uses_memory, result->uses_corpus = s->stepper->looks_up;
  if (info->uses_memory) result->remembered = (long)s->stepper->memory->table.n;
  if (result->uses_corpus) result->earlier_tokens = (long)s->stepper->memory->outputs.tokens;
  if (result->uses_corpus && corpus) {
    result->corpus_tokens = corpus->index.n;
    memcpy(result->corpus, corpus->hash, sizeof result->corpus);
  }
}

/* Learned costs already include sampling. */
static void set_clock(const slot *s, const course *c) {
  const dtl_costs *table = s->request->costs;
  dtl_run *run = s->run;
  const int *revision;
  run->clock.costs = table ? table : learn_costs(c, &revision);
  if (!table || run->temp == 0) return;
  run->clock.target_sample = table->target_sample;
  if (!s->request->seq.uncoupled) run->clock.draft_sample = table->draft_sample;
}

void slots_set_costs(slot *s, const learned_view *costs) {
  s->stepper->costs = *costs;
  s->run->course = costs->course;
  if (s->policy->info.uses_costs) set_clock(s, costs->course);
}

static dt_status start(slots *all, slot *s, dt_pair *pair, const learned_view *costs, dt_prefix **shared,
                       dt_error *err) {
  const dtl_request *r = s->request;
  const ptrdiff_t index = s - all->slot;
  s->result->index = s->number + 1;
  s->result->slots = r->slots;
  s->result->prompt = s->number / (r->answers ? r->answers : 1) + 1;
  s->stepper = &all->steppers[all->one_stepper ? 0 : index];
  uint64_t seed = r->seq.sampling.seed + (uint64_t)s->number;
  dt_status status = all->one_stepper ? DT_OK : stepper_open(s->stepper, s->policy, seed, r, err);
  if (!status) status = slot_open(s, pair, err);
  if (status) return status;
  if (s->policy->info.uses_costs) s->result->costs = r->costs ? "table" : "learn";
  s->run->lockstep = all->n_steppers > 1;
  slots_set_costs(s, costs);
  note_memory(s);
  return slot_start(s, all->session, (int)index, shared, err);
}

dt_status slots_begin(slots *all, slot *s, dt_pair *pair, const learned_view *costs, dt_prefix **shared) {
  dt_error err;
  s->state = SLOT_PROMPT;
  dt_status status = start(all, s, pair, costs, shared, &err);
  if (status) leave(all, s, &err);
  return status;
}

void slots_join(slots *all, slot *s) {
  dt_error err, lost;
  stepper *of = s->stepper;
  if (!stepper_join(of, s, &err)) {
    s->state = SLOT_RUNNING;
    return;
  }
  slot_end(s, &err, &lost);
  leave(all, s, &err);
  fail(all, of, &err);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* Ends sequences that are complete, after a policy had control. */
static void settle(slots *all, stepper *of, dt_status status, const dt_error *err) {
  if (status) {
    fail(all, of, err);
  } else if (!stepper_waits(of)) {
    for (int i = 0; i < all->n; i++) {
      slot *s = &all->slot[i];
      if (runs(s) && s->stepper == of && (!slot_runs(s) || all->stopped)) slots_end(all, s, NULL);
    }
  }
}

/* Begins iterations, and runs each until it is complete or waits for a pass. */
static void step_all(slots *all) {
  dt_error err;
  for (int i = 0; i < all->n_steppers; i++) {
    stepper *s = &all->steppers[i];
    if (s->group.n && !stepper_waits(s)) settle(all, s, stepper_step(s, &err), &err);
  }
}

/* Lists the steppers that wait for this pass. */
static int collect(slots *all, run_pass pass, stepper **waiting, dtl_run **runs) {
  int n = 0;
  for (int i = 0; i < all->n_steppers; i++) {
    stepper *s = &all->steppers[i];
    if (!s->group.n || !stepper_waits(s) || s->group.run[0]->awaits != pass) continue;
    waiting[n] = s;
    runs[n++] = s->group.run[0];
  }
  return n;
}

bool slots_turn(slots *all) {
  stepper *waiting[DTL_SLOTS];
  dtl_run *runs[DTL_SLOTS];
  dt_error err;
  step_all(all);
  int n = collect(all, RUN_DRAFT_PASS, waiting, runs);
  bool drafts = n > 0;
  if (drafts) {
    run_draft(runs, n);
  } else {
    n = collect(all, RUN_VERIFY_PASS, waiting, runs);
    if (n) run_verify(runs, n);
  }
  for (int i = 0; i < n; i++) settle(all, waiting[i], stepper_resume(waiting[i], &err), &err);
  return drafts;
}
