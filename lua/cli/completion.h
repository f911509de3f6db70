/* dtrun complete WORD...: for shells, which ask what the last word may become (scripts/completion/). */
#ifndef COMPLETION_H
#define COMPLETION_H

/* words: those after "dtrun"; the last one may be incomplete. Prints a line for each candidate: the word, a tab, its
 * description. It prints none if the word is a file's or unknown. Returns the exit status. */
int complete(int n, char **words);

#endif
