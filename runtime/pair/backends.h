/* The backends that this build contains. */
#ifndef DT_BACKENDS_H
#define DT_BACKENDS_H

#include "backend/backend.h"

/* Finds a backend by "auto", "NAME" or "NAME:VARIANT". NULL, with DT_EINPUT in *err: there is no such backend. */
const dt_backend_ops *backend_find(const char *name, const char **variant, dt_error *err);

/* Returns the backend that splits a target between the CPU and GPUs (split.h), and sets both in its options. NULL, with
 * DT_EINPUT in *err: there is no GPU, or `name` is not "auto" or that of a GPU. option: the one that demands a split.
 */
const dt_backend_ops *backend_split(const char *name, const char *option, dt_backend_options *options, dt_error *err);

/* Returns why "auto" did not choose a device that exists, as a static string. NULL: there is no such device, or another
 * name was given. */
const char *backend_passed_over(const char *name);

/* Returns the backend that "auto" tries after `failed` could not open a pair. NULL: none is left, or another name was
 * given. */
const char *backend_fallback(const char *name, const dt_backend_ops *failed);

#endif
