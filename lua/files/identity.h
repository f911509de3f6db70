/* Digests (runtime/system/digest.h) that identify the conditions of a measurement: the program, the models' files and
 * the policy's text. */
#ifndef DTL_IDENTITY_H
#define DTL_IDENTITY_H

#include "system/digest.h"

/* The commit that the program was built from, with "-dirty" if the work tree had changes; "" if it was not built in a
 * repository. commit.cmake writes it. */
const char *identity_commit(void);

/* The digest of the program's file, which differs for each build. */
void identity_build(char text[DIGEST_TEXT]);

/* The digest of a model, which is a file or the files of a folder with their names; "" if nothing can be read or path
 * is NULL. It covers each file's size and, of a large file, only the first and last 64 KiB and 64 pieces of 4 KiB at
 * equal distances between them, so it misses a change of a few bytes elsewhere. */
void identity_model(const char *path, char text[DIGEST_TEXT]);

/* identity_text writes the digest of a policy's text; identity_module extends that digest by one required module. */
void identity_text(const char *source, size_t len, char text[DIGEST_TEXT]);
void identity_module(const char *path, const char *source, size_t len, char text[DIGEST_TEXT]);

#endif
