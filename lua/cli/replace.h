/* Writes files completely or not at all. */
#ifndef REPLACE_H
#define REPLACE_H

#include <stdbool.h>

/* Writes text into the file `path`: writes a new file next to it and renames that, with the permissions that writing in
 * place would give. A link stays a link; a device or a pipe is written to directly. On failure it returns false, sets
 * errno and leaves the file as it was. */
bool replace_file(const char *path, const char *text);

#endif
