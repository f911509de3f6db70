/* The table of weight types: the numbers and bytes of a block, and the reference decoder, which defines the type. The
 * blocks are those of ggml; a plain type has blocks of one number. Everything is little endian. */
#ifndef DT_TYPES_H
#define DT_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* T(name, decoder, number in a GGUF file, numbers of a block, bytes of a block). A new type is a line here and its
 * decoder, void type_DECODER(const void *blocks, size_t n, float *out), in a file of its own or with its kind. */
#define DT_TYPE_LIST(T)                                                                                                \
  T(F32, f32, 0, 1, 4)                                                                                                 \
  T(F16, f16, 1, 1, 2)                                                                                                 \
  T(BF16, bf16, 30, 1, 2)                                                                                              \
  T(Q4_0, q4_0, 2, 32, 18)                                                                                             \
  T(Q4_1, q4_1, 3, 32, 20)                                                                                             \
  T(Q5_0, q5_0, 6, 32, 22)                                                                                             \
  T(Q5_1, q5_1, 7, 32, 24)                                                                                             \
  T(Q8_0, q8_0, 8, 32, 34)                                                                                             \
  T(Q2_K, q2_k, 10, 256, 84)                                                                                           \
  T(Q3_K, q3_k, 11, 256, 110)                                                                                          \
  T(Q4_K, q4_k, 12, 256, 144)                                                                                          \
  T(Q5_K, q5_k, 13, 256, 176)                                                                                          \
  T(Q6_K, q6_k, 14, 256, 210)                                                                                          \
  T(IQ4_NL, iq4_nl, 20, 32, 18)                                                                                        \
  T(IQ4_XS, iq4_xs, 23, 256, 136)                                                                                      \
  T(MXFP4, mxfp4, 39, 32, 17)

#define DT_TYPE_NAME(name, decoder, ggml, numbers, bytes) DT_##name,
typedef enum { DT_TYPE_LIST(DT_TYPE_NAME) DT_TYPES } dt_dtype;

typedef struct {
  const char *name; /* as safetensors and GGUF spell it: "F16", "Q4_K" */
  int ggml;         /* its number in a GGUF file */
  int numbers;      /* numbers in a block; the length of a row is a multiple of it */
  int bytes;        /* bytes of a block */
  /* Decodes n numbers (a multiple of `numbers`) from blocks, which may be unaligned, to out. This defines the type. */
  void (*decode)(const void *blocks, size_t n, float *out);
} dt_type;

const dt_type *dt_type_of(dt_dtype dtype);

/* The types to which numbers can be rounded: R(name, function), void type_round_FUNCTION(const float *x, size_t n, void
 * *blocks), next to the type's decoder. The blocks are equal to those of the gguf package for Python. */
#define DT_ROUND_LIST(R) R(Q8_0, q8_0) R(Q4_1, q4_1)

/* Rounds n numbers (a multiple of a block's) to blocks. dt_round_to returns NULL if there is no rounding to this
 * type. */
typedef void dt_round(const float *x, size_t n, void *blocks);
dt_round *dt_round_to(dt_dtype dtype);

/* Find a type by its name, or by its number in a GGUF file; DT_TYPES: there is no such type. */
dt_dtype dt_type_named(const char *name);
dt_dtype dt_type_of_ggml(uint32_t ggml);

/* Returns the bytes of a row of `numbers` numbers, which is a multiple of a block's. */
static inline size_t dt_row_bytes(dt_dtype dtype, size_t numbers) {
  const dt_type *t = dt_type_of(dtype);
  return numbers / (size_t)t->numbers * (size_t)t->bytes;
}

#endif
