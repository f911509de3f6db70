/* The message of dtl_load about the time of loading. */
#ifndef DTL_LOAD_H
#define DTL_LOAD_H

#include "host.h"

/* Writes "loaded in 1.4 s" into text[size] if loading took more than a second; otherwise it writes "" and returns
 * false. */
bool load_took(double ms, char *text, size_t size);

#endif
