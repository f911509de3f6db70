/* Error codes and messages of the engine and the Lua side. Every call that can fail returns a dt_status. On failure it
 * fills a dt_error (NULL is allowed) with one line: the mistake, its place (file, tensor, key, argument), and the
 * expected value. The library never prints and never aborts. */
#ifndef DT_STATUS_H
#define DT_STATUS_H

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

typedef enum {
  DT_OK = 0,
  DT_EINPUT,      /* a file, option, prompt or argument is wrong: the caller can mend it */
  DT_ECONTEXT,    /* does not fit the context */
  DT_ESTATE,      /* a call in the wrong state, or misuse of a tree: the policy's fault */
  DT_EDEVICE,     /* the engine or the device failed (a target of finite weights that returns NaN, too) */
  DT_ENOMEM,      /* out of memory */
  DT_EIO,         /* reading or writing failed; the file's content is not the reason */
  DT_EWEIGHTS,    /* the target returned NaN, and its files hold numbers that are not finite */
  DT_EPOLICY,     /* the policy's Lua failed */
  DT_EINTERRUPTED /* interrupted while a policy was being opened */
} dt_status;

typedef struct {
  dt_status status;
  char message[512]; /* one line, no newline at the end, always terminated */
  /* DT_EPOLICY: the place in the policy if it is known, and the stack of calls, innermost first, one a line; else "",
   * 0, "". */
  char file[256];
  int line;
  char traceback[1024];
} dt_error;

/* Fills *err (may be NULL) and returns status: return dt_fail(err, DT_EINPUT, ...). */
dt_status dt_fail(dt_error *err, dt_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Replaces control characters with '?', so that a message can quote any file in one line of a terminal. */
void dt_clean(char *text);

/* The failure of an allocation of `bytes` for `what`. */
dt_status dt_fail_memory(dt_error *err, const char *what, unsigned long long bytes);

#pragma GCC visibility pop

#endif
