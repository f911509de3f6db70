/* The version of dtrun. */
#ifndef DT_VERSION_H
#define DT_VERSION_H

#pragma GCC visibility push(default) /* what libdtrun.so exports; it hides all else */

const char *dt_version(void); /* "0.3.0"; static */

#pragma GCC visibility pop

#endif
