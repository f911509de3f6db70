/* dtrun chat [POLICY]: a conversation at the terminal. Questions are read from standard input; the caches are
 * kept from turn to turn, so that only what is new of a conversation runs through the models. */
#ifndef CHAT_H
#define CHAT_H

#include "cli/cli.h"

int chat(const cli_options *options); /* returns the exit status */

#endif
