/* Shared by all unit tests. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "system/status.h"

/* The call must succeed; otherwise its message is shown. `call` passes &err, a variable that this macro declares. */
#define ok(call)                                                                                                       \
  do {                                                                                                                 \
    dt_error err = {0};                                                                                                \
    if ((call) != DT_OK) fail_msg("%s: %s", #call, err.message);                                                       \
  } while (0)

/* The call must fail with `code` and a one-line message that contains `text`. `call` passes &err, as in ok. */
#define fails(call, code, text)                                                                                        \
  do {                                                                                                                 \
    dt_error err = {0};                                                                                                \
    dt_status status_ = (call);                                                                                        \
    if (status_ != (code)) fail_msg("%s: status %d, not %d (%s)", #call, (int)status_, (int)(code), err.message);      \
    if (!strstr(err.message, text)) fail_msg("%s: '%s' does not contain '%s'", #call, err.message, text);              \
    if (strchr(err.message, '\n')) fail_msg("%s: the message has several lines", #call);                               \
  } while (0)

/* A small random generator for tests; it gives the same numbers on every machine. */
static inline uint32_t random_next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

#endif
