/* Calls of a policy: see stepper.h. */
#include "generate/stepper.h"

#include "box/corpus_object.h"
#include "box/handle.h"
#include "box/memory_object.h"
#include "box/sandbox.h"
#include "box/seq_object.h"
#include "box/tree_object.h"
#include "lookup/match.h"

#include <lauxlib.h>

#define GENERATOR 1 /* of random numbers: one for each policy object */

static bool looks_up(const dtl_policy_info *info, const dtl_request *request) {
  return info->uses_corpus && (request->corpus || !info->corpus_optional);
}

static bool remembers(const dtl_policy_info *info, const dtl_request *request) {
  return info->uses_memory || looks_up(info, request);
}

dt_status stepper_check(const dtl_policy *policy, const dt_pair *pair, const dtl_request *request, dt_error *err) {
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  if (policy->info.draft == DTL_NEEDS_DRAFT && !info.draft.path)
    return dtl_fail(err, DT_EINPUT, "%s needs a draft model: give --draft DIR", policy->info.name);
  if (remembers(&policy->info, request) && !request->memory)
    return dtl_fail(err, DT_EINPUT, "%s needs a memory that outlives its runs: set the request's memory",
                    policy->info.name);
  return DT_OK;
}

dt_status stepper_open(stepper *s, const dtl_policy *policy, uint64_t seed, const dtl_request *request, dt_error *err) {
  s->request = request;
  s->looks_up = looks_up(&policy->info, request);
  s->memory = remembers(&policy->info, request) ? memory_of(request->memory, policy->info.source) : NULL;
  s->group.n = s->joined = 0;
  s->has_batch = s->pauses = false;
  return opened_open(&s->object, policy, seed, err);
}

void stepper_close(stepper *s) { opened_close(&s->object); }

static const dtl_policy_info *info_of(const stepper *s) { return &s->object.policy->info; }

bool stepper_waits(const stepper *s) { return s->pauses || (s->object.box.L && s->object.box.waits); }

/* Adds the policy's time after box_call or box_resume returned `status`, and returns the status, in which an interrupt
 * is not a failure. */
static dt_status add_policy_time(stepper *s, dt_status status) {
  const dtl_box *box = &s->object.box;
  s->step_ms += box->policy_ms;
  for (int i = 0; i < s->group.n; i++) s->member[i]->result->policy_ms += box->policy_ms;
  return box->state == BOX_INTERRUPTED ? DT_OK : status;
}

/* Calls host.METHOD(object, seq or batch, costs, memory, corpus). entry, allowance: see box_call. */
static dt_status call_policy(stepper *s, const char *method, const char *entry, int allowance, dt_error *err) {
  dtl_box *box = &s->object.box;
  lua_State *L = box->L;
  lua_settop(box->co, 0);
  lua_getfield(L, OPENED_HOST, method); /* host is a plain table with the key `method`: nothing is allocated */
  lua_pushvalue(L, OPENED_OBJECT);
  lua_pushvalue(L, OPENED_SEQ);
  lua_pushvalue(L, OPENED_COSTS);
  lua_pushvalue(L, OPENED_MEMORY);
  lua_pushvalue(L, OPENED_CORPUS);
  lua_xmove(L, box->co, 6);
  return add_policy_time(s, box_call(box, entry, allowance, 5, err));
}

/* Makes the objects that calls pass to the policy. The stack of the main thread, which policies do not see, has object
 * and host before, and seq or batch, costs, memory and corpus after them in the end. */
static int make_objects(lua_State *L) {
  stepper *s = lua_touserdata(L, 1);
  sandbox_seed(L, s->object.seed, GENERATOR);
  if (info_of(s)->batch) {
    box_batch_push(L, &s->group);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &s->group); /* add_member finds it there */
  } else {
    box_seq_push(L, s->group.run[0]);
  }
  const dtl_run *run = s->group.run[0]; /* either all sequences of a request are sampled, or none */
  int slots = s->request->slots ? s->request->slots : 1;
  if (info_of(s)->uses_costs && s->request->costs)
    box_costs_push(L, s->request->costs, slots, run->temp > 0, dt_seq_is_coupled(run->session, run->seq));
  else if (info_of(s)->uses_costs)
    box_costs_push_learned(L, &s->costs, info_of(s)->source);
  else
    lua_pushnil(L);
  if (info_of(s)->uses_memory)
    box_memory_push(L, &s->memory->table);
  else
    lua_pushnil(L);
  if (s->looks_up)
    box_corpus_push(L, s->request->corpus, &s->memory->outputs);
  else
    lua_pushnil(L);
  return 4;
}

static int add_member(lua_State *L) {
  const stepper *s = lua_touserdata(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &s->group);
  box_batch_add(L, 2, &s->group);
  return 0;
}

