/* Calls of tools in an answer. How a model writes a call is learned from its chat template, by rendering sample calls.
 *
 *   dt_call_format *f;  dt_calls *s;
 *   dt_call_format_open(chat, &f, &err);
 *   dt_calls_open(f, tools, &s, &err);
 *   dt_calls_add(s, bytes, len, on_call, user);   // each piece of the answer, without its reasoning (reasoning.h)
 *   dt_calls_end(s, on_call, user);               // the bytes held back
 *   dt_calls_close(s);  dt_call_format_close(f);
 *
 * tools is a JSON list as in OpenAI's interface: {"type": "function", "function": {"name", "description",
 * "parameters"}}, where parameters is a JSON schema. */
#ifndef DT_CALLS_H
#define DT_CALLS_H

#include "chat/chat.h"

#include <stdint.h>

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

/* A format does not change, so any number of threads may use it at the same time. */
typedef struct dt_call_format dt_call_format;

/* Learns the format of a chat's calls. A template that writes no calls gets the most common format: <tool_call>, an
 * object with name and arguments, </tool_call>. Free with dt_call_format_close. */
dt_status dt_call_format_open(const dt_chat *chat, dt_call_format **out, dt_error *err);
void dt_call_format_close(dt_call_format *format); /* NULL is allowed */

/* Returns whether the template writes calls, so that the format is its own. */
bool dt_call_format_learned(const dt_call_format *format);

/* Describes a format in one line of JSON, for tests and reports. *out is malloc'd. */
dt_status dt_call_format_text(const dt_call_format *format, char **out, dt_error *err);

/* What is heard of an answer. */
typedef enum {
  DT_CALL_CONTENT,   /* bytes: text for the user */
  DT_CALL_BEGIN,     /* bytes: the name of a call's tool */
  DT_CALL_ARGUMENTS, /* bytes: the next bytes of the call's arguments, a JSON object */
  DT_CALL_END,       /* the call is complete, and its arguments are JSON */
  DT_CALL_BROKEN     /* the call is not complete and will not be; bytes: all of its text, which is the user's */
} dt_call_part;

/* Receives the next part. index: of the call, from 0; of content, the number of calls before it. A broken call's index
 * is used again. If it returns false, no more parts are wanted, and the calls below return false. */
typedef bool (*dt_on_call)(void *user, dt_call_part part, int index, const char *bytes, size_t len);

/* A splitter of one answer into content and calls. */
typedef struct dt_calls dt_calls;

/* Opens a splitter. The format must outlive it. tools: their schemas say which arguments are strings; NULL: unknown. In
 * a format that has nothing before a name, only names of tools begin a call. DT_EINPUT: tools is not a list of
 * functions. Free with dt_calls_close. */
dt_status dt_calls_open(const dt_call_format *format, const char *tools, dt_calls **out, dt_error *err);
void dt_calls_close(dt_calls *calls); /* NULL is allowed */

/* Adds the next bytes of the answer, which may end anywhere. What may belong to a call is held back. White space before
 * and after calls belongs to neither; what only looks like the beginning of a call stays content. If there is no
 * memory, the rest of the answer is passed on as content. */
bool dt_calls_add(dt_calls *calls, const char *bytes, size_t len, dt_on_call on_call, void *user);

/* Ends the answer. A call whose arguments are complete may lack its end mark, because models end an answer there. */
bool dt_calls_end(dt_calls *calls, dt_on_call on_call, void *user);

typedef struct {
  char *name, *arguments; /* arguments: a JSON object */
} dt_call;

typedef struct {
  char *content; /* NUL-terminated */
  size_t len;
  dt_call *calls; /* [n_calls] */
  int n_calls;
} dt_called;

/* Splits a whole answer. Fill *out with zeros before, and free it with dt_called_free. Errors are those of
 * dt_calls_open. */
dt_status dt_calls_read(const dt_call_format *format, const char *tools, const char *answer, size_t len, dt_called *out,
                        dt_error *err);
void dt_called_free(dt_called *called);

typedef struct {
  bool required; /* the answer is a call. Otherwise it is free text, in which the mark of a call begins one */
  bool several;  /* further calls may follow the first one */
  /* The marks of reasoning (dt_chat_reasoning), which is free text before all that; NULL: there is none. `open`: the
   * prompt ends inside it. Otherwise an answer may begin with it. */
  const char *reasoning_begin, *reasoning_end;
  bool open;
  /* Finds control tokens in the format's texts, as dt_token_at(of, text, n, &len) does: a grammar then demands these
   * tokens, as a prompt has them. All other texts may be spelled in any tokens. NULL: so may these. */
  int32_t (*token)(const void *of, const char *text, size_t n, size_t *len);
  const void *of;
} dt_call_options;

/* Writes a grammar (GBNF) for answers that call one of the tools. The arguments match the tool's schema; a tool without
 * one takes any object. The spacing is the template's. *gbnf is malloc'd; NULL if the answer need not be a call and the
 * format has no mark by which a call could be recognized. DT_EINPUT: tools is not a list of functions, or is empty, or
 * a schema is not supported; the message names the tool and the place. */
dt_status dt_call_grammar(const dt_call_format *format, const char *tools, const dt_call_options *options, char **gbnf,
                          dt_error *err);

#pragma GCC visibility pop

#endif
