/* The table of a variant's kernels. It is compiled once per variant. */
#include "variant.h"

#define NAME_(x) #x
#define NAME(x) NAME_(x)

#define FORMAT(name) &V(cpu_format_##name),
#define CACHE(name) &V(cpu_cache_##name),

extern const cpu_kernels V(cpu_kernels);
const cpu_kernels V(cpu_kernels) = {
    .name = NAME(VARIANT),
    .format = {CPU_FORMAT_LIST(FORMAT)},
    .finish = V(cpu_finish_panels),
    .bound = V(cpu_bound),
    .norm = V(cpu_norm),
    .gate = V(cpu_gate),
    .gate_silu = V(cpu_gate_silu),
    .unit = V(cpu_unit),
    .delta_mix = V(cpu_delta_mix),
    .delta_rates = V(cpu_delta_rates),
    .delta_rows = V(cpu_delta_rows),
    .delta_base = V(cpu_delta_base),
    .cache = {CPU_CACHE_LIST(CACHE)},
    .largest = V(cpu_largest),
    .softmax_part = V(cpu_softmax_part),
    .softmax_sum = V(cpu_softmax_sum),
    .rank = V(cpu_rank),
    .add_noise = V(cpu_add_noise),
    .sample_among = V(cpu_sample_among),
    .sample = V(cpu_sample),
    .combine_parts = V(cpu_combine_parts),
    .stream = V(cpu_stream),
    .exp = V(cpu_exp),
    .log = V(cpu_log),
    .erf = V(cpu_erf),
    .activate = V(cpu_activate),
};
