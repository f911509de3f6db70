/* Compares the ranks' copies of a model: see same.h. */
#include "ranks/same.h"

#include "dtrun_ranks.h"
#include "model/model.h"
#include "ranks/exchange.h"
#include "ranks/witness.h"
#include "system/digest.h"
#include "system/os.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)WITNESS_MOST) /* so small that it is still in a cache when it is hashed */
enum { MOST_THREADS = 16 };

static const char *const in_folder[] = {"config.json",         "generation_config.json",
                                        "tokenizer.json",      "tokenizer_config.json",
                                        "chat_template.jinja", "model.safetensors.index.json"};
enum { IN_FOLDER = sizeof in_folder / sizeof *in_folder, PROGRAM = IN_FOLDER, HEADERS, ROTATION, ITEMS };

/* The first exchange between ranks. */
typedef struct {
  unsigned char key[KEYED_KEY]; /* all ranks use the key of rank 0 */
  char files[DIGEST_TEXT];      /* equal texts of two ranks: they read the very same files */
  char host[64];
} greeting;

struct same {
  dt_ranks *ranks;
  int threads;
  const char *path;
  witness seen;
  greeting of[DT_RANKS];
};

static const char *path_in(const same *s, const char *name, char path[4096]) {
  snprintf(path, 4096, "%s/%s", s->path, name);
  return path;
}

/* ---- the very same files ----------------------------------------------------------------------------------------- */

static void add_stat(digest *d, const struct stat *info) {
  uint64_t of[] = {
      info->st_dev,          info->st_ino,         (uint64_t)info->st_size,        (uint64_t)info->st_mtim.tv_sec,
      info->st_mtim.tv_nsec, info->st_ctim.tv_sec, (uint64_t)info->st_ctim.tv_nsec};
  digest_add(d, of, sizeof of);
}

/* Device and inode identify a file as long as one kernel runs, and the boot id identifies that. If any of the three is
 * unknown, the digest is unique. */
static void identify(const same *s, char text[DIGEST_TEXT]) {
  digest d;
  char boot[64] = "", path[4096];
  struct stat info;
  bool known = os_boot_id(boot);
  digest_begin(&d, "files");
  digest_add_text(&d, boot);
  known &= !stat(os_program_image(path), &info);
  if (known) add_stat(&d, &info);
  for (int i = 0; i < IN_FOLDER; i++) {
    bool there = !stat(path_in(s, in_folder[i], path), &info);
    digest_add(&d, &there, sizeof there);
    if (there) add_stat(&d, &info);
  }
  for (int i = 0; known && i < s->seen.sources; i++) {
    known = s->seen.source[i].fd >= 0 && !fstat(s->seen.source[i].fd, &info);
    if (known) add_stat(&d, &info);
  }
  unsigned char nobodys[KEYED_KEY];
  if (!known) keyed_new_key(nobodys), digest_add(&d, nobodys, sizeof nobodys);
  digest_end(&d, text);
}

/* Whether a rank reads the very same files as rank 0. Such ranks compare; other ranks are compared with them. */
static bool has_those_of_0(const same *s, int rank) { return !strcmp(s->of[rank].files, s->of[0].files); }

/* Counts such ranks among the first `first` ranks. */
static int with_those_of_0(const same *s, int first) {
  int n = 0;
  for (int i = 0; i < first; i++) n += has_those_of_0(s, i);
  return n;
}

static bool all_have_the_same(const same *s) { return with_those_of_0(s, s->ranks->count) == s->ranks->count; }

dt_status same_open(dt_ranks *ranks, const dt_model_desc *d, int threads, same **out, dt_error *err) {
  same *s = calloc(1, sizeof *s);
  if (!s) return dt_fail_memory(err, "what ranks compare", sizeof *s);
  s->ranks = ranks, s->path = d->path, s->threads = threads < MOST_THREADS ? threads : MOST_THREADS;
  dt_status status = witness_open(d, &s->seen, err);
  if (status)
    same_close(s);
  else
    *out = s;
  return status;
}

void same_close(same *s) {
  if (s) witness_close(&s->seen);
  free(s);
}

