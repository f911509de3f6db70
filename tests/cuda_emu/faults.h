/* What an emulated device should fail at, for tests of failures. The environment variable CUDA_EMU_FAULTS, which has
 * the three numbers below separated by spaces, takes precedence. */
#ifndef CUDA_EMU_FAULTS_H
#define CUDA_EMU_FAULTS_H

#include <stddef.h>

#define EMU_GRAPH ((size_t)1 << 20)

typedef struct {
  int devices;   /* number of devices, at most 8; 0: none, -1: the driver is too old, -2: there is no driver */
  size_t memory; /* the memory of each device in bytes */
  int launches;  /* kernels that run before one fails, and the device with it; -1: none fails */
  int lacks;     /* what the device does not support, any of: */
} faults;
enum {
  EMU_DEPENDENT = 1,
  EMU_GRAPHS = 2,
  EMU_CUBLASLT = 4,
  EMU_FIRST_IN_GRAPH = 8,   /* a kernel's first launch in a capture */
  EMU_CUBLASLT_BEGINS = 16, /* cuBLASLt is there, but cannot be initialized */
  EMU_LARGE_GRAPHS = 32     /* each graph takes EMU_GRAPH bytes of memory; without this, none */
};

#ifdef __cplusplus
extern "C" {
#endif
void emu_faults(faults f); /* also repairs a device that has failed */
size_t emu_allocated(void);
int emu_used(void); /* which of these have been used since the last emu_faults() */
#ifdef __cplusplus
}
#endif

#endif
