/* Writes conversations as the text that a chat model was trained on. The usual layouts are built in. The model's own
 * template is a Jinja program, which is not run; marks in it show which layout it is. No I/O.
 *
 *   dt_chat *c;
 *   dt_chat_open(NULL, template, &c, &err)                        // or dt_chat_open("chatml", NULL, &c, &err)
 *   dt_message turns[] = {{"Hello!", 6}};
 *   dt_chat_text(c, NULL, turns, 1, NULL, &text, &len, &err);     // ends where the answer begins
 *   free(text);  dt_chat_close(c); */
#ifndef DT_CHAT_LAYOUT_H
#define DT_CHAT_LAYOUT_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct dt_chat dt_chat;

typedef struct {
  const char *text; /* bytes, used unchanged */
  size_t len;
} dt_message;

typedef enum { DT_USER, DT_ASSISTANT, DT_SYSTEM } dt_role;

/* Opens the layout called `name` or, if name is NULL, recognizes the one of a template (`layout`, NUL-terminated).
 * DT_EINPUT: it is unknown; the message lists all layouts. Free with dt_chat_close. */
dt_status dt_chat_open(const char *name, const char *layout, dt_chat **out, dt_error *err);
void dt_chat_close(dt_chat *chat); /* NULL is allowed */

const char *dt_chat_name(const dt_chat *chat);
const char *dt_chat_end(const dt_chat *chat); /* the text that ends an answer; usually the model's end-of-text */

/* Returns whether the layout allows turns with any order of roles, as its templates do. */
bool dt_chat_any_order(const dt_chat *chat);

/* Writes the conversation up to the beginning of the next answer, as apply_chat_template of Hugging Face transformers
 * does. It includes the begin-of-text token, so encode it with dt_encode_whole. turns: [n]. roles: [n] in any order, if
 * the layout allows that; otherwise, and if it is NULL, turns 0, 2, ... are the user's, turns 1, 3, ... are the
 * model's, and n is odd. system: the system text; NULL: the template's default, if it has one. today: the date for
 * templates that contain one; NULL: "26 Jul 2024". *out is malloc'd; the caller frees it. DT_EINPUT: the layout does
 * not allow a system text, or not this order of roles. */
dt_status dt_chat_text(const dt_chat *chat, const dt_message *system, const dt_message *turns, const dt_role *roles,
                       int n, const char *today, char **out, size_t *len, dt_error *err);

#pragma GCC visibility pop

#endif
