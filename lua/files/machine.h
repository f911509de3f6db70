/* The machine's name, which keeps measurements of different machines apart. */
#ifndef DTL_MACHINE_H
#define DTL_MACHINE_H

#include <stddef.h>

#define MACHINE_NAME 256

/* The processor's model and the number of processors this process may use: "AMD EPYC 9B45, 2 CPUs". */
void machine_name(char *name, size_t size);

#endif
