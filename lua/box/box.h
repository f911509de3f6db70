/* The box a policy runs in: one lua_State with a capped allocator, listed functions only, and a watch that ends every
 * call after a number of instructions or a time.
 *
 * The watch looks at the clock between instructions and before each C function. Limits on the size of single strings
 * and tables, on the number of arguments, and a look after each large allocation bound the time between two looks.
 *
 * Policy code runs in the thread `co` and only through box_call. The host works on the main thread `L`: in box_host,
 * which catches errors and opens a memory reserve, or with calls that cannot raise. A killed call yields and is never
 * resumed, so neither pcall nor __close sees it. A call may also yield to the host (box_wait) and continue when the
 * host has done its pass. */
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
#define BOX_HINT 120               /* bytes of a hint */
#define BOX_INIT 50                /* init may take as many times as much of both, if a policy has the usual time */

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
  int allowance;              /* of this call: a multiple of a usual call's limits */
  double start;               /* of this call, ms, without the time inside the engine */
  double cpu_start;           /* processor time, ms, at the watch's first look; negative: it has not looked yet */
  double call_ms;             /* limit of a usual call */
  double limit_ms;            /* of this call */
  double look_at;             /* ms: the earliest moment at which the limit can be reached */
  double left_ms;             /* of all calls together, from this one on */
  double engine_ms;           /* inside the engine since the host handed over control */
  double policy_ms;           /* outside the engine, once the host has control again */
  bool waits;                 /* the call is in a box_wait */
  double waits_since;         /* ms */
  const char *entry;          /* the policy's function that runs, for messages: "draft" */
  size_t printed;             /* bytes that print has written */
  bool quiet;                 /* print writes nothing */
  void (*begin_line)(void);   /* or NULL: as dtl_request's */
  char hint[BOX_HINT];        /* of this call: a field of the object that is nil, and what may have been meant; or "" */
  char chunk[LUA_IDSIZE];     /* name of the policy's file in Lua's messages */
  bool has_folder;            /* the file runs, and may require files beside it */
  size_t source_left;         /* bytes that required files may still have */
  const box_modules *modules; /* texts to use instead of files; or NULL */
  box_modules *reads;         /* collects the texts of required files; or NULL */
  char source[DIGEST_TEXT];   /* a digest of the policy's text and of required texts */
  const char *path;           /* its full name; the caller's */
  dt_error failure;           /* the cause of BOX_ENGINE_FAILED */
  const volatile sig_atomic_t *interrupt; /* or NULL; nonzero ends a call */
} dtl_box;

/* Opens a box without functions (sandbox.h adds them). *box must not move afterwards. path: for messages, the caller's.
 * seconds: limit of all calls together; 0: none. A failure leaves nothing to close. */
dt_status box_open(dtl_box *box, const char *path, double seconds, dt_error *err);
void box_close(dtl_box *box);

/* Runs work(L) with `data` as light userdata at index 1, on the host's account. Its results stay on L's stack
 * (nresults). DT_ENOMEM: out of memory, the box's or the process's. */
dt_status box_host(dtl_box *box, lua_CFunction work, void *data, int nresults, dt_error *err);

/* Calls the function below the nargs arguments on top of co's stack as one watched entry, with `allowance` times a
 * usual call's limits. After DT_OK either the call is over, and its results are all that is on that stack, or `waits`
 * is set. `entry` names the function in messages; functions that it calls may refine the name. Any failure fills err
 * (DT_EPOLICY: the policy's fault) and ends the box's life. */
dt_status box_call(dtl_box *box, const char *entry, int allowance, int nargs, dt_error *err);

/* Lets a call that waits go on; the time it waited is not counted against it. Returns as box_call does. */
dt_status box_resume(dtl_box *box, dt_error *err);

/* From within a C function that the policy called, if lua_isyieldable: yields to the host, whose box_resume continues
 * with then(L, LUA_YIELD, context). Use as return box_wait(...). */
int box_wait(lua_State *L, lua_KContext context, lua_KFunction then);

/* From within such a function: counts this time as the engine's. */
void box_exclude(lua_State *L, double ms);

/* From within such a function, before it works: ends a call whose time is over. */
void box_look(lua_State *L);

/* Turns the message that luaL_loadbufferx left on co into err, and returns its status. */
dt_status box_load_failed(dtl_box *box, dt_error *err);

/* From within a C function that the policy called: ends the call for good. Use as return box_kill(...). */
int box_kill(lua_State *L, box_state state);

dtl_box *box_of(lua_State *L);

#endif
