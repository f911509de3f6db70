/* Models with short names: dtrun's own, and those of models/pull.txt, which dtrun pull brings. */
#ifndef DTL_NAMED_H
#define DTL_NAMED_H

#include <stdbool.h>

#define NAMED_LENGTH 128 /* bytes of a name, of a file's name */

typedef struct {
  char name[NAMED_LENGTH], file[NAMED_LENGTH];
} named_model;

/* All of models/pull.txt: a malloc'd array of *n; NULL: there are none. */
named_model *named_all(int *n);

/* The user's folder for them ($XDG_DATA_HOME/dtrun/models): malloc'd; NULL: no home. They may also lie in models/ among
 * dtrun's own files. */
char *named_home(void);

/* The path of dtrun's own folder or pulled file `name`, malloc'd. NULL: it is not here; *known: dtrun pull could bring
 * it. */
char *named_path(const char *name, bool *known);

#endif
