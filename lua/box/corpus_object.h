/* The policy's self.corpus (corpus_object.c). */
#ifndef DTL_BOX_CORPUS_OBJECT_H
#define DTL_BOX_CORPUS_OBJECT_H

#include "lookup/corpus.h"

#include <lua.h>

/* Pushes an object with the methods longest, places and token, which search the files (or NULL) and the earlier outputs
 * of the policy. Raises. */
void box_corpus_push(lua_State *L, const dtl_corpus *files, const corpus_outputs *earlier);

#endif
