/* Tokens and texts: see tokens.h. */
#include "serve/tokens.h"
#include "serve/answer.h"
#include "serve/others.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads a field that is true or false, or missing. */
static bool read_flag(const cJSON *body, const char *name, bool *out, refusal *why) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(body, name);
  if (!v || cJSON_IsNull(v)) return true;
  *out = cJSON_IsTrue(v);
  if (!cJSON_IsBool(v)) *why = refusal_say(400, INVALID, "%s: expected true or false", name);
  return cJSON_IsBool(v);
}

/* Writes a token's text, or its bytes if they are not UTF-8 by themselves. */
static void put_piece(json_text *out, const dt_pair *pair, int32_t id) {
  char buffer[16];
  size_t len, shown;
  const char *bytes = dt_token_bytes(pair, id, false, buffer, &len);
  char *text = dt_utf8(bytes, len, &shown);
  if (!text) out->failed = true;
  if (text && shown == len && memcmp(text, bytes, len) == 0)
    json_string(out, text, shown);
  else
    answer_bytes(out, bytes, len);
  free(text);
}

static void put_tokens(json_text *out, const dt_pair *pair, const int32_t *ids, int n, bool pieces) {
  json_raw(out, "{\"tokens\":[");
  for (int i = 0; i < n; i++) {
    answer_put(out, pieces ? "%s{\"id\":%d,\"piece\":" : "%s%d", i ? "," : "", ids[i]);
    if (!pieces) continue;
    put_piece(out, pair, ids[i]);
    json_raw(out, "}");
  }
  json_raw(out, "]}");
}

bool tokens_of_text(const ask_server *server, const cJSON *body, json_text *out, refusal *why) {
  static const char *const taken[] = {"content", "add_special", "parse_special", "with_pieces", NULL};
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "content"));
  bool begins = false, special = true, pieces = false;
  int32_t *ids;
  int n;
  dt_error err;
  if (!others_pass_all(body, taken, "", IN_TOKENS, why) || !read_flag(body, "add_special", &begins, why) ||
      !read_flag(body, "parse_special", &special, why) || !read_flag(body, "with_pieces", &pieces, why))
    return false;
  if (!text || (begins && !special)) {
    *why = refusal_say(400, INVALID,
                       text ? "parse_special: false is not supported with add_special" : "content: expected a text");
    return false;
  }
  /* As text of a conversation that comes from a message, or as a prompt. */
  dt_range all = {0, strlen(text)};
  const dt_chat_prompt plain = {.text = (char *)text, .len = all.end, .plain = &all, .n_plain = all.end > 0};
  dt_status status = !special ? dt_encode_chat(server->pair, &plain, &ids, &n, &err)
                     : begins ? dt_encode(server->pair, text, all.end, &ids, &n, &err)
                              : dt_encode_whole(server->pair, text, all.end, &ids, &n, &err);
  if (status) {
    *why = refusal_of(&err);
    return false;
  }
  put_tokens(out, server->pair, ids, n, pieces);
  free(ids);
  return true;
}

static bool read_ids(const ask_server *server, const cJSON *list, int32_t *ids, refusal *why) {
  const cJSON *v;
  int n = 0;
  cJSON_ArrayForEach(v, list) {
    double id = cJSON_GetNumberValue(v);
    if (!(id >= 0 && id < server->vocab && id == floor(id))) {
      *why = refusal_say(400, INVALID, "tokens[%d]: expected a whole number from 0 to %d", n, server->vocab - 1);
      return false;
    }
    ids[n++] = (int32_t)id;
  }
  return true;
}

bool tokens_as_text(const ask_server *server, const cJSON *body, json_text *out, refusal *why) {
  static const char *const taken[] = {"tokens", NULL};
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(body, "tokens");
  int n = cJSON_GetArraySize(list);
  size_t len;
  if (!others_pass_all(body, taken, "", IN_TOKENS, why)) return false;
  if (!cJSON_IsArray(list)) {
    *why = refusal_say(400, INVALID, "tokens: expected a list of ids");
    return false;
  }
  int32_t *ids = malloc(sizeof *ids * ((size_t)n + 1));
  bool fine = ids && read_ids(server, list, ids, why);
  char *text = fine ? dt_decode(server->pair, ids, n, true, &len) : NULL;
  if (!ids || (fine && !text)) *why = refusal_say(500, "server_error", "out of memory: the text");
  if (text) {
    json_raw(out, "{\"content\":");
    json_string(out, text, len);
    json_raw(out, "}");
  }
  free(ids), free(text);
  return text != NULL;
}
