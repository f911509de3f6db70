/* dtrun complete WORD...: for shells, which ask what the last word may become (scripts/completion/). */
#ifndef COMPLETION_H
#define COMPLETION_H

/* The words behind "dtrun", the last one as far as it is typed. Prints a line for each candidate: the word, and behind a tab
 * what it is. None: a file, or nothing that is known. Returns the exit status. */
int complete(int n, char **words);

#endif
