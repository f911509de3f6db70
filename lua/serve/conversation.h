/* Turns the members of a request that describe a conversation into a prompt. */
#ifndef SERVE_CONVERSATION_H
#define SERVE_CONVERSATION_H

#include "serve/ask.h"
#include "serve/raw.h"

/* Writes the conversation of a body: messages, documents, chat_template_kwargs, reasoning_effort,
 * continue_final_message and add_generation_prompt; and the body's tools, if answers may call any. Free *out with
 * dt_chat_prompt_free. False: *why says what is wrong. */
bool conversation_write(const ask_server *server, const cJSON *root, raw_json body, const request_tools *tools,
                        dt_chat_prompt *out, refusal *why);

#endif
