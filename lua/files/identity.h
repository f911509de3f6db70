/* Digests (runtime/system/digest.h) of everything behind a measurement: the program, the models' files, a policy's
 * text. */
#ifndef DTL_IDENTITY_H
#define DTL_IDENTITY_H

#include "system/digest.h"

/* The commit that the program was built from, with "-dirty" if the tree had changes; "": not built in a repository.
 * commit.cmake writes it. */
const char *identity_commit(void);

/* The digest of the program's file: it differs for each build. */
void identity_build(char text[DIGEST_TEXT]);

/* The digest of a model: a file, or the files of a folder with their names. It covers each file's size, its first and
 * last 64 KiB and 64 pieces of 4 KiB at equal distances between them, or all of a file that is no larger. It misses a
 * change of a few bytes elsewhere. "": nothing can be read, or path is NULL. */
void identity_model(const char *path, char text[DIGEST_TEXT]);

/* The digest of a policy's text; and the digest so far extended by one required module. */
void identity_text(const char *source, size_t len, char text[DIGEST_TEXT]);
void identity_module(const char *path, const char *source, size_t len, char text[DIGEST_TEXT]);

#endif
