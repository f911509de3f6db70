/* The backends compiled in. */
#ifndef DT_BACKENDS_H
#define DT_BACKENDS_H

#include "backend/backend.h"

/* `name` is "auto" or "NAME" or "NAME:VARIANT"; NULL and DT_EINPUT when there is none such. */
const dt_backend_ops *backend_find(const char *name, const char **variant, dt_error *err);

/* Why "auto" passed over a device that is there; NULL: it did not, or another name was given. Static. */
const char *backend_passed_over(const char *name);

/* The backend that "auto" tries after `failed` could not open a pair; NULL: none is left, or another name was given.
 * Static. */
const char *backend_fallback(const char *name, const dt_backend_ops *failed);

#endif
