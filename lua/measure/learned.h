/* What passes cost as runs learn it, pass by pass. Costs begin as a reckoning, a table that need not be near the truth; each
 * time seen of a pass becomes a ratio to it, kept at the nearest of some numbers of rows and contexts. What a place then counts
 * is the 35th percentile of its last ratios: others on the processor only add to times, so it lies in the middle of the
 * undisturbed ones where three in ten are disturbed. shape.h says what that tells of other rows and contexts. Nothing here
 * measures, and nothing depends on the time of day. */
#ifndef DTL_LEARNED_H
#define DTL_LEARNED_H

#include "measure/costs.h"

#define LEARNED_KEPT 32 /* times of a place */

typedef enum {
  LEARNED_TARGET, /* of one row of each sequence: plain decoding's, without draft passes before it */
  LEARNED_DRAFT,  /* behind another draft pass */
  LEARNED_FIRST,  /* the draft pass that an iteration begins with */
  LEARNED_KINDS
} learned_kind;

typedef struct {
  float ratio[LEARNED_KEPT]; /* logarithms of time seen over time reckoned */
  int n, next;               /* how many there are; where the next one goes */
  float counts;              /* the percentile, unless new ratios came since */
  bool stale;
} learned_place;

typedef struct {
  dtl_costs reckoned;
  double log_rows[COSTS_ROWS]; /* of reckoned.rows */
  dtl_costs shown;             /* the costs to count with, which change only when `revision` does */
  int revision;
  long passes;           /* taken in, those from a file included */
  int waiting;           /* of these not yet looked at */
  int at[LEARNED_KINDS]; /* the context of the last one */
  learned_place place[LEARNED_KINDS][DTL_COST_CONTEXTS][COSTS_ROWS];
} lessons;

/* What costs are reckoned from. */
typedef struct {
  double target_bytes, draft_bytes; /* that a pass of the model reads, */
  double target_token, draft_token; /* and of a token's keys and values */
  double speed;                     /* bytes per millisecond */
  double row;                       /* what a further row costs, as a share of a pass over one */
  int context, batch;               /* the longest; sequences in a pass */
  bool has_draft;
} learned_guess;

void learned_begin(lessons *l, const learned_guess *guess);

/* One pass with `rows` rows of each of the table's sequences (of fewer: a fraction) after `context` tokens. What is no time
 * (NaN, none, or beyond what a table may hold), and a pass of a model that is not there, is left out. */
void learned_pass(lessons *l, learned_kind kind, double rows, int context, double ms);

/* A measured table, as passes that were made; `draws`, `coupled`: with the time of drawing tokens, of drafts that know the noise. */
void learned_table(lessons *l, const dtl_costs *table, bool draws, bool coupled);

/* Looks at what was taken in: true where costs moved by more than a few percent since the last revision, and are shown. */
bool learned_look(lessons *l);

/* As a JSON object of schema dtrun.learned/1 with its key: malloc'd; NULL when out of memory. What is kept of a place is the
 * time that it counts. */
char *learned_json(lessons *l, const char *key);

/* Takes in what a JSON text holds, on top of a fresh reckoning. NULL, or what is wrong: static; then nothing is taken. */
const char *learned_parse(lessons *l, const char *json, const char *key);

#endif
