/* The CPU backend: exact by construction, and the same bits from every variant (variants.c). */
#ifndef DT_CPU_H
#define DT_CPU_H

#include "backend/backend.h"

extern const dt_backend_ops dt_cpu_ops;

#define CPU_VARIANTS 80 /* bytes that hold their names */

/* The variants that this machine runs, the plainest first: "cpu:scalar, cpu:avx2". */
void cpu_variants(char names[CPU_VARIANTS]);

#endif
