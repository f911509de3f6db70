/* Writes the iterations of runs as JSON lines of schema dtrun.trace/1 (policies/TRACES.md). None of these calls fails:
 * after the first failure nothing more is written, and dtl_trace_close reports it. */
#ifndef DTL_TRACE_H
#define DTL_TRACE_H

#include "box/run.h"

/* What the trace has of a sequence so far. */
typedef struct {
  int sequence; /* number of its prompt, from 1; 0: there is only one */
  long iterations;
  size_t shown; /* bytes of its text in the lines so far */
} trace_state;

/* Call after the sequence has started; r describes the run. The pair must outlive the trace. */
void trace_begin(dtl_trace *trace, trace_state *state, const dt_pair *pair, const dtl_run *run, const dtl_result *r);

/* Call after a commit, while the tree can still be read. policy_ms: policy overhead of the iteration. */
void trace_iteration(dtl_trace *trace, trace_state *state, const dtl_run *run, double policy_ms);

void trace_end(dtl_trace *trace, const trace_state *state, const dtl_result *r);

#endif
