/* dtrun POLICY: generates from one prompt or several, compares with another policy, and writes the result. */
#ifndef GENERATE_COMMAND_H
#define GENERATE_COMMAND_H

#include "cli/cli.h"

int generate(cli_options *options); /* returns the exit status */

#endif
