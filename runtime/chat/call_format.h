/* The format of calls as plain data. Private to this folder.
 *
 * An answer with calls is: content, first, NAME, middle, ARGUMENTS, then for each further call next, NAME, middle,
 * ARGUMENTS, and last. With JSON, the arguments are an object. With tags, they are
 *
 *   before KEY key_end VALUE value_end, then for each further one: more KEY key_end VALUE value_end
 *
 * For example, Qwen3-Coder's template writes first "<tool_call>\n<function=", middle ">\n", before and more
 * "<parameter=", key_end ">\n", value_end "\n</parameter>\n", and last "</function>\n</tool_call>".
 *
 * White space in these texts need not be in an answer, and an answer may have more; only next to a VALUE it counts.
 * Some bytes stand for what differs from call to call: the enum below. */
#ifndef DT_CALL_FORMAT_H
#define DT_CALL_FORMAT_H

#include "chat/calls.h"
#include "chat/space.h"

#include <cjson/cJSON.h>

enum {
  CALL_INDEX_0 = 1, /* the number of the call, from 0 */
  CALL_INDEX_1,     /* from 1 */
  CALL_ID,          /* letters, digits, - and _ */
  CALL_NAME,        /* the name of the tool, again */
  CALL_KEY,         /* the key, again */
  CALL_TYPE,        /* of the value: string, number, boolean, array, object, null */
  CALL_IS_STRING    /* whether the value is a string: true or false */
};

struct dt_call_format {
  bool learned, tags;
  bool alone;                         /* each call is complete by itself: next is last, white space, first */
  bool python;                        /* values that are not JSON's: True, False, None */
  char *first, *next, *last, *middle; /* next: NULL if an answer has only one call */
  char *before, *more, *key_end, *value_end;
  char *quote;         /* before and after a string; "": strings stand bare */
  char *comma, *colon; /* in JSON, such as ", " and ": "; NULL: any white space */
  /* How models write calls that is not how their template does; NULL: as the template does. */
  dt_call_format *also;
};

/* ---- matching ---------------------------------------------------------------------------------------------------- */

typedef enum { CALL_NO, CALL_MAYBE, CALL_YES } call_match; /* MAYBE: the text ends too early */

typedef struct {
  const char *bytes;
  size_t n;
} call_span;

/* What has been found: the spans point into the text. */
typedef struct {
  call_span name, key, type;
  size_t used; /* bytes of the text */
} call_found;

/* White space in an answer. */
typedef enum {
  CALL_SPACE_ANY,    /* is skipped, and that of the format too */
  CALL_SPACE_BEFORE, /* is skipped, but at the end of the format's text it is taken only as it stands there */
  CALL_SPACE_EXACT   /* stands as in the format, except before and after its text, where the answer has none */
} call_space;

/* Matches a text of the format at text + found->used, and moves `used` on. */
call_match call_match_part(const char *part, const char *text, size_t n, call_space space, call_found *found);
/* The same for first or next, a name, and middle; for JSON, the next byte must be '{', which is not taken. */
call_match call_match_head(const dt_call_format *f, const char *begin, const char *text, size_t n, call_found *found);
/* The same for before or more, a key and key_end. */
call_match call_match_key(const dt_call_format *f, const char *begin, const char *text, size_t n, call_found *found);

/* ---- tools and values -------------------------------------------------------------------------------------------- */

/* Checks the members of a tool: its function, whose name is a text. DT_EINPUT names it. */
dt_status call_check_tools(const cJSON *tools, dt_error *err);
/* The function of that name, or NULL. */
const cJSON *call_find_tool(const cJSON *tools, call_span name);

typedef enum { CALL_ANY, CALL_STRING, CALL_STRING_OR_NULL, CALL_NOT_STRING } call_declared;
/* What a schema says of its values; NULL: anything. */
call_declared call_declared_by(const cJSON *schema);
/* What a tool's schema says of an argument. */
call_declared call_declared_of(const cJSON *function, call_span key);

/* Whether the text is a JSON object, and nothing else. False, too: out of memory. */
bool call_is_object(call_span text);
/* Appends a value as JSON to *out (malloc'd, *n bytes). `quote` is the format's. False: out of memory. */
bool call_put_value(call_span value, call_declared declared, const char *quote, char **out, size_t *n);
/* The same in the notation of a format, which may write lists and objects as tags in tags. */
bool call_put_argument(const dt_call_format *f, call_span value, call_declared declared, char **out, size_t *n);
bool call_put_string(call_span text, char **out, size_t *n);
bool call_put_bytes(const char *bytes, size_t len, char **out, size_t *n);
/* The length of a value that has no end mark: up to a comma, bracket or white space outside of brackets and strings.
 * SIZE_MAX: the text ends too early. */
size_t call_value_length(const char *text, size_t n, const char *quote);

#endif
