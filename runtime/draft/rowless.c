/* See rowless.h. */
#include "draft/rowless.h"

void rowless_start(drafter *base, int seq, int n, int same) { (void)base, (void)seq, (void)n, (void)same; }

dt_status rowless_prompt(drafter *base, int seq, const draft_text *text, int most, int *left, dt_error *err) {
  (void)base, (void)seq, (void)text, (void)most, (void)err;
  *left = 0;
  return DT_OK;
}

int rowless_rows(const drafter *base, int seq, int n, int *there) {
  (void)base, (void)seq, (void)n;
  return *there = 0;
}

dt_status rowless_blank(drafter *base, int seq, int n, dt_error *err) {
  (void)base, (void)seq, (void)n, (void)err;
  return DT_OK;
}

dt_status rowless_save(const drafter *base, int seq, int n, draft_saved **out, dt_error *err) {
  (void)base, (void)seq, (void)n, (void)err;
  *out = NULL;
  return DT_OK;
}

dt_status rowless_restore(drafter *base, int seq, const draft_saved *saved, int n, dt_error *err) {
  (void)base, (void)seq, (void)saved, (void)n, (void)err;
  return DT_OK;
}

void rowless_forget(draft_saved *saved) { (void)saved; }

dt_status rowless_keep(drafter *base, int seq, int before, const int32_t *path, int n, dt_error *err) {
  (void)base, (void)seq, (void)before, (void)path, (void)n, (void)err;
  return DT_OK;
}
