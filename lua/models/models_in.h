/* The models that lie in a folder. */
#ifndef DTL_MODELS_IN_H
#define DTL_MODELS_IN_H

/* Paths below `folder`, sorted: .gguf files, and folders with config.json. It enters folders without one, `levels`
 * deep, and skips names that begin with a dot. *n malloc'd strings in a malloc'd array, which models_in_free frees;
 * none if the folder cannot be read. */
char **models_in(const char *folder, int levels, int *n);
void models_in_free(char **names, int n);

#endif
