/* White space around marks of templates: that of ASCII. */
#ifndef DT_CHAT_SPACE_H
#define DT_CHAT_SPACE_H

#include <stdbool.h>

static inline bool chat_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

#endif
