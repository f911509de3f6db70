/* The table of all fields of requests and of pairs. The command line, HTTP, drivers, /set in chats, completions and
 * help all read it: a new field needs a row here and the code that uses it. Only the engine checks values
 * (dt_check_options, dtl_request_check). */
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
  FIELD_LOGPROBS, /* dt_logprobs: the number of likeliest tokens to report; a value turns log-probabilities on */
  FIELD_STOP,     /* a stop string; repeatable */
  FIELD_BIAS,     /* TOKEN+BIAS, which needs the pair's tokenizer; repeatable */
  FIELD_GRAMMAR   /* a grammar, or a text that is converted into one: see request_grammar */
} field_kind;

enum {
  ON_LINE = 1,   /* an option of the command line */
  IN_TEXT = 2,   /* a member of the body of a completion request */
  IN_CHAT = 4,   /* a member of the body of a chat request */
  IN_DRIVER = 8, /* an option of pair:generate */
  IN_LOAD = 16,  /* an option of dt.load */
  IN_SET = 32,   /* can be changed between the answers of a conversation (/set) and in an experiment */
  IN_BODY = IN_TEXT | IN_CHAT,
  NO_ZERO = 64 /* 0 means "not given", so a caller's 0 is refused */
};

typedef struct {
  const char *name;  /* its name in Lua, in /set and in the engine's messages */
  const char *line;  /* its option: one or two names, separated by a blank; NULL: it is not an option */
  const char *other; /* names of this option in other programs, separated by blanks; or NULL */
  const char *body;  /* its names in bodies of requests, separated by blanks; or NULL */
  field_kind kind;
  size_t at; /* offset of its value in request_input */
  unsigned where;
  const char *value;  /* name of its value in help; NULL: a flag */
  const char *help;   /* its description in help, one line */
  const char *values; /* values that shells complete, separated by blanks; or NULL */
} request_field;

const request_field *request_field_at(int i); /* Returns row i of the table, from 0; NULL: there are no more rows. */
int request_field_index(const request_field *field);

/* Find a field by its name in Lua, or by a name in request bodies, among the fields that have one of the flags in
 * `where`; NULL: there is none. */
const request_field *request_field_named(const char *name, unsigned where);
const request_field *request_field_in_body(const char *name, unsigned where);

/* Returns whether a list of names, separated by blanks, contains name[n]. Within the given name '_' matches '-'. */
bool request_has_name(const char *names, const char *name, size_t n);

#endif
