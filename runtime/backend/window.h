/* Which keys a row of the target sees: those of StreamingLLM's cache (Xiao et al., 2024), the first ones and the last,
 * at the positions that they have in the text. */
#ifndef DT_WINDOW_H
#define DT_WINDOW_H

typedef struct {
  int last;  /* keys up to the row's own, which is one of them; 0: all there are */
  int sinks; /* the first keys of the text, seen beside these */
} dt_window;

/* A row at this position does not see those from window.sinks to below this. */
static inline int dt_window_begin(dt_window window, int position) {
  int begin = window.last > 0 ? position + 1 - window.last : 0;
  return begin > window.sinks ? begin : window.sinks;
}

#endif
