/* Commands for models on this machine: dtrun ls, dtrun rm, dtrun pull. */
#ifndef MODEL_COMMANDS_H
#define MODEL_COMMANDS_H

#include <stdbool.h>

/* Returns whether the first argument is one of these commands. */
bool models_meant(int argc, char **argv);

/* Runs that command and returns the exit status. */
int models_run(int argc, char **argv);

/* Runs dtrun pull with the arguments after that word. It returns only on failure, since the process becomes
 * scripts/get-model or dtrun-pull. */
int models_pull(int argc, char **argv);

#endif
