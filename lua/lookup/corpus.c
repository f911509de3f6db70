/* Reads and gathers texts: see corpus.h. */
#include "lookup/corpus.h"

#include "files/files.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1u << 30) /* bytes of a file, at most */

typedef struct {
  int32_t *token;
  size_t n;
} gathered;

static dt_status out_of_memory(dt_error *err) { return dtl_fail_memory(err, "the corpus"); }

static bool gather(gathered *all, const int32_t *token, size_t n) {
  int32_t *grown = realloc(all->token, (all->n + n + 1) * sizeof *grown);
  if (!grown) return false;
  all->token = grown;
  memcpy(grown + all->n, token, n * sizeof *token);
  grown[all->n + n] = SUFFIXES_END;
  all->n += n + 1;
  return true;
}

static dt_status gather_file(const dt_pair *pair, const char *path, gathered *all, dt_error *err) {
  size_t len;
  int32_t *ids;
  int n;
  char *text;
  dt_status status = dtl_read_file("corpus", path, FILE_MAX, &text, &len, err);
  if (status) return status;
  status = dt_encode_whole(pair, text, len, &ids, &n, err);
  free(text);
  if (status) return status;
  if (n == 0)
    status = dtl_fail(err, DT_EINPUT, "%s: the file is empty, expected text", path);
  else if (all->n + (size_t)n + 1 > SUFFIXES_TOKENS)
    status = dtl_fail(err, DT_EINPUT, "%s: the corpus has more than %u tokens: give fewer or shorter files", path,
                      SUFFIXES_TOKENS);
  else if (!gather(all, ids, (size_t)n))
    status = out_of_memory(err);
  free(ids);
  return status;
}

dt_status dtl_corpus_open(const dt_pair *pair, const char *const *files, int n, dtl_corpus **out, dt_error *err) {
  if (n < 1) return dtl_fail(err, DT_EINPUT, "corpus: expected at least one file");
  NEED(pair, "pair");
  NEED(files, "files");
  NEED(out, "out");
  for (int i = 0; i < n; i++) NEED(files[i], "a file");
  dtl_corpus *corpus = calloc(1, sizeof *corpus);
  gathered all = {0};
  dt_status status = corpus ? DT_OK : out_of_memory(err);
  for (int i = 0; i < n && !status; i++) status = gather_file(pair, files[i], &all, err);
  if (status) {
    free(corpus), free(all.token);
    return status;
  }
  digest ids;
  digest_begin(&ids, "corpus");
  digest_add(&ids, all.token, all.n * sizeof *all.token);
  digest_end(&ids, corpus->hash);
  if (!suffixes_open(&corpus->index, all.token, all.n)) {
    free(corpus);
    return out_of_memory(err);
  }
  *out = corpus;
  return DT_OK;
}

void dtl_corpus_close(dtl_corpus *corpus) {
  if (corpus) suffixes_close(&corpus->index);
  free(corpus);
}

/* Joins the last two parts. If there is no memory for that, a part is lost. */
static void join(corpus_outputs *o) {
  suffixes *a = &o->part[o->n - 2], *b = &o->part[o->n - 1];
  int32_t *both = malloc(((size_t)a->n + b->n) * sizeof *both);
  size_t n = (size_t)a->n + b->n;
  if (both) {
    memcpy(both, a->token, a->n * sizeof *both);
    memcpy(both + a->n, b->token, b->n * sizeof *both);
  }
  suffixes_close(a), suffixes_close(b);
  o->n -= 2;
  if (both && suffixes_open(a, both, n))
    o->n++;
  else
    o->tokens -= n;
}

void corpus_add(corpus_outputs *o, const int32_t *token, int n) {
  gathered one = {0};
  if (n < 1 || o->tokens + (size_t)n + 1 > CORPUS_OUTPUTS || o->n == CORPUS_PARTS) return;
  if (!gather(&one, token, (size_t)n) || !suffixes_open(&o->part[o->n], one.token, one.n)) return;
  o->n++;
  o->tokens += (size_t)n + 1;
  while (o->n > 1 && o->part[o->n - 2].n <= 2 * o->part[o->n - 1].n) join(o);
}

void corpus_forget(corpus_outputs *o) {
  for (int i = 0; i < o->n; i++) suffixes_close(&o->part[i]);
  *o = (corpus_outputs){0};
}
