/* Policies as JSON: the installed ones, and the check of a policy's text. */
#ifndef SERVE_POLICIES_H
#define SERVE_POLICIES_H

#include "serve/answer.h"

/* All installed policies, each with its parameters, presets and text. */
bool policies_list(json_text *out, refusal *why);

/* Compiles a policy's text in the box. Returns its description, or its mistake with the line. */
void policies_check(json_text *out, const char *source);

/* How requests open a policy whose text they contain. */
#define SOURCE_NAME "policy.lua"
#define SOURCE_SECONDS 0.02 /* of each call */

#endif
