/* Attention over caches in f16. */
#define CPU_CACHE_F16
#include "attention.c"
