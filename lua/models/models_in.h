/* Lists the models in a folder. */
#ifndef DTL_MODELS_IN_H
#define DTL_MODELS_IN_H

/* Returns the paths, relative to `folder`, of its .gguf files and of its folders with config.json, sorted. It descends
 * up to `levels` levels into folders without config.json, and skips names that begin with a dot. The result is a
 * malloc'd array of *n malloc'd strings, which models_in_free frees; it is empty if the folder cannot be read. */
char **models_in(const char *folder, int levels, int *n);
void models_in_free(char **names, int n);

#endif
