/* The backends compiled in. */
#ifndef DT_BACKENDS_H
#define DT_BACKENDS_H

#include "backend/backend.h"

/* `name` is "auto" or "NAME" or "NAME:VARIANT"; NULL and DT_EINPUT when there is none such. */
const dt_backend_ops *backend_find(const char *name, const char **variant, dt_error *err);

#endif
