/* Tools that a model may call in a conversation: dtrun chat --tools FILE. */
#ifndef CHAT_TOOLS_H
#define CHAT_TOOLS_H

#include "cli/job.h"
#include "cli/line.h"

typedef struct {
  char *list; /* a JSON list of functions; NULL: none */
  dt_call_format *format;
  const char *command; /* a program that is run for each call; NULL: the user types the result */
} chat_tools;

/* Reads the file. Prints what is wrong, and returns an exit status. Free with chat_tools_close, after a failure too. */
int chat_tools_open(const cli_options *options, const dt_chat *chat, chat_tools *out);
void chat_tools_close(chat_tools *tools);

/* Takes the calls out of an answer: *message gets its content and, as further members, the calls. It owns its malloc'd
 * texts. Free *calls with dt_called_free. */
dt_status chat_tools_take(const chat_tools *tools, dtl_message *message, dt_called *calls, dt_error *err);

/* Gets the result of a call, from the command or from the user: a message, whose texts are malloc'd. False: there is
 * none, for a reason that was printed. i: the number of the call in its answer. */
bool chat_tools_result(const chat_tools *tools, line_source *lines, const dt_call *call, int i, dtl_message *out);

#endif
