/* Generates from one or several prompts: see dtl_generate in host.h. */
#include "generate/slots.h"
#include "measure/costs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  dt_pair *pair;
  const dtl_policy *policy;
  const dtl_request *request;
  int n;               /* number of answers to all prompts */
  dtl_result *results; /* [n] */
  /* [request->n] the prefix of each prompt, kept from its first answer to its last; NULL: prompts have one answer each
   */
  dt_prefix **shared;
  dtl_learned *learned; /* the request's, or one for this request only */
  bool owns_learned;
  learned_view costs; /* its course learns from the passes; course NULL: nothing learns */
  slots slots;
  int next; /* next prompt to begin */
} work;

/* ---- begin and end of a sequence --------------------------------------------------------------------------------- */

static void left(void *user, slot *s) {
  work *w = user;
  const dtl_request *r = w->request;
  if (r->done && !r->done(r->user, s->number, s->result)) w->slots.stopped = true;
}

static int answers_of(const dtl_request *r) { return r->answers ? r->answers : 1; }

/* Starts the next prompt in this slot. */
static void begin(work *w, slot *s) {
  int number = w->next++, answers = answers_of(w->request);
  *s = (slot){.policy = w->policy, .request = w->request, .result = &w->results[number], .number = number};
  dt_prefix **shared = w->shared ? &w->shared[number / answers] : NULL;
  dt_status status = slots_begin(&w->slots, s, w->pair, &w->costs, shared);
  if (shared && (number + 1) % answers == 0) dt_prefix_free(*shared), *shared = NULL;
  if (!status) slots_join(&w->slots, s);
}

static bool interrupted(const work *w) {
  const volatile sig_atomic_t *interrupt = w->request->interrupt;
  return w->slots.stopped || (interrupt && *interrupt);
}

/* Starts waiting prompts in free slots. The first one starts even after an interrupt, so that its result describes the
 * run. Returns false if all slots are still free. */
static bool fill(work *w) {
  bool any = false;
  for (int i = 0; i < w->slots.n; i++) {
    slot *s = &w->slots.slot[i];
    while (s->state == SLOT_FREE && w->next < w->n && !w->slots.over && (!interrupted(w) || w->next == 0)) begin(w, s);
    any |= s->state != SLOT_FREE;
  }
  return any;
}

/* ---- a request --------------------------------------------------------------------------------------------------- */

/* Chooses the course that learns from the passes. A policy that uses costs gets learned ones, unless the request has a
 * table. */
static dt_status open_course(work *w, dt_error *err) {
  const dtl_request *r = w->request;
  bool counts = w->policy->info.uses_costs && !r->costs;
  w->learned = r->learned;
  if (!w->learned && counts) {
    w->learned = dtl_learned_open(w->pair, &(dtl_learning){.interrupt = r->interrupt});
    w->owns_learned = true;
    if (!w->learned) return dtl_fail_memory(err, "the costs of passes");
  }
  w->costs.sequences = w->slots.n;
  return w->learned ? learn_course(w->learned, w->slots.n, &r->seq, counts, &w->costs.course, err) : DT_OK;
}

static void close_course(work *w, bool failed) {
  for (int i = 0; i < w->n; i++) failed |= w->results[i].failed;
  if (w->costs.course) learn_keep(w->learned, w->costs.course, failed);
  if (w->owns_learned) dtl_learned_close(w->learned);
}

static dt_status check_request(const dt_pair *pair, const dtl_request *r, dt_error *err) {
  NEED_LIST(r->prompts, r->n, "prompts");
  for (int i = 0; i < r->n; i++)
    if (!r->prompts[i].prefix && !r->prompts[i].ids && r->prompts[i].len) NEED(r->prompts[i].text, "a prompt's text");
  NEED_LIST(r->seq.stop, r->seq.n_stop, "stop");
  if (r->session && dt_session_pair(r->session) != pair)
    return dtl_fail(err, DT_EINPUT, "the session was opened with another pair");
  if (r->learned && learn_pair(r->learned) != pair)
    return dtl_fail(err, DT_EINPUT, "the learned costs belong to another pair of models");
  const char *wrong = r->costs ? costs_wrong(r->costs) : NULL;
  return wrong ? dtl_fail(err, DT_EINPUT, "costs: %s", wrong) : DT_OK;
}

