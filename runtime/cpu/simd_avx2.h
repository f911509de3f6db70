/* v16 as two AVX registers: lanes 0..7 and 8..15. simd_scalar.h defines each operation. */
#include <immintrin.h>

typedef struct {
  __m256 lo, hi;
} v16;

VI v16 simd_pair(__m256 lo, __m256 hi) {
  v16 r = {lo, hi};
  return r;
}
#define SIMD_BOTH(call_lo, call_hi) return simd_pair(call_lo, call_hi)

VI v16 v_set1(float x) { SIMD_BOTH(_mm256_set1_ps(x), _mm256_set1_ps(x)); }
VI v16 v_load(const float *p) { SIMD_BOTH(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
VI void v_store(float *p, v16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
VI v16 v_load_f16(const uint16_t *p) {
  SIMD_BOTH(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8))));
}
VI v16 v_set1_f16(const uint16_t *p) {
  __m256 x = _mm256_cvtph_ps(_mm_set1_epi16((short)*p));
  SIMD_BOTH(x, x);
}
VI void v_store_f16(uint16_t *p, v16 a) {
  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
VI __m256 simd_from_bf16(const uint16_t *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
VI v16 v_load_bf16(const uint16_t *p) { SIMD_BOTH(simd_from_bf16(p), simd_from_bf16(p + 8)); }
VI v16 v_add(v16 a, v16 b) { SIMD_BOTH(_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)); }
VI v16 v_sub(v16 a, v16 b) { SIMD_BOTH(_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)); }
VI v16 v_mul(v16 a, v16 b) { SIMD_BOTH(_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)); }
VI v16 v_div(v16 a, v16 b) { SIMD_BOTH(_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)); }
VI v16 v_fma(v16 a, v16 b, v16 c) { SIMD_BOTH(_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)); }
VI v16 v_max(v16 a, v16 b) { SIMD_BOTH(_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)); }
VI v16 v_min(v16 a, v16 b) { SIMD_BOTH(_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)); }
VI v16 v_abs(v16 a) {
  __m256 bit = _mm256_set1_ps(-0.0f);
  SIMD_BOTH(_mm256_andnot_ps(bit, a.lo), _mm256_andnot_ps(bit, a.hi));
}
VI v16 v_copysign(v16 a, v16 sign) {
  __m256 bit = _mm256_set1_ps(-0.0f);
  SIMD_BOTH(_mm256_or_ps(_mm256_andnot_ps(bit, a.lo), _mm256_and_ps(bit, sign.lo)),
            _mm256_or_ps(_mm256_andnot_ps(bit, a.hi), _mm256_and_ps(bit, sign.hi)));
}
VI v16 v_if_gt(v16 a, v16 b, v16 x, v16 y) {
  SIMD_BOTH(_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)),
            _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ)));
}
VI v16 v_keep_nan(v16 test, v16 a) {
  SIMD_BOTH(_mm256_blendv_ps(a.lo, test.lo, _mm256_cmp_ps(test.lo, test.lo, _CMP_UNORD_Q)),
            _mm256_blendv_ps(a.hi, test.hi, _mm256_cmp_ps(test.hi, test.hi, _CMP_UNORD_Q)));
}
VI __m256 simd_scale2(__m256 a, __m256 t) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
}
VI v16 v_scale2(v16 a, v16 t) { SIMD_BOTH(simd_scale2(a.lo, t.lo), simd_scale2(a.hi, t.hi)); }
VI __m256 simd_split2(__m256 a, __m256 *m) {
  __m256i bits = _mm256_castps_si256(a);
  __m256i e = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
  *m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(e, 23)));
  return _mm256_cvtepi32_ps(e);
}
VI v16 v_split2(v16 a, v16 *m) { SIMD_BOTH(simd_split2(a.lo, &m->lo), simd_split2(a.hi, &m->hi)); }
VI unsigned v_gt_mask(v16 a, v16 b) {
  return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)) |
         (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ)) << 8;
}
VI unsigned v_nan_mask(v16 a) {
  return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q)) |
         (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q)) << 8;
}

