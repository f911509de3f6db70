/* What ollama's API says about the model: see ollama.h. */
#include "serve/ollama.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Clients ask for a minimum. This is the version of ollama whose API is followed. */
#define VERSION "0.12.0"

void ollama_version(json_text *out) { json_raw(out, "{\"version\":\"" VERSION "\"}"); }

typedef struct {
  dt_pair_info pair;
  dt_model_facts facts;
} about;

static bool look(const ask_server *server, about *out, refusal *why) {
  dt_error err;
  dt_pair_describe(server->pair, &out->pair);
  if (!dt_model_look(out->pair.target.path, &out->facts, &err)) return true;
  *why = refusal_of(&err);
  return false;
}

static void put_details(json_text *out, const about *a) {
  const char *dot = strrchr(a->pair.target.path, '.');
  char type[16] = "";
  for (int i = 0; i < 15 && a->facts.type[i]; i++) type[i] = (char)toupper((unsigned char)a->facts.type[i]);
  answer_put(out, "\"details\":{\"parent_model\":\"\",\"format\":\"%s\",",
             dot && strcmp(dot, ".gguf") == 0 ? "gguf" : "safetensors");
  answer_put(out, "\"family\":\"%s\",\"families\":[\"%s\"],\"parameter_size\":\"\",\"quantization_level\":\"%s\"}",
             a->facts.family, a->facts.family, type);
}

/* ollama's names have a tag. */
static void put_name(json_text *out, const char *member, const char *model) {
  json_text name = {0};
  json_bytes(&name, model, strlen(model));
  if (!strchr(model, ':')) json_raw(&name, ":latest");
  json_raw(out, member);
  json_string(out, name.bytes ? name.bytes : "", name.len);
  free(json_finish(&name));
}

static void put_model(json_text *out, const ask_server *server, const about *a, const char *model, bool running) {
  put_name(out, "{\"name\":", model);
  put_name(out, ",\"model\":", model);
  answer_put(out, ",\"size\":%llu,\"digest\":\"%016llx%016llx\",", (unsigned long long)a->facts.bytes,
             (unsigned long long)a->facts.norm, (unsigned long long)a->facts.tokenizer);
  put_details(out, a);
  json_raw(out, running ? ",\"expires_at\":" : ",\"modified_at\":");
  if (running) {
    const size_t on_gpu = strcmp(a->pair.backend, "cuda") == 0 ? a->pair.target.weight_bytes : 0;
    json_raw(out, "\"9999-12-31T23:59:59Z\"");
    answer_put(out, ",\"size_vram\":%zu,\"context_length\":%d", on_gpu, server->context);
  } else {
    ollama_put_time(out, server->started, 0);
  }
  json_raw(out, "}");
}

bool ollama_tags(const ask_server *server, bool running, json_text *out, refusal *why) {
  about a;
  if (!look(server, &a, why)) return false;
  json_raw(out, "{\"models\":[");
  for (int i = 0; i < (running ? 1 : server->n_models); i++) {
    if (i) json_raw(out, ",");
    put_model(out, server, &a, server->models[i], running);
  }
  json_raw(out, "]}");
  return true;
}

static void put_capabilities(json_text *out, const ask_server *server) {
  const char *begin, *end;
  dt_infill marks;
  json_raw(out, ",\"capabilities\":[\"completion\"");
  if (server->chat) json_raw(out, ",\"tools\"");
  if (server->chat && dt_chat_reasoning(server->chat, &begin, &end)) json_raw(out, ",\"thinking\"");
  if (dt_pair_infill(server->pair, &marks)) json_raw(out, ",\"insert\"");
  json_raw(out, "]");
}

bool ollama_show(const ask_server *server, json_text *out, refusal *why) {
  about a;
  if (!look(server, &a, why)) return false;
  const char *family = a.facts.family;
  json_raw(out, "{\"modelfile\":\"\",\"parameters\":\"\"");
  answer_text(out, ",\"template\":", server->chat ? dt_chat_text(server->chat) : "");
  json_raw(out, ",");
  put_details(out, &a);
  answer_put(out, ",\"model_info\":{\"general.architecture\":\"%s\",\"%s.context_length\":%d,", family, family,
             server->context);
  answer_put(out, "\"%s.embedding_length\":%d,\"%s.block_count\":%d}", family, a.pair.target.hidden, family,
             a.pair.target.layers);
  put_capabilities(out, server);
  json_raw(out, ",\"modified_at\":");
  ollama_put_time(out, server->started, 0);
  json_raw(out, "}");
  return true;
}
