/* Reads JSON without losing digits of numbers, since a double has only 15. */
#ifndef DT_EXACT_JSON_H
#define DT_EXACT_JSON_H

#include "system/status.h"

#include <cjson/cJSON.h>

#define EXACT_JSON_DIGITS 40 /* maximum length of a number, with its sign, point and exponent */

/* Parses JSON into *root, which the caller frees with cJSON_Delete. Numbers have the type cJSON_Raw: valuestring is the
 * number as written; valuedouble and valueint are approximations. DT_EINPUT: the input has more than `most` bytes, is
 * not JSON, has a string with a NUL, or has an object with one name twice; messages begin with `what`. */
dt_status exact_json_read(const char *what, const char *json, size_t most, cJSON **root, dt_error *err);

#endif
