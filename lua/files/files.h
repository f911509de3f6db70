/* Files that come with dtrun or are named by the user. */
#ifndef DTL_FILES_H
#define DTL_FILES_H

#include "files/fail.h"

/* The path of the program `name`: a path itself (it has a '/' or ends in .lua), or installed as folder/NAME.lua. `what` is
 * "policy" or "driver". *path is malloc'd. DT_EINPUT: there is none; names what was meant or lists what is installed. */
dt_status dtl_locate(const char *what, const char *folder, const char *name, char **path, dt_error *err);

/* All bytes of a file of at most `most` bytes: *text is malloc'd and NUL-terminated. DT_EINPUT: it cannot be read; DT_ENOMEM. */
dt_status dtl_read_file(const char *what, const char *path, size_t most, char **text, size_t *len, dt_error *err);

#endif
