/* How schemas become grammars, for the files schema*.c.
 *
 * A value may have to match several schemas at once, because of allOf, $ref next to other keywords, properties of two
 * branches and so on. Such a set of schemas, some of them negated, is a `needs`. schema_shapes turns it into
 * alternatives without anyOf, $ref and the like: a `shape` is a set of types with a list of facts, each a keyword that
 * asserts something of one type. For each type of each shape, a writer (strings, numbers, arrays, objects, values)
 * writes rules. Rules of the same needs are shared, so recursive schemas end. */
#ifndef DT_SCHEMA_BUILD_H
#define DT_SCHEMA_BUILD_H

#include "grammar/automaton.h"
#include "grammar/schema.h"

#include <cjson/cJSON.h>

/* ---- types and keywords ------------------------------------------------------------------------------------------ */

typedef enum { STRING, INTEGER, FRACTION, BOOLEAN, ARRAY, OBJECT, NULLS, TYPES } schema_type;

#define WITH(t) (1u << (t))
#define ANY_TYPE (WITH(TYPES) - 1)
#define NUMBERS (WITH(INTEGER) | WITH(FRACTION)) /* the type number */

typedef enum {
  K_IGNORED, /* has no effect on what is valid */
  K_APPLIES, /* schema_shapes resolves it */
  K_REFUSED, /* no grammar can follow it */
  /* of strings */
  K_MIN_LENGTH,
  K_MAX_LENGTH,
  K_PATTERN,
  K_FORMAT,
  K_NEVER, /* not this text */
  /* of numbers */
  K_MINIMUM,
  K_MAXIMUM,
  K_ABOVE,
  K_BELOW,
  K_MULTIPLE,
  /* of arrays */
  K_MIN_ITEMS,
  K_MAX_ITEMS,
  K_ITEMS, /* prefixItems, items and additionalItems of one schema */
  K_UNIQUE,
  K_CONTAINS, /* contains, minContains and maxContains of one schema; negated: an item that does not match `value` */
  /* of objects */
  K_MIN_PROPERTIES,
  K_MAX_PROPERTIES,
  K_MEMBERS,  /* properties, patternProperties and additionalProperties of one schema */
  K_REQUIRED, /* one name, */
  K_WITHOUT,  /* that must not be there */
  K_VALUE,    /* one property is there and matches a schema */
  K_NAMES,    /* propertyNames */
  K_EXTRA,    /* there is a property that `properties` of the schema does not list */
  K_UNSEEN,   /* unevaluatedProperties of one schema, for names that no K_MEMBERS in `seen` has */
  /* of all types */
  K_ONLY /* enum or const */
} schema_keyword;

/* The keyword of a name; *types: to which it belongs, 0 for all. */
typedef struct {
  const char *name;
  schema_keyword is;
  unsigned types;
} schema_known;

const schema_known *schema_known_of(const char *name); /* NULL: unknown */

/* ---- needs ------------------------------------------------------------------------------------------------------- */

typedef struct {
  const cJSON *schema;
  bool negated;
} schema_need;

typedef struct {
  int n;
  const schema_need *of; /* each once */
} schema_needs;

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

typedef struct schema_fact {
  schema_keyword is;
  bool negated;        /* K_PATTERN, K_FORMAT, K_NAMES, K_VALUE; K_MEMBERS, K_UNSEEN: not seen by others */
  const cJSON *value;  /* of the keyword */
  const cJSON *schema; /* that has it */
  const char *name;    /* K_REQUIRED, K_WITHOUT, K_VALUE */
  const struct schema_fact *seen, *next;
} schema_fact;

typedef struct schema_shape {
  unsigned types;
  const schema_fact *facts;
  struct schema_shape *next;
} schema_shape;

/* ---- the compiler ------------------------------------------------------------------------------------------------ */

enum { SCHEMA_NONE = -1 }; /* in place of a rule's number: there is no such value */
enum { SCHEMA_PLACE = 140, SCHEMA_MEMOS = 4096 };

typedef struct schema_index schema_index;
typedef struct schema_memo schema_memo;
typedef struct schema_ruled schema_ruled;
typedef struct schema_piece schema_piece;
typedef struct schema_cache schema_cache;

typedef struct schema_compiler schema_compiler;

/* Schemas are nested, so what comes later is needed by what comes earlier; these are the ways back. */
typedef struct {
  int (*rule)(schema_compiler *c, schema_needs needs);                            /* schema.c */
  bool (*fits)(schema_compiler *c, const cJSON *value, const schema_shape *s);    /* schema_fits, */
  bool (*fits_needs)(schema_compiler *c, const cJSON *value, schema_needs needs); /* schema_fits_needs, */
  bool (*is_empty)(schema_compiler *c, const schema_shape *s);                    /* schema_is_empty */
} schema_ways_back;

