/* The steps of a tokenizer.json around its model: normalizer, pre_tokenizer, post_processor, decoder. An element that
 * is not listed here is refused by name. */
#include "text/load_json.h"
#include "text/steps.h"
#include "text/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Reads a required string of an object, which may be empty only if may_be_empty; "" after a failure. */
static dt_status get_string(const json_loader *l, const cJSON *object, const char *key, bool may_be_empty,
                            const char **out) {
  const cJSON *v = json_get(object, key);
  *out = "";
  if (!cJSON_IsString(v) || (!may_be_empty && v->valuestring[0] == '\0'))
    return json_unsupported(l, key, v, may_be_empty ? "a string" : "a string of at least one character");
  size_t len = strlen(v->valuestring);
  if (utf8_valid_prefix(v->valuestring, len) < len)
    return dt_fail(l->err, DT_EINPUT, "%s: %s is not UTF-8: JSON is UTF-8", l->path, key);
  *out = v->valuestring;
  return DT_OK;
}

/* Reads pattern: {"KIND": "..."} of an element. */
static dt_status get_pattern(const json_loader *l, const cJSON *object, const char *kind, const char **out) {
  const cJSON *pattern = json_get(object, "pattern");
  if (json_get(pattern, kind)) return get_string(l, pattern, kind, false, out);
  return dt_fail(l->err, DT_EINPUT, "%s: %s: its pattern is not a \"%s\"; supported: {\"%s\": ...}", l->path,
                 json_get(object, "type")->valuestring, kind, kind);
}

/* Calls `load` for every element of a Sequence. */
static dt_status each(json_loader *l, const cJSON *sequence, const char *key,
                      dt_status (*load)(json_loader *, const cJSON *)) {
  const cJSON *list = json_get(sequence, key), *v;
  if (!cJSON_IsArray(list)) return json_unsupported(l, key, list, "a list");
  cJSON_ArrayForEach(v, list) {
    dt_status status = load(l, v);
    if (status != DT_OK) return status;
  }
  return DT_OK;
}

/* ---- normalizer -------------------------------------------------------------------------------------------------- */

static dt_status load_normalizer(json_loader *l, const cJSON *v) {
  const char *from, *to;
  dt_status status;
  if (json_missing(v)) return DT_OK;
  if (json_has_type(v, "Sequence")) return each(l, v, "normalizers", load_normalizer);
  if (json_has_type(v, "NFC")) return add_normalize(l->t, NORMALIZE_NFC, NULL, NULL, l->err);
  if (json_has_type(v, "Prepend")) {
    status = get_string(l, v, "prepend", false, &to);
    return status == DT_OK ? add_normalize(l->t, NORMALIZE_PREPEND, NULL, to, l->err) : status;
  }
  if (json_has_type(v, "Replace")) {
    status = get_pattern(l, v, "String", &from);
    if (status == DT_OK) status = get_string(l, v, "content", true, &to);
    return status == DT_OK ? add_normalize(l->t, NORMALIZE_REPLACE, from, to, l->err) : status;
  }
  return json_unsupported(l, "normalizer", v, "NFC, Prepend, Replace, Sequence, null");
}

/* ---- pre_tokenizer ----------------------------------------------------------------------------------------------- */

/* Adds the file's name, which a pattern's own message lacks. */
static dt_status split_by(json_loader *l, const char *pattern, split_keep keep) {
  dt_error why;
  dt_status status = add_pattern(l->t, pattern, keep, &why);
  return status == DT_OK ? DT_OK : dt_fail(l->err, status, "%s: pre_tokenizer: %s", l->path, why.message);
}

/* Reads the pieces that a Split keeps. */
static dt_status get_keep(const json_loader *l, const cJSON *v, split_keep *keep) {
  static const struct {
    const char *behavior;
    bool invert; /* what the pattern does not match counts as its matches */
    split_keep keep;
  } known[] = {{"Isolated", false, KEEP_ALL},
               {"Isolated", true, KEEP_ALL},
               {"Removed", false, KEEP_BETWEEN},
               {"Removed", true, KEEP_MATCHES},
               {"MergedWithPrevious", false, KEEP_JOINED}};
  const char *behavior;
  bool invert = false;
  dt_status status = get_string(l, v, "behavior", false, &behavior);
  if (status == DT_OK) status = json_flag(l, v, "invert", &invert);
  if (status != DT_OK) return status;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].invert == invert && strcmp(known[i].behavior, behavior) == 0) {
      *keep = known[i].keep;
      return DT_OK;
    }
  return json_unsupported(l, "pre_tokenizer: behavior", json_get(v, "behavior"),
                          "\"Isolated\", \"Removed\", and \"MergedWithPrevious\" without invert");
}

/* A regular expression that matches a string as it is: malloc'd, or NULL. */
static char *quoted(const char *string) {
  char *out = malloc(2 * strlen(string) + 1), *to = out;
  for (; to && *string; *to++ = *string++)
    if (ispunct((unsigned char)*string)) *to++ = '\\';
  if (to) *to = '\0';
  return out;
}

