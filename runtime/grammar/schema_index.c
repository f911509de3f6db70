/* Where $ref leads: base addresses ($id), anchors and JSON pointers. See schema_build.h. */
#include "grammar/schema_build.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const cJSON *schema;
  const char *base; /* without a fragment */
} based;

typedef struct named {
  const char *address; /* with the fragment of an anchor, or without one */
  const cJSON *schema;
  struct named *next;
} named;

struct schema_index {
  based *bucket; /* by address in memory */
  size_t buckets, n;
  named *names;
  bool old;         /* $ref hides its siblings */
  const char *word; /* $id, or id in draft 4 */
};

static size_t bucket_of(const schema_index *x, const cJSON *schema) {
  size_t h = ((size_t)schema >> 4) * 0x9E3779B97F4A7C15u >> 17;
  for (;; h++) {
    const based *b = &x->bucket[h & (x->buckets - 1)];
    if (!b->schema || b->schema == schema) return h & (x->buckets - 1);
  }
}

static void set_base(schema_compiler *c, const cJSON *schema, const char *base) {
  schema_index *x = c->index;
  if (2 * x->n >= x->buckets) {
    schema_index old = *x;
    x->buckets = old.buckets ? 2 * old.buckets : 256;
    x->bucket = arena_take(&c->a, x->buckets * sizeof *x->bucket);
    for (size_t i = 0; i < old.buckets; i++)
      if (old.bucket[i].schema) x->bucket[bucket_of(x, old.bucket[i].schema)] = old.bucket[i];
  }
  based *b = &x->bucket[bucket_of(x, schema)];
  x->n += !b->schema;
  *b = (based){schema, base};
}

static const char *base_of(const schema_index *x, const cJSON *schema) {
  return x->bucket[bucket_of(x, schema)].base; /* NULL: unknown */
}

static void set_name(schema_compiler *c, const char *address, const cJSON *schema) {
  named *made = arena_take(&c->a, sizeof *made);
  *made = (named){address, schema, c->index->names};
  c->index->names = made;
}

/* ---- addresses (RFC 3986, section 5, without queries) ------------------------------------------------------------ */

/* The length of a scheme with its colon; 0: none. */
static size_t scheme_of(const char *address) {
  size_t n = 0;
  while (isalnum((unsigned char)address[n]) || (n && strchr("+-.", address[n]) && address[n])) n++;
  return n && isalpha((unsigned char)*address) && address[n] == ':' ? n + 1 : 0;
}

static size_t root_of(const char *address) {
  size_t n = scheme_of(address);
  if (strncmp(address + n, "//", 2) != 0) return n;
  return n + 2 + strcspn(address + n + 2, "/?#");
}

static void remove_dots(char *path) {
  char *to = path;
  for (const char *at = path; *at;) {
    const size_t n = strcspn(at + 1, "/") + 1; /* a slash and the part after it */
    if (n == 3 && !strncmp(at, "/..", 3))
      while (to > path && *--to != '/') {}
    else if (!(n == 2 && !strncmp(at, "/.", 2)))
      memmove(to, at, n), to += n;
    at += n;
  }
  *to = '\0';
}

/* Gives the address that `ref` names in a schema with this base. */
static char *resolve(schema_compiler *c, const char *base, const char *ref) {
  if (scheme_of(ref)) return arena_print(&c->a, "%s", ref);
  if (!*ref || *ref == '#') return arena_print(&c->a, "%s%s", base, ref);
  const size_t root = root_of(base);
  const char *slash = strrchr(base + root, '/');
  const size_t folder = *ref == '/' || !slash ? root : (size_t)(slash + 1 - base);
  const bool bare = folder == root && *ref != '/' && root > scheme_of(base);
  char *made = arena_print(&c->a, "%.*s%s%s", (int)folder, base, bare ? "/" : "", ref);
  char *path = made + root_of(made), *end = path + strcspn(path, "#");
  if (*path == '/' && strstr(path, "/.")) {
    const char *fragment = arena_print(&c->a, "%s", end);
    *end = '\0';
    remove_dots(path);
    strcat(path, fragment); /* not longer than before */
  }
  return made;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void read_schema(schema_compiler *c, const cJSON *schema, const char *base);

static const char *text_of(const cJSON *schema, const char *name) {
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(schema, name));
}

static const char *read_names(schema_compiler *c, const cJSON *schema, const char *base) {
  static const char *const anchors[] = {"$anchor", "$dynamicAnchor"};
  const char *id = text_of(schema, c->index->word);
  if (c->index->old && cJSON_GetObjectItemCaseSensitive(schema, "$ref")) id = NULL;
  if (id && *id == '#' && id[1]) {
    set_name(c, resolve(c, base, id), schema);
  } else if (id) {
    char *address = resolve(c, base, id);
    address[strcspn(address, "#")] = '\0';
    base = address;
    set_name(c, base, schema);
  }
  for (int i = 0; i < 2; i++) {
    const char *anchor = text_of(schema, anchors[i]);
    if (anchor) set_name(c, arena_print(&c->a, "%s#%s", base, anchor), schema);
  }
  return base;
}

