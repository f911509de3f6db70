/* Which keys a row sees: the first keys of the text and the most recent ones, as in StreamingLLM (Xiao et al.,
 * Efficient Streaming Language Models with Attention Sinks, 2024). Unlike there, they keep their positions in the text.
 */
#ifndef DT_WINDOW_H
#define DT_WINDOW_H

typedef struct {
  int last;  /* number of most recent keys, including the row's own; 0: all keys */
  int sinks; /* number of first keys of the text that are seen in addition */
} dt_window;

/* The first keys of the text that a draft with a window sees, as StreamingLLM has them (Table 2: with four, more bring
 * nothing). */
enum { DT_DRAFT_SINKS = 4 };

/* Returns the first position that a row sees after the sinks: it does not see keys from window.sinks to below it. */
static inline int dt_window_begin(dt_window window, int position) {
  int begin = window.last > 0 ? position + 1 - window.last : 0;
  return begin > window.sinks ? begin : window.sinks;
}

#endif
