/* Error messages of lua/. They are like those of the engine, but may quote texts of users. */
#ifndef DTL_FAIL_H
#define DTL_FAIL_H

#include "host.h"
#include "system/need.h"

/* Like dt_fail, but cleans the message with dtl_clean: line breaks become blanks. */
dt_status dtl_fail(dt_error *err, dt_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Fails with DT_ENOMEM and the message "out of memory: WHAT". what: what the memory was for. */
dt_status dtl_fail_memory(dt_error *err, const char *what);

#endif
