/* Policies as JSON: a list of the installed ones, and the check of a policy's text. */
#ifndef SERVE_POLICIES_H
#define SERVE_POLICIES_H

#include "serve/answer.h"

/* Lists all installed policies, each with its parameters, presets and text. */
bool policies_list(json_text *out, refusal *why);

/* Compiles a policy's text in the box. Writes its description, or its error with the line number. */
void policies_check(json_text *out, const char *source);

/* How a policy is opened whose text is in a request: its name in messages, and the time limit. */
#define SOURCE_NAME "policy.lua"
#define SOURCE_SECONDS 0.02 /* for each call */

#endif
