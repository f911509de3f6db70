/* dtrun chat [POLICY]: a conversation at the terminal. It reads questions from standard input. The caches are kept from
 * turn to turn, so only new tokens are computed. */
#ifndef CHAT_H
#define CHAT_H

#include "cli/cli.h"

int chat(cli_options *options); /* returns the exit status */

#endif
