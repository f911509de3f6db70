/* v16 in plain C. This is the definition, which the other three implementations must match to the bit. */
typedef struct {
  float f[16];
} v16;

VI uint32_t simd_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
VI float simd_float(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

#define SIMD_EACH(expression)                                                                                          \
  v16 r;                                                                                                               \
  for (int i = 0; i < 16; i++) r.f[i] = (expression);                                                                  \
  return r

VI v16 v_set1(float x) { SIMD_EACH(x); }
VI v16 v_load(const float *p) { SIMD_EACH(p[i]); }
VI void v_store(float *p, v16 a) { memcpy(p, a.f, sizeof a.f); }
VI v16 v_load_bf16(const uint16_t *p) { SIMD_EACH(simd_float((uint32_t)p[i] << 16)); }

VI float simd_from_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
  if (rest < 0x00800000) { /* zero or subnormal: the mantissa times 2^-24, exactly */
    float x = (float)(h & 0x7fff) * 0x1p-24f;
    return simd_float(sign | simd_bits(x));
  }
  if (rest > 0x0f800000) return simd_float(sign | 0x70000000 | rest | 0x00400000); /* NaN: set its quiet bit */
  if (rest == 0x0f800000) return simd_float(sign | 0x7f800000);
  return simd_float(sign | (rest + 0x38000000)); /* the exponent's bias 15 becomes 127 */
}
VI v16 v_load_f16(const uint16_t *p) { SIMD_EACH(simd_from_f16(p[i])); }
VI v16 v_set1_f16(const uint16_t *p) { SIMD_EACH(simd_from_f16(*p)); }

/* Rounds to the nearest f16, ties to even; numbers from 65520 on become infinity. */
VI uint16_t simd_to_f16(float x) {
  uint32_t bits = simd_bits(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x01ff)); /* NaN: set its quiet bit */
  if (rest >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (rest < 0x38800000) /* below 2^-14: a multiple of 2^-24, the value of the last bit of 0.5 */
    return (uint16_t)(sign | (simd_bits(simd_float(rest) + 0.5f) - simd_bits(0.5f)));
  rest +=
      0x0fff + (rest >> 13 &
                1); /* the addition carries if the bits cut off below are more than half, or half and the rest is odd */
  return (uint16_t)(sign | (rest - 0x38000000) >> 13);
}
VI void v_store_f16(uint16_t *p, v16 a) {
  for (int i = 0; i < 16; i++) p[i] = simd_to_f16(a.f[i]);
}

VI v16 v_add(v16 a, v16 b) { SIMD_EACH(a.f[i] + b.f[i]); }
VI v16 v_sub(v16 a, v16 b) { SIMD_EACH(a.f[i] - b.f[i]); }
VI v16 v_mul(v16 a, v16 b) { SIMD_EACH(a.f[i] * b.f[i]); }
VI v16 v_div(v16 a, v16 b) { SIMD_EACH(a.f[i] / b.f[i]); }
VI v16 v_fma(v16 a, v16 b, v16 c) { SIMD_EACH(fmaf(a.f[i], b.f[i], c.f[i])); }
VI v16 v_max(v16 a, v16 b) { SIMD_EACH(a.f[i] > b.f[i] ? a.f[i] : b.f[i]); } /* b if either is NaN */
VI v16 v_min(v16 a, v16 b) { SIMD_EACH(a.f[i] < b.f[i] ? a.f[i] : b.f[i]); } /* b if either is NaN */
VI v16 v_abs(v16 a) { SIMD_EACH(simd_float(simd_bits(a.f[i]) & 0x7fffffff)); }
VI v16 v_copysign(v16 a, v16 sign) {
  SIMD_EACH(simd_float((simd_bits(a.f[i]) & 0x7fffffff) | (simd_bits(sign.f[i]) & 0x80000000)));
}
/* a > b ? x : y in each lane; y if either is NaN. */
VI v16 v_if_gt(v16 a, v16 b, v16 x, v16 y) { SIMD_EACH(a.f[i] > b.f[i] ? x.f[i] : y.f[i]); }
/* test where test is NaN, otherwise a. */
VI v16 v_keep_nan(v16 test, v16 a) { SIMD_EACH(test.f[i] != test.f[i] ? test.f[i] : a.f[i]); }
/* a * 2^n; n is in the low mantissa bits of t (vmath.h). The result must be a normal number. */
VI v16 v_scale2(v16 a, v16 t) { SIMD_EACH(simd_float(simd_bits(a.f[i]) + (simd_bits(t.f[i]) << 23))); }
/* Splits positive normal numbers: a = m * 2^n with m from sqrt(1/2) to sqrt(2). Returns n, writes m to *m. */
VI v16 v_split2(v16 a, v16 *m) {
  v16 n;
  for (int i = 0; i < 16; i++) {
    int32_t e = (int32_t)(simd_bits(a.f[i]) - 0x3f3504f3u) >> 23;
    n.f[i] = (float)e;
    m->f[i] = simd_float(simd_bits(a.f[i]) - ((uint32_t)e << 23));
  }
  return n;
}

