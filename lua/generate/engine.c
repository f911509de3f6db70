/* The engine serves requests that come and go: see dtl_engine in host.h. Each request takes a slot. Its prompt is
 * processed in pieces, and then it joins the other requests' iterations. Between two of their iterations one piece
 * runs, or several prompts that together take no longer. A slot's rows stay in the cache until another request takes
 * the slot, and a prompt that begins with the same tokens reuses them. */
#include "generate/prefix_cache.h"
#include "generate/slots.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_MS 100.0
#define FIRST_PIECE 32 /* rows, while their time is unknown */
#define LEAST_PIECE 16
#define MOST_PIECE 4096
#define ALONE 4  /* a piece may take this many times as long if no running text waits for it */
#define MUCH 4   /* a prompt takes the slot that has at least 1 / MUCH of it in the cache */
#define WORTH 32 /* rows: computing fewer is faster than copying them */
#define KINDS 3  /* ways of sampling, each with costs of its own */

struct dtl_engine {
  dt_pair *pair;
  slots slots;
  int busy; /* slots that are not free */
  long turn;
  prefix_cache prefix_cache;
  double piece_ms;
  int piece; /* rows of a piece that takes about that time */
  dtl_learned *learned;
  bool owns_learned;
  course *course[DTL_SLOTS + 1][KINDS]; /* by sequences at once; NULL: not used yet */
};

/* ---- costs ------------------------------------------------------------------------------------------------------- */

static int kind_of(const dt_seq_options *o) { return !(o->sampling.temp > 0) ? 0 : o->uncoupled ? 1 : 2; }

static dt_status find_course(dtl_engine *e, int n, const dt_seq_options *o, bool first, course **out, dt_error *err) {
  course **known = &e->course[n][kind_of(o)];
  dt_status status = *known ? DT_OK : learn_course(e->learned, n, o, first, known, err);
  *out = *known;
  return status;
}

