/* The Lua modules compiled into the program (lua/dt/, written out by embed.cmake). */
#ifndef DTL_EMBEDDED_H
#define DTL_EMBEDDED_H

#include <stddef.h>

typedef struct {
  const char *name; /* "dt.policy" */
  const char *text;
  size_t length;
} dtl_module;

extern const dtl_module dtl_embedded[]; /* ends with name == NULL */

#endif
