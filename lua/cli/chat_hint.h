/* A hint for prompts that were probably meant as a question. */
#ifndef CHAT_HINT_H
#define CHAT_HINT_H

#include "cli/outcome.h"

/* At a terminal, tells the user about --chat if a chat model was asked to continue a text given with -p. If the model
 * gave no text, the hint is printed in spite of -q. */
void chat_hint(const job *j, const outcome *out);

#endif
