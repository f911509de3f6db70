/* JSON objects: small files read whole (config.json, tokenizer.json), headers, lines. */
#ifndef DT_JSON_FILE_H
#define DT_JSON_FILE_H

#include "system/status.h"

#include <cjson/cJSON.h>
#include <stddef.h>

/* Parses len bytes that must hold one JSON object and nothing after it but white space; a NUL character
 * within it, also one written as \u0000, is refused. `name` is what messages call it.
 * Free with cJSON_Delete. */
dt_status json_parse_object(const char *name, const char *bytes, size_t len, cJSON **out, dt_error *err);

/* The same from a file of at most 64 MiB. */
dt_status json_read_object(const char *path, cJSON **out, dt_error *err);

#endif
