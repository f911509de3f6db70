/* The device's formats: see format.cuh. */
#include "format.cuh"
#include "pack.cuh"

bool format_of(dt_dtype type, number *format) {
  *format = type == DT_BF16 ? BF16 : F16;
  return type == DT_F16 || type == DT_BF16 || dt_type_of(type)->numbers > 1;
}

packing packing_of(dt_dtype type) {
  switch (type) {
  case DT_Q2_K:
  case DT_Q3_K: return BITS3;
  case DT_Q4_0:
  case DT_Q4_1:
  case DT_Q4_K: return BITS4;
  case DT_IQ4_NL:
  case DT_IQ4_XS:
  case DT_MXFP4: return TABLE4;
  case DT_Q5_0:
  case DT_Q5_1:
  case DT_Q5_K: return BITS5;
  case DT_Q6_K: return BITS6;
  case DT_Q8_0: return BITS8;
  default: return BITS16;
  }
}

uint4 table_of(dt_dtype type) {
  uint8_t bytes[16] = {};
  uint4 table;
  const int8_t *values = dt_code_values(type);
  for (int i = 0; values && i < 16; i++) bytes[i] = (uint8_t)(values[i] + 128);
  memcpy(&table, bytes, sizeof table);
  return table;
}

const char *stored_name(dt_dtype type, packing packed, number format) {
#define SPELLED(name, spelled, ggml, numbers, bytes) #spelled,
  static const char *const spelled[DT_TYPES] = {DT_TYPE_LIST(SPELLED)};
#undef SPELLED
  return spelled[packed != BITS16 ? type : format == F16 ? DT_F16 : DT_BF16];
}

/* The factors that turn a code into a number, in F16. */
struct factors {
  uint16_t scale, offset;
};

/* Returns the factors of group g of 16 numbers. */
static factors factors_of(dt_dtype type, const dt_codes &from, int g) {
  int block = g / 2;
  float d = widen<F16>(from.d);
  switch (type) {
  case DT_Q4_0: return {from.scale[block], narrow<F16>(-8.0f * widen<F16>(from.scale[block]))};
  case DT_Q5_0: return {from.scale[block], narrow<F16>(-16.0f * widen<F16>(from.scale[block]))};
  case DT_Q4_1:
  case DT_Q5_1: return {from.scale[block], from.minimum[block]};
  case DT_Q4_K:
  case DT_Q5_K:
    return {narrow<F16>(d * (float)from.byte_scale[block]),
            narrow<F16>(-widen<F16>(from.dmin) * (float)from.byte_minimum[block])};
  case DT_Q2_K:
    return {narrow<F16>(d * (float)(from.byte_scale[g] & 15)),
            narrow<F16>(-widen<F16>(from.dmin) * (float)(from.byte_scale[g] >> 4))};
  case DT_Q3_K: {
    uint16_t scale = narrow<F16>(d * (float)(int8_t)from.byte_scale[g]);
    return {scale, narrow<F16>(-4.0f * widen<F16>(scale))};
  }
  case DT_Q6_K: return {narrow<F16>(d * (float)(int8_t)from.byte_scale[g]), 0};
  case DT_IQ4_XS: return {narrow<F16>(d * (float)(int8_t)from.byte_scale[block]), 0};
  case DT_MXFP4: return {narrow<F16>(ldexpf(1.0f, from.byte_scale[block] - 128)), 0}; /* of doubled values */
  default: return {from.scale[block], 0};                                             /* Q8_0, IQ4_NL */
  }
}

/* Takes a row apart, DT_CELL numbers at a time, and calls each(first, code, factors) for 16 numbers. */
template <class EACH> static void for_groups(dt_dtype type, const void *row, int n, const EACH &each) {
  const char *from = static_cast<const char *>(row);
  for (int at = 0; at < n; at += DT_CELL) {
    int numbers = n - at < DT_CELL ? n - at : DT_CELL;
    dt_codes codes;
    dt_take_apart(type, from, numbers / DT_BLOCK, &codes);
    for (int g = 0; g < numbers / 16; g++) each(at + 16 * g, codes.code + 16 * g, factors_of(type, codes, g));
    from += dt_row_bytes(type, (size_t)numbers);
  }
}

void to_codes(dt_dtype type, const void *row, int n, uint8_t *out) {
  for_groups(type, row, n, [&](int first, const uint8_t *code, factors f) {
    memcpy(out + first, code, 16);
    memcpy(out + n + first / 4, &f, sizeof f);
  });
}

void to_format(dt_dtype type, number format, const void *row, int n, float *wide, uint16_t *out) {
  if (type == (format == F16 ? DT_F16 : DT_BF16)) {
    memcpy(out, row, dt_row_bytes(type, (size_t)n));
    return;
  }
  if (packing_of(type) != BITS16 && format == F16) {
    const int zero = type == DT_Q8_0 ? 128 : type == DT_Q6_K ? 32 : 0;
    const int8_t *values = dt_code_values(type);
    for_groups(type, row, n, [&](int first, const uint8_t *code, factors f) {
      double scale = widen<F16>(f.scale), offset = widen<F16>(f.offset); /* sums below have less than 53 bits */
      for (int i = 0; i < 16; i++)
        out[first + i] = narrow_once(scale * (values ? values[code[i]] : code[i] - zero) + offset);
    });
    return;
  }
  dt_type_of(type)->decode(row, (size_t)n, wide);
  for (int i = 0; i < n; i++) out[i] = format == F16 ? narrow<F16>(wide[i]) : narrow<BF16>(wide[i]);
}
