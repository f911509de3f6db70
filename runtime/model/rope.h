/* How the user wants a target to encode positions (RoPE). Shared by the public API (dtrun.h) and by models. */
#ifndef DT_ROPE_H
#define DT_ROPE_H

#define DT_CONTEXT 4096 /* maximum context of a session that names none: all of a model's may not fit in memory */

typedef struct {
  /* The positions of the longest session that will be opened; 0: DT_CONTEXT. Rotations of the types dynamic and
   * longrope depend on it: they are computed once, when the pair is opened, for this length or, if it is smaller, the
   * model's. A pair whose target has such a rotation opens no longer sessions. */
  int context;
  /* The scaling that replaces the one in the target's files: "none", "linear", "dynamic", "yarn"; NULL: the files'.
   * Drafts always have that of their own files, except for the parts of the target (dt_draft_is_own). */
  const char *scaling;
  float scale; /* its factor, at least 1, by which the model's context grows; required, but not for "none" */
  /* yarn: the positions with which the model was trained. 0: the number in its files or, without one, its context. */
  int original;
} dt_rope;

#endif
