/* The kernel table of one variant (compiled once per variant). */
#include "variant.h"

#define NAME_(x) #x
#define NAME(x) NAME_(x)

extern const cpu_kernels V(cpu_kernels);
const cpu_kernels V(cpu_kernels) = {
    .name = NAME(VARIANT),
    .matmul = V(cpu_matmul),
    .matmul8 = V(cpu_matmul8),
    .round_rows = V(cpu_round_rows),
    .finish = V(cpu_finish_panels),
    .norm = V(cpu_norm),
    .attention = V(cpu_attention),
    .reduce_logits = V(cpu_reduce_logits),
    .combine_parts = V(cpu_combine_parts),
    .widen = V(cpu_widen),
    .stream = V(cpu_stream),
    .exp = V(cpu_exp),
    .erf = V(cpu_erf),
    .activate = V(cpu_activate),
};
