/* Runs: their passes and their objects. See run.h. */
#include "box/run.h"

#include "box/notes.h"

#include <stdlib.h>
#include <string.h>

#define RIDING 4 /* rows that a sequence usually has in a draft pass at most, its committed tokens included */

/* ---- passes ------------------------------------------------------------------------------------------------------ */

dt_status run_begin(dtl_run *run, dt_error *err) {
  run->phase = RUN_DRAFT;
  run->rollbacks = 0;
  run->full.who = NULL;
  if (!run->plain) run->paused = 0;
  run->plain = false;
  run->draft_ms = run->verify_ms = run->commit_ms = 0;
  run->drafted = false;
  notes_drop(run);
  return dt_rollback(run->session, run->seq, err);
}

/* If a shared pass is refused, one of the runs made a mistake: each run then gets a pass of its own, and its own error.
 */
static bool refused(const dt_error *failure, int n) {
  return n > 1 && (failure->status == DT_EINPUT || failure->status == DT_ECONTEXT || failure->status == DT_ESTATE);
}

static void settle(dtl_run *run, const dt_error *failure) {
  run->failure.status = failure->status;
  if (failure->status) run->failure = *failure;
}

/* Lists the refs of all runs. The list is malloc'd, unless there is only one run: then it is the run's own. */
static dt_node_ref *join_refs(dtl_run *const *runs, int n, int *n_refs) {
  *n_refs = 0;
  for (int i = 0; i < n; i++) *n_refs += runs[i]->n_refs;
  if (n == 1) return runs[0]->refs;
  dt_node_ref *all = malloc(sizeof *all * (size_t)(*n_refs + 1)), *end = all;
  for (int i = 0; i < n && all; i++) {
    memcpy(end, runs[i]->refs, sizeof *all * (size_t)runs[i]->n_refs);
    end += runs[i]->n_refs;
  }
  return all;
}

/* The average length of the runs' texts, in tokens. */
static int context_of(dtl_run *const *runs, int n) {
  long all = 0;
  for (int i = 0; i < n; i++) all += dt_seq_length(runs[i]->session, runs[i]->seq);
  return (int)(all / n);
}

typedef struct {
  long passes, rows;
  double prompt_ms;
} draft_count;

static draft_count count_drafts(dtl_run *const *runs, int n) {
  draft_count count = {0};
  dt_stats stats;
  for (int i = 0; i < n; i++) {
    dt_seq_stats(runs[i]->session, runs[i]->seq, &stats);
    count.passes += stats.draft_passes, count.rows += stats.draft_rows, count.prompt_ms += stats.prompt_ms;
  }
  return count;
}

/* The course that learns from a pass of these runs; NULL: they have different ones. */
static course *course_of(dtl_run *const *runs, int n) {
  for (int i = 1; i < n; i++)
    if (runs[i]->course != runs[0]->course) return NULL;
  return runs[0]->course;
}

/* Learns the cost of a draft step, if it was one pass and if it was the first step of the iteration for all sequences
 * or for none. A later step that also computed many committed tokens says nothing about the usual cost. */
static void learn_draft(dtl_run *const *runs, int n, draft_count before, draft_count after, double ms) {
  long rows = after.rows - before.rows;
  int begun = 0;
  for (int i = 0; i < n; i++) begun += runs[i]->drafted;
  course *c = course_of(runs, n);
  if (!c || after.passes - before.passes != n || (begun > 0 && begun < n)) return;
  const int *revision, block = learn_costs(c, &revision)->block;
  if (begun || block || rows <= RIDING * n)
    learn_pass(c, begun ? LEARNED_DRAFT : LEARNED_FIRST, (int)rows, context_of(runs, n), 0, ms);
}

/* Learns the time in which the draft has processed the prompt of one sequence, of which `unread` tokens were left. */
static void learn_prompt(const dtl_run *run, int unread, double ms) {
  dt_stats stats;
  dt_seq_stats(run->session, run->seq, &stats);
  if (run->course && ms > 0) learn_read(run->course, unread < stats.prompt_tokens ? unread : stats.prompt_tokens, ms);
}