static dt_status load_split(json_loader *l, const cJSON *v) {
  const char *pattern;
  split_keep keep = KEEP_ALL;
  bool literal = json_get(json_get(v, "pattern"), "String");
  dt_status status = get_pattern(l, v, literal ? "String" : "Regex", &pattern);
  if (status == DT_OK) status = get_keep(l, v, &keep);
  if (status != DT_OK) return status;
  if (!literal) return split_by(l, pattern, keep);
  char *regex = quoted(pattern);
  if (!regex) return dt_fail_memory(l->err, "a pattern", 2 * strlen(pattern) + 1);
  status = split_by(l, regex, keep);
  free(regex);
  return status;
}

static dt_status load_byte_level(json_loader *l, const cJSON *v) {
  bool space = true, split = true; /* Hugging Face's defaults */
  dt_status status = json_flag(l, v, "add_prefix_space", &space);
  if (status == DT_OK) status = json_flag(l, v, "use_regex", &split);
  if (status == DT_OK && space) status = add_split(l->t, (split_step){.kind = SPLIT_SPACE}, l->err);
  if (status == DT_OK && split) status = split_by(l, PATTERN_GPT2, KEEP_ALL);
  l->t->words.bytes = true;
  return status;
}

/* Reads `replacement`, the one character that replaces a space. */
static dt_status get_mark(const json_loader *l, const cJSON *v, const char **mark) {
  dt_status status = get_string(l, v, "replacement", false, mark);
  if (status != DT_OK) return status;
  size_t len;
  utf8_next(*mark, strlen(*mark), &len);
  return len == strlen(*mark) ? DT_OK : json_unsupported(l, "replacement", json_get(v, "replacement"), "one character");
}

static dt_status get_scheme(const json_loader *l, const cJSON *v, split_mark *scheme) {
  static const char *const names[] = {[MARK_NEVER] = "never", [MARK_FIRST] = "first", [MARK_ALWAYS] = "always"};
  const cJSON *given = json_get(v, "prepend_scheme");
  bool space = true;
  dt_status status = json_flag(l, v, "add_prefix_space", &space);
  if (status != DT_OK) return status;
  *scheme = MARK_ALWAYS;
  if (given) {
    for (*scheme = MARK_NEVER; *scheme <= MARK_ALWAYS; ++*scheme)
      if (cJSON_IsString(given) && strcmp(given->valuestring, names[*scheme]) == 0) break;
    if (*scheme > MARK_ALWAYS) return json_unsupported(l, "prepend_scheme", given, "\"first\", \"always\", \"never\"");
  }
  if (!space && *scheme != MARK_NEVER)
    return dt_fail(l->err, DT_EINPUT,
                   "%s: Metaspace: add_prefix_space is false and prepend_scheme \"%s\": \"never\" "
                   "would agree",
                   l->path, names[*scheme]);
  return DT_OK;
}

static dt_status load_metaspace(json_loader *l, const cJSON *v) {
  split_step step = {.kind = SPLIT_METASPACE, .cut = true};
  const char *mark;
  dt_status status = get_mark(l, v, &mark);
  if (status == DT_OK) status = get_scheme(l, v, &step.in_front);
  if (status == DT_OK) status = json_flag(l, v, "split", &step.cut);
  if (status != DT_OK) return status;
  strcpy(step.mark, mark);
  return add_split(l->t, step, l->err);
}

static dt_status load_pre_tokenizer(json_loader *l, const cJSON *v) {
  if (json_missing(v)) return DT_OK;
  if (json_has_type(v, "Sequence")) return each(l, v, "pretokenizers", load_pre_tokenizer);
  if (l->t->words.bytes)
    return dt_fail(l->err, DT_EINPUT, "%s: pre_tokenizer: a step after ByteLevel; supported: ByteLevel as the last",
                   l->path);
  if (json_has_type(v, "ByteLevel")) return load_byte_level(l, v);
  if (json_has_type(v, "Split")) return load_split(l, v);
  if (json_has_type(v, "Metaspace")) return load_metaspace(l, v);
  if (json_has_type(v, "Digits")) {
    bool alone = false;
    dt_status status = json_flag(l, v, "individual_digits", &alone);
    return status == DT_OK ? split_by(l, alone ? "\\p{N}" : "\\p{N}+", KEEP_ALL) : status;
  }
  return json_unsupported(l, "pre_tokenizer", v, "ByteLevel, Split, Digits, Metaspace, Sequence, null");
}

/* ---- post_processor ---------------------------------------------------------------------------------------------- */

static dt_status load_before(json_loader *l, const cJSON *template, const cJSON *piece) {
  const char *name;
  dt_status status = get_string(l, json_get(piece, "SpecialToken"), "id", false, &name);
  if (status != DT_OK) return status;
  const cJSON *ids = json_get(json_get(json_get(template, "special_tokens"), name), "ids"), *id;
  if (!cJSON_IsArray(ids)) return json_unsupported(l, "post_processor: special_tokens: ids", ids, "a list");
  cJSON_ArrayForEach(id, ids) {
    int32_t value;
    status = json_id(l, id, name, &value);
    if (status == DT_OK) status = add_before(l->t, value, l->err);
    if (status != DT_OK) return status;
  }
  return DT_OK;
}

