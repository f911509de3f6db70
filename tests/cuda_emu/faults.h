/* What an emulated device should fail at, for the tests of failures. The environment's CUDA_EMU_FAULTS, the three
 * numbers below with blanks between them, goes before it. */
#ifndef CUDA_EMU_FAULTS_H
#define CUDA_EMU_FAULTS_H

#include <stddef.h>

typedef struct {
  int devices;   /* 0: none, -1: the driver is too old, -2: there is no driver */
  size_t memory; /* bytes the device has */
  int launches;  /* so many kernels run before one fails and the device with it; -1: none fails */
  int lacks;     /* some of: */
} faults;
enum {
  EMU_DEPENDENT = 1,
  EMU_GRAPHS = 2,
  EMU_CUBLASLT = 4,
  EMU_FIRST_IN_GRAPH = 8 /* a kernel's first launch in a capture */
};

#ifdef __cplusplus
extern "C" {
#endif
void emu_faults(faults f); /* also mends a device that failed */
size_t emu_allocated(void);
int emu_used(void); /* which of these were used since the last emu_faults() */
#ifdef __cplusplus
}
#endif

#endif
