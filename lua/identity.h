/* What a measurement was made with: the program, the models' files, a policy's text, each as a hash (FNV-1a 64) to be told
 * from others. They find mistakes, not forgers. */
#ifndef DTL_IDENTITY_H
#define DTL_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

/* Written by commit.cmake: the commit that the program was built from, "-dirty" behind it where the tree had changes; "": not built in a repository. */
const char *identity_commit(void);

/* Of the bytes of the program's file: another build is another one. */
uint64_t identity_build(void);

/* Of a model: a file, or the files of a folder, with their names. Of each its size, its first and last 64 KiB and 64 pieces
 * of 4 KiB at equal distances between them; all of it where that is no less. What a change of a few bytes amid gigabytes
 * of weights leaves alone is therefore not seen. 0: nothing there can be read. */
uint64_t identity_model(const char *path);

/* Of a policy's text. */
uint64_t identity_text(const char *text, size_t len);

#endif
