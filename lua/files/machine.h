/* Which machine this is: measurements of one must not be taken for another's. */
#ifndef DTL_MACHINE_H
#define DTL_MACHINE_H

#include <stddef.h>

#define MACHINE_NAME 256

/* The processor's model and how many of its threads this process may use: "AMD EPYC 9B45, 2 CPUs". */
void machine_name(char *name, size_t size);

#endif
