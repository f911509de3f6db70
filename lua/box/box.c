/* Memory, watch and calls of the box: see box.h. sandbox.c has the functions in it. */
#include "box/box.h"

#include "system/os.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOST_RESERVE (1u << 20)
#define WATCH_EVERY 64  /* instructions between two looks of the watch */
#define FIRST_LOOK 10.0 /* ms: shorter calls, nearly all, never read the processor's clock */
#define MESSAGE_MAX 300 /* bytes of a policy's own error message */

#if LUA_VERSION_NUM != 504
#error "the sizes below and forget_metamethods in sandbox.c are those of Lua 5.4"
#endif
/* Lua 5.4 with pointers of 8 bytes allocates 24 bytes before a string's text and one after it (TString), and 24 bytes
 * for each key of a table (Node). A larger block breaks the box's bound on strings or tables. */
#define STRING_BLOCK (BOX_STRING + 25)
#define KEYS_BLOCK (BOX_KEYS * 24)
#define LARGE_BLOCK (16u << 10)

dtl_box *box_of(lua_State *L) { return *(dtl_box **)lua_getextraspace(L); }

static void watch(lua_State *L, lua_Debug *ar);

static void watch_every(dtl_box *box, int instructions) {
  if (box->co) lua_sethook(box->co, watch, LUA_MASKCOUNT, instructions);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Refuses an allocation. Lua then collects all garbage and tries again. A second refusal before the watch looks again
 * ends the call; otherwise every further allocation would cost a full collection. */
static void *refuse(dtl_box *box, box_state why) {
  if (box->refused && box->state == BOX_ALIVE) box->state = why;
  box->refused = why;
  watch_every(box, 1);
  return NULL;
}

/* For a new block Lua says whether it is a string. Any other new block that is large holds a table's keys or is a
 * stack, since lists grow in place. Keys are limited because inserting n keys of equal hash takes a time proportional
 * to n^2. */
static bool too_large(const dtl_box *box, size_t tag, size_t size, box_state *why) {
  *why = tag == LUA_TSTRING ? BOX_LONG_STRING : BOX_LARGE_TABLE;
  return !box->hosting && size > (tag == LUA_TSTRING ? STRING_BLOCK : KEYS_BLOCK);
}

static void *allocate(void *ud, void *ptr, size_t old_size, size_t new_size) {
  dtl_box *box = ud;
  size_t tag = ptr ? 0 : old_size;
  box_state why;
  if (!ptr) old_size = 0;
  if (new_size == 0) {
    free(ptr);
    box->used -= old_size;
    return NULL;
  }
  if (new_size > old_size) {
    if (box->state != BOX_ALIVE) return NULL; /* more objects would delay the end of the call */
    if (!ptr && too_large(box, tag, new_size, &why)) return refuse(box, why);
    if (box->used - old_size + new_size > BOX_MEMORY + (box->hosting ? HOST_RESERVE : 0)) return refuse(box, BOX_FULL);
  }
  void *p = realloc(ptr, new_size);
  if (!p) return refuse(box, BOX_STARVED);
  if (new_size > old_size && new_size - old_size >= LARGE_BLOCK) watch_every(box, 1); /* the block took work to fill */
  box->used += new_size - old_size;
  return p;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static double read_clock(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double cpu_ms(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

/* A call has exceeded its time if two clocks say so: the wall clock, without time in the engine, and the processor time
 * of this thread since the first look. A policy therefore cannot fail because other programs load the machine. Reading
 * the processor time needs a system call, so it is read only if the wall clock, which is cheap and coarse, has exceeded
 * the limit. */
static bool is_over(dtl_box *box) {
  if (box->state != BOX_ALIVE) return true;
  if (box->interrupt && *box->interrupt) {
    box->state = BOX_INTERRUPTED;
  } else if (box->instructions >= BOX_INSTRUCTIONS * box->allowance) {
    box->state = BOX_OVERTIME;
  } else if (os_coarse_ms() >= box->look_at) {
    double now = cpu_ms();
    if (box->cpu_start < 0) box->cpu_start = now;
    double used = now - box->cpu_start;
    if (used >= box->limit_ms) box->state = box->limit_ms < box->call_ms * box->allowance ? BOX_SPENT : BOX_OVERTIME;
    box->look_at = dt_clock_ms() + box->limit_ms - used;
  }
  return box->state != BOX_ALIVE;
}

/* Ends the call. In a hook this returns, and Lua then yields. Where yielding is impossible, inside a C function that
 * called back into Lua (a comparator, a metamethod), it raises an error, which unwinds the stack until yielding is
 * possible; this allocates nothing. */
static int end_call(lua_State *L) {
  if (lua_isyieldable(L)) return lua_yield(L, 0);
  watch_every(box_of(L), 1);
  lua_pushnil(L);
  return lua_error(L);
}

static void watch(lua_State *L, lua_Debug *ar) {
  (void)ar;
  dtl_box *box = box_of(L);
  box->instructions += lua_gethookcount(L);
  if (is_over(box)) {
    end_call(L);
    return;
  }
  box->refused = BOX_ALIVE;
  if (lua_gethookcount(L) != WATCH_EVERY) watch_every(box, WATCH_EVERY);
}

void box_look(lua_State *L) {
  if (!box_of(L)->hosting && is_over(box_of(L))) end_call(L);
}

int box_kill(lua_State *L, box_state state) {
  box_of(L)->state = state;
  return end_call(L);
}

void box_exclude(lua_State *L, double ms) {
  dtl_box *box = box_of(L);
  box->start += ms;
  box->look_at += ms;
  box->engine_ms += ms;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* The line of the innermost frame in the policy's own file; 0: none. The failed thread still has its stack. */
static int failing_line(dtl_box *box) {
  lua_Debug ar;
  for (int level = 0; lua_getstack(box->co, level, &ar) && level < 200; level++)
    if (lua_getinfo(box->co, "Sl", &ar) && ar.currentline > 0 && !strcmp(ar.short_src, box->chunk))
      return ar.currentline;
  return 0;
}

#define MOST_CALLS 10 /* calls in a traceback, innermost first */

/* Lists the calls on the failed thread's stack. It allocates nothing, since the box may be full. */
static void trace_back(const dtl_box *box, char *out, size_t size) {
  lua_Debug ar;
  size_t used = 0;
  out[0] = 0;
  for (int level = 0; lua_getstack(box->co, level, &ar) && used < size; level++) {
    lua_getinfo(box->co, "nSl", &ar);
    char line[160], name[80] = "";
    if (level == MOST_CALLS)
      snprintf(line, sizeof line, "(outer calls are not shown)");
    else if (ar.currentline > 0)
      snprintf(line, sizeof line, "%s:%d:", ar.short_src, ar.currentline);
    else
      snprintf(line, sizeof line, "[C]:");
    if (ar.name)
      snprintf(name, sizeof name, " in %s '%.60s'", *ar.namewhat ? ar.namewhat : "function", ar.name);
    else
      snprintf(name, sizeof name, " in %s", *ar.what == 'm' ? "the policy file" : "the function that dtrun called");
    used += dtl_clean(out + used, size - used, line, strlen(line));
    if (level < MOST_CALLS) used += dtl_clean(out + used, size - used, name, strlen(name));
    if (used + 1 < size) out[used++] = '\n', out[used] = 0;
    if (level == MOST_CALLS) break;
  }
}

/* Splits "chunk:LINE: rest" off the message if Lua put it there; otherwise *line is 0. */
static const char *split_position(const dtl_box *box, const char *message, int *line) {
  size_t n = strlen(box->chunk);
  *line = 0;
  if (n == 0 || strncmp(message, box->chunk, n) || message[n] != ':') return message;
  char *end;
  long value = strtol(message + n + 1, &end, 10);
  if (end == message + n + 1 || end[0] != ':' || value <= 0 || value > 1 << 30) return message;
  *line = (int)value;
  return end[1] == ' ' ? end + 2 : end + 1;
}

/* Quotes the error that the policy raised. */
static void quote(const dtl_box *box, char *said, size_t size, int *line) {
  if (lua_type(box->co, -1) == LUA_TSTRING) { /* calls no metamethod of an error object */
    size_t len;
    const char *message = lua_tolstring(box->co, -1, &len);
    dtl_clean(said, size, message, len);
    message = split_position(box, said, line);
    memmove(said, message, strlen(message) + 1);
    size_t n = strlen(said);
    if (*box->hint && strstr(said, "nil")) snprintf(said + n, size - n, " (%s)", box->hint);
  } else {
    snprintf(said, size, "error object is a %s value", luaL_typename(box->co, -1));
  }
}

static dt_status fail_as_policy(dtl_box *box, dt_error *err) {
  char said[MESSAGE_MAX];
  int line = 0;
  switch (box->state) {
  case BOX_OVERTIME:
    snprintf(said, sizeof said, "policy ran longer than %g s (or %ld million instructions) in %s",
             box->call_ms * box->allowance / 1000, BOX_INSTRUCTIONS * box->allowance / 1000000, box->entry);
    break;
  case BOX_SPENT:
    snprintf(said, sizeof said, "policy used up its time limit for the whole run in %s", box->entry);
    break;
  case BOX_FULL:
    snprintf(said, sizeof said, "policy used more than %u MB of memory in %s", BOX_MEMORY >> 20, box->entry);
    break;
  case BOX_LONG_STRING:
    snprintf(said, sizeof said, "policy made a string of more than %u KiB in %s", BOX_STRING >> 10, box->entry);
    break;
  case BOX_LARGE_TABLE:
    snprintf(said, sizeof said, "policy made a table of more than %u keys, or a stack of that size, in %s", BOX_KEYS,
             box->entry);
    break;
  default: quote(box, said, sizeof said, &line);
  }
  if (line == 0) line = failing_line(box);
  if (line > 0)
    dtl_fail(err, DT_EPOLICY, "%s:%d: %s", box->path, line, said);
  else
    dtl_fail(err, DT_EPOLICY, "%s: %s", box->path, said);
  if (err) { /* dt_fail leaves file and line empty */
    dtl_clean(err->file, sizeof err->file, box->path, strlen(box->path));
    err->line = line;
    trace_back(box, err->traceback, sizeof err->traceback);
  }
  return DT_EPOLICY;
}

/* Describes the failure. Buffers of Lua's library try an allocation only once and then raise their own message, so
 * box->refused tells the real cause. */
static dt_status describe(dtl_box *box, dt_error *err) {
  if (box->state == BOX_ALIVE) box->state = box->refused;
  switch (box->state) {
  case BOX_ENGINE_FAILED: return dtl_fail(err, box->failure.status, "%s", box->failure.message);
  case BOX_INTERRUPTED: return dtl_fail(err, DT_EINTERRUPTED, "interrupted in %s", box->entry);
  case BOX_STARVED: return dtl_fail(err, DT_ENOMEM, "out of memory: policy %s", box->path);
  default: return fail_as_policy(box, err);
  }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

dt_status box_host(dtl_box *box, lua_CFunction work, void *data, int nresults, dt_error *err) {
  box->hosting = true;
  lua_pushcfunction(box->L, work);
  lua_pushlightuserdata(box->L, data);
  bool ok = lua_pcall(box->L, 1, nresults, 0) == LUA_OK;
  box->hosting = false;
  box->refused = BOX_ALIVE;
  if (!ok) lua_pop(box->L, 1);
  return ok ? DT_OK : dtl_fail(err, DT_ENOMEM, "out of memory: policy %s", box->path);
}

static int install(lua_State *L) {
  dtl_box *box = lua_touserdata(L, 1);
  box->co = lua_newthread(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, box);
  return 0;
}

dt_status box_open(dtl_box *box, const char *path, double seconds, dt_error *err) {
  *box = (dtl_box){
      .hosting = true, .path = path, .call_ms = BOX_MILLISECONDS, .left_ms = seconds > 0 ? seconds * 1e3 : INFINITY};
  box->L = lua_newstate(allocate, box);
  if (!box->L) return dtl_fail_memory(err, "a Lua state");
  *(dtl_box **)lua_getextraspace(box->L) = box;
  dt_status status = box_host(box, install, box, 0, err);
  if (status) box_close(box);
  return status;
}

void box_close(dtl_box *box) {
  if (box->L) lua_close(box->L);
  box->L = box->co = NULL;
}

/* Closes the box after a failure. */
static dt_status die(dtl_box *box, dt_error *err) {
  dt_status status = describe(box, err);
  box_close(box);
  return status;
}

dt_status box_load_failed(dtl_box *box, dt_error *err) {
  box->entry = "its file";
  return die(box, err);
}

int box_wait(lua_State *L, lua_KContext context, lua_KFunction then) {
  box_of(L)->waits = true;
  return lua_yieldk(L, 0, context, then);
}

/* Resumes the call on co at the time `now`. */
static dt_status run(dtl_box *box, int nargs, double now, dt_error *err) {
  int nresults;
  box->engine_ms = 0;
  box->waits = false;
  int status = lua_resume(box->co, box->L, nargs, &nresults);
  double end = dt_clock_ms();
  box->policy_ms = end - now - box->engine_ms;
  box->waits_since = end;
  if (box->state == BOX_ALIVE && box->waits) return DT_OK;
  box->left_ms -= end - box->start;
  if (box->state == BOX_ALIVE && status == LUA_OK) return DT_OK;
  return die(box, err);
}

dt_status box_call(dtl_box *box, const char *entry, int allowance, int nargs, dt_error *err) {
  box->entry = entry;
  box->allowance = allowance;
  box->instructions = 0;
  box->refused = BOX_ALIVE;
  *box->hint = '\0';
  box->limit_ms = fmin(box->call_ms * allowance, box->left_ms);
  box->start = dt_clock_ms();
  box->cpu_start = -1;
  box->look_at = box->start + fmin(FIRST_LOOK, box->limit_ms);
  watch_every(box, WATCH_EVERY);
  return run(box, nargs, box->start, err);
}

dt_status box_resume(dtl_box *box, dt_error *err) {
  double now = dt_clock_ms(), waited = now - box->waits_since;
  box->start += waited;
  box->look_at += waited;
  return run(box, 0, now, err);
}
