/* Compiles the box's modules once per process, since every run opens a new box. They are not compiled when the program
 * is built, so that the bytecode always fits the Lua library that reads it. */
#include "box/embedded.h"

#include <lauxlib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char *bytes;
  size_t len;
} bytecode;

static const char *const box_modules[] = {"dt.policy.copies",  "dt.policy.experts",     "dt.policy.forced",
                                          "dt.policy.guesses", "dt.policy.loss_budget", "dt.policy.pace",
                                          "dt.policy.params",  "dt.policy.pass_costs",  "dt.policy.sources",
                                          "dt.policy"}; /* in order of loading */
enum { N_BOX_MODULES = sizeof box_modules / sizeof *box_modules };

/* bytes is NULL if memory was out; the text is then compiled for each box. */
static bytecode compiled[N_BOX_MODULES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const dtl_module *find(const char *name) {
  const dtl_module *m = dtl_embedded;
  while (strcmp(m->name, name)) m++;
  return m;
}

int embedded_load(lua_State *L, const dtl_module *m) {
  char chunk[64];
  snprintf(chunk, sizeof chunk, "=%s", m->name);
  return luaL_loadbufferx(L, m->text, m->length, chunk, "t");
}

static int append(lua_State *L, const void *bytes, size_t len, void *ud) {
  (void)L;
  bytecode *code = ud;
  char *grown = realloc(code->bytes, code->len + len);
  if (!grown) return 1;
  code->bytes = grown;
  memcpy(code->bytes + code->len, bytes, len);
  code->len += len;
  return 0;
}

static void compile_all(void) {
  lua_State *L = luaL_newstate();
  for (int i = 0; L && i < N_BOX_MODULES; i++) {
    bytecode *code = &compiled[i];
    if (embedded_load(L, find(box_modules[i])) == LUA_OK && lua_dump(L, append, code, 0) == 0) continue;
    free(code->bytes);
    *code = (bytecode){0};
  }
  if (L) lua_close(L);
}

const char *embedded_load_for_box(lua_State *L, int i) {
  if (i >= N_BOX_MODULES) return NULL;
  pthread_once(&once, compile_all);
  const bytecode *code = &compiled[i];
  const char *name = box_modules[i];
  if (code->bytes ? luaL_loadbufferx(L, code->bytes, code->len, name, "b") : embedded_load(L, find(name))) lua_error(L);
  return name;
}
