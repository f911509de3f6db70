/* Requests over HTTP, with libcurl. Every request ends, whatever the server does: headers, redirects and silence have
 * limits. A token goes to the endpoint's own host only. */
#ifndef PULL_HTTP_CLIENT_H
#define PULL_HTTP_CLIENT_H

#include "system/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_URL 8192 /* bytes of an address; signed ones are long */

typedef struct http http;

typedef struct {
  const char *endpoint;                   /* "https://huggingface.co", without a '/' at its end */
  const char *token;                      /* or NULL */
  int stall_seconds;                      /* ends a request after this time with less than a KiB a second */
  const volatile sig_atomic_t *interrupt; /* ends a request */
} http_options;

/* The headers of the last answer; a number is -1 if its header is missing. */
typedef struct {
  long status;
  int64_t length;            /* of the body that follows */
  int64_t range_from, total; /* of Content-Range */
  int64_t linked_size;       /* of the file that is linked to, and its hash: */
  char linked_etag[80];      /* both "" where there is none, without quotes */
  char etag[80];
} http_head;

/* Takes n bytes of the body; a failure ends the request. */
typedef struct {
  dt_status (*take)(void *user, const http_head *head, const char *bytes, size_t n, dt_error *err);
  void *user;
} http_sink;

typedef enum {
  HTTP_DONE,
  HTTP_BROKEN,  /* the connection ended or stalled; bytes received before are good */
  HTTP_REFUSED, /* the sink failed, or the server broke a rule */
  HTTP_NOBODY   /* the server cannot be reached */
} http_outcome;

dt_status http_open(const http_options *options, http **out, dt_error *err); /* the options outlive it */
void http_close(http *h);                                                    /* NULL is allowed */

/* Fetches an address of the endpoint and follows redirects; bytes before `from` are left out if the server can. Bodies
 * of other answers than 200 and 206 are not taken. sink NULL: headers only, and a redirect that names hash and size
 * ends it. A status that is no success is HTTP_DONE all the same. */
http_outcome http_get(http *h, const char *url, int64_t from, const http_sink *sink, http_head *head, dt_error *err);

/* The same with the whole body, of at most `most` bytes: *bytes is malloc'd, with a NUL behind it. */
http_outcome http_read(http *h, const char *url, size_t most, char **bytes, size_t *len, http_head *head,
                       dt_error *err);

/* ENDPOINT PATH FILE with the file's name escaped where it must be; false: it is too long. */
bool http_address(char url[HTTP_URL], const char *endpoint, const char *path, const char *file);

#endif
