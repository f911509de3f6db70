/* Files that are written whole or not at all. */
#ifndef REPLACE_H
#define REPLACE_H

#include <stdbool.h>

/* Puts text into the file `path`: writes a new file next to it and renames that, with the permissions that writing in
 * place would give. A link stays a link; a device or a pipe is written to. False sets errno and leaves the file as it
 * was. */
bool replace_file(const char *path, const char *text);

#endif
