/* The list of families: a new family needs a file and a line here. */
#include "model/family.h"
#include "model/llama.h"

#include <stdio.h>
#include <string.h>

#define FAMILIES(F)                                                                                                    \
  F(gpt_neox)                                                                                                          \
  F(llama)                                                                                                             \
  F(mistral)                                                                                                           \
  F(qwen2)                                                                                                             \
  F(qwen3)                                                                                                             \
  F(smollm3)                                                                                                           \
  F(granite)                                                                                                           \
  F(olmo2)                                                                                                             \
  F(olmo3)                                                                                                             \
  F(phi3)                                                                                                              \
  F(gemma2)                                                                                                            \
  F(gemma3)                                                                                                            \
  F(gemma4)                                                                                                            \
  F(gemma4_whole)                                                                                                      \
  F(qwen3moe) F(mixtral) F(gpt_oss) F(glm4_moe) F(qwen35) F(qwen35_whole) F(qwen35moe) F(qwen35moe_whole)

#define DECLARE(name) extern const family name;
FAMILIES(DECLARE)
#define LIST(name) &name,
static const family *const families[] = {FAMILIES(LIST)};
enum { COUNT = sizeof families / sizeof *families };

const family *family_at(int i) { return i < COUNT ? families[i] : NULL; }

enum { LIST_BYTES = 320 }; /* with a path it must fit a message */

/* Lists the names of the families: "gpt_neox", "llama", .. */
static const char *supported(char text[LIST_BYTES]) {
  size_t used = 0;
  for (int i = 0; i < COUNT && used < LIST_BYTES; i++)
    used += (size_t)snprintf(text + used, LIST_BYTES - used, "%s\"%s\"", i ? ", " : "", families[i]->model_type);
  return text;
}

static dt_status find_architecture(const keys *k, const family **out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(k->json, "general.architecture");
  const char *name = cJSON_IsString(item) ? item->valuestring : "";
  char text[LIST_BYTES] = "";
  for (int i = 0; i < COUNT; i++) {
    if (!families[i]->gguf) continue;
    if (!strcmp(name, families[i]->gguf)) return *out = families[i], config_refuse_others(k, families[i]->takes);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s\"%s\"", used ? ", " : "", families[i]->gguf);
  }
  return dt_fail(k->err, DT_EINPUT, "%s: architecture \"%.60s\" is not supported; supported: %s", k->path, name, text);
}

dt_status family_find(const keys *k, const family **out) {
  if (k->gguf) return find_architecture(k, out);
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(k->json, "model_type");
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(k->json, "architectures");
  const cJSON *first = cJSON_IsArray(list) ? list->child : NULL;
  const char *a = cJSON_IsString(first) ? first->valuestring : NULL;
  const char *t = cJSON_IsString(type) ? type->valuestring : NULL;
  char text[LIST_BYTES];
  if (!t && !a) return dt_fail(k->err, DT_EINPUT, "%s: model_type is missing; supported: %s", k->path, supported(text));
  int i = 0;
  while (i < COUNT && strcmp(t ? t : a, t ? families[i]->model_type : families[i]->architecture)) i++;
  if (i == COUNT && t)
    return dt_fail(k->err, DT_EINPUT, "%s: model_type \"%.60s\" is not supported; supported: %s", k->path, t,
                   supported(text));
  if (i == COUNT || (a && strcmp(a, families[i]->architecture)))
    return dt_fail(k->err, DT_EINPUT, "%s: architecture \"%.60s\" is not supported; supported: %s", k->path, a,
                   supported(text));
  *out = families[i];
  return config_refuse_others(k, families[i]->takes);
}

dt_status family_of_head(const keys *k, const family **out) {
  static const family *const heads[] = {&gpt_neox, &llama, &mistral, &qwen2, &qwen3};
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(k->json, k->gguf ? "general.architecture" : "model_type");
  const char *name = cJSON_IsString(type) ? type->valuestring : "";
  if (k->gguf && !strcmp(name, "dflash")) return *out = &qwen3, DT_OK;
  *out = &llama;
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
    if (!strcmp(name, heads[i]->model_type)) return *out = heads[i], DT_OK;
  for (int i = 0; i < COUNT; i++)
    if (!strcmp(name, families[i]->model_type))
      return dt_fail(
          k->err, DT_EINPUT,
          "%s: model_type \"%s\": not supported in a draft head, whose layer must be that of Llama, Mistral or Qwen",
          k->path, name);
  return DT_OK;
}

void family_find_layer_of_head(finder *f, const config *c, dt_layer *l) { llama_find_layer(f, c, l); }
