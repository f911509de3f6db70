/* The experts that the target chooses for the rows of a session: [layers][chosen] ids for each row, see
 * dt_seq_experts. */
#ifndef DT_SESSION_ROW_EXPERTS_H
#define DT_SESSION_ROW_EXPERTS_H

#include "session/session.h"

/* Returns the number of ids for one row; 0: the target has no experts. */
size_t experts_of_row(const dt_session *s);

/* If the target has experts, allocates room for the experts of a pass and of the rows of each sequence. */
dt_status experts_open(dt_session *s, dt_error *err);

/* Copies the experts of a pass to the sequences; the rows of a sequence are adjacent. */
void experts_take(dt_session *s, const dt_rows *rows);

#endif
