/* Turns bodies of other APIs into the body of a chat in OpenAI's form: what they have in common. Each API has a table
 * of its fields. */
#ifndef SERVE_TRANSLATE_H
#define SERVE_TRANSLATE_H

#include "files/json_text.h"
#include "serve/ask.h"
#include "serve/others.h"
#include "serve/raw.h"

/* ---- the client's body ------------------------------------------------------------------------------------------- */

/* A value of the client's body. */
typedef struct {
  const cJSON *v; /* NULL: it is missing or null */
  raw_json raw;   /* as it is written, with all digits of its numbers */
  char name[96];  /* for messages, such as input[2].content */
} body_value;

body_value value_member(const body_value *object, const char *name);
bool texts_equal(const char *text, const char *other); /* NULL equals none */
/* The member if it is a text; otherwise NULL. */
const char *value_string(const body_value *object, const char *name);

typedef struct {
  const body_value *list;
  const cJSON *next;
  raw_json left;
  int i;
} body_list;

body_list value_list(const body_value *list);
bool value_next(body_list *list, body_value *out); /* false: there are no more elements */

/* Return false, and say what was expected; *value is named, or its member. */
bool value_wrong(const body_value *value, const char *expected, refusal *why);
bool value_lacks(const body_value *object, const char *name, const char *expected, refusal *why);

/* Checks that the value is an object, and that dtrun knows or may ignore its members: see others_pass_all. */
bool value_is_object(const body_value *value, const char *const *taken, int where, refusal *why);

/* ---- the chat's body --------------------------------------------------------------------------------------------- */

typedef struct {
  const ask_server *server;
  body_value body;
  json_text out; /* the chat's body so far */
  refusal *why;
} translation;

/* A field of an API. */
typedef struct {
  const char *name;
  const char *as;                                         /* the chat's field with the same values; NULL: none */
  bool (*write)(translation *t, const body_value *value); /* NULL: it is copied `as` is, or read elsewhere */
} translated_field;

/* Translates a body by a table of n fields. Other fields are those of dtrun's own that every API has, such as `seed`,
 * or are looked up in others.h. *out is malloc'd. */
bool translate_fields(translation *t, const translated_field *fields, int n, int where, char **out);

void translated_comma(json_text *out);                     /* writes a comma unless a list or an object begins here */
void translated_member(json_text *out, const char *name);  /* begins a member of the object that is being written */
void translated_message(json_text *out, const char *role); /* begins a message: {"role":"..." */
void translated_raw(json_text *out, const char *name, raw_json raw);      /* writes a member */
void translated_text(json_text *out, const char *name, const char *text); /* writes a member */

/* Writes {"type":"function","function":{"name":name}}. */
void translated_function(json_text *out, const char *name);
/* Writes a member that is a list, whose elements `write` writes; another value is refused. */
bool translated_list(translation *t, const char *name, const body_value *list, const char *expected,
                     bool (*write)(translation *t, const body_value *element));
bool translated_limit(translation *t, const body_value *tokens); /* writes max_tokens, at least 1 */

/* Returns a part of a content that must be a text of one of these types; NULL: it is not, or has unknown members. */
const char *translated_part(const translation *t, const body_value *part, const char *const *types);

/* Texts that become the content of a message. */
typedef struct {
  json_text parts; /* a list of parts, without its end */
  const char *only;
  int n;
} translated_texts;

void texts_add(translated_texts *texts, const char *text);
/* Adds a content: a text, or a list of parts of these types. */
bool texts_add_content(const translation *t, translated_texts *texts, const body_value *content,
                       const char *const *types);
void texts_write(json_text *out, translated_texts *texts); /* writes the member content, and empties *texts */
void texts_free(translated_texts *texts);

/* A message of the assistant, whose texts, reasoning and calls may come in several pieces. */
typedef struct {
  json_text content, reasoning, calls; /* calls: a list, without its end */
  bool begun, has_text;
} translated_answer;

void translated_call(translated_answer *a, const char *id, const char *name, const char *arguments, size_t len);
void translated_write(json_text *out, translated_answer *a); /* writes a message if it has begun, and empties *a */
void translated_free(translated_answer *a);

#endif
