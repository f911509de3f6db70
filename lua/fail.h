/* How lua/ reports failures: one clean line in a dtl_error. */
#ifndef DTL_FAIL_H
#define DTL_FAIL_H

#include "host.h"

/* Fills *err (which may be NULL) and returns false. The message is cleaned. */
bool dtl_fail(dtl_error *err, dtl_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same with what the engine said. */
bool dtl_fail_engine(dtl_error *err, const dt_error *engine);

#endif
