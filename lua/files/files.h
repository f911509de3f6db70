/* dtrun's own Lua files, and files that users name. */
#ifndef DTL_FILES_H
#define DTL_FILES_H

#include "files/fail.h"

/* Finds the path of the Lua file `name`, which is a path (with a '/', or ending in .lua) or the name of an installed
 * file folder/NAME.lua. `what` is "policy" or "driver". *path is malloc'd. DT_EINPUT: there is no such file; the
 * message suggests the nearest names or lists the installed ones. */
dt_status dtl_locate(const char *what, const char *folder, const char *name, char **path, dt_error *err);

/* Reads a file of at most `most` bytes. *text is malloc'd and NUL-terminated. `what` names the kind of file in
 * messages. DT_EINPUT: it cannot be read or is larger; DT_ENOMEM. */
dt_status dtl_read_file(const char *what, const char *path, size_t most, char **text, size_t *len, dt_error *err);

#endif
