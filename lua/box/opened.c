/* Opens a policy's object: see opened.h. lua/dt/policy/ has the rules for parameters. */
#include "box/opened.h"

#include "box/sandbox.h"
#include "files/identity.h"

#include <lauxlib.h>
#include <string.h>

static int fill_box(lua_State *L) {
  const opened *o = lua_touserdata(L, 1);
  sandbox_install(L);
  sandbox_seed(L, o->seed, 0);
  return 0;
}

typedef struct {
  opened *o;
  int status;
} compiling;

/* Compiles the text onto co; after a failure the message is there. */
static int load_chunk(lua_State *L) {
  compiling *c = lua_touserdata(L, 1);
  const dtl_policy *policy = c->o->policy;
  dtl_box *box = &c->o->box;
  const char *name = lua_pushfstring(L, "@%s", policy->info.path);
  const char *text = policy->text;
  size_t len = policy->len;
  if (len >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) text += 3, len -= 3;
  if (len > 0 &&
      text[0] == '#') /* skip a first line that names an interpreter, except for its end: lines are counted */
    while (len > 0 && *text != '\n') text++, len--;
  if (luaL_loadbufferx(L, "", 0, name, "t")) lua_error(L);
  lua_Debug ar;
  lua_getinfo(L, ">S", &ar);
  memcpy(box->chunk, ar.short_src, sizeof box->chunk);
  c->status = luaL_loadbufferx(box->co, text, len, name, "t");
  return 0;
}

dt_status opened_run_file(opened *o, const dtl_policy *policy, uint64_t seed, const volatile sig_atomic_t *interrupt,
                          box_modules *reads, dt_error *err) {
  dtl_box *box = &o->box;
  compiling c = {.o = o};
  o->policy = policy, o->seed = seed;
  dt_status status = box_open(box, policy->info.path, policy->seconds, err);
  if (status) return status;
  box->interrupt = interrupt;
  box->modules = &policy->modules;
  box->reads = reads;
  box->call_ms = policy->call_ms;
  box->quiet = !reads || policy->quiet;
  status = box_host(box, fill_box, o, 0, err);
  if (!status) status = box_host(box, load_chunk, &c, 0, err);
  if (status) return status;
  if (c.status != LUA_OK) return box_load_failed(box, err);
  identity_text(policy->text, policy->len, box->source);
  box->source_left = POLICY_TEXT - policy->len;
  box->has_folder = policy->has_folder;
  status = box_call(box, "its file", 1, 0, err);
  box->has_folder = false;
  return status;
}

/* Pushes {{name, text}, ...}. */
static void push_settings(lua_State *L, const dtl_setting *settings, int n) {
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_createtable(L, 2, 0);
    lua_pushstring(L, settings[i].name);
    lua_rawseti(L, -2, 1);
    lua_pushstring(L, settings[i].value);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, i + 1);
  }
}

void opened_push_call(lua_State *L, lua_State *co, const char *name) {
  sandbox_push_host(L);
  lua_getfield(L, -1, name);
  lua_settop(co, 1); /* nil if the file returned nothing */
  lua_pushvalue(co, 1);
  lua_xmove(co, L, 1);
}

/* Prepares the call of host.open: co has the file's value, and then host.open, that value, preset (a name, or settings)
 * and settings. */
static int prepare(lua_State *L) {
  const opened *o = lua_touserdata(L, 1);
  const dtl_policy *policy = o->policy;
  lua_State *co = o->box.co;
  opened_push_call(L, co, "open");
  lua_settop(co, 0);
  if (policy->tuned.settings)
    push_settings(L, policy->tuned.settings, policy->tuned.n);
  else
    lua_pushstring(L, policy->preset); /* NULL: nil */
  push_settings(L, policy->settings, policy->n_settings);
  lua_xmove(L, co, 4);
  return 0;
}

/* Moves the object from co, which has object and description, to the main thread, and pushes the host's functions after
 * it. */
static int take_object(lua_State *L) {
  const opened *o = lua_touserdata(L, 1);
  lua_settop(o->box.co, 1);
  lua_xmove(o->box.co, L, 1);
  sandbox_push_host(L);
  return 2;
}

dt_status opened_make_object(opened *o, dt_error *err) {
  dtl_box *box = &o->box;
  dt_status status = box_host(box, prepare, o, 0, err);
  if (!status) status = box_call(box, "check", 1, 3, err);
  if (!status && lua_isnil(box->co, 1)) status = dtl_fail(err, DT_EINPUT, "%s", lua_tostring(box->co, 2));
  return status;
}

dt_status opened_open(opened *o, const dtl_policy *policy, uint64_t seed, dt_error *err) {
  *o = (opened){0};
  dt_status status = opened_run_file(o, policy, seed, NULL, NULL, err);
  if (!status) status = opened_make_object(o, err);
  if (!status) status = box_host(&o->box, take_object, o, 2, err);
  o->box.quiet = policy->quiet;
  if (status) opened_close(o);
  return status;
}

void opened_close(opened *o) { box_close(&o->box); }
