/* How lua/ reports failures: one clean line in a dtl_error. */
#ifndef DTL_FAIL_H
#define DTL_FAIL_H

#include "host.h"

/* Fills *err (which may be NULL) and returns false. The message is cleaned. */
bool dtl_fail(dtl_error *err, dtl_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same with what the engine said. */
bool dtl_fail_engine(dtl_error *err, const dt_error *engine);

/* In a function with `err` that gives a bool: returns where the pointer is NULL. As runtime/system/need.h. */
#define NEED(pointer, name)                                                                                            \
  do {                                                                                                                 \
    if (!(pointer)) return dtl_fail(err, DTL_INPUT, "%s: %s is NULL", __func__, name);                                 \
  } while (0)

/* The same for n things at `list`, which may be NULL if n is 0. */
#define NEED_LIST(list, n, name)                                                                                       \
  do {                                                                                                                 \
    if ((n) < 0) return dtl_fail(err, DTL_INPUT, "%s: %d %s, expected 0 or more", __func__, n, name);                  \
    if ((n) > 0 && !(list)) return dtl_fail(err, DTL_INPUT, "%s: %s is NULL, expected %d", __func__, name, n);         \
  } while (0)

#endif
