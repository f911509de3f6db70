/* The history of typed lines: a file that only the user can read. */
#ifndef HISTORY_H
#define HISTORY_H

#define HISTORY_MOST 1000 /* maximum number of lines that are read */

/* Calls add(user, line) for each line, the oldest first. A file that cannot be read counts as empty. */
void history_read(void (*add)(void *user, const char *line), void *user);

/* Appends a line at once, since several chats may share the file. */
void history_add(const char *line);

#endif
