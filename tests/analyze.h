/* Included before each file by tests/tidy.sh: results of functions of other files, which clang's analyzer does not
 * see. */
#include "files/fail.h"
#include "system/status.h"

#include <cJSON.h>
#include <stdlib.h>

#define dt_fail(err, status, ...) ((dt_fail)(err, status, __VA_ARGS__), (status))
#define dt_fail_memory(...) ((dt_fail_memory)(__VA_ARGS__), DT_ENOMEM)
#define dtl_fail(err, status, ...) ((dtl_fail)(err, status, __VA_ARGS__), (status))
#define dtl_fail_memory(...) ((dtl_fail_memory)(__VA_ARGS__), DT_ENOMEM)
#define luaL_error(...) ((luaL_error)(__VA_ARGS__), abort(), 0)
#define cJSON_IsString(item) ((item) != NULL && (cJSON_IsString)(item))
#define cJSON_IsArray(item) ((item) != NULL && (cJSON_IsArray)(item))
