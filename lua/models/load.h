/* Loading a pair: what dtl_load tells of it. */
#ifndef DTL_LOAD_H
#define DTL_LOAD_H

#include "host.h"

/* "loaded in 1.4 s" into text[size] where that was more than a second; else "", and false. */
bool load_took(double ms, char *text, size_t size);

#endif
