/* v16 as one AVX-512 register. simd_scalar.h defines each operation. */
#include <immintrin.h>

typedef __m512 v16;

VI v16 v_set1(float x) { return _mm512_set1_ps(x); }
VI v16 v_load(const float *p) { return _mm512_loadu_ps(p); }
VI void v_store(float *p, v16 a) { _mm512_storeu_ps(p, a); }
VI v16 v_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
VI v16 v_set1_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_set1_epi16((short)*p)); }
VI void v_store_f16(uint16_t *p, v16 a) {
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}
VI v16 v_load_bf16(const uint16_t *p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
VI v16 v_add(v16 a, v16 b) { return _mm512_add_ps(a, b); }
VI v16 v_sub(v16 a, v16 b) { return _mm512_sub_ps(a, b); }
VI v16 v_mul(v16 a, v16 b) { return _mm512_mul_ps(a, b); }
VI v16 v_div(v16 a, v16 b) { return _mm512_div_ps(a, b); }
VI v16 v_fma(v16 a, v16 b, v16 c) { return _mm512_fmadd_ps(a, b, c); }
VI v16 v_max(v16 a, v16 b) { return _mm512_max_ps(a, b); }
VI v16 v_min(v16 a, v16 b) { return _mm512_min_ps(a, b); }
VI v16 v_abs(v16 a) { return _mm512_abs_ps(a); }
VI v16 v_copysign(v16 a, v16 sign) {
  __m512 bit = _mm512_set1_ps(-0.0f);
  return _mm512_or_ps(_mm512_andnot_ps(bit, a), _mm512_and_ps(bit, sign));
}
VI v16 v_if_gt(v16 a, v16 b, v16 x, v16 y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x); }
VI v16 v_keep_nan(v16 test, v16 a) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(test, test, _CMP_UNORD_Q), a, test);
}
VI v16 v_scale2(v16 a, v16 t) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_slli_epi32(_mm512_castps_si512(t), 23)));
}
VI v16 v_split2(v16 a, v16 *m) {
  __m512i bits = _mm512_castps_si512(a);
  __m512i e = _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f3504f3)), 23);
  *m = _mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_slli_epi32(e, 23)));
  return _mm512_cvtepi32_ps(e);
}
VI unsigned v_gt_mask(v16 a, v16 b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
VI unsigned v_nan_mask(v16 a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }

VI float v_sum(v16 a) {
  __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
VI float v_hmax(v16 a) {
  __m256 s8 = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  __m128 s4 = _mm_max_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  __m128 s2 = _mm_max_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_max_ss(s2, _mm_movehdup_ps(s2)));
}
#define SIMD_SIXTEEN(four, sixteen, op)                                                                                \
  VI v16 four(v16 a, v16 b, v16 c, v16 d) {                                                                            \
    __m512 ab = op(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));                                \
    __m512 cd = op(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));                                \
    return op(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));                                 \
  }                                                                                                                    \
  VI v16 sixteen(v16 g0, v16 g1, v16 g2, v16 g3) {                                                                     \
    __m512 e = op(_mm512_shuffle_ps(g0, g1, 0x44), _mm512_shuffle_ps(g0, g1, 0xee));                                   \
    __m512 f = op(_mm512_shuffle_ps(g2, g3, 0x44), _mm512_shuffle_ps(g2, g3, 0xee));                                   \
    return op(_mm512_shuffle_ps(e, f, 0x88), _mm512_shuffle_ps(e, f, 0xdd));                                           \
  }
SIMD_SIXTEEN(v_sums4, v_sums16, _mm512_add_ps)
SIMD_SIXTEEN(v_largest4, v_largest16, _mm512_max_ps)
#undef SIMD_SIXTEEN

typedef __m512i i16;

