/* dtrun chat [POLICY]: a conversation at the terminal. It reads questions from standard input and keeps the caches from
 * turn to turn, so only new tokens run through the models. */
#ifndef CHAT_H
#define CHAT_H

#include "cli/cli.h"

int chat(cli_options *options); /* returns the exit status */

#endif
