/* The history of typed lines: a file of the user's, one line each, readable by nobody else. */
#ifndef HISTORY_H
#define HISTORY_H

#define HISTORY_MOST 1000 /* lines that are read */

/* Calls add(user, line) for each line, the oldest first. A history that cannot be read is none. */
void history_read(void (*add)(void *user, const char *line), void *user);

/* Adds a line, at once: the file is there for several chats at the same time. */
void history_add(const char *line);

#endif
