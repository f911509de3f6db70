/* A template as a tree, which does not change once it is parsed. */
#ifndef DT_TEMPLATE_NODE_H
#define DT_TEMPLATE_NODE_H

#include "template/native.h"

typedef enum {
  N_CONSTANT,     /* value */
  N_NAME,         /* text; native: a global of that name, or NULL */
  N_ATTRIBUTE,    /* a.text; of a target: a namespace's */
  N_ITEM,         /* a[b] */
  N_SLICE,        /* a[list[0]:list[1]:list[2]], NULL where there is none */
  N_CALL,         /* a(arguments) */
  N_FILTER,       /* a | text(arguments); native: NULL if unknown. a is NULL in filter blocks */
  N_TEST,         /* a is text(arguments); native: NULL if unknown */
  N_NOT,          /* a */
  N_NEGATE,       /* -a */
  N_PLUS,         /* +a */
  N_AND,          /* list */
  N_OR,           /* list */
  N_ARITHMETIC,   /* list[0] operators[0] list[1] operators[1] list[2] ... from the left */
  N_COMPARE,      /* the same: each pair must hold */
  N_CONCAT,       /* list */
  N_CONDITION,    /* b if a else c, which may be NULL */
  N_LIST,         /* list */
  N_TUPLE,        /* list; also a target of assignments */
  N_DICT,         /* list: key, value, key, value ... */
  N_TEXT,         /* text */
  N_PRINT,        /* list */
  N_IF,           /* list: condition, body (N_BODY), ...; b: the body of else, or NULL */
  N_FOR,          /* for a in b if c: body; other: the body of else, or NULL */
  N_SET,          /* a = b */
  N_SET_BLOCK,    /* a = body, filtered by b (or NULL) */
  N_MACRO,        /* text(list: names of parameters), body */
  N_CALL_BLOCK,   /* a call (a) with a macro, b */
  N_FILTER_BLOCK, /* b, of body */
  N_WITH,         /* list: target, value, ...; body */
  N_SCOPE,        /* body: of {% generation %} */
  N_BODY,         /* list of statements */
  N_BREAK,
  N_CONTINUE
} tpl_node_kind;

typedef struct tpl_node tpl_node;

typedef struct {
  tpl_node **items;
  size_t n;
} tpl_nodes;

typedef struct {
  tpl_nodes list;              /* by position */
  tpl_nodes named;             /* constant name, value, ... */
  tpl_node *more, *more_named; /* *list and **dict, or NULL */
} tpl_call_arguments;

struct tpl_node {
  tpl_node_kind kind;
  int line;
  const tpl_string *text;
  tpl_value value;
  const tpl_native *native;
  tpl_node *a, *b, *c, *body, *other;
  tpl_nodes list;
  int *operators;                              /* [list.n - 1] tokens; T_NAME: in, T_DATA: not in */
  tpl_call_arguments *arguments;               /* NULL: none */
  tpl_nodes defaults;                          /* of a macro: of its last parameters */
  bool recursive;                              /* a loop */
  bool uses_caller, uses_varargs, uses_kwargs; /* a macro */
};

#endif
