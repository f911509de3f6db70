/* The preset `tuned`: parameters that dtrun run tune found for one policy, pair and machine, in the user's folder. */
#ifndef DTL_TUNED_H
#define DTL_TUNED_H

#include "host.h"

/* Its file: {"schema": "dtrun.preset/1", "policy": .., "source": digest of the policy's text, "params": {NAME: VALUE}, ..}; its
 * name tells models' files, machine, backend and threads apart. malloc'd, or NULL: see user_path. */
char *tuned_path(const dt_pair *pair, const char *policy);

/* Its parameters as settings: *settings is malloc'd, and so are its strings. That there are none, that they cannot be read, or
 * that they were found for another text of the policy than the one of this hash, is DTL_INPUT. */
bool tuned_settings(const dt_pair *pair, const char *policy, const char *source, dtl_setting **settings, int *n,
                    dtl_error *err);
void tuned_free(dtl_setting *settings, int n);

#endif
