/* The fields of a request and of a pair: one table for the command line, HTTP, drivers, /set of chats, completions and
 * help. A new field is a row here, and its use. Values are checked by the engine alone (dt_check_options,
 * dtl_check_request). */
#ifndef REQUEST_FIELDS_H
#define REQUEST_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
  FIELD_FLAG,     /* bool */
  FIELD_WHOLE,    /* int */
  FIELD_REAL,     /* float */
  FIELD_SEED,     /* uint64_t */
  FIELD_TEXT,     /* const char * */
  FIELD_LOGPROBS, /* dt_logprobs: how many of the likeliest tokens; the text has log-probabilities then */
  FIELD_STOP,     /* a text that ends the generated one; repeatable */
  FIELD_BIAS,     /* TOKEN+BIAS, whose tokens need the pair's tokenizer; repeatable */
  FIELD_GRAMMAR   /* a grammar, or a text that becomes one: see request_grammar */
} field_kind;

enum {
  ON_LINE = 1,   /* an option of the command line */
  IN_TEXT = 2,   /* a member of a completion's body */
  IN_CHAT = 4,   /* of a chat's */
  IN_DRIVER = 8, /* of pair:generate */
  IN_LOAD = 16,  /* of dt.load */
  IN_SET = 32,   /* may change between the answers of a conversation, and in an experiment */
  IN_BODY = IN_TEXT | IN_CHAT,
  NO_ZERO = 64 /* 0 stands for a value that is missing, so nobody can give it */
};

typedef struct {
  const char *name;  /* in Lua, in /set, and in the engine's messages */
  const char *line;  /* on the command line: one or two names with a blank between; NULL: it has none */
  const char *other; /* names that other programs give it there, with blanks between; or NULL */
  const char *body;  /* its names in bodies of requests, with blanks between; or NULL */
  field_kind kind;
  size_t at; /* of request_input */
  unsigned where;
  const char *value;  /* how help names its value; NULL: a flag */
  const char *help;   /* one line */
  const char *values; /* that complete it, with blanks between; or NULL */
} request_field;

const request_field *request_field_at(int i); /* i = 0, 1, ..; NULL: there are no more */
int request_field_index(const request_field *field);

/* The field with this name in Lua, or in a body, at one of these places; NULL: none. */
const request_field *request_field_named(const char *name, unsigned where);
const request_field *request_field_in_body(const char *name, unsigned where);

/* Whether a list of names with blanks between has this one of n bytes; within it '_' is as good as '-'. */
bool request_has_name(const char *names, const char *name, size_t n);

#endif
