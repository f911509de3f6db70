/* The Lua modules compiled into the program (lua/dt/, written out by embed.cmake). */
#ifndef DTL_EMBEDDED_H
#define DTL_EMBEDDED_H

#include <lua.h>

typedef struct {
  const char *name; /* "dt.policy" */
  const char *text;
  size_t length;
} dtl_module;

extern const dtl_module dtl_embedded[]; /* ends with name == NULL */

/* Pushes a module's chunk, or a message after a failure. Returns a status of lua_load. */
int embedded_load(lua_State *L, const dtl_module *m);

/* Pushes the chunk of module i of the box (from 0, in the order of loading) and returns its name, or NULL if there are
 * no more. Raises if memory runs out. Any thread may call it. */
const char *embedded_load_for_box(lua_State *L, int i);

#endif
