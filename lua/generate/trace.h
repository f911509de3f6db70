/* Writing runs down, iteration by iteration: JSON lines of schema dtrun.trace/1, described in policies/README.md. The
 * generation calls these where there is a trace; none of them fails: the first failure to write is told by
 * dtl_trace_close, and nothing is written after it. */
#ifndef DTL_TRACE_H
#define DTL_TRACE_H

#include "box/run.h"

/* How far a sequence has been told. */
typedef struct {
  int sequence; /* its prompt's number, from 1; 0: it is alone */
  long iterations;
  size_t shown; /* bytes of the text that its lines so far have said */
} trace_state;

/* After the sequence has started; r says what runs. The pair must outlive the trace. */
void trace_begin(dtl_trace *trace, trace_state *state, const dt_pair *pair, const dtl_run *run, const dtl_result *r);

/* After a commit, while the tree can be read. */
void trace_iteration(dtl_trace *trace, trace_state *state, const dtl_run *run, double policy_ms);

void trace_end(dtl_trace *trace, const trace_state *state, const dtl_result *r);

#endif
