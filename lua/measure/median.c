/* Sorts numbers: see median.h. */
#include "measure/median.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void sort_ascending(double *list, int n) { qsort(list, (size_t)n, sizeof *list, compare); }

double dtl_median(double *list, int n) {
  if (!list || n < 1) return NAN;
  sort_ascending(list, n);
  return n % 2 ? list[n / 2] : (list[n / 2 - 1] + list[n / 2]) / 2;
}
