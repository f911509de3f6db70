/* Models that have names of their own: those that come with dtrun, and those of models/pull.txt, which dtrun pull brings. */
#ifndef DTL_NAMED_H
#define DTL_NAMED_H

#include <stdbool.h>

#define NAMED_LENGTH 128 /* bytes of a name, of a file's name */

typedef struct {
  char name[NAMED_LENGTH], file[NAMED_LENGTH];
} named_model;

/* All of models/pull.txt: a malloc'd array of *n; NULL: there are none. */
named_model *named_all(int *n);

/* The folder for them in the user's home ($XDG_DATA_HOME/dtrun/models): malloc'd; NULL: there is no home. Beside it they may lie
 * in models/, where dtrun's files lie. */
char *named_home(void);

/* What `name` means: the path of a folder that came with dtrun, or of a pulled file, malloc'd. NULL: none lies here; *known: it
 * could be pulled. */
char *named_path(const char *name, bool *known);

#endif
