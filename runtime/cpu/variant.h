/* The names of a variant's kernels: V(name) becomes name_scalar, name_avx2, .. */
#ifndef DT_CPU_VARIANT_H
#define DT_CPU_VARIANT_H

#include "kernels.h"
#include "simd.h"

#define CPU_DECLARE(name) extern const cpu_format V(cpu_format_##name);
CPU_FORMAT_LIST(CPU_DECLARE)
#define CPU_DECLARE_CACHE(name) extern const cpu_cache_type V(cpu_cache_##name);
CPU_CACHE_LIST(CPU_DECLARE_CACHE)

void V(cpu_finish_panels)(cpu_finish how, dt_act_kind act, float scale, const cpu_matrix *m, int first, int count,
                          const float *sums, size_t ld, int n, float *out, size_t ldo);
void V(cpu_bound)(float scale, float cap, float *x, int count);
void V(cpu_norm)(dt_norm_kind kind, const float *x, const float *weight, const float *bias, int hidden, float eps,
                 float *y);
void V(cpu_gate)(const float *x, int n, float *y);
void V(cpu_gate_silu)(const float *x, int n, float *y);
void V(cpu_unit)(float *x, int n, float scale);
void V(cpu_delta_mix)(const float *const tap[DT_DELTA_TAPS], const float *weight, size_t ld, int n, float *out);
void V(cpu_delta_rates)(const float *a, const float *shift, const float *decay, int n, float *rate, float *b);
void V(cpu_delta_rows)(const cpu_delta_head *h, const float *base, const cpu_delta_row *rows, int n);
void V(cpu_delta_base)(const cpu_delta_head *h, const float *before, const float *const row[DT_DELTA_STEP],
                       float *base);
float V(cpu_largest)(float *logits, int count);
void V(cpu_softmax_part)(float *logits, int count, float largest, cpu_softmax_part *part);
void V(cpu_softmax_sum)(float *logits, int count, float largest, cpu_softmax_part *part);
float V(cpu_rank)(float *scores, const float *logits, int first, int count, int k, cpu_top *top);
void V(cpu_add_noise)(const dt_sampling *s, int32_t position, int first, int count, const float *logits, float *scores);
void V(cpu_sample_among)(const dt_sampling *s, int32_t position, int first, int count, const float *logits,
                         const float *own, cpu_top *top);
int32_t V(cpu_sample)(const dt_sampling *s, int32_t position, float *logits, int n, uint32_t *weight);
cpu_softmax_part V(cpu_combine_parts)(const cpu_softmax_part *parts, size_t step, int blocks);
float V(cpu_stream)(const float *p, size_t n);
void V(cpu_exp)(const float *x, size_t n, float *y);
void V(cpu_log)(const float *x, size_t n, float *y);
void V(cpu_erf)(const float *x, size_t n, float *y);
void V(cpu_activate)(dt_act_kind act, const float *x, size_t n, float *y);

#endif
