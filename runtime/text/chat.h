/* Conversations as the text that a chat model was trained on. The few layouts in use are built in and recognized by marks in
 * the model's own template (a program in Jinja, which is not run). Pure: no I/O.
 *
 *   dt_chat *c;
 *   dt_chat_open(NULL, template, &c, &err)                        // or dt_chat_open("chatml", NULL, &c, &err)
 *   dt_message turns[] = {{"Hello!", 6}};
 *   dt_chat_text(c, NULL, turns, 1, NULL, &text, &len, &err);     // ends where the answer begins
 *   free(text);  dt_chat_close(c); */
#ifndef DT_CHAT_H
#define DT_CHAT_H

#include "system/status.h"

#include <stddef.h>

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

typedef struct dt_chat dt_chat;

typedef struct {
  const char *text; /* bytes as they are */
  size_t len;
} dt_message;

/* The layout called `name`, or the one that a template's text shows (NUL-terminated). DT_EINPUT: there is none such; the
 * message lists those there are. Free with dt_chat_close. */
dt_status dt_chat_open(const char *name, const char *layout, dt_chat **out, dt_error *err);
void dt_chat_close(dt_chat *chat); /* NULL is allowed */

const char *dt_chat_name(const dt_chat *chat);
const char *dt_chat_end(const dt_chat *chat); /* what ends an answer, as text; the model's end-of-text in most */

/* The conversation `turns`, whose even ones are the user's and odd ones the model's, n is odd, up to where the next answer
 * begins: the text that apply_chat_template of Hugging Face transformers gives, begin-of-text included (encode it with
 * dt_encode_whole). system: NULL where there is none; then that which the template itself would put there. today: "26 Jul
 * 2024", for templates that tell the date; NULL is that day. *out is malloc'd. DT_EINPUT: this layout takes no system text. */
dt_status dt_chat_text(const dt_chat *chat, const dt_message *system, const dt_message *turns, int n, const char *today,
                       char **out, size_t *len, dt_error *err);

#pragma GCC visibility pop

#endif
