/* A word on a prompt that was meant as a question. */
#ifndef CHAT_HINT_H
#define CHAT_HINT_H

#include "cli/outcome.h"

/* At a terminal: says that --chat asks a question if a chat model was to continue a text of -p; in spite of -q if it
 * gave no text. */
void chat_hint(const job *j, const outcome *out);

#endif
