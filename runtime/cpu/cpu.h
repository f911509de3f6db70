/* The CPU backend: exact by construction, and the same bits from every variant ("scalar", "avx2", "avx512"). */
#ifndef DT_CPU_H
#define DT_CPU_H

#include "backend.h"

extern const dt_backend_ops dt_cpu_ops;

#endif
