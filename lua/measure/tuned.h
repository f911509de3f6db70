/* The preset `tuned`: parameters that dtrun run tune found for one policy, pair and machine, in the user's folder. */
#ifndef DTL_TUNED_H
#define DTL_TUNED_H

#include "measure/preset.h"

/* Its path. The file's name depends on models' files, machine, backend and threads; on the draft only if the policy
 * uses drafts. malloc'd, or NULL: see user_path. */
char *tuned_path(const dt_pair *pair, const char *policy, dtl_need draft);

/* Reads the preset of a policy; the caller frees it in any case. DT_EINPUT: there is none, it cannot be read, or it was
 * found for another text of the policy. */
dt_status tuned_read(const dt_pair *pair, const dtl_policy_info *info, const char *policy, preset *out, dt_error *err);

#endif
