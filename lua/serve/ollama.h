/* ollama's API, for the one model of this server: how requests are read (ollama_body.c), how chats and texts are
 * answered (ollama.c), and what is said about the model (ollama_model.c). */
#ifndef SERVE_OLLAMA_H
#define SERVE_OLLAMA_H

#include "serve/api.h"

extern const api_form api_ollama_chat, api_ollama_generate;

/* Turn the body of /api/chat and of /api/generate into one of OpenAI's: see api_form.translate. */
bool ollama_chat_body(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                      refusal *why);
bool ollama_generate_body(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                          refusal *why);

/* Sets *loads to whether a body only asks to load the model, since it has no message or prompt; *model is the model's
 * name. False: *why says what is wrong with the body. */
bool ollama_loads(const ask_server *server, bool is_chat, raw_json body, const char **model, bool *loads, refusal *why);
void ollama_loaded(json_text *out, bool is_chat, const char *model); /* writes the answer */

void ollama_put_time(json_text *out, long seconds, long nanoseconds); /* as RFC 3339 writes it */

/* Write the answers of /api/version, of /api/tags (`running`: of /api/ps), and of /api/show. False: *why says why the
 * model's files cannot be read. */
void ollama_version(json_text *out);
bool ollama_tags(const ask_server *server, bool running, json_text *out, refusal *why);
bool ollama_show(const ask_server *server, json_text *out, refusal *why);

#endif
