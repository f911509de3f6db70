/* See http_client.h. libcurl does not follow redirects here: we do, so that we decide which servers see the token. */
#include "pull/http_client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  MOST_HEADERS = 64 * 1024, /* maximum size of an answer's headers in bytes */
  MOST_REDIRECTS = 10,
  SLOWEST = 1024,  /* bytes per second; a slower connection counts as stalled */
  SHORT_STALLS = 5 /* answers whose body is not stored may take this many times stall_seconds */
};

struct http {
  http_options options;
  CURL *curl;
  CURLU *own; /* the endpoint */
  struct curl_slist *with_token;
  char why[CURL_ERROR_SIZE]; /* curl's message */
  /* of the current request */
  http_head *head;
  const http_sink *sink;
  char location[HTTP_URL];
  size_t header_bytes;
  bool too_many_headers, refused; /* refused: the sink failed, and *err says why */
  dt_error *err;
};

/* ---- headers ----------------------------------------------------------------------------------------------------- */

/* Copies the value of a header named `name` (in lower case, with its colon); false: it is another header, or the value
 * is too long. */
static bool value_of(const char *line, size_t n, const char *name, char *out, size_t size) {
  size_t length = strlen(name);
  if (n < length || strncasecmp(line, name, length) != 0) return false;
  for (line += length, n -= length; n > 0 && (*line == ' ' || *line == '\t'); n--) line++;
  while (n > 0 && (unsigned char)line[n - 1] <= ' ') n--;
  if (n >= size || memchr(line, 0, n)) return false;
  memcpy(out, line, n);
  out[n] = '\0';
  return true;
}

/* "W/\"x\"" -> "x" */
static void bare_tag(char *tag) {
  char *from = strncmp(tag, "W/", 2) == 0 ? tag + 2 : tag;
  size_t n = strlen(from);
  if (n >= 2 && *from == '"' && from[n - 1] == '"') from++, n -= 2;
  memmove(tag, from, n);
  tag[n] = '\0';
}

static int64_t number(const char *text) {
  char *end;
  long long n = strtoll(text, &end, 10);
  return end != text && !*end && n >= 0 ? n : -1;
}

static void read_header(http *h, const char *line, size_t n) {
  char value[128];
  http_head *d = h->head;
  if (n > 5 && strncmp(line, "HTTP/", 5) == 0) {
    *d = (http_head){.length = -1, .range_from = -1, .total = -1, .linked_size = -1};
    h->location[0] = '\0';
  } else if (value_of(line, n, "location:", h->location, sizeof h->location)) {
  } else if (value_of(line, n, "content-length:", value, sizeof value)) {
    d->length = number(value);
  } else if (value_of(line, n, "x-linked-size:", value, sizeof value)) {
    d->linked_size = number(value);
  } else if (value_of(line, n, "x-linked-etag:", d->linked_etag, sizeof d->linked_etag)) {
    bare_tag(d->linked_etag);
  } else if (value_of(line, n, "etag:", d->etag, sizeof d->etag)) {
    bare_tag(d->etag);
  } else if (value_of(line, n, "content-range:", value, sizeof value)) {
    long long from, to, total = -1;
    if (sscanf(value, "bytes %lld-%lld/%lld", &from, &to, &total) >= 2 && from >= 0)
      d->range_from = from, d->total = total;
  }
}

static size_t on_header(char *line, size_t size, size_t n, void *user) {
  http *h = user;
  n *= size;
  h->header_bytes += n;
  h->too_many_headers = h->header_bytes > MOST_HEADERS;
  if (h->too_many_headers) return 0;
  read_header(h, line, n);
  return n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *user) {
  http *h = user;
  long status = 0;
  curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
  h->head->status = status;
  if (status != 200 && status != 206) return 0; /* the body of an error is HTML for people */
  h->refused = h->sink->take(h->sink->user, h->head, bytes, n * size, h->err);
  return h->refused ? 0 : n * size;
}

static int on_progress(void *user, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t sent) {
  (void)total, (void)now, (void)up, (void)sent;
  return *((http *)user)->options.interrupt;
}

/* ---- one request ------------------------------------------------------------------------------------------------- */

static bool part(CURLU *u, CURLUPart which, char *out, size_t size) {
  char *text;
  if (curl_url_get(u, which, &text, CURLU_DEFAULT_PORT)) return false;
  bool fits = snprintf(out, size, "%s", text) < (int)size;
  curl_free(text);
  return fits;
}

