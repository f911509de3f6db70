/* JSON whose numbers keep their digits: a double has 15. */
#ifndef DT_EXACT_JSON_H
#define DT_EXACT_JSON_H

#include "system/status.h"

#include <cjson/cJSON.h>

#define EXACT_JSON_DIGITS 40 /* of a number, with its sign, point and exponent */

/* *root: to be freed with cJSON_Delete. Numbers are of the type cJSON_Raw: valuestring is the number as it was written,
 * valuedouble and valueint are near it. DT_EINPUT: `what`, more than `most` bytes, not JSON, or a text with NUL. */
dt_status exact_json_read(const char *what, const char *json, size_t most, cJSON **root, dt_error *err);

#endif