/* Learns the cost of a verify pass. A pass over the roots alone counts as plain decoding only if no draft pass came
 * before it in the iteration. */
static void learn_verify(dtl_run *const *runs, int n, double ms) {
  int rows = 0, drafted = 0;
  course *c = course_of(runs, n);
  if (!c) return;
  learn_cache_miss(c);
  for (int i = 0; i < n; i++) {
    rows += 1 + runs[i]->verdict.drafted;
    drafted += runs[i]->draft_ms > 0;
  }
  if (rows > n || !drafted) learn_pass(c, LEARNED_TARGET, rows, context_of(runs, n), runs[0]->verdict.experts_read, ms);
}

/* The cost of a draft step of a block head, whose guesses come from the first one of an iteration. */
static double block_cost(const dtl_run *run, const dtl_costs *costs, int context) {
  int width = 0;
  for (int i = 0; i < run->n_refs && !run->drafted; i++) {
    const int asked = run->refs[i].width, most = costs->block, here = asked && asked < most ? asked : most;
    width = here > width ? here : width;
  }
  return width ? costs_pass(costs, costs->draft, run->sharers * (width + 1.0) / costs->batch, context) : 0;
}

/* Advances the clock of each run by the cost of its draft pass, according to the costs that the run uses. */
static void clock_draft(dtl_run *const *runs, int n) {
  int context = context_of(runs, n), rows = 0;
  for (int i = 0; i < n; i++) rows += runs[i]->n_refs;
  for (int i = 0; i < n; i++) {
    run_clock *clock = &runs[i]->clock;
    const dtl_costs *costs = clock->costs;
    if (!costs || !costs->drafts) continue; /* a table may lack the draft */
    clock->ms += rows * clock->draft_sample;
    clock->ms += costs->block       ? block_cost(runs[i], costs, context)
                 : runs[i]->drafted ? costs_pass(costs, costs->draft, (double)rows / costs->batch, context)
                                    : costs_first(costs, runs[i]->sharers, context);
  }
}

static void clock_verify(dtl_run *const *runs, int n) {
  int rows = 0, context = context_of(runs, n);
  for (int i = 0; i < n; i++) rows += 1 + runs[i]->verdict.drafted;
  for (int i = 0; i < n; i++) {
    run_clock *clock = &runs[i]->clock;
    const dtl_costs *costs = clock->costs;
    if (costs)
      clock->ms += rows * clock->target_sample +
                   costs_target(costs, (double)rows / costs->batch, context, runs[i]->verdict.experts_read);
  }
}

double run_draft(dtl_run *const *runs, int n) {
  int n_refs;
  draft_count before = count_drafts(runs, n);
  const int unread = dt_seq_unread(runs[0]->session, runs[0]->seq);
  dt_node_ref *refs = join_refs(runs, n, &n_refs);
  dt_error failure;
  failure.status = DT_ESTATE; /* without memory for the list, each run gets its own pass, too */
  double start = dt_clock_ms();
  if (refs) failure.status = dt_draft_step(runs[0]->session, refs, n_refs, &failure);
  double ms = dt_clock_ms() - start;
  if (n > 1) free(refs);
  if (refused(&failure, n)) {
    for (int i = 0; i < n; i++) ms += run_draft(&runs[i], 1);
    return ms;
  }
  for (int i = 0; i < n; i++) runs[i]->sharers = n;
  draft_count after = count_drafts(runs, n);
  double step_ms = ms - (after.prompt_ms - before.prompt_ms); /* a sequence's first step also runs its prompt */
  if (!failure.status) {
    learn_draft(runs, n, before, after, step_ms);
    if (n == 1) learn_prompt(runs[0], unread, after.prompt_ms - before.prompt_ms);
    clock_draft(runs, n);
  }
  for (int i = 0; i < n; i++) {
    runs[i]->draft_ms += step_ms;
    runs[i]->drafted = true;
    settle(runs[i], &failure);
  }
  return ms;
}

