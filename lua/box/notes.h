/* What a policy says about its own run, for traces, results and reports: names of its nodes (tree:tag) and numbers by
 * name (seq:log). It changes nothing else. */
#ifndef DTL_NOTES_H
#define DTL_NOTES_H

#include "box/run.h"

/* The names at index i: raise for what is none, and for more of them than a run may have. */
void notes_tag(lua_State *L, dtl_run *run, int node, int i, const char *who);
void notes_log(lua_State *L, dtl_run *run, int i, double value, const char *who);

const char *notes_tag_of(const dtl_run *run, int node); /* NULL: it has none */

/* A committed iteration ends: its tagged nodes are counted. After its trace. */
void notes_committed(dtl_run *run);

/* The tree is dropped, and its tags. */
void notes_drop(dtl_run *run);

#endif
