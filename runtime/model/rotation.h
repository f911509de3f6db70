/* Computes how fast the pairs of numbers of a head rotate with the position (rotary position embeddings). */
#ifndef DT_ROTATION_H
#define DT_ROTATION_H

#include <stdbool.h>

typedef struct {
  double base;
  double factor; /* stretches positions; 1: no stretching */
  double part;   /* the share of the pairs that rotate, from the first on; 1: all */
  /* Pairs that make at least `high` rotations in `original` positions keep their speed; pairs that make at most `low`
   * rotations are slowed by the whole factor, and the others by a part of it. original = 0: all pairs are slowed by the
   * factor. */
  double low, high, original;
  bool yarn;  /* that part rises linearly with the pair (YaRN, Peng et al., 2023), otherwise with the speed (Llama 3) */
  bool whole; /* YaRN: the rise begins and ends at a whole pair */
  double scale; /* YaRN: the factor of cosines and sines; 0: none */
} rotation;

/* Fills inv_freq[dims / 2]: the angle of pair j at position p is p * inv_freq[j]. */
void rotation_fill(const rotation *r, int dims, float *inv_freq);

#endif
