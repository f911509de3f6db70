/* How fast the pairs of a head turn with the position. */
#ifndef DT_ROTATION_H
#define DT_ROTATION_H

typedef struct {
  double base;
  double factor; /* stretches positions; 1: no stretching */
  /* Llama 3: pairs that turn `high` times or more in `original` positions keep their speed, pairs that turn `low` times or less
   * are stretched by the whole factor, others by a part of it. original = 0: all are stretched alike. */
  double low, high, original;
} rotation;

/* Into inv_freq[dims / 2]: the angle of pair j at position p is p * inv_freq[j]. */
void rotation_fill(const rotation *r, int dims, float *inv_freq);

#endif
