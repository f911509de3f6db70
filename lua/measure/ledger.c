/* What policies have learned about a pair: see ledger.h. */
#include "measure/ledger.h"

#include "files/files.h"
#include "system/asprintf.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA "dtrun.ledger/2"
#define CALIBRATION "dtrun.calibration/2"
#define CALIBRATION_FILE "calibration.json"
#define FILE_MAX (1u << 20)

typedef struct {
  char name[LEDGER_NAME + 1]; /* "": unused */
  int n;
  double *numbers; /* [n], malloc'd */
} list;

struct ledger_book {
  char digest[DTL_DIGEST]; /* "": unused */
  long used;               /* when it was requested last */
  bool *changed;           /* the ledger's `changed` */
  list list[LEDGER_LISTS];
};

struct ledger {
  costs_place place;
  bool changed; /* since the file was read, or since the last attempt to write it */
  long uses;
  ledger_book first; /* the lists that a new book begins with */
  ledger_book book[LEDGER_BOOKS];
};

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static list *find(const ledger_book *book, const char *name) {
  for (int i = 0; i < LEDGER_LISTS; i++)
    if (!strcmp(book->list[i].name, name)) return (list *)&book->list[i];
  return NULL;
}

const double *ledger_get(const ledger_book *book, const char *name, int *n) {
  const list *found = book && name && *name ? find(book, name) : NULL;
  *n = found ? found->n : 0;
  return found ? found->numbers : NULL;
}

static bool are_finite(const double *numbers, int n) {
  for (int i = 0; i < n; i++)
    if (!isfinite(numbers[i])) return false;
  return true;
}

bool ledger_set(ledger_book *book, const char *name, const double *numbers, int n) {
  if (!book || !name || !*name || strlen(name) > LEDGER_NAME || n < 0 || n > LEDGER_NUMBERS) return false;
  if (!are_finite(numbers, n)) return false;
  list *l = find(book, name);
  if (!n) {
    if (l) free(l->numbers), *l = (list){0}, *book->changed = true;
    return true;
  }
  if (!l && !(l = find(book, ""))) return false;
  if (l->n != n) {
    double *resized = realloc(l->numbers, sizeof *resized * (size_t)n);
    if (!resized) return false;
    l->numbers = resized, l->n = n;
  }
  memcpy(l->numbers, numbers, sizeof *numbers * (size_t)n);
  strcpy(l->name, name);
  *book->changed = true;
  return true;
}

/* ---- books ------------------------------------------------------------------------------------------------------- */

static void empty(ledger_book *book) {
  for (int i = 0; i < LEDGER_LISTS; i++) free(book->list[i].numbers);
  memset(book, 0, sizeof *book);
}

ledger_book *ledger_of(ledger *l, const char *digest) {
  ledger_book *oldest = &l->book[0];
  l->uses++;
  for (int i = 0; i < LEDGER_BOOKS; i++) {
    ledger_book *b = &l->book[i];
    if (!strcmp(b->digest, digest)) return b->used = l->uses, b;
    if (b->used < oldest->used) oldest = b;
  }
  empty(oldest);
  snprintf(oldest->digest, sizeof oldest->digest, "%s", digest);
  oldest->used = l->uses;
  oldest->changed = &l->changed;
  bool changed = l->changed;
  for (int i = 0; i < LEDGER_LISTS; i++) {
    const list *x = &l->first.list[i];
    if (*x->name) ledger_set(oldest, x->name, x->numbers, x->n);
  }
  l->changed = changed;
  return oldest;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int by_use(const void *a, const void *b) {
  const ledger_book *const *x = a, *const *y = b;
  return ((*x)->used > (*y)->used) - ((*x)->used < (*y)->used);
}

/* {"schema":, "key":, "books": [{"policy": digest, "lists": {NAME: [numbers]}}]}; the book that was used last comes
 * last. */
char *ledger_json(const ledger *l) {
  const ledger_book *order[LEDGER_BOOKS];
  for (int i = 0; i < LEDGER_BOOKS; i++) order[i] = &l->book[i];
  qsort(order, LEDGER_BOOKS, sizeof *order, by_use);
  errno = 0; /* if memory runs out, cJSON leaves out members without reporting it */
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "schema", SCHEMA);
  cJSON_AddStringToObject(root, "key", l->place.key);
  cJSON *books = cJSON_AddArrayToObject(root, "books");
  for (int b = 0; b < LEDGER_BOOKS; b++) {
    if (!*order[b]->digest) continue;
    cJSON *book = cJSON_CreateObject();
    cJSON_AddStringToObject(book, "policy", order[b]->digest);
    cJSON *lists = cJSON_AddObjectToObject(book, "lists");
    for (int i = 0; i < LEDGER_LISTS; i++) {
      const list *x = &order[b]->list[i];
      if (*x->name) cJSON_AddItemToObject(lists, x->name, cJSON_CreateDoubleArray(x->numbers, x->n));
    }
    cJSON_AddItemToArray(books, book);
  }
  char *text = errno == ENOMEM ? NULL : cJSON_PrintUnformatted(root);
  cJSON_Delete(root);
  return text;
}

static bool take_list(ledger_book *book, const cJSON *item) {
  double numbers[LEDGER_NUMBERS];
  int n = 0;
  const cJSON *x;
  if (!cJSON_IsArray(item)) return false;
  cJSON_ArrayForEach(x, item) {
    if (!cJSON_IsNumber(x) || n == LEDGER_NUMBERS) return false;
    numbers[n++] = x->valuedouble;
  }
  return n > 0 && ledger_set(book, item->string, numbers, n);
}

