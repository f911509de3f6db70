/* What a measurement was made with: the program, the models' files, a policy's text, each as a digest (runtime/system/digest.h) that
 * nobody can give to another one on purpose. */
#ifndef DTL_IDENTITY_H
#define DTL_IDENTITY_H

#include "system/digest.h"

/* Written by commit.cmake: the commit that the program was built from, "-dirty" behind it where the tree had changes; "": not built in a repository. */
const char *identity_commit(void);

/* Of the bytes of the program's file: another build is another one. */
void identity_build(char text[DIGEST_TEXT]);

/* Of a model: a file, or the files of a folder, with their names. Of each its size, its first and last 64 KiB and 64 pieces
 * of 4 KiB at equal distances between them; all of it where that is no less. What a change of a few bytes amid gigabytes
 * of weights leaves alone is therefore not seen. "": nothing there can be read, or path is NULL. */
void identity_model(const char *path, char text[DIGEST_TEXT]);

/* Of a policy's text; and, of that with what it required before, with one module more. */
void identity_text(const char *source, size_t len, char text[DIGEST_TEXT]);
void identity_module(const char *path, const char *source, size_t len, char text[DIGEST_TEXT]);

#endif