struct schema_compiler {
  schema_ways_back back;
  arena a;
  const char *what; /* the schema's name in messages */
  schema_notation space;
  schema_options options;
  const cJSON *root, *at; /* at: the schema that is being read */
  schema_index *index;
  schema_memo *memo[SCHEMA_MEMOS];      /* shapes that were found, */
  schema_ruled *ruled[SCHEMA_MEMOS];    /* rules of needs, */
  schema_piece *pieces[SCHEMA_MEMOS];   /* and of shapes, */
  schema_cache *patterns[SCHEMA_MEMOS]; /* and regular expressions that were read */
  FILE *rules;
  int made, depth;     /* made: rules with a number for a name */
  long long parts;     /* number of parts of the grammar that bounds on lengths cause */
  int shapes;          /* of the needs that are being resolved */
  int trying, effort;  /* depth and steps of the search for contradictions */
  int branch[2];       /* the branches of oneOf that may overlap, from 1 on; 0: none */
  const char *ignored; /* the first keyword without effect */
};

__attribute__((format(printf, 2, 3))) _Noreturn void schema_refuse(schema_compiler *c, const char *format, ...);
/* What messages call the place of a keyword, in the arena. */
const char *schema_place(schema_compiler *c, const cJSON *schema, const char *keyword);

/* schema_index.c: where $ref leads. */
void schema_read_index(schema_compiler *c);
const cJSON *schema_target(schema_compiler *c, const cJSON *schema, const cJSON *ref);
bool schema_is_old(schema_compiler *c); /* a draft in which $ref hides its siblings */

/* schema_shapes.c */
const schema_shape *schema_shapes(schema_compiler *c, schema_needs needs);
schema_needs schema_need_one(schema_compiler *c, const cJSON *schema, bool negated);
schema_needs schema_need_both(schema_compiler *c, schema_needs x, schema_needs y);

/* schema_fits.c: what can be said without a grammar. */
bool schema_fits(schema_compiler *c, const cJSON *value, const schema_shape *shape);
bool schema_fits_needs(schema_compiler *c, const cJSON *value, schema_needs needs);
/* Whether no value can match; false: one may. */
bool schema_is_empty(schema_compiler *c, const schema_shape *shape);
bool schema_is_equal(const cJSON *a, const cJSON *b);
/* The shape without one of its facts. */
const schema_shape *schema_without(schema_compiler *c, const schema_shape *s, const schema_fact *fact);

/* schema_members.c: what a property must match, and the regular expressions of schemas. */
schema_needs schema_name_needs(schema_compiler *c, const schema_shape *s, const char *name);
bool schema_is_seen(schema_compiler *c, const schema_fact *seen, const char *name);
/* The needs of an item, and of those after all prefixes; *prefix: the length of the longest. */
schema_needs schema_item_needs(schema_compiler *c, const schema_shape *s, int at);
int schema_prefix(const schema_shape *s);
extern const cJSON schema_false;

/* schema_parts.c */
/* The most digits of an integer without bounds: what a model writes must be readable as an integer of 64 bits. */
int schema_digits(bool open);
bool schema_is_false(schema_needs needs); /* one of them is the schema false */
_Noreturn void schema_fail_memory(schema_compiler *c);
/* Begins a rule; the caller writes its items and the end of the line. Returns its name. */
const char *schema_begin_rule(schema_compiler *c);
void schema_put_times(schema_compiler *c, const char *what, int least, int most);
void schema_put_quoted(FILE *out, const char *text);
void schema_put_name(schema_compiler *c, const char *name); /* of a property */
int schema_count(schema_compiler *c, const schema_fact *fact);
/* The largest lower and the smallest upper bound of counts; *most = -1: none. */
void schema_bounds(schema_compiler *c, const schema_shape *s, schema_keyword min, schema_keyword max, int *least,
                   int *most);

/* The writers: each writes rules and returns the name of one; NULL: no value can match. */
const char *schema_put_strings(schema_compiler *c, const schema_shape *s);
const char *schema_put_numbers(schema_compiler *c, const schema_shape *s);
const char *schema_put_array(schema_compiler *c, const schema_shape *s);
const char *schema_put_object(schema_compiler *c, const schema_shape *s);
const char *schema_put_values(schema_compiler *c, const schema_shape *s);

/* The values of enum or const that match all of the shape; *values is in the arena. Returns how many. */
int schema_values(schema_compiler *c, const schema_shape *s, const cJSON ***values);
void schema_put_value(schema_compiler *c, const cJSON *value); /* as items */
/* Writes the rules of an automaton that is not empty, and one for a string (quoted) or a text. Returns its name. */
const char *schema_put_automaton(schema_compiler *c, const automaton *all, bool quoted);

/* The strings of a shape; NULL: any. */
const automaton *schema_strings(schema_compiler *c, const schema_shape *s);
/* The strings that match needs; NULL: any. */
const automaton *schema_string_needs(schema_compiler *c, schema_needs needs);
const automaton *schema_pattern(schema_compiler *c, const cJSON *schema, const char *regex);
/* The strings that a K_PATTERN or K_FORMAT matches, before it is negated; NULL: any. */
const automaton *schema_text_fact(schema_compiler *c, const schema_fact *fact);
/* The number of a bound; whether a number is a multiple of a fact's. */
const char *schema_number(schema_compiler *c, const schema_fact *fact);
bool schema_is_multiple(schema_compiler *c, const schema_fact *fact, const char *number);
/* schema_formats.c: the regular expression of a format; NULL: it is unknown, any text. */
const char *schema_format(const char *name);

#endif
