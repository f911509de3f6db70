/* Notes of a policy about its own run, for traces, results and reports: tags of its nodes (tree:tag) and named numbers
 * (seq:log). They affect nothing else. */
#ifndef DTL_NOTES_H
#define DTL_NOTES_H

#include "box/run.h"

/* Tag a node, or log a number, with the name at index i. They raise if it is not a name or the run has too many. */
void notes_tag(lua_State *L, dtl_run *run, int node, int i, const char *who);
void notes_log(lua_State *L, dtl_run *run, int i, double value, const char *who);

const char *notes_tag_of(const dtl_run *run, int node); /* NULL: the node has no tag */

/* Counts the tagged nodes of a committed iteration. Call it after the iteration is in the trace. */
void notes_committed(dtl_run *run);

/* Forgets the tags of a tree that is dropped. */
void notes_drop(dtl_run *run);

#endif
