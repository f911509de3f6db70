/* The hash that identifies a file at Hugging Face: SHA-256 for large files, git's SHA-1 for others. */
#ifndef PULL_FILE_HASH_H
#define PULL_FILE_HASH_H

#include "system/status.h"

#include <stdbool.h>
#include <stdint.h>

#define FILE_HASH 65 /* size of a hash as text */

bool file_hash_is(const char *text); /* whether it is 40 or 64 hexadecimal digits in lower case */

/* Computes the hash of all `size` bytes of an open file, of the same kind as `like`. */
dt_status file_hash(int fd, int64_t size, const char *like, char out[FILE_HASH], dt_error *err);

#endif
