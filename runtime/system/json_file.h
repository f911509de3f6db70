/* Reads JSON objects: whole files (config.json, tokenizer.json), headers and lines. */
#ifndef DT_JSON_FILE_H
#define DT_JSON_FILE_H

#include "system/status.h"

#include <cjson/cJSON.h>
#include <stddef.h>

/* Parses len bytes, which must be one JSON object with nothing after it except white space. A NUL character in it is
 * refused, even if it is written as \u0000. `name` is the input's name in messages. Free with cJSON_Delete. */
dt_status json_parse_object(const char *name, const char *bytes, size_t len, cJSON **out, dt_error *err);

/* The same from a file of at most 64 MiB. */
dt_status json_read_object(const char *path, cJSON **out, dt_error *err);

#endif
