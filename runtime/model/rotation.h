/* How fast the pairs of a head turn with the position. */
#ifndef DT_ROTATION_H
#define DT_ROTATION_H

#include <stdbool.h>

typedef struct {
  double base;
  double factor; /* stretches positions; 1: no stretching */
  double part;   /* of all pairs, the first that turn; 1: all */
  /* Pairs that turn `high` times or more in `original` positions keep their speed, pairs that turn `low` times or less
   * are stretched by the whole factor, others by a part of it. original = 0: all are stretched alike. */
  double low, high, original;
  bool yarn;    /* that part rises from pair to pair (Peng et al., 2023), otherwise with the speed (Llama 3) */
  bool whole;   /* YaRN: and begins and ends at a whole pair */
  double scale; /* YaRN: of cosines and sines; 0: none */
} rotation;

/* Into inv_freq[dims / 2]: the angle of pair j at position p is p * inv_freq[j]. */
void rotation_fill(const rotation *r, int dims, float *inv_freq);

#endif
