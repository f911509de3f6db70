/* Chat templates: programs in the Jinja language that write a conversation as the text that a model was trained on.
 * They run as Hugging Face transformers runs them in Jinja2: sandboxed, with trim_blocks, lstrip_blocks, break,
 * continue, {% generation %}, tojson without escapes of HTML, raise_exception and strftime_now. The output says which
 * of its bytes come from the request, so that a message that spells a control token can be encoded as plain text.
 *
 *   template *t;  template_output out;
 *   template_compile(text, len, &t, &err);
 *   template_variable variables[] = {
 *       {"messages", "[{\"role\": \"user\", \"content\": \"Hi\"}]", 35, TEMPLATE_MESSAGES},
 *       {"add_generation_prompt", "true", 4, TEMPLATE_OWN},
 *       {"bos_token", "\"<s>\"", 5, TEMPLATE_OWN}};
 *   template_render(t, variables, 3, &now, &out, &err);
 *   template_output_free(&out);  template_free(t);
 *
 * A template is a stranger's program: its steps, nesting, memory and output are bounded. Each failure is DT_EINPUT (or
 * DT_ENOMEM, when malloc fails) and one line, which begins with the line of the template. Pure: no I/O, no globals. */
#ifndef DT_TEMPLATE_H
#define DT_TEMPLATE_H

#include "system/range.h"
#include "system/status.h"

#include <time.h>

#define TEMPLATE_TEXT (1 << 20) /* bytes of a template */
/* Steps of a rendering: expressions, statements, items, pieces of long texts. Each byte of the variables allows some
 * more, because the conversation may be long. */
#define TEMPLATE_STEPS (1 << 20)
#define TEMPLATE_BYTE_STEPS 64
#define TEMPLATE_LEVELS 64         /* of nesting: expressions, statements, calls of macros, values */
#define TEMPLATE_MEMORY (64 << 20) /* bytes, of a compiled template and of a rendering, the output included */
#define TEMPLATE_OUTPUT (16 << 20) /* bytes */

typedef struct template template; /* compiled; threads may share it */

dt_status template_compile(const char *text, size_t len, template **out, dt_error *err);
void template_free(template *t); /* NULL is allowed, here and below */

/* Who wrote the strings of a variable. Strings of a TEMPLATE_REQUEST are marked in the output. TEMPLATE_MESSAGES is a
 * list of messages: all their strings are marked, except those of messages with the role "assistant" and the names of
 * the usual roles. */
typedef enum { TEMPLATE_OWN, TEMPLATE_REQUEST, TEMPLATE_MESSAGES } template_origin;

typedef struct {
  const char *name; /* NULL: json is an object, each of whose members is a variable */
  const char *json; /* UTF-8; numbers without a point or an exponent are integers, as in Python */
  size_t len;
  template_origin origin;
} template_variable;

typedef struct {
  char *text; /* malloc'd, NUL-terminated */
  size_t len;
  dt_range *marked; /* [n_marked], in order, apart; malloc'd */
  size_t n_marked;
} template_output;

/* Runs the template. now: the time for strftime_now; NULL: calls of it fail. If the template calls raise_exception, its
 * message is the whole error message. */
dt_status template_render(const template *t, const template_variable *variables, int n, const struct tm *now,
                          template_output *out, dt_error *err);
void template_output_free(template_output *out);

#endif
