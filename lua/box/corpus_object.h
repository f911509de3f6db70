/* self.corpus of a policy (corpus_object.c). */
#ifndef DTL_BOX_CORPUS_OBJECT_H
#define DTL_BOX_CORPUS_OBJECT_H

#include "lookup/corpus.h"

#include <lua.h>

/* Pushes an object with the methods longest, places and token. files: or NULL. Raises. */
void box_corpus_push(lua_State *L, const dtl_corpus *files, const corpus_outputs *earlier);

#endif
