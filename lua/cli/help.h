/* dtrun --help and dtrun --man print the same text, for a terminal and as a manual page. */
#ifndef HELP_H
#define HELP_H

void print_help(void);
void print_manual(void);

#endif
