/* Numbers in ascending order; dtl_median (host.h) is built on it. */
#ifndef DTL_MEDIAN_H
#define DTL_MEDIAN_H

#include "host.h"

void sort_ascending(double *list, int n);

#endif
