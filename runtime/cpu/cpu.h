/* The CPU backend. Every variant (variants.c) gives the same bits. */
#ifndef DT_CPU_H
#define DT_CPU_H

#include "backend/backend.h"

extern const dt_backend_ops dt_cpu_ops;

#define CPU_VARIANTS 80 /* bytes for the list of all names, the closing zero included */

/* Lists the variants that this machine can run, the slowest first: "cpu:scalar, cpu:avx2". */
void cpu_variants(char names[CPU_VARIANTS]);

#endif