/* Whether a URL has the endpoint's scheme, host and port. */
static bool is_own(const http *h, CURLU *address) {
  static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
  for (int i = 0; i < 3; i++) {
    char a[300], b[300];
    if (!part(h->own, parts[i], a, sizeof a) || !part(address, parts[i], b, sizeof b) || strcasecmp(a, b)) return false;
  }
  return true;
}

static http_outcome failure(http *h, CURLcode code, CURLU *address) {
  char host[300] = "the server";
  part(address, CURLUPART_HOST, host, sizeof host);
  const char *said = *h->why ? h->why : curl_easy_strerror(code);
  switch (code) {
  case CURLE_OPERATION_TIMEDOUT:
    dt_fail(h->err, DT_EIO, "%s stalled: less than %d bytes per second for %d s (DTRUN_PULL_STALL_SECONDS)", host,
            SLOWEST, h->options.stall_seconds);
    return HTTP_BROKEN;
  case CURLE_PARTIAL_FILE:
  case CURLE_RECV_ERROR:
  case CURLE_SEND_ERROR:
  case CURLE_GOT_NOTHING:
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM:
    dt_fail(h->err, DT_EIO, "the connection to %s was interrupted: %s", host, said);
    return HTTP_BROKEN;
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_RESOLVE_PROXY:
  case CURLE_COULDNT_CONNECT: dt_fail(h->err, DT_EIO, "cannot reach %s: %s", host, said); return HTTP_NOBODY;
  default: dt_fail(h->err, DT_EIO, "%s: %s", host, said); return HTTP_REFUSED;
  }
}

static http_outcome request(http *h, CURLU *address, int64_t from) {
  char range[40];
  CURL *c = h->curl;
  bool own = is_own(h, address), headers_only = !h->sink;
  h->header_bytes = 0, h->too_many_headers = h->refused = false, h->why[0] = '\0';
  snprintf(range, sizeof range, "%lld-", (long long)from);
  curl_easy_setopt(c, CURLOPT_CURLU, address);
  curl_easy_setopt(c, CURLOPT_NOBODY, headers_only ? 1L : 0L);
  if (!headers_only) curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, own ? h->with_token : NULL);
  curl_easy_setopt(c, CURLOPT_RANGE, from > 0 ? range : NULL);
  CURLcode code = curl_easy_perform(c);
  long status = 0;
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  h->head->status = status;
  if (*h->options.interrupt) {
    dt_fail(h->err, DT_EIO, "interrupted");
    return HTTP_REFUSED;
  }
  if (h->too_many_headers) {
    dt_fail(h->err, DT_EIO, "the server sent more than %d bytes of headers: refused", MOST_HEADERS);
    return HTTP_REFUSED;
  }
  if (h->refused) return HTTP_REFUSED;
  bool body_left = code == CURLE_WRITE_ERROR && status != 200 && status != 206;
  return code == CURLE_OK || body_left ? HTTP_DONE : failure(h, code, address);
}

/* ---- redirects --------------------------------------------------------------------------------------------------- */

static bool is_redirect(const http *h) {
  long s = h->head->status;
  return (s == 301 || s == 302 || s == 303 || s == 307 || s == 308) && *h->location;
}

/* Replaces the URL by the one in the answer. */
static bool follow(http *h, CURLU *address) {
  char before[16] = "", after[16] = "";
  part(address, CURLUPART_SCHEME, before, sizeof before);
  if (curl_url_set(address, CURLUPART_URL, h->location, 0) || !part(address, CURLUPART_SCHEME, after, sizeof after)) {
    dt_fail(h->err, DT_EIO, "a redirect to an invalid URL: %.200s", h->location);
    return false;
  }
  bool safe = strcmp(before, after) == 0 || strcmp(after, "https") == 0;
  if (!safe) dt_fail(h->err, DT_EIO, "a redirect from %s to %s: refused", before, after);
  return safe;
}

