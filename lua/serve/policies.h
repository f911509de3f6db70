/* Policies as JSON: the installed ones, and a page that is checked. */
#ifndef SERVE_POLICIES_H
#define SERVE_POLICIES_H

#include "serve/answer.h"

/* All installed policies, each with its parameters, presets and text. */
bool policies_list(json_text *out, refusal *why);

/* Compiles a page in the box: its description, or its mistake and the line. */
void policies_check(json_text *out, const char *source);

/* How requests open a page of their own. */
#define PAGE_NAME "page.lua"
#define PAGE_SECONDS 0.02 /* of each call */

#endif