static bool is_one_of(const char *name, const char *const *list) {
  for (; *list; list++)
    if (!strcmp(name, *list)) return true;
  return false;
}

static void read_schema(schema_compiler *c, const cJSON *schema, const char *base) {
  static const char *const schemas[] = {"items",
                                        "additionalItems",
                                        "additionalProperties",
                                        "contains",
                                        "not",
                                        "if",
                                        "then",
                                        "else",
                                        "allOf",
                                        "anyOf",
                                        "oneOf",
                                        "prefixItems",
                                        "propertyNames",
                                        "unevaluatedProperties",
                                        "unevaluatedItems",
                                        NULL},
                           *const maps[] = {"properties",       "patternProperties", "$defs", "definitions",
                                            "dependentSchemas", "dependencies",      NULL};
  const cJSON *k, *one;
  if (!cJSON_IsObject(schema) || base_of(c->index, schema)) return;
  base = read_names(c, schema, base);
  set_base(c, schema, base);
  cJSON_ArrayForEach(k, schema) {
    if (is_one_of(k->string, maps) || (cJSON_IsArray(k) && is_one_of(k->string, schemas)))
      cJSON_ArrayForEach(one, k) read_schema(c, one, base);
    else if (is_one_of(k->string, schemas))
      read_schema(c, k, base);
  }
}

void schema_read_index(schema_compiler *c) {
  static const char *const old[] = {"draft-03", "draft-04", "draft-06", "draft-07", NULL};
  const char *version = text_of(c->root, "$schema");
  c->index = arena_take(&c->a, sizeof *c->index);
  c->index->word = version && strstr(version, "draft-04") ? "id" : "$id";
  for (int i = 0; old[i]; i++) c->index->old |= version && strstr(version, old[i]);
  set_base(c, c->root, NULL);
  set_name(c, "", c->root);
  read_schema(c, c->root, "");
}

bool schema_is_old(schema_compiler *c) { return c->index->old; }

/* ---- following --------------------------------------------------------------------------------------------------- */

static void decode(char *text) {
  char *to = text;
  for (const char *at = text; *at; at++) {
    const char digits[3] = {at[0] == '%' ? at[1] : '\0', at[0] == '%' && at[1] ? at[2] : '\0', '\0'};
    if (isxdigit((unsigned char)digits[0]) && isxdigit((unsigned char)digits[1])) {
      *to++ = (char)strtol(digits, NULL, 16);
      at += 2;
    } else {
      *to++ = *at;
    }
  }
  *to = '\0';
}

/* One part of a JSON pointer (RFC 6901); it is decoded in its place. */
static const cJSON *child_of(const cJSON *in, char *part) {
  char *to = part;
  for (const char *at = part; *at; at++) {
    const bool escape = *at == '~' && (at[1] == '0' || at[1] == '1');
    *to++ = escape ? (at[1] == '0' ? '~' : '/') : *at;
    at += escape;
  }
  *to = '\0';
  if (cJSON_IsObject(in)) return cJSON_GetObjectItemCaseSensitive(in, part);
  if (!cJSON_IsArray(in) || !isdigit((unsigned char)*part)) return NULL;
  return cJSON_GetArrayItem(in, (int)strtol(part, NULL, 10));
}

static const cJSON *follow_pointer(schema_compiler *c, const cJSON *from, const char *base, char *pointer) {
  const cJSON *at = from;
  while (at && *pointer) {
    char *part = pointer + 1, *end = part + strcspn(part, "/");
    const bool last = !*end;
    *end = '\0';
    at = child_of(at, part);
    if (at && base_of(c->index, at)) base = base_of(c->index, at);
    pointer = last ? end : end + 1;
    if (!last) *--pointer = '/';
  }
  if (at) read_schema(c, at, base);
  return at;
}

static const cJSON *find_name(const schema_index *x, const char *address) {
  for (const named *n = x->names; n; n = n->next)
    if (!strcmp(n->address, address)) return n->schema;
  return NULL;
}

const cJSON *schema_target(schema_compiler *c, const cJSON *schema, const cJSON *ref) {
  if (!cJSON_IsString(ref)) schema_refuse(c, "$ref: expected a text");
  const char *base = base_of(c->index, schema);
  char *address = resolve(c, base ? base : "", ref->valuestring), *fragment = strchr(address, '#');
  const cJSON *found = NULL;
  if (fragment) {
    *fragment++ = '\0';
    decode(fragment);
  }
  const cJSON *in = find_name(c->index, address);
  if (in && (!fragment || !*fragment))
    found = in;
  else if (in && *fragment == '/')
    found = follow_pointer(c, in, address, fragment);
  else if (fragment)
    found = find_name(c->index, arena_print(&c->a, "%s#%s", address, fragment));
  if (!found) schema_refuse(c, "$ref: there is no %.80s in the schema", ref->valuestring);
  return found;
}
