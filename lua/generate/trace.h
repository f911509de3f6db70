/* Writes runs' iterations as JSON lines of schema dtrun.trace/1 (policies/TRACES.md). None of these calls fails:
 * dtl_trace_close reports the first failure, after which nothing more is written. */
#ifndef DTL_TRACE_H
#define DTL_TRACE_H

#include "box/run.h"

/* How much of a sequence the trace has. */
typedef struct {
  int sequence; /* number of its prompt, from 1; 0: the only one */
  long iterations;
  size_t shown; /* bytes of its text in the lines so far */
} trace_state;

/* After the sequence has started; r describes the run. The pair must outlive the trace. */
void trace_begin(dtl_trace *trace, trace_state *state, const dt_pair *pair, const dtl_run *run, const dtl_result *r);

/* After a commit, while the tree can be read. */
void trace_iteration(dtl_trace *trace, trace_state *state, const dtl_run *run, double policy_ms);

void trace_end(dtl_trace *trace, const trace_state *state, const dtl_result *r);

#endif
