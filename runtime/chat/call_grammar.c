#include "chat/call_format.h"
#include "system/need.h"
dt_status dt_call_grammar(const dt_call_format *format, const char *tools, bool several, char **gbnf, dt_error *err) {
  NEED(format, "format");
  (void)tools, (void)several, (void)gbnf;
  return DT_OK;
}