VI float v_sum(v16 a) {
  __m256 s8 = _mm256_add_ps(a.lo, a.hi);
  __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
VI float v_hmax(v16 a) {
  __m256 s8 = _mm256_max_ps(a.lo, a.hi);
  __m128 s4 = _mm_max_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  __m128 s2 = _mm_max_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_max_ss(s2, _mm_movehdup_ps(s2)));
}
#define SIMD_SIXTEEN(four, sixteen, op)                                                                                \
  VI __m256 four##_half(v16 a, v16 b) {                                                                                \
    __m256 a8 = op(a.lo, a.hi), b8 = op(b.lo, b.hi);                                                                   \
    return op(_mm256_permute2f128_ps(a8, b8, 0x20), _mm256_permute2f128_ps(a8, b8, 0x31));                             \
  }                                                                                                                    \
  VI v16 four(v16 a, v16 b, v16 c, v16 d) { SIMD_BOTH(four##_half(a, b), four##_half(c, d)); }                         \
  VI __m256 sixteen##_half(__m256 g0, __m256 g1, __m256 g2, __m256 g3) {                                               \
    __m256 e = op(_mm256_shuffle_ps(g0, g1, 0x44), _mm256_shuffle_ps(g0, g1, 0xee));                                   \
    __m256 f = op(_mm256_shuffle_ps(g2, g3, 0x44), _mm256_shuffle_ps(g2, g3, 0xee));                                   \
    return op(_mm256_shuffle_ps(e, f, 0x88), _mm256_shuffle_ps(e, f, 0xdd));                                           \
  }                                                                                                                    \
  VI v16 sixteen(v16 g0, v16 g1, v16 g2, v16 g3) {                                                                     \
    SIMD_BOTH(sixteen##_half(g0.lo, g1.lo, g2.lo, g3.lo), sixteen##_half(g0.hi, g1.hi, g2.hi, g3.hi));                 \
  }
SIMD_SIXTEEN(v_sums4, v_sums16, _mm256_add_ps)
SIMD_SIXTEEN(v_largest4, v_largest16, _mm256_max_ps)
#undef SIMD_SIXTEEN

typedef struct {
  __m256i lo, hi;
} i16;

VI i16 simd_ipair(__m256i lo, __m256i hi) {
  i16 r = {lo, hi};
  return r;
}
VI i16 i_set1(int32_t x) { return simd_ipair(_mm256_set1_epi32(x), _mm256_set1_epi32(x)); }
VI i16 i_load(const uint8_t *p) {
  return simd_ipair(_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 32)));
}
VI i16 i_load_pairs(const uint8_t *p) {
  return simd_ipair(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p)),
                    _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(p + 16))));
}
VI v16 v_load_i8(const int8_t *p) {
  __m128i b = _mm_loadu_si128((const __m128i *)p);
  SIMD_BOTH(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(b, 8))));
}
VI i16 i_look_up(const uint8_t table[16], i16 a) {
  __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
  return simd_ipair(_mm256_shuffle_epi8(t, a.lo), _mm256_shuffle_epi8(t, a.hi));
}
VI __m256 simd_half_power(__m128i bytes) {
  __m256i e = _mm256_cvtepu8_epi32(bytes), one = _mm256_set1_epi32(1);
  return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_slli_epi32(_mm256_sub_epi32(e, one), 23),
                                              _mm256_slli_epi32(_mm256_add_epi32(e, one), 21)));
}
VI v16 v_load_half_power(const uint8_t *p) {
  __m128i b = _mm_loadu_si128((const __m128i *)p);
  SIMD_BOTH(simd_half_power(b), simd_half_power(_mm_srli_si128(b, 8)));
}
VI i16 i_and(i16 a, int32_t mask) {
  __m256i m = _mm256_set1_epi32(mask);
  return simd_ipair(_mm256_and_si256(a.lo, m), _mm256_and_si256(a.hi, m));
}
VI i16 i_or(i16 a, i16 b) { return simd_ipair(_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)); }
VI void i_store(int32_t *p, i16 a) {
  _mm256_storeu_si256((__m256i *)p, a.lo), _mm256_storeu_si256((__m256i *)(p + 8), a.hi);
}
VI void i_store_i8(int8_t *p, i16 a) {
  const __m256i low = _mm256_set1_epi32(255), order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
  __m256i words = _mm256_packus_epi32(_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low));
  __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(words, words), order);
  _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(bytes));
}
VI int32_t i_sum(i16 a) {
  int32_t lane[8], sum = 0;
  _mm256_storeu_si256((__m256i *)lane, _mm256_add_epi32(a.lo, a.hi));
  for (int i = 0; i < 8; i++) sum += lane[i];
  return sum;
}
VI i16 i_nearest(v16 a) { return simd_ipair(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)); }
VI i16 i_left(i16 a, int n) { return simd_ipair(_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)); }
VI i16 i_right(i16 a, int n) { return simd_ipair(_mm256_srli_epi32(a.lo, n), _mm256_srli_epi32(a.hi, n)); }
VI i16 i_add(i16 a, i16 b) { return simd_ipair(_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)); }
typedef const int8_t *i_fours;
VI i_fours i_fours_at(const int8_t *p) { return p; }
VI __m256i simd_four(i_fours x, const int four) {
  int32_t digits;
  memcpy(&digits, x + 4 * four, sizeof digits);
  return _mm256_set1_epi32(digits);
}
#if defined(__AVXVNNI__)
#define SIMD_SIGNED 0
#define SIMD_PAIRS 0
VI __m256i simd_dot2(__m256i a, __m256i w, __m256i x) { return _mm256_dpwssd_avx_epi32(a, w, x); }
VI __m256i simd_dot4(__m256i a, __m256i w, __m256i x) { return _mm256_dpbusd_avx_epi32(a, w, x); }
VI __m256i simd_pairs(__m256i pairs, __m256i w, __m256i x) { return simd_dot4(pairs, w, x); }
VI __m256i simd_add_pairs(__m256i a, __m256i pairs) { return _mm256_add_epi32(a, pairs); }
#else
#define SIMD_SIGNED 1
#define SIMD_PAIRS 1
VI __m256i simd_dot2(__m256i a, __m256i w, __m256i x) { return _mm256_add_epi32(a, _mm256_madd_epi16(w, x)); }
VI __m256i simd_add_pairs(__m256i a, __m256i pairs) { return simd_dot2(a, pairs, _mm256_set1_epi16(1)); }
/* maddubs takes one operand as unsigned, hence |w| * (x with the sign of w). Pairs of products fit 16 bits, since |x|
 * is at most 127. */
