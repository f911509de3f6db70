/* Walks over memory, whose time that of a policy's page is a multiple of (lua/dt/policy/prices.lua): most of it is the wait for
 * memory that passes have driven out of the processor's caches. */
#ifndef DTL_PAGE_H
#define DTL_PAGE_H

#include "measure/bench.h"

#define PAGE_LINES 512 /* of 64 bytes: as much as the nearest cache holds */
#define PAGE_REST 8    /* passes after which a walk counts as one after a rest */
#define PAGE_WALKS 64  /* measured at most */

typedef struct {
  struct {
    int next;
    char rest[60];
  } line[PAGE_LINES];
} page_lines;

void page_begin(page_lines *p);

/* Milliseconds of a walk over all lines in no order that a processor foresees. */
double page_walk(const page_lines *p);

typedef struct {
  page_lines lines;
  int n;
  double ms[DTL_COST_PAGES][PAGE_WALKS]; /* as in dtl_costs */
} page_walks;

/* Times a walk of each kind, between passes of plain decoding after `context` tokens. */
dt_status page_measure(page_walks *w, bench *b, int context, dt_error *err);

/* Fills costs' page from one measurement or more. Sorts them. */
void page_costs(page_walks *w, double *page);

#endif
