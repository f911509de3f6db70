/* Files that dtrun keeps for its user: tuned presets, costs. */
#ifndef DTL_USER_FILES_H
#define DTL_USER_FILES_H

#include <stdbool.h>

/* $VARIABLE/dtrun/RELATIVE, or ~/FALLBACK/dtrun/RELATIVE ("XDG_CONFIG_HOME", ".config"): malloc'd; NULL: neither is an
 * absolute path, or out of memory. */
char *user_path(const char *variable, const char *fallback, const char *relative);

/* Puts text there in one step and makes missing folders; false sets errno and leaves the old file. */
bool user_store(const char *path, const char *text);

#endif
