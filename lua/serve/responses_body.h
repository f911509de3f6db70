/* Bodies of OpenAI's Responses API: see responses.c. */
#ifndef SERVE_RESPONSES_BODY_H
#define SERVE_RESPONSES_BODY_H

#include "serve/api.h"

bool responses_translate(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                         refusal *why);

/* Names of a chat's fields in this API: see api_form.names. */
enum { RESPONSES_NAMES = 4 };
extern const char *const responses_names[RESPONSES_NAMES][2];

#endif
