/* dtrun complete WORD...: lists completions of the last word, for the shell scripts in scripts/completion/. */
#ifndef COMPLETION_H
#define COMPLETION_H

/* Prints one line for each candidate: the word, a tab, its description. words[n]: the words after "dtrun", of which the
 * last may be incomplete. It prints nothing if that word is unknown or a file is expected. Returns the exit status. */
int complete(int n, char **words);

#endif