const dt_model_desc *same_desc(const same *s) { return &s->seen.desc; }

/* ---- configuration and tokenizer --------------------------------------------------------------------------------- */

/* Hashes the first n bytes of a source. */
static dt_status hash_source(const same *s, const dt_source *source, uint64_t n, keyed_hash *out, dt_error *err) {
  char *piece = malloc(PIECE);
  dt_status status = piece ? DT_OK : dt_fail_memory(err, "what ranks compare", PIECE);
  for (uint64_t at = 0, some; !status && at < n; at += some) {
    some = n - at < PIECE ? n - at : PIECE;
    status = source_read(source, at, piece, (size_t)some, err);
    if (!status) *out = keyed_more(s->of[0].key, *out, piece, (size_t)some);
  }
  free(piece);
  return status;
}

static dt_status hash_file(const same *s, const char *path, keyed_hash *out, dt_error *err) {
  dt_source source;
  if (access(path, F_OK)) return DT_OK; /* no file: no hash */
  dt_status status = source_open(path, &source, err);
  if (status) return status;
  *out = keyed_of(s->of[0].key, &source.size, sizeof source.size);
  status = hash_source(s, &source, source.size, out, err);
  source_close(&source);
  return status;
}

/* Bytes before the first matrix: in a GGUF file, configuration and tokenizer. */
static uint64_t header_bytes(const same *s, int source) {
  uint64_t least = s->seen.source[source].size;
  for (int i = 0; i < witness_matrices(&s->seen.desc); i++) {
    const dt_matrix *m = witness_matrix(&s->seen.desc, i);
    if (m->source == &s->seen.source[source] && m->offset < least) least = m->offset;
  }
  return least;
}

static dt_status hash_item(const same *s, int item, keyed_hash *out, dt_error *err) {
  char path[4096];
  const dt_model_desc *d = &s->seen.desc;
  if (item < IN_FOLDER) return hash_file(s, path_in(s, in_folder[item], path), out, err);
  if (item == PROGRAM) return hash_file(s, os_program_image(path), out, err);
  if (item == ROTATION) {
    size_t pairs = (size_t)d->shape.rotary_dims / 2;
    size_t local = d->shape.local_dims ? (size_t)d->shape.local_dims / 2 : pairs;
    *out = keyed_of(s->of[0].key, d->inv_freq, pairs * sizeof *d->inv_freq);
    if (d->local_freq) *out = keyed_more(s->of[0].key, *out, d->local_freq, local * sizeof *d->local_freq);
    return DT_OK;
  }
  dt_status status = DT_OK;
  for (int i = 0; i < s->seen.sources && !status; i++)
    status = hash_source(s, &s->seen.source[i], header_bytes(s, i), out, err);
  return status;
}

static dt_status fail_item(const same *s, int item, dt_error *err) {
  if (item == PROGRAM)
    return dt_fail(err, DT_EINPUT, "this dtrun is another build than rank 0's: all ranks need the same build");
  if (item == ROTATION)
    return dt_fail(err, DT_EINPUT, "%s: tensor rope_freqs.weight is different from rank 0's", s->path);
  if (item == HEADERS)
    return dt_fail(err, DT_EINPUT,
                   "%s: the header (in a GGUF file: configuration, tokenizer, and rope_freqs.weight if it comes first) "
                   "is different from rank 0's",
                   s->path);
  return dt_fail(err, DT_EINPUT, "%s/%s is different from rank 0's file", s->path, in_folder[item]);
}

