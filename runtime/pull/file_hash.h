/* The hash by which Hugging Face knows a file: SHA-256 of large ones, git's SHA-1 of others. */
#ifndef PULL_FILE_HASH_H
#define PULL_FILE_HASH_H

#include "system/status.h"

#include <stdbool.h>
#include <stdint.h>

#define FILE_HASH 65 /* bytes of one as text */

bool file_hash_is(const char *text); /* 40 or 64 hexadecimal digits, in small letters */

/* The hash of the same kind as `like` of all `size` bytes of an open file, from its start. */
dt_status file_hash(int fd, int64_t size, const char *like, char out[FILE_HASH], dt_error *err);

#endif
