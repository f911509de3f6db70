/* How fast the pairs of a head turn with the position. */
#ifndef DT_ROTATION_H
#define DT_ROTATION_H

typedef struct {
  double base;
  double factor; /* by which positions are stretched; 1: not at all */
  /* Llama 3: pairs that turn `high` times and more in `original` positions are not stretched, those that turn `low` times
   * and less are by the whole factor, those between in part. original = 0: all are stretched alike. */
  double low, high, original;
} rotation;

/* Into inv_freq[dims / 2]: the angle of pair j at position p is p * inv_freq[j]. */
void rotation_fill(const rotation *r, int dims, float *inv_freq);

#endif
