/* See bring.h. A blob is named by its hash, so its first part is valid for any server; the whole is checked at the
 * end. */
#include "pull/bring.h"

#include "pull/progress_bar.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 1000000 }; /* bytes of progress that justify another attempt */

dt_status bring_status(long status, const char *what, dt_error *err) {
  switch (status) {
  case 200:
  case 206: return DT_OK;
  case 401:
    return dt_fail(
        err, DT_EINPUT,
        "%s: there is no such model, or the server requires a token (401): set HF_TOKEN, or run hf auth login", what);
  case 403:
    return dt_fail(
        err, DT_EINPUT,
        "%s: the server denies access (403): accept the model's terms on its web page, as the owner of the token",
        what);
  case 404: return dt_fail(err, DT_EINPUT, "%s: not found on the server (404)", what);
  case 429: return dt_fail(err, DT_EIO, "%s: too many requests to the server (429): try again later", what);
  default:
    return dt_fail(err, DT_EIO, "%s: the server answered with status %ld%s", what, status,
                   status >= 500 ? ": try again later" : "");
  }
}

dt_status bring_facts(http *h, wanted_file *f, dt_error *err) {
  http_head head;
  if (http_get(h, f->url, 0, NULL, &head, err) != HTTP_DONE) return DT_EIO;
  const char *hash = *head.linked_etag ? head.linked_etag : head.etag;
  bool redirected = *head.linked_etag && head.status >= 300 && head.status < 400;
  if (!redirected && bring_status(head.status, f->name, err)) return err->status;
  f->size = head.linked_size >= 0 ? head.linked_size : redirected ? -1 : head.length;
  if (!file_hash_is(hash) || f->size < 0)
    return dt_fail(err, DT_EIO, "%s: the server sends no size or no hash of it (X-Linked-Etag, ETag): refused",
                   f->name);
  strcpy(f->hash, hash);
  return DT_OK;
}

/* ---- the bytes --------------------------------------------------------------------------------------------------- */

typedef struct {
  const wanted_file *f;
  int fd;
  int64_t have;
  bool begun; /* the current answer was checked */
  shown bar;
} transfer;

/* Checks whether the answer continues at our place. A server without ranges sends the file from its beginning, and we
 * begin again too. */
static dt_status begin(transfer *t, const http_head *head, dt_error *err) {
  t->begun = true;
  if (head->status == 200 && t->have > 0) {
    if (ftruncate(t->fd, 0)) return dt_fail(err, DT_EIO, "%s: %s", t->f->name, strerror(errno));
    t->have = 0;
  }
  bool fits = head->status == 200 || (head->range_from == t->have && (head->total < 0 || head->total == t->f->size));
  if (fits) return DT_OK;
  return dt_fail(err, DT_EIO, "%s: the server sent another part than requested: refused", t->f->name);
}

static dt_status take(void *user, const http_head *head, const char *bytes, size_t n, dt_error *err) {
  transfer *t = user;
  dt_status status = t->begun ? DT_OK : begin(t, head, err);
  if (status) return status;
  if ((int64_t)n > t->f->size - t->have)
    return dt_fail(err, DT_EIO, "%s: the server sent more than the %lld bytes that it announced: refused", t->f->name,
                   (long long)t->f->size);
  while (n > 0) {
    ssize_t k = pwrite(t->fd, bytes, n, t->have);
    if (k < 0 && errno == EINTR) continue;
    char here[SIZE_TEXT];
    if (k <= 0)
      return dt_fail(err, DT_EIO, "%s: %s after %s, which are kept: free disk space, then dtrun pull continues",
                     t->f->name, strerror(k ? errno : ENOSPC), size_text(t->have, here));
    bytes += k, n -= (size_t)k, t->have += k;
  }
  shown_at(&t->bar, t->have);
  return DT_OK;
}

/* Fetches all missing bytes. */
static dt_status fetch(http *h, transfer *t, dt_error *err) {
  const http_sink sink = {take, t};
  for (int64_t best = t->have; t->have < t->f->size;) {
    http_head head;
    t->begun = false;
    http_outcome outcome = http_get(h, t->f->url, t->have, &sink, &head, err);
    if (outcome == HTTP_BROKEN && t->have >= best + STEP) {
      best = t->have;
      continue;
    }
    if (outcome == HTTP_DONE && head.status == 416 && t->have > 0) { /* the server does not have these bytes */
      if (ftruncate(t->fd, 0)) return dt_fail(err, DT_EIO, "%s: %s", t->f->name, strerror(errno));
      t->have = 0;
      continue;
    }
    if (outcome != HTTP_DONE) return DT_EIO;
    if (bring_status(head.status, t->f->name, err)) return err->status;
    if (t->have < t->f->size)
      return dt_fail(err, DT_EIO, "%s: the server stopped after %lld of the %lld bytes that it announced", t->f->name,
                     (long long)t->have, (long long)t->f->size);
  }
  return DT_OK;
}

static dt_status check(const cache *c, const transfer *t, dt_error *err) {
  char hash[FILE_HASH];
  dt_status status = file_hash(t->fd, t->f->size, t->f->hash, hash, err);
  if (status || strcmp(hash, t->f->hash) == 0) return status;
  cache_drop(c, t->f->hash);
  return dt_fail(err, DT_EIO,
                 "%s: the downloaded file has the hash %.12s.., expected %.12s.., and was removed: pull it again",
                 t->f->name, hash, t->f->hash);
}

static dt_status fill(http *h, const cache *c, const wanted_file *f, dt_error *err) {
  transfer t = {.f = f};
  dt_status status = cache_begin(c, f->hash, &t.fd, err);
  if (status) return status;
  t.have = cache_have(c, f->hash, f->size);
  if (ftruncate(t.fd, t.have)) status = dt_fail(err, DT_EIO, "%s: %s", f->name, strerror(errno));
  t.bar = shown_begin(f->name, f->size, t.have);
  if (!status) status = fetch(h, &t, err);
  shown_end(&t.bar);
  if (!status) status = check(c, &t, err);
  if (!status) status = cache_finish(c, f->hash, t.fd, err);
  close(t.fd);
  return status;
}

static void wait_told(void *user) { say("%s: waiting for another pull, which downloads it", (const char *)user); }

dt_status bring_file(http *h, const cache *c, const wanted_file *f, dt_error *err) {
  int lock;
  dt_status status = cache_lock(c, f->hash, wait_told, (void *)f->name, &lock, err);
  if (status) return status;
  if (!cache_holds(c, f->hash, f->size)) status = fill(h, c, f, err);
  cache_unlock(lock);
  return status ? status : cache_link(c, f->name, f->hash, err);
}
