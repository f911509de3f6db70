/* Modules of a policy (require.c). */
#ifndef DTL_BOX_REQUIRE_H
#define DTL_BOX_REQUIRE_H

#include <lua.h>

/* The module `name` at index 1, a file next to the policy's: runs it and puts its value into the table of modules in
 * upvalue 1. To be called from a function that has it. Raises. */
int box_require_file(lua_State *L);

#endif
