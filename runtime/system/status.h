/* Error codes and messages of the engine and of the Lua side. Every call that can fail returns a dt_status. On failure
 * it fills a dt_error (NULL is allowed) with one line that says what is wrong, where (file, tensor, key, argument), and
 * what was expected. The library never prints and never aborts. */
#ifndef DT_STATUS_H
#define DT_STATUS_H

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

typedef enum {
  DT_OK = 0,
  DT_EINPUT,      /* a file, option, prompt or argument is wrong, and the caller can correct it */
  DT_ECONTEXT,    /* the text does not fit in the context */
  DT_ESTATE,      /* a call in the wrong state or a misused tree: a mistake of the policy */
  DT_EDEVICE,     /* the engine or the device failed, or the target returned NaN although its weights are finite */
  DT_ENOMEM,      /* out of memory */
  DT_EIO,         /* reading or writing failed, for another reason than the file's content */
  DT_EWEIGHTS,    /* the target returned NaN, and its files contain numbers that are not finite */
  DT_EPOLICY,     /* the policy's Lua failed */
  DT_EINTERRUPTED /* interrupted while a policy was being opened */
} dt_status;

typedef struct {
  dt_status status;
  char message[512]; /* one line, no newline at the end, always terminated */
  /* DT_EPOLICY: the place in the policy, if it is known, and the stack of calls, innermost first, one per line.
   * Otherwise "", 0 and "". */
  char file[256];
  int line;
  char traceback[1024];
} dt_error;

/* Fills *err (err may be NULL) and returns `status`, so that one can write: return dt_fail(err, DT_EINPUT, ...). */
dt_status dt_fail(dt_error *err, dt_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Replaces control characters by '?', so that a message which quotes a file stays one line on a terminal. */
void dt_clean(char *text);

/* Fails with DT_ENOMEM because `bytes` bytes for `what` could not be allocated. */
dt_status dt_fail_memory(dt_error *err, const char *what, unsigned long long bytes);

#pragma GCC visibility pop

#endif