/* Gives each policy the costs of passes over as many sequences as run now. */
static void set_costs(dtl_engine *e) {
  int n = 0;
  for (int i = 0; i < e->slots.n; i++) n += e->slots.slot[i].state == SLOT_RUNNING;
  for (int i = 0; i < e->slots.n; i++) {
    learned_view view = {.sequences = n};
    const slot *s = &e->slots.slot[i];
    if (s->state == SLOT_RUNNING && !find_course(e, n, &s->copy.seq, false, &view.course, NULL))
      slots_set_costs(&e->slots.slot[i], &view);
  }
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static void left(void *user, slot *s) {
  dtl_engine *e = user;
  if (s->run && s->run->course) learn_keep(e->learned, s->run->course, s->result->failed);
  if (s->copy.done) s->copy.done(s->copy.user, 0, s->result);
  dtl_result_free(s->result);
  free((int32_t *)s->copied.ids);
  s->copied.ids = NULL;
  s->turn = ++e->turn;
  e->busy--;
}

/* The number of rows in the cache of slot i that a prompt can use. */
static int rows_of(const dtl_engine *e, int i, const int32_t *ids, int n) {
  return e->slots.slot[i].alone ? 0 : dt_seq_reusable(e->slots.session, i, ids, n);
}

/* Chooses a slot for a prompt: the free slot that has much of it in the cache, unless much of that slot's own prompt
 * would be lost; otherwise the slot that has been free longest; -1: none is free. */
static int choose(const dtl_engine *e, const int32_t *ids, int n) {
  int oldest = -1, best = -1, most = n / MUCH;
  for (int i = 0; i < e->slots.n; i++) {
    if (e->slots.slot[i].state != SLOT_FREE) continue;
    int same = rows_of(e, i, ids, n);
    if (oldest < 0 || e->slots.slot[i].turn < e->slots.slot[oldest].turn) oldest = i;
    if (same > most && same >= e->slots.slot[i].copied.n_ids / 2) best = i, most = same;
  }
  return best < 0 ? oldest : best;
}

/* ---- rows of other prompts --------------------------------------------------------------------------------------- */

/* Whether a request may use cached rows. Log-probabilities of a prompt need all its rows to be computed. */
static bool looks(const slot *s) { return !s->copy.alone && !s->copy.seq.logprobs.prompt; }

/* The other slot that has the most rows of slot i's prompt in the cache. */
static int best_other(const dtl_engine *e, int i, int *same) {
  const dtl_prompt *p = &e->slots.slot[i].copied;
  int best = -1;
  *same = 0;
  for (int j = 0; j < e->slots.n; j++) {
    int is = j == i ? 0 : rows_of(e, j, p->ids, p->n_ids);
    if (is > *same) best = j, *same = is;
  }
  return best;
}

/* Whether slot i's prompt should wait for a prompt that is being processed and will have rows that it lacks. On a GPU
 * it may then have to compute some of them nevertheless (dt_seq_continue). */
static bool waits(dtl_engine *e, int i) {
  const slot *s = &e->slots.slot[i];
  const int32_t *ids = s->copied.ids;
  int n = s->copied.n_ids, coming = 0, cached, others;
  if (!looks(s)) return false;
  for (int j = 0; j < e->slots.n; j++) {
    const slot *other = &e->slots.slot[j];
    int is = other->state == SLOT_PROMPT && !other->alone
                 ? prefix_cache_common(other->copied.ids, other->copied.n_ids - 1, ids, n - 1)
                 : 0;
    if (is > coming) coming = is;
  }
  if (coming < WORTH) return false;
  int own = rows_of(e, i, ids, n);
  best_other(e, i, &others);
  prefix_cache_find(&e->prefix_cache, ids, n, &cached);
  return coming >= WORTH + (own > others ? own : others) && coming >= WORTH + cached;
}

/* Moves the rows that slot i's prompt displaces to the prefix cache. If another text shares more tokens with the
 * prompt, copies the rows of that text into the slot. */
static void take_rows(dtl_engine *e, int i) {
  dt_session *session = e->slots.session;
  slot *s = &e->slots.slot[i];
  const int32_t *ids = s->copied.ids;
  int n = s->copied.n_ids, rows = s->alone ? 0 : dt_seq_rows(session, i), same = 0, cached = 0;
  int own = looks(s) ? rows_of(e, i, ids, n) : 0, other = looks(s) ? best_other(e, i, &same) : -1;
  if (looks(s)) prefix_cache_find(&e->prefix_cache, ids, n, &cached);
  bool moves = (same > cached ? same : cached) >= own + WORTH;
  if (rows - (moves ? 0 : own) >= WORTH) prefix_cache_add(&e->prefix_cache, session, i, rows);
  if (!moves) return;
  if (same > cached) prefix_cache_add(&e->prefix_cache, session, other, same);
  const dt_prefix *found = prefix_cache_find(&e->prefix_cache, ids, n, &cached);
  if (cached < own + WORTH) return;
  dt_seq_adopt(session, i, found, NULL); /* if this fails, all rows are computed */
  s->alone = false;
}

static dt_status check_request(const dtl_engine *e, const dtl_policy *policy, const dtl_request *r, dt_error *err) {
  NEED(policy, "policy");
  NEED(r, "request");
  NEED_LIST(r->prompts, r->n, "prompts");
  NEED_LIST(r->seq.stop, r->seq.n_stop, "stop");
  if (r->n != 1 || r->answers < 0 || r->answers > 1)
    return dtl_fail(err, DT_EINPUT, "engine: a request must have one prompt and one answer");
  if (r->prompts->prefix || r->session || r->learned || r->costs || r->context || r->window.last || r->window.sinks ||
      r->slots)
    return dtl_fail(
        err, DT_EINPUT,
        "engine: a request cannot set prefix, session, slots, costs, learned, context or window: the engine does");
  if (!r->prompts->ids && r->prompts->len) NEED(r->prompts->text, "the prompt's text");
  return stepper_check(policy, e->pair, r, err);
}

dt_status dtl_engine_begin(dtl_engine *e, const dtl_policy *policy, const dtl_request *request, dt_error *err) {
  int32_t *ids;
  int n;
  NEED(e, "engine");
  dt_status status = check_request(e, policy, request, err);
  if (status) return status;
  if (e->busy == e->slots.n) return dtl_fail(err, DT_ESTATE, "engine: all slots (%d) are in use", e->slots.n);
  if ((status = prompt_ids(e->pair, request->prompts, &ids, &n, err))) return status;
  slot *s = &e->slots.slot[choose(e, ids, n)];
  bool alone = s->alone; /* of the request whose rows are still in the slot */
  *s = (slot){.state = SLOT_QUEUED, .policy = policy, .copy = *request, .alone = alone, .turn = ++e->turn};
  s->copied = (dtl_prompt){.ids = ids, .n_ids = n};
  s->copy.prompts = &s->copied;
  s->own = (dtl_result){.finish_reason = "error"};
  s->request = &s->copy, s->result = &s->own;
  e->busy++;
  return DT_OK;
}

/* ---- prompts ----------------------------------------------------------------------------------------------------- */

static bool interrupted(const slot *s) { return s->copy.interrupt && *s->copy.interrupt; }

/* The slot whose prompt has waited longest for its next piece; -1: none waits. */
static int next_prompt(dtl_engine *e) {
  int next = -1;
  for (int i = 0; i < e->slots.n; i++) {
    const slot *s = &e->slots.slot[i];
    bool asks = s->state == SLOT_PROMPT || (s->state == SLOT_QUEUED && !waits(e, i));
    if (asks && (next < 0 || s->turn < e->slots.slot[next].turn)) next = i;
  }
  return next;
}

/* Begins a request with a piece of `rows` rows. False: it has failed, and its slot is free. */
static bool begin(dtl_engine *e, int i, int rows) {
  slot *s = &e->slots.slot[i];
  learned_view view = {.sequences = 1};
  if (find_course(e, 1, &s->copy.seq, false, &view.course, NULL)) view.course = e->course[1][0];
  s->copy.seq.piece = rows;
  s->copy.seq.drafts = dtl_policy_describe(s->policy)->draft != DTL_NO_DRAFT;
  take_rows(e, i);
  if (looks(s) && !s->alone) s->copy.session = e->slots.session; /* reuses its rows */
  s->alone = s->copy.alone;
  return !slots_begin(&e->slots, s, e->pair, &view, NULL);
}

static void learn_piece(dtl_engine *e, int rows, double ms) {
  double fits = ms > 0 ? rows * e->piece_ms / ms : MOST_PIECE;
  e->piece = fits < LEAST_PIECE ? LEAST_PIECE : fits > MOST_PIECE ? MOST_PIECE : (int)fits;
}

/* The number of target rows that a piece of slot i's prompt computed. */
static int has_run(const dtl_engine *e, int i, bool begins, int first) {
  dt_stats stats;
  dt_seq_stats(e->slots.session, i, &stats);
  return dt_seq_rows(e->slots.session, i) - (begins ? stats.cached_tokens : first);
}

/* Runs a piece of at most `rows` rows of slot i's prompt. */
static void run_piece(dtl_engine *e, int i, int rows) {
  slot *s = &e->slots.slot[i];
  dt_error err;
  int before, left_rows, first = dt_seq_rows(e->slots.session, i);
  double start = dt_clock_ms();
  s->turn = ++e->turn;
  bool begins = s->state == SLOT_QUEUED;
  if (begins && !begin(e, i, rows)) return;
  dt_status status = dt_seq_prompt(e->slots.session, i, 0, &before, &err);
  left_rows = before;
  if (!status && before && !begins) status = dt_seq_prompt(e->slots.session, i, rows, &left_rows, &err);
  const int ran = status ? 0 : has_run(e, i, begins, first);
  if (left_rows && ran >= rows) learn_piece(e, ran, dt_clock_ms() - start);
  if (status) {
    slots_end(&e->slots, s, &err);
  } else if (interrupted(s)) {
    slots_end(&e->slots, s, NULL);
  } else if (!left_rows) {
    slots_join(&e->slots, s);
  }
}

/* Whether the rest of slot i's prompt takes at most `ms` ms, judging by the time of a usual piece. */
static bool fits(const dtl_engine *e, int i, double ms) {
  const slot *s = &e->slots.slot[i];
  int rows = s->copied.n_ids - (s->state == SLOT_PROMPT ? dt_seq_rows(e->slots.session, i) : 0);
  return rows * e->piece_ms <= ms * e->piece;
}

/* Runs a piece of the prompt that has waited longest, and then prompts that should be complete within the rest of a
 * piece's time, since texts that begin together share more passes. `alone`: no running text waits meanwhile. */
static void run_prompts(dtl_engine *e, bool alone) {
  const int times = alone ? ALONE : 1;
  const double end = dt_clock_ms() + e->piece_ms * times;
  int i = next_prompt(e);
  if (i >= 0) run_piece(e, i, e->piece * times);
  while ((i = next_prompt(e)) >= 0 && fits(e, i, end - dt_clock_ms())) run_piece(e, i, e->piece * times);
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

int dtl_engine_step(dtl_engine *e) {
  bool alone = true;
  if (!e) return 0;
  set_costs(e);
  while (slots_turn(&e->slots)) {}
  for (int i = 0; i < e->slots.n; i++) alone &= e->slots.slot[i].state != SLOT_RUNNING;
  run_prompts(e, alone);
  return e->busy;
}

size_t dtl_engine_cached_bytes(const dtl_engine *e) { return e ? e->prefix_cache.bytes : 0; }

int dtl_engine_room(const dtl_engine *e) { return e ? e->slots.n - e->busy : 0; }

/* Measures a few passes now, so that no request has to wait for that. */
static dt_status begin_courses(dtl_engine *e, const dtl_engine_options *o, dt_error *err) {
  const dt_seq_options sampled = {.sampling = {.temp = 1}}, *kinds[] = {&(dt_seq_options){0}, &sampled};
  course *found;
  dt_status status = DT_OK;
  e->learned = o->learned ? o->learned : dtl_learned_open(e->pair, &(dtl_learning){0});
  e->owns_learned = !o->learned;
  if (!e->learned) return dtl_fail_memory(err, "the costs of passes");
  for (int i = 0; i < 2 && !status; i++) status = find_course(e, 1, kinds[i], true, &found, err);
  return status;
}

static dt_status open_engine(dtl_engine *e, const dtl_engine_options *o, dt_error *err) {
  dt_pair_info info;
  dt_pair_describe(e->pair, &info);
  dt_session_options session = {.sequences = o->slots, .context = o->context, .use_draft = info.draft.path};
  dt_status status = slots_open(&e->slots, o->slots, false, err);
  if (!status) status = begin_courses(e, o, err);
  return status ? status : dt_session_open(e->pair, &session, &e->slots.session, err);
}

dt_status dtl_engine_open(dt_pair *pair, const dtl_engine_options *o, dtl_engine **out, dt_error *err) {
  NEED(pair, "pair");
  NEED(o, "options");
  NEED(out, "out");
  if (o->slots < 1 || o->slots > DTL_SLOTS)
    return dtl_fail(err, DT_EINPUT, "engine: slots = %d is out of range: 1..%d", o->slots, DTL_SLOTS);
  if (!(o->piece_ms >= 0 && o->piece_ms <= 1e6))
    return dtl_fail(err, DT_EINPUT, "engine: piece_ms = %g is out of range: 0 to 1e6", o->piece_ms);
  if (o->learned && learn_pair(o->learned) != pair)
    return dtl_fail(err, DT_EINPUT, "the learned costs belong to another pair of models");
  dtl_engine *e = calloc(1, sizeof *e);
  if (!e) return dtl_fail_memory(err, "an engine");
  e->pair = pair;
  e->piece = FIRST_PIECE;
  e->prefix_cache.most = o->prefix_cache_bytes;
  e->piece_ms = o->piece_ms > 0 ? o->piece_ms : PIECE_MS;
  e->slots.left = left, e->slots.user = e;
  dt_status status = open_engine(e, o, err);
  if (status)
    dtl_engine_close(e);
  else
    *out = e;
  return status;
}

void dtl_engine_close(dtl_engine *e) {
  if (!e) return;
  for (int i = 0; i < e->slots.n && e->slots.slot; i++) {
    slot *s = &e->slots.slot[i];
    if (s->state == SLOT_QUEUED) {
      s->result->finish_reason = "interrupted";
      left(e, s);
    } else if (s->state != SLOT_FREE) {
      slots_end(&e->slots, s, NULL);
    }
  }
  prefix_cache_close(&e->prefix_cache);
  dt_session_close(e->slots.session);
  if (e->owns_learned) dtl_learned_close(e->learned);
  slots_close(&e->slots);
  free(e);
}
