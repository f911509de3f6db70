/* Objects for policies: userdata with methods. An unknown field's error names the nearest known one. */
#ifndef DTL_OBJECT_H
#define DTL_OBJECT_H

#include <lauxlib.h>

/* Makes the new userdata on top an object of the kind `name` with these methods. Leaves the userdata and the table of
 * methods on the stack. */
void object_make(lua_State *L, const char *name, const luaL_Reg *methods);

/* Makes the new userdata on top an object of the type `name`, which luaL_testudata knows, with these methods. Leaves
 * the userdata on the stack. */
void object_make_type(lua_State *L, const char *name, const luaL_Reg *methods);

/* Raises an error for the unknown field at index 2 of `kind` ("a tree"), which suggests the nearest of its names[n]. */
int object_no_field(lua_State *L, const char *kind, const char *const *names, int n);

/* Makes the table of methods on top raise an error for unknown names, which suggests the nearest known one. */
void object_name_unknown(lua_State *L, const char *name);

/* The integer argument i. Raises if it is not one; `who` and `what` name it in the message. */
lua_Integer object_integer(lua_State *L, int i, const char *who, const char *what);

#endif