/* Bit i of v_gt_mask: a > b in lane i. Bit i of v_nan_mask: a is NaN in lane i. */
VI unsigned v_gt_mask(v16 a, v16 b) {
  unsigned m = 0;
  for (int i = 0; i < 16; i++) m |= (unsigned)(a.f[i] > b.f[i]) << i;
  return m;
}
VI unsigned v_nan_mask(v16 a) {
  unsigned m = 0;
  for (int i = 0; i < 16; i++) m |= (unsigned)(a.f[i] != a.f[i]) << i;
  return m;
}

/* The sum of the lanes in a fixed order: lanes i and i + 8 first, then i + 4, i + 2, i + 1. */
VI float v_sum(v16 a) {
  for (int width = 8; width; width /= 2)
    for (int i = 0; i < width; i++) a.f[i] = a.f[i] + a.f[i + width];
  return a.f[0];
}
VI float v_hmax(v16 a) {
  for (int width = 8; width; width /= 2)
    for (int i = 0; i < width; i++) a.f[i] = a.f[i] > a.f[i + width] ? a.f[i] : a.f[i + width];
  return a.f[0];
}

/* Sixteen v_sum at once: v_sums16(g0..g3), where gj = v_sums4 of vectors j, 4 + j, 8 + j, 12 + j, gives the sums of
 * vectors 0..15. v_largest4 and v_largest16 do the same with v_hmax. */
#define SIMD_SIXTEEN(four, sixteen, op)                                                                                \
  VI v16 four(v16 a, v16 b, v16 c, v16 d) {                                                                            \
    v16 r;                                                                                                             \
    for (int i = 0; i < 4; i++) {                                                                                      \
      r.f[i] = op(op(a.f[i], a.f[i + 8]), op(a.f[i + 4], a.f[i + 12]));                                                \
      r.f[4 + i] = op(op(b.f[i], b.f[i + 8]), op(b.f[i + 4], b.f[i + 12]));                                            \
      r.f[8 + i] = op(op(c.f[i], c.f[i + 8]), op(c.f[i + 4], c.f[i + 12]));                                            \
      r.f[12 + i] = op(op(d.f[i], d.f[i + 8]), op(d.f[i + 4], d.f[i + 12]));                                           \
    }                                                                                                                  \
    return r;                                                                                                          \
  }                                                                                                                    \
  VI v16 sixteen(v16 g0, v16 g1, v16 g2, v16 g3) {                                                                     \
    v16 r;                                                                                                             \
    const v16 *g[4] = {&g0, &g1, &g2, &g3};                                                                            \
    for (int j = 0; j < 4; j++)                                                                                        \
      for (int b = 0; b < 4; b++) {                                                                                    \
        const float *s = g[j]->f + 4 * b;                                                                              \
        r.f[4 * b + j] = op(op(s[0], s[2]), op(s[1], s[3]));                                                           \
      }                                                                                                                \
    return r;                                                                                                          \
  }
VI float simd_add(float a, float b) { return a + b; }
VI float simd_larger(float a, float b) { return a > b ? a : b; }
SIMD_SIXTEEN(v_sums4, v_sums16, simd_add)
SIMD_SIXTEEN(v_largest4, v_largest16, simd_larger)
#undef SIMD_SIXTEEN

/* Sixteen int32. When weights are loaded, each lane is four bytes. */
typedef struct {
  int32_t i[16];
} i16;

VI i16 i_set1(int32_t x) {
  i16 r;
  for (int i = 0; i < 16; i++) r.i[i] = x;
  return r;
}
VI i16 i_load(const uint8_t *p) {
  i16 r;
  memcpy(r.i, p, sizeof r.i);
  return r;
}
/* Loads 32 bytes as 16-bit numbers, two in each lane. */
VI i16 i_load_pairs(const uint8_t *p) {
  i16 r;
  for (int i = 0; i < 16; i++) r.i[i] = p[2 * i] | p[2 * i + 1] << 16;
  return r;
}
VI v16 v_load_i8(const int8_t *p) { SIMD_EACH((float)p[i]); }
/* Looks up the bytes of a, all below 16, in a table. */
VI i16 i_look_up(const uint8_t table[16], i16 a) {
  uint8_t u[64];
  memcpy(u, a.i, sizeof u);
  for (int i = 0; i < 64; i++) u[i] = table[u[i]];
  memcpy(a.i, u, sizeof u);
  return a;
}
/* Half of 2^(byte - 127), exactly. Below 2^-126 the bits are (byte + 1) << 21; the larger of the two bit patterns is
 * always the right one: see type_half_power. */
