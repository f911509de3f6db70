/* Parses biases as users give them: see dtl_bias and dtl_token in host.h. */
#include "files/fail.h"
#include "host.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

dt_status dtl_token(const dt_pair *pair, const char *text, size_t len, int32_t *id, dt_error *err) {
  int32_t *ids;
  int n;
  char shown[60];
  NEED(pair, "pair");
  NEED(id, "id");
  if (len) NEED(text, "text");
  dtl_clean(shown, sizeof shown, text, len);
  dt_status status = dt_encode_whole(pair, text, len, &ids, &n, err);
  if (status) return status;
  if (n == 1) *id = ids[0];
  if (n != 1)
    status = n == 0 ? dtl_fail(err, DT_EINPUT, "logit_bias: the text is empty, expected one token")
                    : dtl_fail(err, DT_EINPUT, "logit_bias: '%s' is %d tokens (%d, %d%s): bias each by its id", shown,
                               n, ids[0], ids[1], n > 2 ? ", .." : "");
  free(ids);
  return status;
}

/* Reads a number that is the whole text; -inf is allowed. */
static bool read_bias(const char *text, float *bias) {
  char *end;
  errno = 0;
  *bias = strtof(text, &end);
  return end != text && !*end && !isnan(*bias) && !(errno == ERANGE && isinf(*bias));
}

dt_status dtl_bias(const dt_pair *pair, const char *given, dt_bias *out, dt_error *err) {
  NEED(pair, "pair");
  NEED(given, "given");
  NEED(out, "out");
  size_t digits = strspn(given, "0123456789");
  const char *equals = strrchr(given, '=');
  bool by_id = digits > 0 && digits < 10 && (given[digits] == '+' || given[digits] == '-');
  if (by_id && read_bias(given + digits, &out->bias)) {
    out->id = atoi(given);
    return DT_OK;
  }
  if (equals && equals > given && read_bias(equals + 1, &out->bias))
    return dtl_token(pair, given, (size_t)(equals - given), &out->id, err);
  return dtl_fail(err, DT_EINPUT,
                  "logit_bias '%.60s': expected ID+BIAS, ID-BIAS or TEXT=BIAS, such as 15043+1 or 15043-inf", given);
}