dt_status same_files(same *s, dt_error *err) {
  int me = s->ranks->rank;
  greeting *mine = &s->of[me];
  keyed_hash item[DT_RANKS][ITEMS] = {0};
  keyed_new_key(mine->key), identify(s, mine->files), gethostname(mine->host, sizeof mine->host - 1);
  ranks_exchange(s->ranks, s->of, sizeof *s->of);
  if (all_have_the_same(s)) return DT_OK;
  memcpy(s->seen.key, s->of[0].key, KEYED_KEY);
  dt_status status = DT_OK;
  for (int i = 0; i < ITEMS && !status; i++) status = hash_item(s, i, &item[me][i], err);
  ranks_exchange(s->ranks, item, sizeof *item);
  for (int i = 0; i < ITEMS && !status; i++)
    if (memcmp(&item[me][i], &item[0][i], sizeof item[0][i])) status = fail_item(s, i, err);
  if (!has_those_of_0(s, me)) witness_begin(&s->seen);
  return status;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

dt_status same_was_seen(const same *s, dt_error *err) {
  return s->seen.lost ? dt_fail_memory(err, "what ranks compare", s->seen.room * sizeof(witness_record)) : DT_OK;
}

/* A record, and the rank that read it. */
typedef struct {
  witness_record of;
  int rank;
} claim;

static int by_place(const void *a, const void *b) {
  const witness_record *x = &((const claim *)a)->of, *y = &((const claim *)b)->of;
  if (x->source != y->source) return x->source < y->source ? -1 : 1;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* State that the comparing threads share. */
typedef struct {
  const same *s;
  const claim *claim; /* by place; this rank compares those before end */
  size_t end;
  atomic_size_t next;
  atomic_size_t wrong; /* the first claim found wrong; end: none */
  pthread_mutex_t lock;
  dt_error failure;
} comparison;

/* Takes as many claims as lie in one piece of their source, for one read. */
static size_t claims_from(const comparison *c, size_t first, size_t *bytes) {
  const witness_record *a = &c->claim[first].of;
  size_t i = first;
  for (*bytes = 0; i < c->end && c->claim[i].of.source == a->source; i++) {
    size_t end = (size_t)(c->claim[i].of.offset - a->offset) + c->claim[i].of.bytes;
    if (end > PIECE || c->claim[i].of.offset - a->offset > *bytes) break;
    if (end > *bytes) *bytes = end;
  }
  return i;
}

static void compare_some(comparison *c, size_t first, size_t last, const char *piece) {
  for (size_t i = first; i < last; i++) {
    const witness_record *r = &c->claim[i].of;
    keyed_hash hash = keyed_of(c->s->of[0].key, piece + (r->offset - c->claim[first].of.offset), r->bytes);
    if (!memcmp(&hash, &r->hash, sizeof hash)) continue;
    size_t known = atomic_load(&c->wrong);
    while (i < known && !atomic_compare_exchange_weak(&c->wrong, &known, i)) {}
    return;
  }
}

/* Compares the next claims until none is left. The outcome does not depend on the threads. */
static void *compare(void *context) {
  comparison *c = context;
  dt_error err = {.status = DT_OK};
  char *piece = malloc(PIECE);
  if (!piece) dt_fail_memory(&err, "what ranks compare", PIECE);
  while (!err.status) {
    size_t bytes, first, last;
    pthread_mutex_lock(&c->lock);
    first = atomic_load(&c->next);
    last = first < c->end ? claims_from(c, first, &bytes) : first;
    atomic_store(&c->next, last);
    pthread_mutex_unlock(&c->lock);
    if (first == last) break;
    const witness_record *r = &c->claim[first].of;
    dt_source plain = c->s->seen.source[r->source];
    plain.watch = NULL;
    source_read(&plain, r->offset, piece, bytes, &err);
    if (!err.status) compare_some(c, first, last, piece);
  }
  pthread_mutex_lock(&c->lock);
  if (err.status && !c->failure.status) c->failure = err;
  pthread_mutex_unlock(&c->lock);
  free(piece);
  return NULL;
}

static dt_status fail_claim(const same *s, const claim *wrong, dt_error *err) {
  const dt_source *source = &s->seen.source[wrong->of.source];
  model *m = NULL;
  const char *tensor = model_open(s->path, &m, NULL) ? NULL : model_tensor_at(m, source->name, wrong->of.offset);
  char what[300];
  snprintf(what, sizeof what, "%.150s: tensor %.120s", source->name, tensor ? tensor : "?");
  model_close(m);
  return dt_fail(err, DT_EINPUT, "rank %d on %s: %s is different from rank 0's", wrong->rank, s->of[wrong->rank].host,
                 what);
}

/* Compares this rank's share of the reads of ranks with other files to the same places here. *wrong: the first of them
 * that differs, or n. */
static dt_status compare_share(const same *s, const claim *claims, size_t n, uint64_t *wrong, dt_error *err) {
  size_t shares = (size_t)with_those_of_0(s, s->ranks->count), mine = (size_t)with_those_of_0(s, s->ranks->rank);
  if (shares == 0) shares = 1; /* rank 0 has the files */
  comparison c = {.s = s, .claim = claims, .end = n * (mine + 1) / shares, .lock = PTHREAD_MUTEX_INITIALIZER};
  atomic_init(&c.next, n * mine / shares), atomic_init(&c.wrong, c.end);
  pthread_t thread[MOST_THREADS];
  int more = 0;
  while (more + 1 < s->threads && !pthread_create(&thread[more], NULL, compare, &c)) more++;
  compare(&c);
  for (int i = 0; i < more; i++) pthread_join(thread[i], NULL);
  pthread_mutex_destroy(&c.lock);
  *wrong = atomic_load(&c.wrong) < c.end ? atomic_load(&c.wrong) : n;
  if (c.failure.status && err) *err = c.failure;
  return c.failure.status;
}

/* Gathers the records of all ranks, and their numbers; malloc'd. If one rank has no memory for them, all ranks get
 * NULL. */
static witness_record *gather_records(const same *s, uint64_t count[DT_RANKS]) {
  int bytes[DT_RANKS], offset[DT_RANKS], all = 1;
  int32_t able[DT_RANKS];
  uint64_t total = 0;
  const size_t size = sizeof(witness_record);
  count[s->ranks->rank] = s->seen.n;
  ranks_exchange(s->ranks, count, sizeof *count);
  for (int i = 0; i < s->ranks->count; i++)
    bytes[i] = (int)(count[i] * size), offset[i] = (int)(total * size), total += count[i];
  witness_record *records = total * size < INT32_MAX ? calloc((size_t)total + 1, size) : NULL;
  able[s->ranks->rank] = records != NULL;
  ranks_exchange(s->ranks, able, sizeof *able);
  for (int i = 0; i < s->ranks->count; i++) all &= able[i];
  if (all && records) {
    if (s->seen.n) memcpy((char *)records + offset[s->ranks->rank], s->seen.record, s->seen.n * size);
    s->ranks->gather(s->ranks, records, bytes, offset);
    return records;
  }
  free(records);
  return NULL;
}

dt_status same_weights(same *s, dt_error *err) {
  if (all_have_the_same(s)) return DT_OK;
  uint64_t count[DT_RANKS], n = 0, at = 0;
  witness_record *records = gather_records(s, count);
  if (!records) return dt_fail_memory(err, "what ranks compare", s->seen.n * sizeof *records);
  dt_status status = DT_OK;
  for (int i = 0; i < s->ranks->count; i++) n += count[i];
  bool compares = has_those_of_0(s, s->ranks->rank);
  claim *claims = compares ? calloc((size_t)n + 1, sizeof *claims) : NULL;
  if (compares && !claims) status = dt_fail_memory(err, "what ranks compare", (size_t)n * sizeof *claims);
  for (int i = 0; i < s->ranks->count; at += count[i++])
    for (uint64_t k = 0; claims && k < count[i]; k++) claims[at + k] = (claim){records[at + k], i};
  free(records);
  if (claims && n) qsort(claims, (size_t)n, sizeof *claims, by_place);
  uint64_t wrong[DT_RANKS], *mine = &wrong[s->ranks->rank], first = n;
  *mine = n;
  if (claims) status = compare_share(s, claims, (size_t)n, mine, err);
  ranks_exchange(s->ranks, wrong, sizeof *wrong);
  for (int i = 0; i < s->ranks->count; i++)
    if (wrong[i] < first) first = wrong[i];
  if (s->ranks->rank == 0 && claims && first < n) status = fail_claim(s, &claims[first], err);
  free(claims);
  return status;
}
