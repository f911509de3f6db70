/* The policy's `seq` (seq_object.c), and the tables that `batch` shares with it. */
#ifndef DTL_BOX_SEQ_OBJECT_H
#define DTL_BOX_SEQ_OBJECT_H

#include "box/run.h"

/* Pushes seq after the tree on top, and links the two. Raises. */
void box_seq_push(lua_State *L, dtl_run *run);

/* The flags of dt_commit from the table of options at index 2. Raises. */
unsigned box_seq_commit_flags(lua_State *L, const char *who);

/* Fill the table `out` of the sequence at index seq, after a verify pass and after a commit. */
void box_seq_verified(lua_State *L, int seq, const dtl_run *run);
void box_seq_committed(lua_State *L, int seq, const dtl_run *run);

#endif
