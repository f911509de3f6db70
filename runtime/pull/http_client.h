/* HTTP requests, with libcurl. Every request ends, whatever the server does, since headers, redirects and silence have
 * limits. A token is sent only to the endpoint's own host. */
#ifndef PULL_HTTP_CLIENT_H
#define PULL_HTTP_CLIENT_H

#include "system/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_URL 8192 /* maximum length of a URL; signed URLs are long */

typedef struct http http;

typedef struct {
  const char *endpoint;                   /* "https://huggingface.co", without a '/' at its end */
  const char *token;                      /* or NULL */
  int stall_seconds;                      /* ends a request after this time with less than 1 KiB per second */
  const volatile sig_atomic_t *interrupt; /* ends a request when it is not 0 */
} http_options;

/* The headers of the last answer; a number is -1 if its header is missing. */
typedef struct {
  long status;
  int64_t length;            /* of the body that follows */
  int64_t range_from, total; /* of Content-Range */
  int64_t linked_size;       /* size of the file to which the answer links, and */
  char linked_etag[80];      /* its hash; both hashes are without quotes, and "" if missing */
  char etag[80];
} http_head;

/* Receives n bytes of the body; a failure ends the request. */
typedef struct {
  dt_status (*take)(void *user, const http_head *head, const char *bytes, size_t n, dt_error *err);
  void *user;
} http_sink;

typedef enum {
  HTTP_DONE,
  HTTP_BROKEN,  /* the connection ended or stalled; bytes received before are valid */
  HTTP_REFUSED, /* the sink failed, or the server broke a rule */
  HTTP_NOBODY   /* the server cannot be reached */
} http_outcome;

dt_status http_open(const http_options *options, http **out, dt_error *err); /* the options outlive it */
void http_close(http *h);                                                    /* NULL is allowed */

/* Fetches a URL of the endpoint and follows redirects. It asks for the bytes from `from` on, but the server may send
 * all. The body goes to `sink` only for the statuses 200 and 206. If sink is NULL, it requests only the headers, and
 * stops at a redirect that names hash and size. Every HTTP status, even an error, is HTTP_DONE. */
http_outcome http_get(http *h, const char *url, int64_t from, const http_sink *sink, http_head *head, dt_error *err);

/* The same for a whole body of at most `most` bytes. *bytes is malloc'd, with a NUL after it. */
http_outcome http_read(http *h, const char *url, size_t most, char **bytes, size_t *len, http_head *head,
                       dt_error *err);

/* Writes the URL ENDPOINT PATH FILE, with the file's name percent-encoded. False: it is too long. */
bool http_address(char url[HTTP_URL], const char *endpoint, const char *path, const char *file);

#endif
