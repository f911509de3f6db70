/* dtrun as a library, installed as dtrun.h: the engine, and generating under policies. pkg-config --cflags --libs
 * dtrun */
#ifndef DTRUN_API_H
#define DTRUN_API_H

#ifdef __cplusplus
extern "C" {
#define restrict __restrict__
#endif

#include "dtrun/dtrun.h"
#include "dtrun/dtrun_fake.h"
#include "dtrun/dtrun_ranks.h"
#include "dtrun/host.h"

#ifdef __cplusplus
#undef restrict
}
#endif

#endif
