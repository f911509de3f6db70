/* Bodies of Anthropic's Messages API: see anthropic.c. */
#ifndef SERVE_ANTHROPIC_BODY_H
#define SERVE_ANTHROPIC_BODY_H

#include "serve/api.h"

bool anthropic_translate(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                         refusal *why);
/* The same for a body whose tokens are counted: it needs no max_tokens. */
bool anthropic_translate_counted(const ask_server *server, const cJSON *root, raw_json body, char **out,
                                 unsigned *where, refusal *why);

/* Names of a chat's fields in this API: see api_form.names. */
enum { ANTHROPIC_NAMES = 5 };
extern const char *const anthropic_names[ANTHROPIC_NAMES][2];

#endif
