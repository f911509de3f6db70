/* Makes the text of a prompt from a conversation, with today's date. */
#include "host.h"

#include <time.h>

dt_status dtl_conversation(const dt_chat *chat, const dt_message *system, const dt_message *turns, const dt_role *roles,
                           int n, const char *date, char **text, size_t *len, dt_error *err) {
  char today[32];
  struct tm day;
  time_t now = time(NULL);
  strftime(today, sizeof today, "%d %b %Y", localtime_r(&now, &day));
  return dt_chat_text(chat, system, turns, roles, n, date ? date : today, text, len, err);
}
