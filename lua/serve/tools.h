/* Reads the tools of a chat request, and which of them its answer may or must call. */
#ifndef SERVE_TOOLS_H
#define SERVE_TOOLS_H

#include "serve/raw.h"
#include "serve/refusal.h"

#include <cJSON.h>

typedef dtl_tool_choice request_tools;

/* Reads tools, tool_choice and parallel_tool_calls. Fill *out with zeros before, and free it with tools_free. False:
 * *why says what is wrong. */
bool tools_read(const cJSON *root, raw_json body, request_tools *out, refusal *why);
void tools_free(request_tools *tools);

#endif
