/* The device's formats: see format.cuh. */
#include "format.cuh"

bool format_of(dt_dtype type, number *format) {
  *format = type == DT_BF16 ? BF16 : F16;
  return type == DT_F16 || type == DT_BF16 || dt_type_of(type)->numbers > 1;
}

void to_format(dt_dtype type, number format, const void *row, int n, float *wide, uint16_t *out) {
  if (type == (format == F16 ? DT_F16 : DT_BF16)) {
    memcpy(out, row, dt_row_bytes(type, (size_t)n));
    return;
  }
  dt_type_of(type)->decode(row, (size_t)n, wide);
  for (int i = 0; i < n; i++) out[i] = format == F16 ? narrow<F16>(wide[i]) : narrow<BF16>(wide[i]);
}
