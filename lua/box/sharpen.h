/* policy.sharpen (sharpen.c). */
#ifndef DTL_BOX_SHARPEN_H
#define DTL_BOX_SHARPEN_H

#include <lua.h>

/* Pushes the function policy.sharpen. Raises. */
void box_sharpen_push(lua_State *L);

#endif