VI i16 i_set1(int32_t x) { return _mm512_set1_epi32(x); }
VI i16 i_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
VI i16 i_load_pairs(const uint8_t *p) { return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)p)); }
VI v16 v_load_i8(const int8_t *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
VI i16 i_look_up(const uint8_t table[16], i16 a) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table)), a);
}
VI v16 v_load_half_power(const uint8_t *p) {
  __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)), one = _mm512_set1_epi32(1);
  return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_slli_epi32(_mm512_sub_epi32(e, one), 23),
                                              _mm512_slli_epi32(_mm512_add_epi32(e, one), 21)));
}
VI i16 i_and(i16 a, int32_t mask) { return _mm512_and_si512(a, _mm512_set1_epi32(mask)); }
VI i16 i_or(i16 a, i16 b) { return _mm512_or_si512(a, b); }
VI i16 i_left(i16 a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
VI i16 i_right(i16 a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
VI i16 i_dot2(i16 a, i16 w, int32_t x) {
#if defined(__AVX512VNNI__)
  return _mm512_dpwssd_epi32(a, w, _mm512_set1_epi32(x));
#else
  return _mm512_add_epi32(a, _mm512_madd_epi16(w, _mm512_set1_epi32(x)));
#endif
}
VI void i_store(int32_t *p, i16 a) { _mm512_storeu_si512(p, a); }
VI void i_store_i8(int8_t *p, i16 a) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(a)); }
VI int32_t i_sum(i16 a) { return _mm512_reduce_add_epi32(a); }
VI i16 i_nearest(v16 a) { return _mm512_cvtps_epi32(a); }
VI i16 i_add(i16 a, i16 b) { return _mm512_add_epi32(a, b); }
typedef const int8_t *i_fours;
VI i_fours i_fours_at(const int8_t *p) { return p; }
VI __m512i simd_four(i_fours x, const int four) {
  int32_t digits;
  memcpy(&digits, x + 4 * four, sizeof digits);
  return _mm512_set1_epi32(digits);
}
#define SIMD_SIGNED 0
VI i16 i_dot4(i16 a, i16 w, i_fours x, const int four) {
  __m512i digits = simd_four(x, four);
#if defined(__AVX512VNNI__)
  return _mm512_dpbusd_epi32(a, w, digits);
#else /* bytes 0 and 2, then 1 and 3, as pairs of 16 bits: madd adds their products without saturation */
  __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(digits, 8), 8), odd = _mm512_srai_epi16(digits, 8);
  a = _mm512_add_epi32(a, _mm512_madd_epi16(_mm512_and_si512(w, _mm512_set1_epi32(0x00ff00ff)), even));
  return _mm512_add_epi32(a, _mm512_madd_epi16(_mm512_srli_epi16(w, 8), odd));
#endif
}
#if defined(__AVX512VNNI__)
#define SIMD_PAIRS 0
VI i16 i_pairs(i16 pairs, i16 w, i_fours x, const int four) { return i_dot4(pairs, w, x, four); }
VI i16 i_add_pairs(i16 a, i16 pairs) { return _mm512_add_epi32(a, pairs); }
#else
#define SIMD_PAIRS 1
VI i16 i_pairs(i16 pairs, i16 w, i_fours x, const int four) {
  return _mm512_add_epi16(pairs, _mm512_maddubs_epi16(w, simd_four(x, four)));
}
VI i16 i_add_pairs(i16 a, i16 pairs) { return _mm512_add_epi32(a, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1))); }
#endif
VI i16 i_xor(i16 a, i16 b) { return _mm512_xor_si512(a, b); }
VI i16 i_multiply(i16 a, uint32_t x, i16 *low) {
  __m512i by = _mm512_set1_epi32((int32_t)x);
  __m512i even = _mm512_mul_epu32(a, by), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), by);
  *low = _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA);
  return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}
VI i16 i_bits(v16 a) { return _mm512_castps_si512(a); }
VI v16 i_as_float(i16 a) { return _mm512_castsi512_ps(a); }
VI v16 i_to_float_unsigned(i16 a) { return _mm512_cvtepu32_ps(a); }
VI v16 i_to_float(i16 a) { return _mm512_cvtepi32_ps(a); }
