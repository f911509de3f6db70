/* The table of types, and the types that are not quantized: see types.h. */
#include "model/types_decode.h"

void type_f32(const void *blocks, size_t n, float *out) { memcpy(out, blocks, n * sizeof *out); }

void type_f16(const void *blocks, size_t n, float *out) {
  const uint8_t *p = blocks;
  for (size_t i = 0; i < n; i++) out[i] = type_half(p + 2 * i);
}

void type_bf16(const void *blocks, size_t n, float *out) {
  const uint8_t *p = blocks;
  for (size_t i = 0; i < n; i++) {
    uint32_t bits = (uint32_t)p[2 * i] << 16 | (uint32_t)p[2 * i + 1] << 24;
    memcpy(&out[i], &bits, sizeof bits);
  }
}

#define ENTRY(name, decoder, ggml, numbers, bytes) {#name, ggml, numbers, bytes, type_##decoder},
static const dt_type types[DT_TYPES] = {DT_TYPE_LIST(ENTRY)};

const dt_type *dt_type_of(dt_dtype dtype) { return &types[dtype]; }

dt_round *dt_round_to(dt_dtype dtype) {
  switch (dtype) {
#define ROUND_TO(name, function)                                                                                       \
  case DT_##name: return type_round_##function;
    DT_ROUND_LIST(ROUND_TO)
  default: return NULL;
  }
}

dt_dtype dt_type_named(const char *name) {
  int i = 0;
  while (i < DT_TYPES && strcmp(types[i].name, name)) i++;
  return (dt_dtype)i;
}

dt_dtype dt_type_of_ggml(uint32_t ggml) {
  int i = 0;
  while (i < DT_TYPES && (uint32_t)types[i].ggml != ggml) i++;
  return (dt_dtype)i;
}
