/* v16 as four NEON registers: lanes 0..3, 4..7, 8..11 and 12..15. simd_scalar.h defines each operation. Sums across
 * lanes are written out, since FADDV adds in another order. A maximum is a comparison, since FMAX treats NaN and -0
 * differently. */
#include <arm_neon.h>

typedef struct {
  float32x4_t a, b, c, d;
} v16;

#define SIMD_MAP(f, x)                                                                                                 \
  return (v16) { f(x.a), f(x.b), f(x.c), f(x.d) }
#define SIMD_MAP2(f, x, y)                                                                                             \
  return (v16) { f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d) }
#define SIMD_MAP3(f, x, y, z)                                                                                          \
  return (v16) { f(x.a, y.a, z.a), f(x.b, y.b, z.b), f(x.c, y.c, z.c), f(x.d, y.d, z.d) }
#define SIMD_EACH(f, p)                                                                                                \
  return (v16) { f(p), f((p) + 4), f((p) + 8), f((p) + 12) }
#define SIMD_ALL(x)                                                                                                    \
  return (v16) { x, x, x, x }

VI v16 v_set1(float x) { SIMD_ALL(vdupq_n_f32(x)); }
VI v16 v_load(const float *p) { SIMD_EACH(vld1q_f32, p); }
VI void v_store(float *p, v16 x) {
  vst1q_f32(p, x.a), vst1q_f32(p + 4, x.b), vst1q_f32(p + 8, x.c), vst1q_f32(p + 12, x.d);
}
VI float32x4_t simd_load_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
VI v16 v_load_f16(const uint16_t *p) { SIMD_EACH(simd_load_f16, p); }
VI v16 v_set1_f16(const uint16_t *p) {
  float32x4_t x = vcvt_f32_f16(vreinterpret_f16_u16(vld1_dup_u16(p)));
  SIMD_ALL(x);
}
VI void simd_store_f16(uint16_t *p, float32x4_t x) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x))); }
VI void v_store_f16(uint16_t *p, v16 x) {
  simd_store_f16(p, x.a), simd_store_f16(p + 4, x.b), simd_store_f16(p + 8, x.c), simd_store_f16(p + 12, x.d);
}
VI float32x4_t simd_load_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
VI v16 v_load_bf16(const uint16_t *p) { SIMD_EACH(simd_load_bf16, p); }
VI v16 v_add(v16 x, v16 y) { SIMD_MAP2(vaddq_f32, x, y); }
VI v16 v_sub(v16 x, v16 y) { SIMD_MAP2(vsubq_f32, x, y); }
VI v16 v_mul(v16 x, v16 y) { SIMD_MAP2(vmulq_f32, x, y); }
VI v16 v_div(v16 x, v16 y) { SIMD_MAP2(vdivq_f32, x, y); }
VI v16 v_fma(v16 x, v16 y, v16 z) { SIMD_MAP3(vfmaq_f32, z, x, y); } /* vfmaq's first argument is the summand */
VI float32x4_t simd_max(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
VI float32x4_t simd_min(float32x4_t x, float32x4_t y) { return vbslq_f32(vcltq_f32(x, y), x, y); }
VI v16 v_max(v16 x, v16 y) { SIMD_MAP2(simd_max, x, y); }
VI v16 v_min(v16 x, v16 y) { SIMD_MAP2(simd_min, x, y); }
VI v16 v_abs(v16 x) { SIMD_MAP(vabsq_f32, x); }
VI float32x4_t simd_copysign(float32x4_t x, float32x4_t sign) { return vbslq_f32(vdupq_n_u32(0x80000000), sign, x); }
VI v16 v_copysign(v16 x, v16 sign) { SIMD_MAP2(simd_copysign, x, sign); }
VI v16 v_if_gt(v16 x, v16 y, v16 yes, v16 no) {
  return (v16){vbslq_f32(vcgtq_f32(x.a, y.a), yes.a, no.a), vbslq_f32(vcgtq_f32(x.b, y.b), yes.b, no.b),
               vbslq_f32(vcgtq_f32(x.c, y.c), yes.c, no.c), vbslq_f32(vcgtq_f32(x.d, y.d), yes.d, no.d)};
}
VI float32x4_t simd_keep_nan(float32x4_t test, float32x4_t x) { return vbslq_f32(vceqq_f32(test, test), x, test); }
VI v16 v_keep_nan(v16 test, v16 x) { SIMD_MAP2(simd_keep_nan, test, x); }
VI float32x4_t simd_scale2(float32x4_t x, float32x4_t t) {
  return vreinterpretq_f32_u32(vreinterpretq_u32_f32(x) + (vreinterpretq_u32_f32(t) << 23));
}
VI v16 v_scale2(v16 x, v16 t) { SIMD_MAP2(simd_scale2, x, t); }
VI float32x4_t simd_split2(float32x4_t x, float32x4_t *m) {
  int32x4_t bits = vreinterpretq_s32_f32(x), e = vshrq_n_s32(vsubq_s32(bits, vdupq_n_s32(0x3f3504f3)), 23);
  *m = vreinterpretq_f32_s32(vsubq_s32(bits, vshlq_n_s32(e, 23)));
  return vcvtq_f32_s32(e);
}
VI v16 v_split2(v16 x, v16 *m) {
  return (v16){simd_split2(x.a, &m->a), simd_split2(x.b, &m->b), simd_split2(x.c, &m->c), simd_split2(x.d, &m->d)};
}
/* One bit for each of sixteen comparisons, whose results are all ones or all zeros. */
VI unsigned simd_mask(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
  static const uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t all = vcombine_u8(vmovn_u16(vcombine_u16(vmovn_u32(a), vmovn_u32(b))),
                               vmovn_u16(vcombine_u16(vmovn_u32(c), vmovn_u32(d))));
  all = vandq_u8(all, vld1q_u8(bit));
  return (unsigned)vaddv_u8(vget_low_u8(all)) | (unsigned)vaddv_u8(vget_high_u8(all)) << 8;
}
VI unsigned v_gt_mask(v16 x, v16 y) {
  return simd_mask(vcgtq_f32(x.a, y.a), vcgtq_f32(x.b, y.b), vcgtq_f32(x.c, y.c), vcgtq_f32(x.d, y.d));
}
VI unsigned v_nan_mask(v16 x) {
  return 0xffff ^ simd_mask(vceqq_f32(x.a, x.a), vceqq_f32(x.b, x.b), vceqq_f32(x.c, x.c), vceqq_f32(x.d, x.d));
}

/* Rearrange the lanes of two registers: lanes 0 and 1 of both; lanes 2 and 3 of both; the even lanes; the odd lanes. */
VI float32x4_t simd_lower(float32x4_t x, float32x4_t y) {
  return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y)));
}
VI float32x4_t simd_upper(float32x4_t x, float32x4_t y) {
  return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y)));
}

