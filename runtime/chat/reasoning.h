/* Splits an answer, while it is generated, into reasoning and the text for the user. The marks around reasoning, such
 * as <think> and </think>, belong to neither, nor does the white space next to them. No I/O.
 *
 *   dt_reasoning *t;
 *   dt_reasoning_open(chat, prompt.open, &t, &err);
 *   dt_reasoning_add(t, bytes, len, on_part, user);      // each piece of the answer
 *   dt_reasoning_end(t, on_part, user);                  // the bytes held back
 *   dt_reasoning_close(t); */
#ifndef DT_REASONING_H
#define DT_REASONING_H

#include "chat/chat.h"

#include <stdbool.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct dt_reasoning dt_reasoning;

/* Receives the next bytes of the reasoning or of the text for the user. If it returns false, no more bytes are wanted,
 * and the calls below return false. */
typedef bool (*dt_on_part)(void *user, bool reasoning, const char *bytes, size_t len);

/* Opens a splitter for one answer. `open`: the answer begins inside reasoning, because its prompt ends there
 * (dt_chat_prompt) and no grammar constrains the answer. It copies the marks of the chat. Free with
 * dt_reasoning_close. */
dt_status dt_reasoning_open(const dt_chat *chat, bool open, dt_reasoning **out, dt_error *err);
void dt_reasoning_close(dt_reasoning *reasoning); /* NULL is allowed */

/* Adds the next bytes of the answer, which may end inside a mark or a character. Bytes that may belong to a mark are
 * held back; if there is no memory for that, they are passed on unchanged. */
bool dt_reasoning_add(dt_reasoning *reasoning, const char *bytes, size_t len, dt_on_part on_part, void *user);

/* Ends the answer: bytes that were held back are passed on, since they are not a mark. Reasoning may lack its end
 * mark. */
bool dt_reasoning_end(dt_reasoning *reasoning, dt_on_part on_part, void *user);

#pragma GCC visibility pop

#endif
