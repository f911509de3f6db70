/* Checks of arguments at the beginning of public calls. A bad argument gives DT_EINPUT and a message that names the
 * call and the argument. */
#ifndef DT_NEED_H
#define DT_NEED_H

#include "system/status.h"

#include <limits.h>
#include <stddef.h>

/* Fails if the pointer is NULL. For use in functions that have `err` and return a dt_status. */
#define NEED(pointer, name)                                                                                            \
  do {                                                                                                                 \
    if (!(pointer)) return dt_fail(err, DT_EINPUT, "%s: %s is NULL", __func__, name);                                  \
  } while (0)

/* The same for n things at `list`, which may be NULL if n is 0. */
#define NEED_LIST(list, n, name)                                                                                       \
  do {                                                                                                                 \
    dt_status need_status = need_list(list, n, __func__, name, err);                                                   \
    if (need_status) return need_status;                                                                               \
  } while (0)

static inline dt_status need_list(const void *list, int n, const char *function, const char *name, dt_error *err) {
  if (n < 0) return dt_fail(err, DT_EINPUT, "%s: %d %s, expected 0 or more", function, n, name);
  if (n > 0 && !list) return dt_fail(err, DT_EINPUT, "%s: %s is NULL, expected %d of them", function, name, n);
  return DT_OK;
}

/* The same for a text of `len` bytes, at most INT_MAX, since its ids are counted in ints. */
#define NEED_TEXT(text, len, name)                                                                                     \
  do {                                                                                                                 \
    dt_status need_status = need_text(text, len, __func__, name, err);                                                 \
    if (need_status) return need_status;                                                                               \
  } while (0)

static inline dt_status need_text(const char *text, size_t len, const char *function, const char *name, dt_error *err) {
  if (len > INT_MAX) return dt_fail(err, DT_EINPUT, "%s: %s has more than %d bytes", function, name, INT_MAX);
  return need_list(text, (int)len, function, name, err);
}

#endif
