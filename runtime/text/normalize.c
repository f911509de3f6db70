/* Normalization: see normalize.h. */
#include "text/normalize.h"

#include "system/os.h"
#include "text/buffer.h"
#include "text/nfc.h"

#include <stdlib.h>
#include <string.h>

static const char WHAT[] = "normalized text";

static dt_status run_step(const normalize_step *step, size_t limit, const char *s, size_t n, char **out, size_t *out_n,
                          dt_error *err) {
  if (step->kind == NORMALIZE_NFC) return nfc(s, n, out, out_n, err);
  byte_buffer b = {.limit = limit};
  dt_status status = DT_OK;
  if (step->kind == NORMALIZE_PREPEND) {
    if (n > 0) status = buffer_add(&b, step->to, step->to_len, WHAT, err);
    if (!status) status = buffer_add(&b, s, n, WHAT, err);
  } else if (os_find(s, n, step->from, step->from_len)) {
    status = buffer_reserve(&b, n, WHAT, err); /* so that the buffer exists even if the text becomes empty */
    if (!status) status = buffer_add_replaced(&b, s, n, step->from, step->from_len, step->to, step->to_len, WHAT, err);
  }
  if (status) {
    free(b.bytes);
    return status;
  }
  *out = b.bytes;
  *out_n = b.n;
  return DT_OK;
}

dt_status normalize_text(const normalize_step *steps, int n_steps, const char *s, size_t n, char **out, size_t *out_n,
                         dt_error *err) {
  char *last = *out = NULL;
  const size_t limit = buffer_growth(n);
  for (int i = 0; i < n_steps; i++) {
    char *changed = NULL;
    size_t changed_n = 0;
    dt_status status = run_step(&steps[i], limit, s, n, &changed, &changed_n, err);
    if (status) {
      free(last);
      return status;
    }
    if (!changed) continue;
    free(last);
    s = last = changed;
    n = changed_n;
  }
  *out = last;
  *out_n = n;
  return DT_OK;
}

void normalize_free(normalize_step *steps, int n_steps) {
  for (int i = 0; i < n_steps; i++) {
    free(steps[i].from);
    free(steps[i].to);
  }
  free(steps);
}
