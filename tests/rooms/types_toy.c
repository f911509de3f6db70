/* A synthetic weight type: blocks of 16 numbers, a scale in f32 and 16 bytes. */
#include "model/types_decode.h"

#include <math.h>

void type_toy(const void *blocks, size_t n, float *out) {
  for (const char *b = blocks; n > 0; b += 20, out += 16, n -= 16) {
    float scale;
    memcpy(&scale, b, 4);
    for (int i = 0; i < 16; i++) out[i] = scale * (float)(int8_t)b[4 + i];
  }
}

void type_round_toy(const float *x, size_t n, void *blocks) {
  for (char *b = blocks; n > 0; b += 20, x += 16, n -= 16) {
    float scale = 0;
    for (int i = 0; i < 16; i++) scale = fmaxf(scale, fabsf(x[i]) / 127.0f);
    memcpy(b, &scale, 4);
    for (int i = 0; i < 16; i++) b[4 + i] = (char)rintf(scale > 0 ? x[i] / scale : 0);
  }
}