http_outcome http_get(http *h, const char *url, int64_t from, const http_sink *sink, http_head *head, dt_error *err) {
  CURLU *address = curl_url();
  http_outcome outcome = HTTP_REFUSED;
  h->head = head, h->sink = sink, h->err = err;
  *head = (http_head){.length = -1, .range_from = -1, .total = -1, .linked_size = -1};
  dt_fail(err, DT_EINPUT, "not a valid URL: %.300s", url);
  if (!address || curl_url_set(address, CURLUPART_URL, url, 0)) {
    curl_url_cleanup(address);
    return HTTP_REFUSED;
  }
  for (int i = 0;; i++) {
    outcome = request(h, address, from);
    if (outcome != HTTP_DONE || !is_redirect(h) || (!sink && *head->linked_etag)) break;
    outcome = HTTP_REFUSED;
    if (i == MOST_REDIRECTS) dt_fail(err, DT_EIO, "more than %d redirects: refused", MOST_REDIRECTS);
    if (i == MOST_REDIRECTS || !follow(h, address)) break;
  }
  curl_url_cleanup(address);
  return outcome;
}

/* ---- a whole body ------------------------------------------------------------------------------------------------ */

typedef struct {
  char *bytes;
  size_t len, room, most;
} body;

static dt_status keep(void *user, const http_head *head, const char *bytes, size_t n, dt_error *err) {
  body *b = user;
  (void)head;
  if (n > b->most - b->len)
    return dt_fail(err, DT_EIO, "the server sent an answer of more than %zu bytes: refused", b->most);
  if (b->len + n >= b->room) {
    char *grown = realloc(b->bytes, 2 * (b->len + n));
    if (!grown) return dt_fail_memory(err, "an answer", 2 * (b->len + n));
    b->bytes = grown, b->room = 2 * (b->len + n);
  }
  memcpy(b->bytes + b->len, bytes, n);
  b->bytes[b->len += n] = '\0';
  return DT_OK;
}

http_outcome http_read(http *h, const char *url, size_t most, char **bytes, size_t *len, http_head *head,
                       dt_error *err) {
  body b = {.most = most};
  http_sink sink = {keep, &b};
  curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, (long)SHORT_STALLS * h->options.stall_seconds);
  http_outcome outcome = http_get(h, url, 0, &sink, head, err);
  curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, 0L);
  *bytes = b.bytes, *len = b.len;
  return outcome;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static dt_status set_up(http *h, dt_error *err) {
  const http_options *o = &h->options;
  const char *authorities = getenv("SSL_CERT_FILE");
  CURL *c = h->curl = curl_easy_init();
  h->own = curl_url();
  if (!c || !h->own) return dt_fail_memory(err, "a connection", sizeof *h);
  if (curl_url_set(h->own, CURLUPART_URL, o->endpoint, 0))
    return dt_fail(err, DT_EINPUT, "HF_ENDPOINT '%.200s': expected a URL such as https://huggingface.co", o->endpoint);
  if (o->token) {
    char line[4200];
    snprintf(line, sizeof line, "Authorization: Bearer %s", o->token);
    if (!(h->with_token = curl_slist_append(NULL, line))) return dt_fail_memory(err, "a header", sizeof line);
  }
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
  curl_easy_setopt(c, CURLOPT_USERAGENT, "dtrun/" DTRUN_VERSION);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->why);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)o->stall_seconds);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)SLOWEST);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)o->stall_seconds);
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, h);
  if (authorities && *authorities) curl_easy_setopt(c, CURLOPT_CAINFO, authorities);
  return DT_OK;
}

dt_status http_open(const http_options *options, http **out, dt_error *err) {
  *out = NULL;
  if (curl_global_init(CURL_GLOBAL_DEFAULT)) return dt_fail(err, DT_EIO, "libcurl cannot be initialized");
  http *h = calloc(1, sizeof *h);
  if (!h) return dt_fail_memory(err, "a connection", sizeof *h);
  h->options = *options;
  dt_status status = set_up(h, err);
  if (status)
    http_close(h);
  else
    *out = h;
  return status;
}

void http_close(http *h) {
  if (!h) return;
  curl_easy_cleanup(h->curl);
  curl_url_cleanup(h->own);
  curl_slist_free_all(h->with_token);
  free(h);
}

bool http_address(char url[HTTP_URL], const char *endpoint, const char *path, const char *file) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/";
  int n = snprintf(url, HTTP_URL, "%s%s", endpoint, path);
  for (; *file && n < HTTP_URL - 4; file++)
    n += snprintf(url + n, (size_t)(HTTP_URL - n), strchr(plain, *file) ? "%c" : "%%%02X", (unsigned char)*file);
  return n < HTTP_URL - 4;
}
