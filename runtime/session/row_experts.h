/* The experts that the target takes for a session's rows, [layers][chosen] ids each: see dt_seq_experts. */
#ifndef DT_SESSION_ROW_EXPERTS_H
#define DT_SESSION_ROW_EXPERTS_H

#include "session/session.h"

/* Ids of one row; 0: the target has no experts. */
size_t experts_of_row(const dt_session *s);

/* Takes room for those of a pass and of every sequence's rows, if the target has experts. */
dt_status experts_open(dt_session *s, dt_error *err);

/* Gives each sequence those of its rows, which are adjacent. */
void experts_take(dt_session *s, const dt_rows *rows);

#endif
