/* See version.h. */
#include "system/version.h"

const char *dt_version(void) { return DTRUN_VERSION; }
