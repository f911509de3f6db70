/* Files that come with dtrun or are named by the user. */
#ifndef DTL_FILES_H
#define DTL_FILES_H

#include "files/fail.h"

/* The path of the program `name`: a path itself (it has a '/' or ends in .lua), or installed as folder/NAME.lua. `what` is
 * "policy" or "driver". malloc'd; NULL with DT_EINPUT, which names what was meant or lists what is installed, or
 * DT_ENOMEM. */
char *dtl_locate(const char *what, const char *folder, const char *name, dt_error *err);

/* All bytes of a file of at most `most` bytes: malloc'd, NUL-terminated; NULL with DT_EINPUT, or DT_ENOMEM. */
char *dtl_read_file(const char *what, const char *path, size_t most, size_t *len, dt_error *err);

#endif
