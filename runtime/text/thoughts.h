/* Parts an answer, as it is written, into thoughts and the text for the reader. Marks around thoughts, such as <think>
 * and </think>, belong to neither, nor does white space next to them. Pure: no I/O.
 *
 *   dt_thoughts *t;
 *   dt_thoughts_open(chat, false, &t, &err);
 *   dt_thoughts_add(t, bytes, len, on_part, user);      // each piece of the answer
 *   dt_thoughts_end(t, on_part, user);                  // the bytes held back
 *   dt_thoughts_close(t); */
#ifndef DT_THOUGHTS_H
#define DT_THOUGHTS_H

#include "text/chat_layout.h"

#include <stdbool.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct dt_thoughts dt_thoughts;

/* The next bytes of a thought, or of the text for the reader. False: no more is wanted; passed on by the calls
 * below. */
typedef bool (*dt_on_part)(void *user, bool thought, const char *bytes, size_t len);

/* For one answer in the layout `chat`, which need not stay. Some layouts end in the mark that begins a thought: answers
 * then begin inside one, unless a grammar holds the answer (`held`), which has no thought that it does not begin
 * itself. Free with dt_thoughts_close. */
dt_status dt_thoughts_open(const dt_chat *chat, bool held, dt_thoughts **out, dt_error *err);
void dt_thoughts_close(dt_thoughts *thoughts); /* NULL is allowed */

/* The next bytes of the answer, which may end within a mark or a character. Bytes that may belong to a mark are held
 * back. Out of memory, they are reported as they are. */
bool dt_thoughts_add(dt_thoughts *thoughts, const char *bytes, size_t len, dt_on_part on_part, void *user);

/* The answer ends: what is held back is no mark. Thoughts may lack their end. */
bool dt_thoughts_end(dt_thoughts *thoughts, dt_on_part on_part, void *user);

#pragma GCC visibility pop

#endif