/* Makes the Lua objects of the newest member. */
static dt_status represent(stepper *s, dt_error *err) {
  dtl_box *box = &s->object.box;
  if (s->joined == 1) {
    dt_status status = box_host(box, make_objects, s, 4, err);
    if (status) return status;
    s->has_batch = info_of(s)->batch;
  }
  return s->has_batch ? box_host(box, add_member, s, 0, err) : DT_OK;
}

dt_status stepper_join(stepper *s, slot *member, dt_error *err) {
  dtl_run *run = member->run;
  s->member[s->group.n] = member;
  s->group.run[s->group.n++] = run;
  run->id = ++s->joined;
  s->object.box.interrupt = member->request->interrupt;
  s->object.box.begin_line = member->request->begin_line;
  dt_status status = represent(s, err);
  if (!status && s->joined == 1) {
    run->phase = RUN_INIT;
    status = call_policy(s, "init", "init", s->object.policy->init_times, err);
  }
  if (status) stepper_leave(s, member);
  return status;
}

void stepper_leave(stepper *s, slot *member) {
  run_group *group = &s->group;
  int i = 0;
  while (s->member[i] != member) i++;
  if (s->object.box.L) { /* a box that was closed has freed its objects */
    handle_detach(member->run);
    if (s->has_batch) box_batch_remove(s->object.box.L, OPENED_SEQ, group, i);
  }
  for (group->n--; i < group->n; i++) {
    group->run[i] = group->run[i + 1];
    s->member[i] = s->member[i + 1];
  }
}

/* After the policy had control: reports what each member committed, or fails if one has not committed. */
static dt_status end_step(stepper *s, dt_status status, dt_error *err) {
  for (int i = 0; i < s->group.n; i++) {
    if (s->group.run[i]->phase == RUN_COMMITTED)
      slot_committed(s->member[i], s->step_ms);
    else if (!status && s->object.box.L) /* otherwise it was interrupted */
      status = dtl_fail(err, DT_EPOLICY, "%s: step returned without a call of commit", info_of(s)->path);
  }
  return status;
}

/* Whether a pause ends because the text's last tokens occur earlier in it. */
static bool resumes(const dtl_run *run) {
  int equal;
  if (run->pause == 0 || run->resume_at == 0) return false;
  match_find_end(dt_seq_tokens(run->session, run->seq), dt_seq_length(run->session, run->seq), run->resume_at, &equal);
  return equal == run->resume_at;
}

/* Counts one iteration of each member's pause. Returns whether all members pause in it. */
static bool take_pause(const run_group *group) {
  bool all = true;
  for (int i = 0; i < group->n; i++) {
    dtl_run *run = group->run[i];
    if (resumes(run)) run->pause = 0;
    all = all && run->pause > 0;
    if (run->pause > 0) run->pause--;
  }
  for (int i = 0; i < group->n && all; i++) {
    group->run[i]->plain = true;
    group->run[i]->paused++;
  }
  return all;
}

/* Ends a plain iteration: commits the target's own token of each member after the pass. */
static dt_status end_pause(stepper *s, dt_error *err) {
  run_group *group = &s->group;
  s->pauses = false;
  for (int pass = 0; pass < 2; pass++) {
    if (pass) run_commit(group->run, group->n, 0);
    for (int i = 0; i < group->n; i++) {
      const dt_error *failure = &group->run[i]->failure;
      if (failure->status) return dtl_fail(err, failure->status, "%s", failure->message);
    }
  }
  return end_step(s, DT_OK, err);
}

dt_status stepper_step(stepper *s, dt_error *err) {
  dt_status status = DT_OK;
  if (!s->object.box.L) return DT_OK; /* it was interrupted in init */
  for (int i = 0; i < s->group.n && !status; i++) status = run_begin(s->group.run[i], err);
  if (status) return status;
  dtl_run *run = s->group.run[0];
  if (run->course) learn_look(run->course);
  bool counts = run->course && info_of(s)->uses_costs && !s->request->costs;
  if (counts && !run->lockstep && run->pause == 0 && learn_wants_plain(run->course)) run->pause = 1;
  s->step_ms = 0;
  if (take_pause(&s->group)) {
    s->pauses = s->group.run[0]->lockstep;
    s->group.run[0]->awaits = RUN_VERIFY_PASS;
    if (s->pauses) return DT_OK;
    run_verify(s->group.run, s->group.n);
    return end_pause(s, err);
  }
  status = call_policy(s, "step", "draft", 1, err);
  return stepper_waits(s) ? DT_OK : end_step(s, status, err);
}

dt_status stepper_resume(stepper *s, dt_error *err) {
  if (s->pauses) return end_pause(s, err);
  dt_status status = add_policy_time(s, box_resume(&s->object.box, err));
  return stepper_waits(s) ? DT_OK : end_step(s, status, err);
}