/* Defines sums, and largest lanes: for one vector, and for sixteen at once. */
#define SIMD_SIXTEEN(one, four, sixteen, op)                                                                           \
  VI float32x4_t four##_part(v16 x) { return op(op(x.a, x.c), op(x.b, x.d)); }                                         \
  VI v16 four(v16 x, v16 y, v16 z, v16 w) {                                                                            \
    return (v16){four##_part(x), four##_part(y), four##_part(z), four##_part(w)};                                      \
  }                                                                                                                    \
  VI float32x4_t sixteen##_part(float32x4_t x, float32x4_t y, float32x4_t z, float32x4_t w) {                          \
    float32x4_t e = op(simd_lower(x, y), simd_upper(x, y)), f = op(simd_lower(z, w), simd_upper(z, w));                \
    return op(vuzp1q_f32(e, f), vuzp2q_f32(e, f));                                                                     \
  }                                                                                                                    \
  VI v16 sixteen(v16 x, v16 y, v16 z, v16 w) {                                                                         \
    return (v16){sixteen##_part(x.a, y.a, z.a, w.a), sixteen##_part(x.b, y.b, z.b, w.b),                               \
                 sixteen##_part(x.c, y.c, z.c, w.c), sixteen##_part(x.d, y.d, z.d, w.d)};                              \
  }                                                                                                                    \
  VI float one(v16 x) {                                                                                                \
    float32x4_t s = four##_part(x);                                                                                    \
    return vgetq_lane_f32(sixteen##_part(s, s, s, s), 0);                                                              \
  }
SIMD_SIXTEEN(v_sum, v_sums4, v_sums16, vaddq_f32)
SIMD_SIXTEEN(v_hmax, v_largest4, v_largest16, simd_max)
#undef SIMD_SIXTEEN

typedef struct {
  int32x4_t a, b, c, d;
} i16;

#define SIMD_IMAP(f, x)                                                                                                \
  return (i16) { f(x.a), f(x.b), f(x.c), f(x.d) }
#define SIMD_IMAP2(f, x, y)                                                                                            \
  return (i16) { f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d) }
/* The same for an f with a second argument, which is the same for all registers. */
#define SIMD_IMAP_BY(f, x, by)                                                                                         \
  return (i16) { f(x.a, by), f(x.b, by), f(x.c, by), f(x.d, by) }

VI i16 i_set1(int32_t x) {
  int32x4_t all = vdupq_n_s32(x);
  return (i16){all, all, all, all};
}
VI int32x4_t simd_iload(const uint8_t *p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
VI i16 i_load(const uint8_t *p) {
  return (i16){simd_iload(p), simd_iload(p + 16), simd_iload(p + 32), simd_iload(p + 48)};
}
VI int32x4_t simd_pairs(uint8x8_t x) { return vreinterpretq_s32_u16(vmovl_u8(x)); }
VI i16 i_load_pairs(const uint8_t *p) {
  return (i16){simd_pairs(vld1_u8(p)), simd_pairs(vld1_u8(p + 8)), simd_pairs(vld1_u8(p + 16)),
               simd_pairs(vld1_u8(p + 24))};
}
VI v16 v_load_i8(const int8_t *p) {
  int16x8_t low = vmovl_s8(vld1_s8(p)), high = vmovl_s8(vld1_s8(p + 8));
  return (v16){vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
               vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))};
}
VI int32x4_t simd_look_up(int32x4_t x, uint8x16_t table) {
  return vreinterpretq_s32_u8(vqtbl1q_u8(table, vreinterpretq_u8_s32(x)));
}
VI i16 i_look_up(const uint8_t table[16], i16 x) { SIMD_IMAP_BY(simd_look_up, x, vld1q_u8(table)); }
VI float32x4_t simd_half_power(uint16x4_t bytes) {
  int32x4_t e = vreinterpretq_s32_u32(vmovl_u16(bytes)), one = vdupq_n_s32(1);
  return vreinterpretq_f32_s32(vmaxq_s32(vshlq_n_s32(vsubq_s32(e, one), 23), vshlq_n_s32(vaddq_s32(e, one), 21)));
}
VI v16 v_load_half_power(const uint8_t *p) {
  uint16x8_t low = vmovl_u8(vld1_u8(p)), high = vmovl_u8(vld1_u8(p + 8));
  return (v16){simd_half_power(vget_low_u16(low)), simd_half_power(vget_high_u16(low)),
               simd_half_power(vget_low_u16(high)), simd_half_power(vget_high_u16(high))};
}
VI i16 i_and(i16 x, int32_t mask) { SIMD_IMAP_BY(vandq_s32, x, vdupq_n_s32(mask)); }
VI i16 i_or(i16 x, i16 y) { SIMD_IMAP2(vorrq_s32, x, y); }
VI i16 i_xor(i16 x, i16 y) { SIMD_IMAP2(veorq_s32, x, y); }
VI i16 i_add(i16 x, i16 y) { SIMD_IMAP2(vaddq_s32, x, y); }
VI void i_store(int32_t *p, i16 x) {
  vst1q_s32(p, x.a), vst1q_s32(p + 4, x.b), vst1q_s32(p + 8, x.c), vst1q_s32(p + 12, x.d);
}
VI void i_store_i8(int8_t *p, i16 x) {
  int16x8_t low = vcombine_s16(vmovn_s32(x.a), vmovn_s32(x.b)), high = vcombine_s16(vmovn_s32(x.c), vmovn_s32(x.d));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
VI int32_t i_sum(i16 x) { return vaddvq_s32(vaddq_s32(vaddq_s32(x.a, x.b), vaddq_s32(x.c, x.d))); }
VI i16 i_nearest(v16 x) { SIMD_IMAP(vcvtnq_s32_f32, x); }
VI int32x4_t simd_left(int32x4_t x, int n) { return vreinterpretq_s32_u32(vreinterpretq_u32_s32(x) << n); }
VI int32x4_t simd_right(int32x4_t x, int n) { return vreinterpretq_s32_u32(vreinterpretq_u32_s32(x) >> n); }
VI i16 i_left(i16 x, int n) { SIMD_IMAP_BY(simd_left, x, n); }
VI i16 i_right(i16 x, int n) { SIMD_IMAP_BY(simd_right, x, n); }
/* All rows use the same halves of w, which the compiler narrows only once. */
VI int32x4_t simd_dot2(int32x4_t sum, int32x4_t w, int16x4_t x) {
  return vmlal_lane_s16(vmlal_lane_s16(sum, vmovn_s32(w), x, 0), vshrn_n_s32(w, 16), x, 1);
}
VI i16 i_dot2(i16 sum, i16 w, int32_t x) {
  int16x4_t pair = vreinterpret_s16_s32(vdup_n_s32(x));
  return (i16){simd_dot2(sum.a, w.a, pair), simd_dot2(sum.b, w.b, pair), simd_dot2(sum.c, w.c, pair),
               simd_dot2(sum.d, w.d, pair)};
}

/* Codes are signed here, because the dot product that every ARM processor with dotprod has takes two operands of the
 * same kind. A register holds four fours of x; an instruction uses one of them. */
#define SIMD_SIGNED 1
typedef int8x16_t i_fours;
VI i_fours i_fours_at(const int8_t *p) { return vld1q_s8(p); }
#if defined(__ARM_FEATURE_DOTPROD)
VI int32x4_t simd_dot4(int32x4_t sum, int32x4_t w, i_fours x, const int four) {
  int8x16_t codes = vreinterpretq_s8_s32(w);
  switch (four) { /* the intrinsic needs a literal */
  case 0: return vdotq_laneq_s32(sum, codes, x, 0);
  case 1: return vdotq_laneq_s32(sum, codes, x, 1);
  case 2: return vdotq_laneq_s32(sum, codes, x, 2);
  default: return vdotq_laneq_s32(sum, codes, x, 3);
  }
}
#else /* the sum of two products of a code and a digit fits 16 bits, since a digit is never -128 */
VI int32x4_t simd_dot4(int32x4_t sum, int32x4_t w, i_fours x, const int four) {
  int8x16_t codes = vreinterpretq_s8_s32(w);
  int8x8_t digits = vreinterpret_s8_s32(vdup_n_s32(vreinterpretq_s32_s8(x)[four]));
  int16x8_t low = vmull_s8(vget_low_s8(codes), digits), high = vmull_s8(vget_high_s8(codes), digits);
  return vpadalq_s16(sum, vpaddq_s16(low, high));
}
#endif
VI i16 i_dot4(i16 sum, i16 w, i_fours x, const int four) {
  return (i16){simd_dot4(sum.a, w.a, x, four), simd_dot4(sum.b, w.b, x, four), simd_dot4(sum.c, w.c, x, four),
               simd_dot4(sum.d, w.d, x, four)};
}
#define SIMD_PAIRS 0
VI i16 i_pairs(i16 pairs, i16 w, i_fours x, const int four) { return i_dot4(pairs, w, x, four); }
VI i16 i_add_pairs(i16 a, i16 pairs) { return i_add(a, pairs); }

VI int32x4_t simd_multiply(int32x4_t x, uint32x2_t by, int32x4_t *low) {
  uint32x4_t all = vreinterpretq_u32_s32(x);
  int32x4_t first = vreinterpretq_s32_u64(vmull_u32(vget_low_u32(all), by));
  int32x4_t second = vreinterpretq_s32_u64(vmull_u32(vget_high_u32(all), by));
  *low = vuzp1q_s32(first, second);
  return vuzp2q_s32(first, second);
}
VI i16 i_multiply(i16 x, uint32_t by, i16 *low) {
  uint32x2_t both = vdup_n_u32(by);
  return (i16){simd_multiply(x.a, both, &low->a), simd_multiply(x.b, both, &low->b), simd_multiply(x.c, both, &low->c),
               simd_multiply(x.d, both, &low->d)};
}
VI i16 i_bits(v16 x) { SIMD_IMAP(vreinterpretq_s32_f32, x); }
VI v16 i_as_float(i16 x) { SIMD_MAP(vreinterpretq_f32_s32, x); }
VI float32x4_t simd_to_float_unsigned(int32x4_t x) { return vcvtq_f32_u32(vreinterpretq_u32_s32(x)); }
VI v16 i_to_float_unsigned(i16 x) { SIMD_MAP(simd_to_float_unsigned, x); }
VI v16 i_to_float(i16 x) { SIMD_MAP(vcvtq_f32_s32, x); }
#undef SIMD_MAP
#undef SIMD_MAP2
#undef SIMD_MAP3
#undef SIMD_EACH
#undef SIMD_ALL
#undef SIMD_IMAP
#undef SIMD_IMAP2
#undef SIMD_IMAP_BY