static const char *take_all(ledger *l, const cJSON *root) {
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
  const cJSON *key = cJSON_GetObjectItemCaseSensitive(root, "key"), *book, *item;
  const cJSON *books = cJSON_GetObjectItemCaseSensitive(root, "books");
  if (!cJSON_IsString(schema) || strcmp(schema->valuestring, SCHEMA)) return "its schema is not " SCHEMA;
  if (!cJSON_IsString(key) || strcmp(key->valuestring, l->place.key))
    return "it was learned on another machine or model";
  if (!cJSON_IsArray(books)) return "books is not a list";
  cJSON_ArrayForEach(book, books) {
    const cJSON *policy = cJSON_GetObjectItemCaseSensitive(book, "policy");
    const cJSON *lists = cJSON_GetObjectItemCaseSensitive(book, "lists");
    bool named = cJSON_IsString(policy) && *policy->valuestring && strlen(policy->valuestring) < DTL_DIGEST;
    if (!named || !cJSON_IsObject(lists)) return "a book has no policy or no lists";
    ledger_book *to = ledger_of(l, policy->valuestring);
    cJSON_ArrayForEach(item, lists) if (!take_list(to, item)) return "a list is not 1 to 256 finite numbers";
  }
  return NULL;
}

const char *ledger_parse(ledger *l, const char *json) {
  cJSON *root;
  const char *wrong = costs_parse_object(json, &root);
  if (!wrong) wrong = take_all(l, root);
  cJSON_Delete(root);
  for (int i = 0; wrong && i < LEDGER_BOOKS; i++) empty(&l->book[i]);
  l->changed = false;
  return wrong;
}

static const char *take_calibration(ledger *l, const cJSON *root, const char *way) {
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema"), *item;
  const cJSON *lists = cJSON_GetObjectItemCaseSensitive(root, way);
  if (!cJSON_IsString(schema) || strcmp(schema->valuestring, CALIBRATION)) return "its schema is not " CALIBRATION;
  if (!lists) return NULL; /* not measured with this way of sampling */
  if (!cJSON_IsObject(lists)) return "a calibration is not an object of lists";
  l->first.changed = &l->changed;
  cJSON_ArrayForEach(item, lists) if (!take_list(&l->first, item)) return "a list is not 1 to 256 finite numbers";
  return NULL;
}

const char *ledger_begin_with(ledger *l, const char *json, const char *way) {
  cJSON *root;
  bool changed = l->changed;
  const char *wrong = costs_parse_object(json, &root);
  if (!wrong) wrong = take_calibration(l, root, way);
  cJSON_Delete(root);
  if (wrong) empty(&l->first);
  l->changed = changed;
  return wrong;
}

/* Reads the calibration.json of the pair's draft, if the draft is a folder that has one. */
static const char *read_calibration(ledger *l, const dt_pair *pair, const char *way) {
  dt_pair_info info;
  char *path, *text = NULL;
  size_t len;
  dt_pair_describe(pair, &info);
  if (!info.draft.path || dt_asprintf(&path, "%s/" CALIBRATION_FILE, info.draft.path) < 0) return NULL;
  const char *wrong = NULL;
  if (access(path, F_OK) == 0) {
    bool read = !dtl_read_file("calibration", path, FILE_MAX, &text, &len, NULL);
    wrong = read ? ledger_begin_with(l, text, way) : "it cannot be read";
  }
  free(text), free(path);
  return wrong;
}

ledger *ledger_new(const char *key) {
  ledger *l = calloc(1, sizeof *l);
  if (l && (l->place.key = strdup(key))) return l;
  free(l);
  return NULL;
}

dt_status ledger_open(dt_pair *pair, const char *way, ledger **out, ledger_faults *faults, dt_error *err) {
  *faults = (ledger_faults){0};
  ledger *l = calloc(1, sizeof *l);
  if (!l) return dtl_fail_memory(err, "what was learned about a pair");
  char *text = NULL;
  const char *unfit = read_calibration(l, pair, way);
  dt_status status = costs_find_learned(pair, way, 0, &l->place, err);
  if (!status && costs_read(&l->place, &text, NULL) == DT_EINPUT) faults->file = "it cannot be read";
  if (!status && text) faults->file = ledger_parse(l, text);
  if (!text) faults->calibration = unfit; /* with a file, it has been reported */
  free(text);
  if (faults->file == COSTS_STARVED || unfit == COSTS_STARVED)
    status = dtl_fail_memory(err, "what was learned about a pair");
  l->changed = faults->file || faults->calibration; /* so that a good file is written, and nothing is reported again */
  if (status)
    ledger_close(l);
  else
    *out = l;
  return status;
}

void ledger_close(ledger *l) {
  if (!l) return;
  for (int i = 0; i < LEDGER_BOOKS; i++) empty(&l->book[i]);
  empty(&l->first);
  costs_leave(&l->place);
  free(l);
}

const char *ledger_path(const ledger *l) { return l->place.path; }

const char *ledger_store(ledger *l) {
  if (!l->changed || !l->place.path) return NULL;
  char *text = ledger_json(l);
  const char *lost = costs_write(&l->place, text);
  free(text);
  l->changed = false;
  return lost;
}
