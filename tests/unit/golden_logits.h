/* Reads what transformers computed (tests/golden/make_logits.py, make_families.py). A test fails if it cannot be
 * read. */
#ifndef GOLDEN_LOGITS_H
#define GOLDEN_LOGITS_H

#include "formula_checkpoint.h"
#include "model/rope.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *name;    /* name of the case */
  int n;               /* number of input ids */
  int32_t *ids;        /* [n] */
  int n_positions;     /* number of positions whose logits were stored */
  int32_t *positions;  /* [n_positions] ascending */
  const float *logits; /* [n_positions][vocab] */
  int n_greedy;
  int32_t *greedy; /* [n_greedy] the tokens that follow the ids */
  float *margins;  /* [n_greedy] the difference between the oracle's two best logits there */
} golden_case;

typedef struct {
  char model[512]; /* folder or file; made: its temporary folder, if there is one */
  bool made;
  int vocab, n;
  dt_rope rope;       /* with which the model is opened */
  golden_case *cases; /* [n] */
  float *logits;
  cJSON *json;
} golden;

static inline char *golden_bytes(const char *name, const char *file, size_t *size) {
  char path[512];
  snprintf(path, sizeof path, "%s%s/%s", strchr(name, '/') ? "" : SOURCE_DIR "/tests/golden/logits/", name, file);
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END)) perror(path), exit(1);
  *size = (size_t)ftell(f);
  rewind(f);
  char *bytes = calloc(1, *size + 1);
  if (fread(bytes, 1, *size, f) != *size) perror(path), exit(1);
  fclose(f);
  return bytes;
}

static inline int32_t *golden_ints(const cJSON *list, int *n) {
  *n = cJSON_GetArraySize(list);
  int32_t *out = malloc(sizeof *out * (size_t)(*n + 1));
  int i = 0;
  for (const cJSON *item = list->child; item; item = item->next) out[i++] = item->valueint;
  return out;
}

/* Reads tests/golden/logits/NAME, or a folder with a path. */
static inline golden golden_read(const char *name) {
  golden g = {0};
  size_t size;
  char *text = golden_bytes(name, "golden.json", &size);
  g.json = cJSON_Parse(text);
  free(text);
  if (!g.json) fprintf(stderr, "golden.json of %s is broken\n", name), exit(1);
  g.logits = (float *)(void *)golden_bytes(name, "golden.bin", &size);
  const cJSON *model = cJSON_GetObjectItem(g.json, "model");
  g.made = !model;
  if (model) {
    const char *path = model->valuestring;
    snprintf(g.model, sizeof g.model, "%s%s", *path == '/' ? "" : SOURCE_DIR "/", path);
  } else {
    char *folder = temp_folder();
    formula_checkpoint(folder, g.json);
    snprintf(g.model, sizeof g.model, "%s", folder);
    free(folder);
  }
  const cJSON *context = cJSON_GetObjectItem(g.json, "context");
  if (context) g.rope.context = context->valueint;
  g.vocab = cJSON_GetObjectItem(g.json, "vocab")->valueint;
  const cJSON *cases = cJSON_GetObjectItem(g.json, "cases");
  g.n = cJSON_GetArraySize(cases);
  g.cases = calloc((size_t)g.n, sizeof *g.cases);
  const float *logits = g.logits;
  golden_case *c = g.cases;
  for (const cJSON *item = cases->child; item; item = item->next, c++) {
    c->name = cJSON_GetObjectItem(item, "name")->valuestring;
    c->ids = golden_ints(cJSON_GetObjectItem(item, "ids"), &c->n);
    c->positions = golden_ints(cJSON_GetObjectItem(item, "positions"), &c->n_positions);
    c->greedy = golden_ints(cJSON_GetObjectItem(item, "greedy"), &c->n_greedy);
    c->margins = malloc(sizeof *c->margins * (size_t)c->n_greedy);
    int i = 0;
    for (const cJSON *m = cJSON_GetObjectItem(item, "margins")->child; m; m = m->next)
      c->margins[i++] = (float)m->valuedouble;
    c->logits = logits;
    logits += (size_t)c->n_positions * (size_t)g.vocab;
  }
  if ((size_t)(logits - g.logits) * sizeof *logits != size)
    fprintf(stderr, "golden.bin of %s: wrong size\n", name), exit(1);
  return g;
}

static inline void golden_free(golden *g) {
  if (g->made) temp_remove(strdup(g->model));
  for (int i = 0; i < g->n; i++) {
    free(g->cases[i].ids);
    free(g->cases[i].positions);
    free(g->cases[i].greedy);
    free(g->cases[i].margins);
  }
  free(g->cases);
  free(g->logits);
  cJSON_Delete(g->json);
}

#endif
