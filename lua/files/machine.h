/* The machine's name, which distinguishes the measurements of different machines. */
#ifndef DTL_MACHINE_H
#define DTL_MACHINE_H

#include <stddef.h>

#define MACHINE_NAME 256

/* Writes the processor's model and the number of processors that this process may use: "AMD EPYC 9B45, 2 CPUs". */
void machine_name(char *name, size_t size);

#endif
