/* Searches the usual folders for drafts that fit a target. */
#ifndef DTL_FOUND_H
#define DTL_FOUND_H

#include "host.h"

/* What to search for: --head-layers needs a head. */
typedef enum { FOUND_ANY, FOUND_HEADS } found_kind;

typedef struct {
  char *path;
  dt_fit fit; /* DT_FITS_HEAD or DT_FITS_MODEL */
  uint64_t bytes;
} found_one;

/* Finds the drafts that fit this target (dt_draft_fits). It searches next to the target, among dtrun's own models, and
 * in Hugging Face's cache, and reads the headers of at most FOUND_MOST files. The result is a malloc'd array of *n,
 * which found_free frees: heads before models, then small ones before large ones, then those found first. A draft that
 * has several paths is listed once. */
found_one *found_all(const char *target, found_kind kind, int *n);
void found_free(found_one *list, int n);

/* Returns the path of the first of these drafts, malloc'd; NULL: there is none. */
char *found_draft(const char *target, found_kind kind);

#define FOUND_MOST 256

#endif
