/* The weights of a tile in one step: 16 outputs by 32 k. Lane 4 g + t of a warp needs the weights of the outputs of
 * pair g, at k = 8 t .. 8 t + 7, in the registers that pack.cu explains: two of four k each. BITS16: these registers.
 * Else a record of codes, whose numbers are scale * (code - zero) + offset, rounded once to F16; scale and offset are
 * F16. In words of 32 bits:
 *
 *            codes                    high bits of codes   scales
 *   BITS3    [32 lanes]               [8 pairs][2]         [8][2 halves of k][2 outputs] scale, offset
 *   BITS4    [32][2 outputs]                               [8][2 outputs] scale, offset
 *   TABLE4   [32][2]                                       [8] scale of output 0, of output 1
 *   BITS5    [32][2]                  [8][2]               [8][2] scale, offset
 *   BITS6    [32][2]                  [32]                 [8][2 halves of k] scale of output 0, of output 1
 *   BITS8    [32][2][2]                                    [8] scale of output 0, of output 1
 *
 * zero is 32 for BITS6 and 128 for BITS8, which have no offset; otherwise it is 0. A code of TABLE4 is an index of
 * matrix.table, whose entry is treated like a code of BITS8.
 *
 * Register i of an output's four registers has k = 8 t + 2 i in its lower half and the next k in its upper half. In a
 * word of codes, those of register i are i nibbles further up: the first k in the lower half of the word, the second in
 * the upper half. Therefore code | 0x6400 in each half of a register is 1024 + code, or 1024 + 16 * code if the code is
 * 4 bits further up, and a single fma makes it the exact code. BITS3 has the lower two bits of all 16 codes of a lane
 * in one word, in the same way: those of output 1 follow those of output 0. TABLE4 has its codes in the order of k. */
#ifndef DT_CUDA_RECORD_CUH
#define DT_CUDA_RECORD_CUH

#include "internal.cuh"

/* The number of words before a record's high bits, and before its scales. */
__host__ __device__ constexpr int high_at(packing p) { return p == BITS8 ? 128 : p == BITS3 ? 32 : 64; }
__host__ __device__ constexpr int scales_at(packing p) {
  return high_at(p) + (p == BITS3 || p == BITS5 ? 16 : p == BITS6 ? 32 : 0);
}

/* The position of a code's first high bit in the lower half of a word of high bits. BITS3, BITS5: two lanes share a
 * word; the bits of lanes 4 g + t with an odd t are 8 bits further up. */
__host__ __device__ constexpr int high_bit(packing p, int output, int i) {
  if (p == BITS3) return 4 * output + i;
  int at = 2 * output + i / 2;
  return p == BITS5 ? at + i % 2 * 4 : 2 * (at + at / 2 * 2 + i % 2 * 2);
}

/* Adds the high bits of a register's codes above their other bits: from bit 2 on, or for nibbles from bit 4 or 8. */
template <packing P>
static __device__ __forceinline__ unsigned with_high_bits(unsigned code, unsigned high, int output, int i) {
  constexpr unsigned all = P == BITS6 ? 0x00030003 : 0x00010001;
  int to = P == BITS3 ? 2 : 4 + i % 2 * 4, left = to - high_bit(P, output, i);
  return masked_or(left < 0 ? high >> -left : high << left, all << to, code);
}

/* Returns the entries of a table of 16 bytes for the four codes in the lower half of a word. */
static __device__ __forceinline__ unsigned look_up(const uint4 &table, unsigned codes) {
  unsigned eighth = codes & 0x7777, upper = (codes >> 1 & 0x4444) | 0x3210; /* which half of the table, for each byte */
  return __byte_perm(__byte_perm(table.x, table.y, eighth), __byte_perm(table.z, table.w, eighth), upper);
}

/* Returns two exact codes minus zero, in F16, as register i of four. */
template <packing P>
static __device__ __forceinline__ unsigned two_codes(const unsigned *word, unsigned high, int output, int i) {
  constexpr unsigned exponent = 0x64006400, sixteenth = 0x2c002c00;
  constexpr unsigned less_1024 = P == BITS6                  ? 0xe420e420
                                 : P == BITS8 || P == TABLE4 ? 0xe480e480
                                                             : 0xe400e400; /* and zero */
  constexpr unsigned less_64 = P == BITS6 ? 0xd600d600 : 0xd400d400;
  if constexpr (P == BITS3) {
    unsigned code = masked_or(word[0] >> 2 * (4 * output + i), 0x00030003, exponent);
    return add2(with_high_bits<P>(code, high, output, i), less_1024);
  } else if constexpr (P == BITS8 || P == TABLE4) {
    return add2(__byte_perm(word[2 * output + i / 2], exponent >> 8, i % 2 ? 0x4342 : 0x4140), less_1024);
  } else {
    unsigned code = masked_or(word[output] >> i / 2 * 8, i % 2 ? 0x00f000f0 : 0x000f000f, exponent);
    if constexpr (P != BITS4) code = with_high_bits<P>(code, high, output, i);
    return i % 2 ? fma2(code, sixteenth, less_64) : add2(code, less_1024);
  }
}

/* Reads the registers that lane 4 g + t needs: those of its first four k, and those of the others. */
template <packing P>
static __device__ __forceinline__ void take_weights(uint4 (&a)[2], const uint4 *record, int lane, const uint4 &table) {
  if constexpr (P == BITS16) {
    a[0] = record[lane], a[1] = record[lane + WARP];
    return;
  }
  const unsigned *words = reinterpret_cast<const unsigned *>(record);
  unsigned word[4], high = 0, scale[2], offset[2] = {}, number[2][4];
  if constexpr (P == BITS8) {
    uint4 x = record[lane];
    word[0] = x.x, word[1] = x.y, word[2] = x.z, word[3] = x.w;
  } else if constexpr (P == BITS3) {
    word[0] = words[lane];
  } else {
    uint2 x = reinterpret_cast<const uint2 *>(record)[lane];
    word[0] = x.x, word[1] = x.y;
  }
  if constexpr (P == TABLE4) {
    word[3] = look_up(table, word[1] >> 16), word[2] = look_up(table, word[1]);
    word[1] = look_up(table, word[0] >> 16), word[0] = look_up(table, word[0]);
  }
  if constexpr (P == BITS3 || P == BITS5) high = words[high_at(P) + lane / 2] >> lane % 2 * 8;
  if constexpr (P == BITS6) high = words[high_at(P) + lane];
  if constexpr (P == BITS3 || P == BITS4 || P == BITS5) {
    uint2 both = reinterpret_cast<const uint2 *>(words + scales_at(P))[lane / (P == BITS3 ? 2 : 4)];
    scale[0] = low_twice(both.x), offset[0] = high_twice(both.x);
    scale[1] = low_twice(both.y), offset[1] = high_twice(both.y);
  } else {
    unsigned both = words[scales_at(P) + lane / (P == BITS6 ? 2 : 4)];
    scale[0] = low_twice(both), scale[1] = high_twice(both);
  }
#pragma unroll
  for (int output = 0; output < 2; output++)
#pragma unroll
    for (int i = 0; i < 4; i++)
      number[output][i] = fma2(two_codes<P>(word, high, output, i), scale[output], offset[output]);
  a[0] = make_uint4(number[0][0], number[1][0], number[0][1], number[1][1]);
  a[1] = make_uint4(number[0][2], number[1][2], number[0][3], number[1][3]);
}

#endif
