/* The globals of the box (sandbox.c). */
#ifndef DTL_SANDBOX_H
#define DTL_SANDBOX_H

#include <lua.h>
#include <stdint.h>

/* Makes the globals of the box in the state L. Raises. */
void sandbox_install(lua_State *L);

/* Seeds math.random; different `seq` give independent random numbers. Raises. */
void sandbox_seed(lua_State *L, uint64_t seed, int seq);

/* Pushes the host's own half of the module dt.policy (its second result). */
void sandbox_push_host(lua_State *L);

#endif
