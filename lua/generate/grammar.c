/* Reads grammars and schemas from users' files: see dtl_read_grammar in host.h. */
#include "files/fail.h"
#include "files/files.h"

#include <stdlib.h>
#include <string.h>

dt_status dtl_read_grammar(const char *what, const char *path, char **text, dt_error *err) {
  enum { MOST = 1 << 20 }; /* bytes: more than any grammar may have */
  size_t len;
  NEED(what, "what");
  NEED(path, "path");
  NEED(text, "text");
  dt_status status = dtl_read_file(what, path, MOST, text, &len, err);
  if (status || strlen(*text) == len) return status;
  status = dtl_fail(err, DT_EINPUT, "%s %s: NUL byte at offset %zu", what, path, strlen(*text));
  free(*text);
  *text = NULL;
  return status;
}
