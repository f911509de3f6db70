/* Checks the messages of a chat request before a template sees them. */
#ifndef SERVE_MESSAGES_H
#define SERVE_MESSAGES_H

#include "serve/refusal.h"

#include <cJSON.h>

/* Returns whether this is a list of messages whose members are known. False: *why names the one that is wrong. Roles
 * and their order are left to the template. */
bool messages_check(const cJSON *messages, refusal *why);

#endif
