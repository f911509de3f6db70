/* Files that are written whole or not at all. */
#ifndef REPLACE_H
#define REPLACE_H

#include <stdbool.h>

/* Puts text into the file `path`: written beside it and renamed, with the permissions that writing in place would give; a link
 * stays a link, and a device or a pipe is written to. False leaves errno, and the file as it was. */
bool replace_file(const char *path, const char *text);

#endif
