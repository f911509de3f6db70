/* Models with short names: dtrun's own, and those in models/pull.txt, which dtrun pull downloads. */
#ifndef DTL_NAMED_H
#define DTL_NAMED_H

#include <stdbool.h>

#define NAMED_LENGTH 128 /* maximum number of bytes of a name or of a file's name */

typedef struct {
  char name[NAMED_LENGTH], file[NAMED_LENGTH];
} named_model;

/* Reads models/pull.txt into a malloc'd array of *n; NULL: there are none. */
named_model *named_all(int *n);

/* Returns the user's folder for pulled models ($XDG_DATA_HOME/dtrun/models), malloc'd; NULL: there is no home folder.
 * Pulled models may also be in models/ among dtrun's own files. */
char *named_home(void);

/* Returns the path of dtrun's own model or of the pulled file `name`, malloc'd; NULL: it is not here. *known: dtrun
 * pull can download it. */
char *named_path(const char *name, bool *known);

#endif
