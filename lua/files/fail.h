/* Failures in lua/: as in the engine, with text of users quoted. */
#ifndef DTL_FAIL_H
#define DTL_FAIL_H

#include "host.h"
#include "system/need.h"

/* dt_fail, with the message cleaned by dtl_clean: line breaks become blanks. */
dt_status dtl_fail(dt_error *err, dt_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Fails with DT_ENOMEM: "out of memory: " and what it was for. */
dt_status dtl_fail_memory(dt_error *err, const char *what);

#endif
