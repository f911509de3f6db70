/* Computed as transformers does, in f32: see rotation.h. Powers are computed in double and rounded once, which gives
 * the same f32 with any libm. */
#include "model/rotation.h"

#include <math.h>

static float stretch(const rotation *r, float freq) {
  float factor = (float)r->factor;
  if (r->original == 0) return freq / factor;
  float wave = 6.2831855f / freq, low = (float)r->low, high = (float)r->high, original = (float)r->original;
  if (wave > original / low) return freq / factor;
  if (wave < original / high) return freq;
  float part = (original / wave - low) / (high - low);
  return (1.0f - part) * freq / factor + part * freq;
}

void rotation_fill(const rotation *r, int dims, float *inv_freq) {
  for (int j = 0; j < dims / 2; j++)
    inv_freq[j] = stretch(r, 1.0f / (float)pow((float)r->base, (float)(2 * j) / (float)dims));
}
