/* The CPU backend. It is compiled in several variants (variants.c), all of which give the same bits. */
#ifndef DT_CPU_H
#define DT_CPU_H

#include "backend/backend.h"

extern const dt_backend_ops dt_cpu_ops;

#define CPU_VARIANTS 80 /* size in bytes of the list of all names, with the terminating zero */

/* Lists the variants that this machine can run, slowest first, as in "cpu:scalar, cpu:avx2". */
void cpu_variants(char names[CPU_VARIANTS]);

#endif
