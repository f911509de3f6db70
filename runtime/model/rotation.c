/* Computed as transformers does, in f32: see rotation.h. Powers are computed in double and rounded once, which gives
 * the same f32 with any libm. */
#include "model/rotation.h"

#include <math.h>

/* Returns the (fractional) pair that makes `turns` rotations in `original` positions. */
static double pair_of(const rotation *r, int dims, double turns) {
  return dims * log(r->original / (turns * 2 * 3.14159265358979323846)) / (2 * log(r->base));
}

static void fill_yarn(const rotation *r, int dims, float *inv_freq) {
  double first = pair_of(r, dims, r->high), last = pair_of(r, dims, r->low);
  if (r->whole) first = floor(first), last = ceil(last);
  first = first > 0 ? first : 0, last = last < dims - 1 ? last : dims - 1;
  if (first == last) last += 0.001;
  for (int j = 0; j < dims / 2; j++) {
    float speed = (float)pow((float)r->base, (float)(2 * j) / (float)dims);
    float part = ((float)j - (float)first) / (float)(last - first);
    float keeps = 1.0f - (part < 0 ? 0 : part > 1 ? 1 : part);
    inv_freq[j] = 1.0f / ((float)r->factor * speed) * (1.0f - keeps) + 1.0f / speed * keeps;
  }
}

static float stretch(const rotation *r, float freq) {
  float factor = (float)r->factor;
  if (r->original == 0) return freq / factor;
  float wave = 6.2831855f / freq, low = (float)r->low, high = (float)r->high, original = (float)r->original;
  if (wave > original / low) return freq / factor;
  if (wave < original / high) return freq;
  float part = (original / wave - low) / (high - low);
  return (1.0f - part) * freq / factor + part * freq;
}

/* With two dimensions, the only pair has the speed 1 for any base. */
static double base_of(const rotation *r, int dims) {
  return r->growth > 0 && dims > 2 ? r->base * pow(r->growth, dims / (dims - 2.0)) : r->base;
}

void rotation_fill(const rotation *r, int dims, float *inv_freq) {
  if (r->yarn) {
    fill_yarn(r, dims, inv_freq);
    return;
  }
  float base = (float)base_of(r, dims);
  int turning = (int)(r->part * dims / 2);
  for (int j = 0; j < dims / 2; j++) {
    float speed = (float)pow(base, (float)(2 * j) / (float)dims);
    inv_freq[j] = r->each ? 1.0f / (r->by[j] * speed) : j < turning ? stretch(r, 1.0f / speed) : 0;
  }
}
