/* The box a policy runs in: one lua_State with a capped allocator, listed functions only, and a watch that ends every call
 * after so many instructions or so much time.
 *
 * The watch looks between instructions and before each function of C. What lies between two looks is bounded by the size of
 * single strings and tables, by the number of arguments, and by a look after each large allocation.
 *
 * Policy code runs in the thread `co` and only through box_call. The host works on the main thread `L`: in box_host, where
 * raising is caught and a memory reserve is open, or with calls that cannot raise. A call that is killed is abandoned
 * where it stands (it yields and is never resumed), so neither pcall nor __close sees it. A call may also wait for the host
 * in the middle (box_wait) and go on when the host has done what it waits for. */
#ifndef DTL_BOX_H
#define DTL_BOX_H

#include "files/fail.h"
#include "system/digest.h"

#include <lua.h>

#define BOX_MEMORY (16u << 20)     /* bytes of Lua memory */
#define BOX_STRING (64u << 10)     /* bytes of a string */
#define BOX_KEYS (16u << 10)       /* keys of a table, beside its list 1..n: Lua sizes tables by powers of two */
#define BOX_INSTRUCTIONS 20000000L /* per call */
#define BOX_MILLISECONDS 2000.0    /* per call, without the time inside the engine */
#define BOX_INIT 50                /* init may take as many times as much of both */

typedef enum {
  BOX_ALIVE,
  BOX_OVERTIME,
  BOX_SPENT, /* the time of all calls together */
  BOX_FULL,
  BOX_LONG_STRING,
  BOX_LARGE_TABLE,
  BOX_STARVED, /* the process has no memory */
  BOX_INTERRUPTED,
  BOX_ENGINE_FAILED
} box_state;

/* The texts of modules, by the paths of their files. */
typedef struct {
  struct box_module {
    char *path, *text;
    size_t len;
  } * list;
  int n;
} box_modules;

typedef struct {
  lua_State *L, *co;
  size_t used;                /* bytes allocated now */
  bool hosting;               /* the reserve is open */
  box_state refused;          /* why an allocation failed since the watch looked last; BOX_ALIVE: none did */
  box_state state;            /* once not alive it stays so, whatever the policy catches */
  long instructions;          /* of this call */
  int allowance;              /* of this call: how many times what a call may take */
  double start;               /* of this call, ms, without the time inside the engine */
  double cpu_start;           /* processor time, ms, at the watch's first look at it; negative: it has not looked yet */
  double limit_ms;            /* of this call */
  double look_at;             /* ms: before that the call cannot have had its time */
  double left_ms;             /* of all calls together, from this one on */
  double engine_ms;           /* inside the engine since the host handed over control */
  double policy_ms;           /* outside of it, once the host has control again */
  bool waits;                 /* the call stands in a box_wait */
  double waits_since;         /* ms */
  const char *entry;          /* what of the policy runs, for messages: "draft" */
  size_t printed;             /* bytes that print has put out */
  bool quiet;                 /* it puts out none */
  void (*begin_line)(void);   /* or NULL: as dtl_request's */
  char chunk[LUA_IDSIZE];     /* how Lua's messages name the policy's file */
  bool has_folder;            /* its file runs, and may require those beside it */
  size_t source_left;         /* bytes that these may have */
  const box_modules *modules; /* texts that are taken instead of files; or NULL */
  box_modules *reads;         /* gets the texts of files; or NULL */
  char source[DIGEST_TEXT];   /* a digest of the policy's text and of theirs */
  const char *path;           /* its full name; the caller's */
  dt_error failure;           /* what the box died of in BOX_ENGINE_FAILED */
  const volatile sig_atomic_t *interrupt; /* or NULL; ends a call */
} dtl_box;

/* An empty one: no function is in it (sandbox.h brings them). *box must not move afterwards. path: for messages, the caller's. seconds: what all calls together may take; 0: any time. A
 * failure leaves nothing to close. */
dt_status box_open(dtl_box *box, const char *path, double seconds, dt_error *err);
void box_close(dtl_box *box);

/* Runs work(L) with `data` as light userdata at index 1, on the host's account. Its results stay on L's stack (nresults).
 * DT_ENOMEM: out of memory, the box's or the process's. */
dt_status box_host(dtl_box *box, lua_CFunction work, void *data, int nresults, dt_error *err);

/* Calls the function below the nargs arguments on top of co's stack as one watched entry, which may take `allowance` times
 * what a call may. When it returns DT_OK the call is
 * over, its results being all that is on that stack, or `waits` is set. `entry` says in messages what runs; what it calls
 * may refine that. Any failure fills err, with DT_EPOLICY if it was the policy's, and ends the box's life. */
dt_status box_call(dtl_box *box, const char *entry, int allowance, int nargs, dt_error *err);

/* Lets a call that waits go on; the time it waited is not counted against it. Returns as box_call does. */
dt_status box_resume(dtl_box *box, dt_error *err);

/* From within a C function that the policy called, where lua_isyieldable: hands control to the host, whose box_resume goes
 * on with then(L, LUA_YIELD, context). Use as return box_wait(...). */
int box_wait(lua_State *L, lua_KContext context, lua_KFunction then);

/* From within such a function: this much time was the engine's. */
void box_exclude(lua_State *L, double ms);

/* From within such a function, before it works: ends a call that has had its time. */
void box_look(lua_State *L);

/* Turns the message that luaL_loadbufferx left on co into err, and returns its status. */
dt_status box_load_failed(dtl_box *box, dt_error *err);

/* From within a C function that the policy called: ends the call for good. Use as return box_kill(...). */
int box_kill(lua_State *L, box_state state);

dtl_box *box_of(lua_State *L);

#endif
