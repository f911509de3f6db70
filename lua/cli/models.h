/* Models that lie here: dtrun ls, dtrun rm, dtrun pull. */
#ifndef MODELS_H
#define MODELS_H

#include <stdbool.h>

/* Whether the first of the arguments behind "dtrun" is one of these words. */
bool models_meant(int argc, char **argv);

/* Does that, and returns the exit status. */
int models_run(int argc, char **argv);

/* dtrun pull; the arguments are those behind the word. Does not come back where it succeeds: the process becomes that of
 * scripts/get-model or of dtrun-pull. */
int models_pull(int argc, char **argv);

#endif
