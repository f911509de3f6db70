/* Error codes and messages, of the engine and of the Lua side alike. Every call that can fail returns a dt_status, DT_OK or why not,
 * and on failure fills a dt_error (NULL: nobody asks): one line that says what was wrong, where (file, tensor, key, argument), and
 * what would be right. The library never prints and never aborts. */
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
  DT_EIO,         /* reading or writing failed for a reason outside the file's content */
  DT_EWEIGHTS,    /* the target returned NaN, and its files hold numbers that are not finite */
  DT_EPOLICY,     /* anything that a policy's Lua did */
  DT_EINTERRUPTED /* while a policy was being opened */
} dt_status;

typedef struct {
  dt_status status;
  char message[512]; /* one line, no newline at the end, always terminated */
  /* DT_EPOLICY: where in it, as far as known, and the calls it stood in, innermost first, a line each; else "", 0 and "". */
  char file[256];
  int line;
  char traceback[1024];
} dt_error;

/* Fills *err (which may be NULL) and returns status, so that a failure is one line: return dt_fail(err, DT_EINPUT, ...). */
dt_status dt_fail(dt_error *err, dt_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Makes a text fit for one line of a terminal: control characters become '?'. What a file holds may stand in a message,
 * whatever it is. */
void dt_clean(char *text);

/* The failure of an allocation of `bytes` for `what`. */
dt_status dt_fail_memory(dt_error *err, const char *what, unsigned long long bytes);

#pragma GCC visibility pop

#endif