VI __m256i simd_dot4(__m256i a, __m256i w, __m256i x) {
  return simd_add_pairs(a, _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
}
VI __m256i simd_pairs(__m256i pairs, __m256i w, __m256i x) {
  return _mm256_add_epi16(pairs, _mm256_maddubs_epi16(w, x));
}
#endif
VI i16 i_dot2(i16 a, i16 w, int32_t x) {
  __m256i pair = _mm256_set1_epi32(x);
  return simd_ipair(simd_dot2(a.lo, w.lo, pair), simd_dot2(a.hi, w.hi, pair));
}
VI i16 i_dot4(i16 a, i16 w, i_fours x, const int four) {
  __m256i digits = simd_four(x, four);
  return simd_ipair(simd_dot4(a.lo, w.lo, digits), simd_dot4(a.hi, w.hi, digits));
}
VI i16 i_pairs(i16 pairs, i16 w, i_fours x, const int four) {
  __m256i digits = simd_four(x, four);
  return simd_ipair(simd_pairs(pairs.lo, w.lo, digits), simd_pairs(pairs.hi, w.hi, digits));
}
VI i16 i_add_pairs(i16 a, i16 pairs) {
  return simd_ipair(simd_add_pairs(a.lo, pairs.lo), simd_add_pairs(a.hi, pairs.hi));
}
VI i16 i_xor(i16 a, i16 b) { return simd_ipair(_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)); }
VI __m256i simd_multiply(__m256i a, __m256i x, __m256i *low) {
  __m256i even = _mm256_mul_epu32(a, x), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), x);
  *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
VI i16 i_multiply(i16 a, uint32_t x, i16 *low) {
  __m256i by = _mm256_set1_epi32((int32_t)x);
  return simd_ipair(simd_multiply(a.lo, by, &low->lo), simd_multiply(a.hi, by, &low->hi));
}
VI i16 i_bits(v16 a) { return simd_ipair(_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)); }
/* The floats 2^39 + 2^16 * (upper half) and 2^23 + (lower half) are exact. So is the difference of the first and 2^39 +
 * 2^23. Only the final sum rounds. */
VI __m256 simd_to_float_unsigned(__m256i a) {
  __m256i upper = _mm256_or_si256(_mm256_srli_epi32(a, 16), _mm256_set1_epi32(0x53000000));
  __m256i lower = _mm256_blend_epi16(a, _mm256_set1_epi32(0x4b000000), 0xaa);
  return _mm256_add_ps(_mm256_sub_ps(_mm256_castsi256_ps(upper), _mm256_set1_ps(0x1p39f + 0x1p23f)),
                       _mm256_castsi256_ps(lower));
}
VI v16 i_to_float_unsigned(i16 a) { SIMD_BOTH(simd_to_float_unsigned(a.lo), simd_to_float_unsigned(a.hi)); }
VI v16 i_as_float(i16 a) { SIMD_BOTH(_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)); }
VI v16 i_to_float(i16 a) { SIMD_BOTH(_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)); }
#undef SIMD_BOTH
