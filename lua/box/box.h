/* The box is the sandbox that a policy runs in: one lua_State whose allocator has a limit, which offers only the
 * functions listed in sandbox.c, and whose watch ends a call that takes too many instructions or too much time.
 *
 * The watch reads the clock between instructions and before each C function. Limits on the size of single strings and
 * tables and on the number of arguments, and a look after each large allocation, bound the time between two readings.
 *
 * Policy code runs in the thread `co` and only through box_call. The host works on the main thread `L`: in box_host,
 * which catches errors and opens a memory reserve, or with calls that cannot raise. A killed call yields and is never
 * resumed, so neither pcall nor __close sees it. A call may also yield to the host (box_wait) and continue after the
 * host has run the pass that it waits for. */
#ifndef DTL_BOX_H
#define DTL_BOX_H

#include "files/fail.h"
#include "system/digest.h"

#include <lua.h>

#define BOX_MEMORY (16u << 20)     /* bytes of Lua memory */
#define BOX_STRING (64u << 10)     /* bytes of a string */
#define BOX_KEYS (16u << 10)       /* keys of a table outside its list 1..n: Lua sizes tables by powers of two */
#define BOX_INSTRUCTIONS 20000000L /* per call */
#define BOX_MILLISECONDS 2000.0    /* per call, without the time inside the engine */
#define BOX_HINT 120               /* bytes of a hint, its NUL included */
#define BOX_INIT 50                /* init may take 50 times both limits, if the policy has the default time limit */

typedef enum {
  BOX_ALIVE,
  BOX_OVERTIME,
  BOX_SPENT, /* all calls together have used up their time */
  BOX_FULL,  /* the box has used up BOX_MEMORY */
  BOX_LONG_STRING,
  BOX_LARGE_TABLE,
  BOX_STARVED, /* the process is out of memory */
  BOX_INTERRUPTED,
  BOX_ENGINE_FAILED
} box_state;

/* The source texts of modules, found by the paths of their files. */
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
  bool hosting;               /* box_host runs, and the memory reserve is open */
  box_state refused;          /* why an allocation failed since the watch looked last; BOX_ALIVE: none did */
  box_state state;            /* once it is not BOX_ALIVE it never changes, whatever the policy catches */
  long instructions;          /* executed in this call */
  int allowance;              /* this call's limits, as a multiple of a usual call's */
  double start;               /* when this call began, ms; the time inside the engine is added, so it does not count */
  double cpu_start;           /* processor time, ms, at the watch's first look; negative: it has not looked yet */
  double call_ms;             /* limit of a usual call */
  double limit_ms;            /* limit of this call */
  double look_at;             /* ms: the earliest moment at which the limit can be reached */
  double left_ms;             /* time left for this call and all later ones together */
  double engine_ms;           /* time inside the engine since the policy got control */
  double policy_ms;           /* time outside the engine, from then until the host got control again */
  bool waits;                 /* the call is in a box_wait */
  double waits_since;         /* ms */
  const char *entry;          /* name of the policy's function that runs, for messages: "draft" */
  size_t printed;             /* bytes that print has written */
  bool quiet;                 /* print writes nothing */
  void (*begin_line)(void);   /* or NULL: see the same field of dtl_request */
  char hint[BOX_HINT];        /* names a field of the object that was nil in this call, and what may be meant; or "" */
  char chunk[LUA_IDSIZE];     /* name of the policy's file in Lua's messages */
  bool has_folder;            /* the policy file is being loaded, and may require files next to it */
  size_t source_left;         /* bytes that required files may still have */
  const box_modules *modules; /* texts to use instead of files; or NULL */
  box_modules *reads;         /* collects the texts of required files; or NULL */
  char source[DIGEST_TEXT];   /* digest of the texts of the policy and of required files */
  const char *path;           /* path of the policy's file; owned by the caller */
  dt_error failure;           /* the cause of BOX_ENGINE_FAILED */
  const volatile sig_atomic_t *interrupt; /* or NULL; nonzero ends a call */
} dtl_box;

/* Opens a box without functions (sandbox.h adds them). *box must not move afterwards. path: for messages; the caller
 * owns it, and it must outlive the box. seconds: time limit of all calls together; 0: no limit. A failure leaves
 * nothing to close. */
dt_status box_open(dtl_box *box, const char *path, double seconds, dt_error *err);
void box_close(dtl_box *box);

/* Runs the host's own work(L) with `data` as light userdata at index 1, without the policy's limits. Its `nresults`
 * results stay on L's stack. DT_ENOMEM: the box or the process is out of memory. */
dt_status box_host(dtl_box *box, lua_CFunction work, void *data, int nresults, dt_error *err);

/* Calls a policy's function under the watch, with `allowance` times a usual call's limits. The function is below its
 * nargs arguments on top of co's stack. After DT_OK either the call is over, and that stack has its results and nothing
 * more, or `waits` is set. `entry` names the function in messages; functions that it calls may refine the name. Any
 * failure fills err (DT_EPOLICY: the policy's fault) and closes the box. */
dt_status box_call(dtl_box *box, const char *entry, int allowance, int nargs, dt_error *err);

/* Continues a call that waits; its time limit does not count the time of waiting. Returns as box_call does. */
dt_status box_resume(dtl_box *box, dt_error *err);

/* Yields to the host, whose box_resume continues with then(L, LUA_YIELD, context). Only for a C function that the
 * policy called, and only if lua_isyieldable. Use as return box_wait(...). */
int box_wait(lua_State *L, lua_KContext context, lua_KFunction then);

/* Counts `ms` milliseconds as the engine's time and not the policy's. Only for a C function that the policy called. */
void box_exclude(lua_State *L, double ms);

/* Ends a call whose time is over. Every C function that a policy can call calls this before it works. */
void box_look(lua_State *L);

/* Turns the message that luaL_loadbufferx left on co into err, closes the box, and returns err's status. */
dt_status box_load_failed(dtl_box *box, dt_error *err);

/* Ends the call for good, for the reason `state`. Only for a C function that the policy called. Use as return
 * box_kill(...). */
int box_kill(lua_State *L, box_state state);

/* The box that L, or the main thread of L, belongs to. */
dtl_box *box_of(lua_State *L);

#endif
