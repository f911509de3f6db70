/* A made-up weight type: blocks of 16 numbers, a scale in f32 and 16 bytes. */
#include "model/types_decode.h"

void type_toy(const void *blocks, size_t n, float *out) {
  for (const char *b = blocks; n > 0; b += 20, out += 16, n -= 16) {
    float scale;
    memcpy(&scale, b, 4);
    for (int i = 0; i < 16; i++) out[i] = scale * (float)(int8_t)b[4 + i];
  }
}
