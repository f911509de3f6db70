/* A part of a text: the bytes from `begin` up to, but not including, `end`. */
#ifndef DT_RANGE_H
#define DT_RANGE_H

#include <stddef.h>

typedef struct {
  size_t begin, end;
} dt_range;

#endif
