/* Turns the messages of a chat request into a conversation. */
#ifndef SERVE_MESSAGES_H
#define SERVE_MESSAGES_H

#include "serve/refusal.h"

#include <cJSON.h>

/* Writes a list of messages as a prompt that ends where the answer begins. *text is malloc'd. False: *why names the
 * message that is wrong. */
bool messages_text(const dt_chat *chat, const cJSON *messages, char **text, size_t *len, refusal *why);

#endif