VI v16 v_load_half_power(const uint8_t *p) {
  v16 r;
  for (int i = 0; i < 16; i++) {
    int32_t normal = (p[i] - 1) * (1 << 23), small = (p[i] + 1) << 21, bits = normal > small ? normal : small;
    memcpy(&r.f[i], &bits, sizeof bits);
  }
  return r;
}
VI i16 i_and(i16 a, int32_t mask) {
  for (int i = 0; i < 16; i++) a.i[i] &= mask;
  return a;
}
VI i16 i_or(i16 a, i16 b) {
  for (int i = 0; i < 16; i++) a.i[i] |= b.i[i];
  return a;
}
/* Stores the bits of all lanes. */
VI void i_store(int32_t *p, i16 a) { memcpy(p, a.i, sizeof a.i); }
/* Stores the low byte of each lane. */
VI void i_store_i8(int8_t *p, i16 a) {
  for (int i = 0; i < 16; i++) p[i] = (int8_t)a.i[i];
}
VI int32_t i_sum(i16 a) {
  int32_t sum = 0;
  for (int i = 0; i < 16; i++) sum += a.i[i];
  return sum;
}
/* Rounds to the nearest integer, ties to even; |a| < 2^22. Adding 1.5 * 2^23 leaves no bits for a fraction. */
VI i16 i_nearest(v16 a) {
  i16 r;
  for (int i = 0; i < 16; i++) r.i[i] = (int32_t)((a.f[i] + 12582912.0f) - 12582912.0f);
  return r;
}
VI i16 i_left(i16 a, int n) {
  for (int i = 0; i < 16; i++) a.i[i] = (int32_t)((uint32_t)a.i[i] << n);
  return a;
}
VI i16 i_right(i16 a, int n) {
  for (int i = 0; i < 16; i++) a.i[i] = (int32_t)((uint32_t)a.i[i] >> n);
  return a;
}
/* a + the products of the two 16-bit numbers in w and in x. */
VI i16 i_dot2(i16 a, i16 w, int32_t x) {
  for (int i = 0; i < 16; i++)
    a.i[i] += (int16_t)(w.i[i] & 0xffff) * (int16_t)(x & 0xffff) + (int16_t)(w.i[i] >> 16) * (int16_t)(x >> 16);
  return a;
}
VI i16 i_add(i16 a, i16 b) {
  for (int i = 0; i < 16; i++) a.i[i] += b.i[i];
  return a;
}
/* Four fours of a row of x: sixteen signed bytes. */
typedef const int8_t *i_fours;
VI i_fours i_fours_at(const int8_t *p) { return p; }
/* Whether i_dot4 takes the bytes of w as signed. If so, 128 is subtracted from codes of formats that reach it. */
#define SIMD_SIGNED 0
/* a + the products of four unsigned bytes of w and the signed bytes of four number `four` (0..3) of x. Those are at
 * least -127. The result is exact, without saturation. */
VI i16 i_dot4(i16 a, i16 w, i_fours x, const int four) {
  uint8_t u[64];
  memcpy(u, w.i, sizeof u);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 4; j++) a.i[i] += (int32_t)u[4 * i + j] * x[4 * four + j];
  return a;
}
/* The same products, added to 16-bit halves of lanes; used where that is faster than i_dot4 (SIMD_PAIRS). The sums of
 * products 0 and 1, and of 2 and 3, must fit 16 bits, and the bytes of w must be below 128. i_add_pairs adds both
 * halves to a. */
#define SIMD_PAIRS 0
VI i16 i_pairs(i16 pairs, i16 w, i_fours x, const int four) { return i_dot4(pairs, w, x, four); }
VI i16 i_add_pairs(i16 a, i16 pairs) { return i_add(a, pairs); }
VI i16 i_xor(i16 a, i16 b) {
  for (int i = 0; i < 16; i++) a.i[i] ^= b.i[i];
  return a;
}
/* The unsigned 64-bit product a * x: returns the upper halves and writes the lower halves to *low. */
VI i16 i_multiply(i16 a, uint32_t x, i16 *low) {
  for (int i = 0; i < 16; i++) {
    uint64_t product = (uint64_t)(uint32_t)a.i[i] * x;
    low->i[i] = (int32_t)(uint32_t)product, a.i[i] = (int32_t)(product >> 32);
  }
  return a;
}
/* The bits of floats, as integers. */
VI i16 i_bits(v16 a) {
  i16 r;
  memcpy(r.i, a.f, sizeof r.i);
  return r;
}
/* The floats with these bits. */
VI v16 i_as_float(i16 a) {
  v16 r;
  memcpy(r.f, a.i, sizeof r.f);
  return r;
}
VI v16 i_to_float_unsigned(i16 a) { SIMD_EACH((float)(uint32_t)a.i[i]); }
VI v16 i_to_float(i16 a) { SIMD_EACH((float)a.i[i]); }
#undef SIMD_EACH
