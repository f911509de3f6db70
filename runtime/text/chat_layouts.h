/* The built-in layouts of conversations. */
#ifndef DT_CHAT_LAYOUTS_H
#define DT_CHAT_LAYOUTS_H

#include <stdbool.h>

typedef enum { OWN_TURN, FIRST_TURN, LAST_TURN, NOWHERE } system_place;
typedef enum {
  AS_IT_IS,
  TRIM_ANSWERS,
  TRIM_TURNS, /* the model's answers and the user's messages */
  TRIM_ALL    /* every turn, together with the system text in it */
} trimming;

#define THINK "<think>"
#define THINK_END "</think>"
#define CHANNEL "<|channel>" /* around Gemma's reasoning */
#define CHANNEL_END "<channel|>"
#define ANALYSIS "<|channel|>analysis<|message|>" /* before the reasoning of gpt-oss; FINAL: before its answer */
#define FINAL "<|channel|>final<|message|>"

/* The marks around the reasoning of an answer: those of THINK, CHANNEL or ANALYSIS. */
typedef enum { REASONING_TAGS, REASONING_CHANNEL, REASONING_MESSAGE } reasoning_form;

/* A layout. A template has it if it contains all of `marks`, and not `without`. */
typedef struct {
  const char *name, *marks[3], *without;
  const char *begin; /* the beginning of the whole text, if the template names that token */
  system_place place;
  const char *system[2], *user[2], *answer[2]; /* the text before and after each; the next answer begins with `open` */
  const char *open, *end;
  const char *usual; /* the default system text; NULL: the template's, or none */
  trimming trim;
} chat_layout;

#define KNOWLEDGE_DATE "Cutting Knowledge Date: December 2023\n"

/* The first layout in this list that a template has is used. */
extern const chat_layout chat_layouts[];
extern const int chat_n_layouts;

struct dt_chat;
reasoning_form chat_reasoning_form(const struct dt_chat *chat);
bool chat_begins_reasoning(
    const struct dt_chat *chat); /* whether the text of a conversation ends with the mark that begins reasoning */

#endif
