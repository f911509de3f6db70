/* The built-in chat templates, for models that bring none: see layouts/. CMake embeds them (embed.cmake). */
#ifndef DT_CHAT_LAYOUT_TEXTS_H
#define DT_CHAT_LAYOUT_TEXTS_H

#include <stddef.h>

typedef struct {
  const char *name, *text; /* text: in Jinja, NUL-terminated */
  size_t len;              /* of the text, in bytes */
} chat_layout_text;

extern const chat_layout_text chat_layout_texts[]; /* in alphabetical order; the last has no name */

#endif
