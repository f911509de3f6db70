/* The preset `tuned`: parameters that dtrun run tune found for one policy, pair and machine, in the user's folder. */
#ifndef DTL_TUNED_H
#define DTL_TUNED_H

#include "measure/preset.h"

/* Where it is. The file's name tells models' files, machine, backend and threads apart; the pair's draft, where there is one,
 * only for a policy that uses drafts. malloc'd, or NULL: see user_path. */
char *tuned_path(const dt_pair *pair, const char *policy, dtl_need draft);

/* Reads that of a policy whose need of a draft and source are known, to be freed whatever comes. That there is none, that it
 * cannot be read, or that it was found for another text of the policy, is DT_EINPUT. */
dt_status tuned_read(const dt_pair *pair, const dtl_policy_info *info, const char *policy, preset *out, dt_error *err);

#endif
