/* The routes /tokenize and /detokenize, as llama.cpp's server has them. */
#ifndef SERVE_TOKENS_H
#define SERVE_TOKENS_H

#include "files/json_text.h"
#include "serve/ask.h"

bool tokens_of_text(const ask_server *server, const cJSON *body, json_text *out,
                    refusal *why); /* the tokens of a text */
bool tokens_as_text(const ask_server *server, const cJSON *body, json_text *out, refusal *why); /* the text of ids */

#endif