dt_status dtl_request_check(const dtl_request *r, dt_error *err) {
  NEED(r, "request");
  if (r->answers < 0 || r->answers > DTL_ANSWERS)
    return dtl_fail(err, DT_EINPUT, "answers: %d is out of range: 1..%d", r->answers, DTL_ANSWERS);
  if (r->slots < 0 || r->slots > DTL_SLOTS)
    return dtl_fail(err, DT_EINPUT, "slots: %d is out of range: 1..%d", r->slots, DTL_SLOTS);
  if (answers_of(r) > 1 && !(r->seq.sampling.temp > 0))
    return dtl_fail(err, DT_EINPUT, "answers: at temperature 0 all %d answers are identical: set temp above 0",
                    r->answers);
  if (answers_of(r) > 1 && r->seq.logprobs.prompt)
    return dtl_fail(err, DT_EINPUT, "echo needs a single answer (got %d): ask for one answer", r->answers);
  return dt_check_options(&r->seq, err);
}

static dt_status prepare(work *w, dt_error *err) {
  const dtl_request *r = w->request;
  NEED(w->pair, "pair");
  NEED(w->policy, "policy");
  dt_status status = check_request(w->pair, r, err);
  if (status) return status;
  if (w->n > 1 && (r->on_text || r->on_logprobs || r->on_origin || r->session))
    return dtl_fail(err, DT_EINPUT, "streaming and sessions need exactly one prompt and one answer (got %d answers)",
                    w->n);
  if (w->n > 1 && !r->slots) return dtl_fail(err, DT_EINPUT, "%d answers need slots: set slots to 1 or more", w->n);
  if ((status = stepper_check(w->policy, w->pair, r, err))) return status;
  dt_pair_info pair;
  dt_pair_describe(w->pair, &pair);
  if ((status = slots_open(&w->slots, r->slots ? r->slots : 1, w->policy->info.batch, err))) return status;
  bool shares = answers_of(r) > 1;
  if (shares) w->shared = calloc((size_t)r->n, sizeof(dt_prefix *));
  if (shares && !w->shared) return dtl_fail(err, DT_ENOMEM, "out of memory: the prefixes of %d prompts", r->n);
  if ((status = open_course(w, err))) return status;
  dt_session_options options = {.sequences = w->slots.n,
                                .context = r->context,
                                .use_draft = w->policy->info.draft != DTL_NO_DRAFT && pair.draft.path,
                                .window = r->window};
  if (w->slots.one_stepper) status = stepper_open(w->slots.steppers, w->policy, r->seq.sampling.seed, r, err);
  if (status) return status;
  w->slots.session = r->session;
  return r->session ? DT_OK : dt_session_open(w->pair, &options, &w->slots.session, err);
}

dt_status dtl_generate(dt_pair *pair, const dtl_policy *policy, const dtl_request *request, dtl_result *results,
                       dt_error *err) {
  work w = {.pair = pair, .policy = policy, .request = request, .results = results};
  w.slots.left = left, w.slots.user = &w;
  NEED(request, "request");
  dt_status status = dtl_request_check(request, err);
  if (request->answers < 0 || request->answers > DTL_ANSWERS) return status; /* so the number of results is unknown */
  if (request->n > INT_MAX / answers_of(request))
    return dtl_fail(err, DT_EINPUT, "%d answers to each of %d prompts are too many: ask for fewer", request->answers,
                    request->n);
  w.n = request->n * answers_of(request);
  NEED_LIST(results, w.n, "results");
  for (int i = 0; i < w.n; i++) results[i] = (dtl_result){.finish_reason = "error"};
  if (!status) status = prepare(&w, err);
  while (!status && fill(&w)) slots_turn(&w.slots);
  if (!status && w.slots.over) {
    status = w.slots.failure.status;
    if (err) *err = w.slots.failure;
  }
  if (!request->session) dt_session_close(w.slots.session);
  close_course(&w, status);
  if (w.slots.steppers && w.slots.one_stepper) stepper_close(w.slots.steppers);
  for (int i = 0; w.shared && i < request->n; i++) dt_prefix_free(w.shared[i]);
  free(w.shared);
  slots_close(&w.slots);
  return status;
}
