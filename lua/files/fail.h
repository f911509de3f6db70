/* Failures in lua/: as in the engine, with text of users quoted. */
#ifndef DTL_FAIL_H
#define DTL_FAIL_H

#include "host.h"

/* dt_fail, with the message cleaned by dtl_clean: line breaks become blanks. */
dt_status dtl_fail(dt_error *err, dt_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* In a function with `err` that returns a dt_status: fails if the pointer is NULL. As runtime/system/need.h. */
#define NEED(pointer, name)                                                                                            \
  do {                                                                                                                 \
    if (!(pointer)) return dtl_fail(err, DT_EINPUT, "%s: %s is NULL", __func__, name);                                 \
  } while (0)

/* The same for n things at `list`, which may be NULL if n is 0. */
#define NEED_LIST(list, n, name)                                                                                       \
  do {                                                                                                                 \
    if ((n) < 0) return dtl_fail(err, DT_EINPUT, "%s: %d %s, expected 0 or more", __func__, n, name);                  \
    if ((n) > 0 && !(list)) return dtl_fail(err, DT_EINPUT, "%s: %s is NULL, expected %d", __func__, name, n);         \
  } while (0)

#endif
