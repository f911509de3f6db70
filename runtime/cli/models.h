/* Models that lie here: dtrun ls, dtrun rm, dtrun pull. The arguments are those behind the word. Each returns the exit status. */
#ifndef MODELS_H
#define MODELS_H

int models_list(int argc, char **argv);
int models_remove(int argc, char **argv);

/* Does not come back where it succeeds: the process becomes that of scripts/get-model or of dtrun-pull. */
int models_pull(int argc, char **argv);

#endif
