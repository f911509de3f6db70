/* The policy's self.memory (memory_object.c). */
#ifndef DTL_BOX_MEMORY_OBJECT_H
#define DTL_BOX_MEMORY_OBJECT_H

#include "lookup/memory.h"

#include <lua.h>

/* Pushes an object with the methods get, set and room. Raises. */
void box_memory_push(lua_State *L, memory_table *table);

#endif
