/* asprintf and vasprintf, which POSIX.1-2008 does not have. */
#ifndef DT_ASPRINTF_H
#define DT_ASPRINTF_H

#include <stdarg.h>

/* Prints to a malloc'd text. Returns its length; if there is no memory for it, -1, and *text is NULL. */
int dt_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int dt_vasprintf(char **text, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

#endif
