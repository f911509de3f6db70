/* Any bytes as a preset. What is accepted consists of texts, and stays the same when it is written and read again. */
#include "fuzz.h"

#include "files/json_text.h"
#include "measure/preset.h"

static void add_text(json_text *out, const char *text) { json_string(out, text, strlen(text)); }

static char *written(const preset *p) {
  json_text out = {0};
  json_raw(&out, "{\"source\":");
  add_text(&out, p->source);
  json_raw(&out, ",\"params\":{");
  for (int i = 0; i < p->n; i++) {
    if (i) json_raw(&out, ",");
    add_text(&out, p->settings[i].name);
    json_raw(&out, ":");
    add_text(&out, p->settings[i].value);
  }
  json_raw(&out, "}}");
  return json_finish(&out);
}

static preset read_again(const preset *p) {
  preset again;
  char *text = written(p);
  if (!text || preset_parse(text, strlen(text), &again) || again.n != p->n) abort();
  free(text);
  return again;
}

static void check_same(const preset *a, const preset *b) {
  if (strcmp(a->source, b->source)) abort();
  for (int i = 0; i < a->n; i++)
    if (strcmp(a->settings[i].name, b->settings[i].name) || strcmp(a->settings[i].value, b->settings[i].value)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  preset p;
  if (!preset_parse((const char *)bytes, size, &p)) {
    preset again = read_again(&p), third = read_again(&again); /* twice: invalid UTF-8 is written as U+FFFD */
    check_same(&again, &third);
    preset_free(&again), preset_free(&third);
  }
  preset_free(&p);
  return 0;
}
