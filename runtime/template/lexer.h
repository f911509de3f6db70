/* A template as tokens, by the rules of Jinja2's lexer: which white space stays is decided here. */
#ifndef DT_TEMPLATE_LEXER_H
#define DT_TEMPLATE_LEXER_H

#include "template/value.h"

/* An operator of one character is that character. */
enum {
  T_END = 256,
  T_DATA, /* text outside of tags */
  T_PRINT_BEGIN,
  T_PRINT_END,
  T_BLOCK_BEGIN,
  T_BLOCK_END,
  T_NAME,
  T_STRING,
  T_NUMBER,
  T_EQUAL,
  T_NOT_EQUAL,
  T_LESS_EQUAL,
  T_MORE_EQUAL,
  T_POWER,
  T_FLOOR
};

typedef struct {
  int kind, line;
  const tpl_string *text; /* of data, names and strings; otherwise as it is written, for messages */
  tpl_value number;
} tpl_token;

/* The last token is T_END. */
const tpl_token *tpl_lex(tpl_job *job, const char *text, size_t len);

#endif
