/* The preset `tuned`: parameters that `dtrun run tune` found for one policy, pair and machine. Its file is in the
 * user's configuration folder. */
#ifndef DTL_TUNED_H
#define DTL_TUNED_H

#include "measure/preset.h"

/* The path of its file, whose name depends on the models' files, machine, backend and threads, but on the draft only if
 * the policy uses drafts. malloc'd, or NULL: see user_path. */
char *tuned_path(const dt_pair *pair, const char *policy, dtl_need draft);

/* Reads the preset of a policy, which the caller frees in any case. DT_EINPUT: there is none, it cannot be read, or it
 * was found for another version of the policy's text. */
dt_status tuned_read(const dt_pair *pair, const dtl_policy_info *info, const char *policy, preset *out, dt_error *err);

#endif
