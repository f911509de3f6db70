/* Modules of a policy (require.c). */
#ifndef DTL_BOX_REQUIRE_H
#define DTL_BOX_REQUIRE_H

#include <lua.h>

/* Runs the module whose name is at index 1, a file next to the policy's file, and returns its value, which it also puts
 * into the table of modules in upvalue 1 of the calling function. Raises. */
int box_require_file(lua_State *L);

#endif
