/* The messages of a chat's request, as a conversation. */
#ifndef SERVE_MESSAGES_H
#define SERVE_MESSAGES_H

#include "serve/refusal.h"

#include <cJSON.h>

/* The text of a list of messages up to the beginning of the answer: malloc'd. False: *why names the message. */
bool messages_text(const dt_chat *chat, const cJSON *messages, char **text, size_t *len, refusal *why);

#endif
