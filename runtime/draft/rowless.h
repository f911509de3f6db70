/* The calls of draft_ops for a drafter that has no rows of the text because it reads the target's. They do nothing. */
#ifndef DT_ROWLESS_H
#define DT_ROWLESS_H

#include "draft/draft.h"

void rowless_start(drafter *base, int seq, int n, int same);
dt_status rowless_prompt(drafter *base, int seq, const draft_text *text, int most, int *left, dt_error *err);
int rowless_rows(const drafter *base, int seq, int n, int *there);
dt_status rowless_blank(drafter *base, int seq, int n, dt_error *err);
dt_status rowless_save(const drafter *base, int seq, int n, draft_saved **out, dt_error *err);
dt_status rowless_restore(drafter *base, int seq, const draft_saved *saved, int n, dt_error *err);
void rowless_forget(draft_saved *saved);
dt_status rowless_keep(drafter *base, int seq, int before, const int32_t *path, int n, dt_error *err);

#endif