double run_verify(dtl_run *const *runs, int n) {
  int seqs[DTL_SLOTS];
  dt_verdict verdicts[DTL_SLOTS];
  dt_error failure;
  for (int i = 0; i < n; i++) {
    seqs[i] = runs[i]->seq;
    verdicts[i].bonus = -1; /* the pass replaces it unless it fails */
  }
  double start = dt_clock_ms();
  failure.status = dt_verify_tree(runs[0]->session, seqs, n, verdicts, &failure);
  double ms = dt_clock_ms() - start;
  if (refused(&failure, n)) {
    for (int i = 0; i < n; i++) ms += run_verify(&runs[i], 1);
    return ms;
  }
  for (int i = 0; i < n; i++) {
    dtl_run *run = runs[i];
    settle(run, &failure);
    if (failure.status && verdicts[i].bonus < 0) continue;
    run->failure.status = DT_OK; /* the NaN that failed the pass was in rows of another run */
    run->verdict = verdicts[i];
    run->verify_ms += ms;
    run->phase = RUN_VERIFIED;
  }
  if (!failure.status) {
    learn_verify(runs, n, ms);
    clock_verify(runs, n);
  }
  return ms;
}

double run_commit(dtl_run *const *runs, int n, unsigned flags) {
  int seqs[DTL_SLOTS];
  dt_committed blocks[DTL_SLOTS];
  dt_error failure;
  for (int i = 0; i < n; i++) seqs[i] = runs[i]->seq;
  double start = dt_clock_ms();
  failure.status = dt_commit(runs[0]->session, seqs, n, flags, blocks, &failure);
  double ms = dt_clock_ms() - start;
  if (refused(&failure, n)) {
    for (int i = 0; i < n; i++) ms += run_commit(&runs[i], 1, flags);
    return ms;
  }
  for (int i = 0; i < n; i++) {
    dtl_run *run = runs[i];
    settle(run, &failure);
    if (failure.status) continue;
    run->block = blocks[i];
    run->commit_ms += ms;
    run->phase = RUN_COMMITTED;
  }
  return ms;
}

int run_await(lua_State *L, dtl_run *run, run_pass pass, lua_KContext context, lua_KFunction then) {
  if (run->lockstep && lua_isyieldable(L)) {
    run->awaits = pass;
    return box_wait(L, context, then);
  }
  box_exclude(L, pass == RUN_DRAFT_PASS ? run_draft(&run, 1) : run_verify(&run, 1));
  return then(L, LUA_OK, context);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* A failure that is not the policy's. */
static int end_run(lua_State *L, const dt_error *err) {
  box_of(L)->failure = *err;
  return box_kill(L, BOX_ENGINE_FAILED);
}

int run_fail(lua_State *L, const dt_error *err, const char *who) {
  if (err->status == DT_ESTATE || err->status == DT_EINPUT || err->status == DT_ECONTEXT) {
    const char *message = err->message, *name = strchr(who, ':') + 1;
    size_t n = strlen(name);
    if (!strncmp(message, name, n) && message[n] == ':') return luaL_error(L, "%s%s", who, message + n);
    return luaL_error(L, "%s: %s", who, message);
  }
  return end_run(L, err);
}

/* The policy gives a pass no arguments, so DT_EINPUT is a mistake of the request: for example, no token fits the
 * grammar. */
void run_check_pass(lua_State *L, const dtl_run *run, const char *who) {
  if (run->failure.status == DT_EINPUT)
    end_run(L, &run->failure);
  else if (run->failure.status)
    run_fail(L, &run->failure, who);
}

void run_check_iteration(lua_State *L, const dtl_run *run, const char *who) {
  if (run->phase == RUN_INIT) luaL_error(L, "%s: not in init", who);
  if (run->phase == RUN_COMMITTED) luaL_error(L, "%s: this step has committed already", who);
}
