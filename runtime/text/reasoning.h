/* Splits an answer, as it is written, into reasoning and the text for the reader. Marks around reasoning, such as
 * <think> and </think>, belong to neither, nor does white space next to them. Pure: no I/O.
 *
 *   dt_reasoning *t;
 *   dt_reasoning_open(chat, false, &t, &err);
 *   dt_reasoning_add(t, bytes, len, on_part, user);      // each piece of the answer
 *   dt_reasoning_end(t, on_part, user);                  // the bytes held back
 *   dt_reasoning_close(t); */
#ifndef DT_REASONING_H
#define DT_REASONING_H

#include "text/chat_layout.h"

#include <stdbool.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct dt_reasoning dt_reasoning;

/* The next bytes of the reasoning, or of the text for the reader. False: no more is wanted; passed on by the calls
 * below. */
typedef bool (*dt_on_part)(void *user, bool reasoning, const char *bytes, size_t len);

/* For one answer in the layout `chat`, which need not stay. Some layouts end in the mark that begins reasoning: answers
 * then begin inside it, unless the answer is held to a grammar (`held`); such an answer has only the reasoning that it
 * begins itself. Free with dt_reasoning_close. */
dt_status dt_reasoning_open(const dt_chat *chat, bool held, dt_reasoning **out, dt_error *err);
void dt_reasoning_close(dt_reasoning *reasoning); /* NULL is allowed */

/* The next bytes of the answer, which may end within a mark or a character. Bytes that may belong to a mark are held
 * back. Out of memory, they are reported as they are. */
bool dt_reasoning_add(dt_reasoning *reasoning, const char *bytes, size_t len, dt_on_part on_part, void *user);

/* The answer ends: what is held back is no mark. Reasoning may lack its end mark. */
bool dt_reasoning_end(dt_reasoning *reasoning, dt_on_part on_part, void *user);

#pragma GCC visibility pop

#endif
