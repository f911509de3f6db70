/* Prints lists of policies and drivers: dtrun POLICY --help and dtrun --list. */
#ifndef LISTS_H
#define LISTS_H

#include "cli/cli.h"

/* Each returns the exit status. */
int print_policy_help(const cli_options *options);
int print_lists(void);

#endif