/* Reads [token ..., the text]. Tokens after the text are refused: they would separate it from the generated text. */
static dt_status load_template(json_loader *l, const cJSON *template) {
  const cJSON *single = json_get(template, "single"), *piece;
  bool text = false;
  if (!cJSON_IsArray(single)) return json_unsupported(l, "post_processor: single", single, "a list");
  if (l->t->n_before > 0)
    return dt_fail(l->err, DT_EINPUT,
                   "%s: post_processor: a second TemplateProcessing that adds tokens; supported: one", l->path);
  cJSON_ArrayForEach(piece, single) {
    if (text)
      return dt_fail(l->err, DT_EINPUT,
                     "%s: post_processor: a TemplateProcessing that adds tokens after the text; supported: before it",
                     l->path);
    text = json_get(piece, "Sequence");
    dt_status status = text ? DT_OK : load_before(l, template, piece);
    if (status != DT_OK) return status;
  }
  return DT_OK;
}

static dt_status load_post_processor(json_loader *l, const cJSON *v) {
  if (json_missing(v) || json_has_type(v, "ByteLevel")) return DT_OK;
  if (json_has_type(v, "Sequence")) return each(l, v, "processors", load_post_processor);
  if (json_has_type(v, "TemplateProcessing")) return load_template(l, v);
  return json_unsupported(l, "post_processor", v, "ByteLevel, TemplateProcessing, Sequence, null");
}

/* ---- decoder ----------------------------------------------------------------------------------------------------- */

/* Strip applies to the whole text, which the Fuse before it makes of the tokens. */
static dt_status load_strip(json_loader *l, const cJSON *v) {
  const cJSON *start = json_get(v, "start"), *stop = json_get(v, "stop");
  const char *content;
  dt_status status = get_string(l, v, "content", false, &content);
  if (status != DT_OK) return status;
  if (!l->fused)
    return dt_fail(l->err, DT_EINPUT, "%s: decoder: a Strip without a Fuse before it; supported: after Fuse", l->path);
  if (!cJSON_IsNumber(start) || (start->valuedouble != 0 && start->valuedouble != 1))
    return json_unsupported(l, "decoder: Strip: start", start, "0 and 1");
  if (!cJSON_IsNumber(stop) || stop->valuedouble != 0) return json_unsupported(l, "decoder: Strip: stop", stop, "0");
  return start->valuedouble == 1 ? add_decode(l->t, DECODE_STRIP, content, NULL, NULL, l->err) : DT_OK;
}

static dt_status load_decoder(json_loader *l, const cJSON *v) {
  static const char known[] = "ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, Sequence";
  const char *from, *to;
  dt_status status;
  if (json_has_type(v, "Sequence")) return each(l, v, "decoders", load_decoder);
  if (json_has_type(v, "Strip")) return load_strip(l, v);
  if (json_has_type(v, "Fuse") || json_has_type(v, "ByteLevel")) {
    l->fused = true;
    return json_has_type(v, "Fuse") ? DT_OK : add_decode(l->t, DECODE_ALPHABET, NULL, NULL, NULL, l->err);
  }
  bool byte = json_has_type(v, "ByteFallback"), replace = json_has_type(v, "Replace"),
       metaspace = json_has_type(v, "Metaspace");
  if (!byte && !replace && !metaspace) return json_unsupported(l, "decoder", v, known);
  if (l->fused)
    return dt_fail(l->err, DT_EINPUT, "%s: decoder: %s after the tokens are fused; supported: Strip", l->path,
                   json_get(v, "type")->valuestring);
  if (byte) return add_decode(l->t, DECODE_BYTE, NULL, NULL, NULL, l->err);
  if (replace) {
    status = get_pattern(l, v, "String", &from);
    if (status == DT_OK) status = get_string(l, v, "content", true, &to);
    return status == DT_OK ? add_decode(l->t, DECODE_REPLACE, from, to, to, l->err) : status;
  }
  split_mark scheme = MARK_NEVER;
  status = get_mark(l, v, &from);
  if (status == DT_OK) status = get_scheme(l, v, &scheme);
  return status == DT_OK ? add_decode(l->t, DECODE_REPLACE, from, " ", scheme == MARK_NEVER ? " " : "", l->err)
                         : status;
}

dt_status load_pipeline(json_loader *l, const cJSON *root) {
  dt_status status = load_normalizer(l, json_get(root, "normalizer"));
  if (status == DT_OK) status = load_pre_tokenizer(l, json_get(root, "pre_tokenizer"));
  if (status == DT_OK) status = load_post_processor(l, json_get(root, "post_processor"));
  return status == DT_OK ? load_decoder(l, json_get(root, "decoder")) : status;
}
