/* A format of calls as one line: see calls.h. */
#include "chat/call_format.h"
#include "system/need.h"

#include <stdlib.h>
#include <string.h>

/* Adds a text with names for the bytes that stand for something. */
static bool add(cJSON *to, const char *name, const char *text) {
  static const char *const named[] = {"", "{0}", "{1}", "{id}", "{name}", "{key}", "{type}", "{is_string}"};
  char *out = NULL;
  size_t n = 0;
  bool fine = call_put_bytes("", 0, &out, &n);
  for (; *text && fine; text++) {
    const bool stands = (unsigned char)*text <= CALL_IS_STRING;
    const char *word = stands ? named[(unsigned char)*text] : text;
    fine = call_put_bytes(word, stands ? strlen(word) : 1, &out, &n);
  }
  fine = fine && cJSON_AddStringToObject(to, name, out);
  free(out);
  return fine;
}

dt_status dt_call_format_text(const dt_call_format *f, char **out, dt_error *err) {
  NEED(f, "format");
  NEED(out, "out");
  const struct {
    const char *name, *text;
  } texts[] = {{"first", f->first}, {"middle", f->middle}, {"before", f->before},       {"key_end", f->key_end},
               {"quote", f->quote}, {"more", f->more},     {"value_end", f->value_end}, {"next", f->next},
               {"last", f->last},   {"comma", f->comma},   {"colon", f->colon}};
  cJSON *said = cJSON_CreateObject();
  bool fine = said &&
              cJSON_AddStringToObject(said, "shape",
                                      !f->learned ? "usual"
                                      : f->tags   ? "tags"
                                                  : "json") &&
              cJSON_AddBoolToObject(said, "alone", f->alone);
  if (f->tags) fine = fine && cJSON_AddBoolToObject(said, "python", f->python);
  for (size_t i = 0; i < sizeof texts / sizeof *texts && fine; i++)
    if (texts[i].text && (*texts[i].text || i < 2)) fine = add(said, texts[i].name, texts[i].text);
  char *text = fine ? cJSON_PrintUnformatted(said) : NULL;
  cJSON_Delete(said);
  if (!text) return dt_fail_memory(err, "a format of calls", 1);
  *out = text;
  return DT_OK;
}
