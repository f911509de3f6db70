/* Files that dtrun keeps for its user: tuned presets, costs. */
#ifndef DTL_USER_FILES_H
#define DTL_USER_FILES_H

#include <stdbool.h>

/* The path $VARIABLE/dtrun/RELATIVE or, if that variable is not an absolute path, ~/FALLBACK/dtrun/RELATIVE; for
 * example with "XDG_CONFIG_HOME" and ".config". malloc'd; NULL: neither is an absolute path, or memory is out. */
char *user_path(const char *variable, const char *fallback, const char *relative);

/* Replaces the file at `path` by text in one step, and makes missing folders. False sets errno and leaves the old file.
 */
bool user_store(const char *path, const char *text);

#endif
