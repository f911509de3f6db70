/* HTTP with libmicrohttpd: see serve.h. Each connection has a thread, which may wait; routes.c gives the answers. A
 * client that leaves during a stream is noticed when the next piece or ping is written; a client that waits for a whole
 * answer is noticed by looking at its connection. */
#include "serve/http.h"
#include "serve/api.h"
#include "serve/page.h"
#include "system/os.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MOST_BODY (8u << 20)  /* maximum number of bytes of a body */
#define MOST_CONNECTIONS 1024 /* more than wait in the queue, so that others can ask for /health */
#define IDLE_SECONDS 30       /* seconds that a client may take between two bytes of a request */
#define PING_MS 1000.0
#define LOOK_MS 200.0
#define GRACE_MS 10000.0
#define LAST_MS 1000.0 /* time for sending the last bytes of answers */

struct server {
  serve_options options;
  pthread_mutex_t says; /* held while a line is printed */
  struct MHD_Daemon *daemon;
  int port;
  pthread_rwlock_t lock; /* protects the members below, which requests read */
  routes *routes;        /* NULL: the model is loading */
};

/* A request, until its answer has been sent. */
typedef struct {
  const server *server;
  char *body;
  size_t len, room;
  bool too_long;
  bool refused;    /* refused because of its headers: the body is dropped */
  char asked[160]; /* for its line in the log: its method and path, */
  double begun;    /* the time at which it came, */
  int status;      /* the status of its answer (0: the client has left), */
  char said[256];  /* and the reason of the refusal or a summary of its texts */
  bool early;      /* it came while the model was loading */
  bool failed;     /* its answer failed after part of it had been sent */
} incoming;

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* Returns the origin of the web page that sends the request, if --cors allows it; NULL: it does not, or no web page
 * sends it. */
static const char *welcome_origin(const server *s, struct MHD_Connection *c) {
  const char *origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
  for (int i = 0; origin && i < s->options.n_origins; i++) {
    if (strcmp(s->options.origins[i], "*") == 0) return "*";
    if (strcasecmp(s->options.origins[i], origin) == 0) return origin;
  }
  return NULL;
}

/* Sends an answer and takes ownership of it. */
static enum MHD_Result send_answer(struct MHD_Connection *c, incoming *in, int status, struct MHD_Response *r) {
  if (!r) return MHD_NO;
  const char *origin = welcome_origin(in->server, c);
  if (origin) MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, origin);
  if (in->server->options.n_origins) MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, "Origin");
  in->status = status;
  enum MHD_Result sent = MHD_queue_response(c, (unsigned)status, r);
  MHD_destroy_response(r);
  return sent;
}

static enum MHD_Result respond_json(struct MHD_Connection *c, incoming *in, int status, const char *type,
                                    json_text *out) {
  size_t len = out->len;
  char *text = json_finish(out);
  struct MHD_Response *r = text ? MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE) : NULL;
  if (!r) {
    free(text); /* out of memory: the connection is closed */
    return MHD_NO;
  }
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (status == 401) MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
  if (status == 503) MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
  return send_answer(c, in, status, r);
}

static enum MHD_Result respond_refusal(struct MHD_Connection *c, incoming *in, const refusal *why) {
  json_text out = {0};
  const char *url = strchr(in->asked, ' ');
  route_refuse(url ? url + 1 : "", why, &out);
  snprintf(in->said, sizeof in->said, ": %.250s", why->message);
  return respond_json(c, in, why->status, "application/json", &out);
}

/* Sends a file of the page; 304: the browser already has it. */
static enum MHD_Result respond_page(struct MHD_Connection *c, incoming *in, const page_file *f) {
  const char *has = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
  bool known = has && strstr(has, f->tag);
  struct MHD_Response *r =
      MHD_create_response_from_buffer(known ? 0 : f->len, (void *)(uintptr_t)f->bytes, MHD_RESPMEM_PERSISTENT);
  if (!r) return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, f->type);
  MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, f->tag);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
  MHD_add_response_header(r, "Content-Security-Policy", page_policy);
  MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
  return send_answer(c, in, known ? 304 : 200, r);
}

/* Answers what a browser asks before it sends a web page's request: which methods and headers are allowed. */
static enum MHD_Result respond_options(struct MHD_Connection *c, incoming *in) {
  static const char methods[] = "GET, HEAD, POST, OPTIONS";
  const char *headers = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Access-Control-Request-Headers");
  struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
  if (!r) return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, methods);
  if (welcome_origin(in->server, c)) {
    MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, methods);
    MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS,
                            headers ? headers : "Authorization, Content-Type, X-Api-Key");
    MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "600");
    MHD_add_response_header(r, "Access-Control-Allow-Private-Network", "true");
  }
  return send_answer(c, in, 204, r);
}

/* ---- tickets ----------------------------------------------------------------------------------------------------- */

static bool has_left(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
  return !info || os_peer_left(info->connect_fd);
}

/* Keeps the summary of a request's texts for its line in the log. */
static void note_texts(incoming *in, ticket *t) {
  char said[sizeof in->said];
  in->failed = !ticket_say(t, said, sizeof said);
  snprintf(in->said, sizeof in->said, ": %.250s", said);
}

/* A stream that is being sent. */
typedef struct {
  struct MHD_Connection *connection;
  ticket *ticket;
  incoming *in; /* lasts while the stream is read */
} stream;

static ssize_t read_stream(void *user, uint64_t at, char *bytes, size_t size) {
  const stream *s = user;
  const char *ping = ticket_ask(s->ticket)->api->ping;
  (void)at;
  long n = ticket_read(s->ticket, bytes, size, PING_MS);
  if (n < 0) {
    note_texts(s->in, s->ticket);
    return MHD_CONTENT_READER_END_OF_STREAM;
  }
  if (n > 0) return n;
  if (!ping && has_left(s->connection)) return MHD_CONTENT_READER_END_WITH_ERROR;
  const size_t len = ping ? strlen(ping) : 0;
  if (size < len) return 0;
  memcpy(bytes, ping ? ping : "", len);
  return (ssize_t)len;
}

static void leave(void *user) {
  stream *s = user;
  ticket_leave(s->ticket);
  free(s);
}

static enum MHD_Result respond_stream(struct MHD_Connection *c, incoming *in, ticket *t) {
  stream *s = malloc(sizeof *s);
  struct MHD_Response *r = s ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, s, leave) : NULL;
  if (!r) {
    free(s);
    ticket_leave(t);
    return MHD_NO;
  }
  *s = (stream){c, t, in};
  snprintf(in->said, sizeof in->said, ": the client has left"); /* replaced if the client reads to the end */
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, ticket_ask(t)->api->stream_type);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
  return send_answer(c, in, 200, r); /* the ticket is left after the answer was sent */
}

static enum MHD_Result respond_ticket(struct MHD_Connection *c, incoming *in, ticket *t) {
  refusal why;
  json_text out = {0};
  ticket_state state;
  while ((state = ticket_wait(t, LOOK_MS, &why)) == TICKET_WAITS)
    if (has_left(c)) {
      ticket_leave(t);
      return MHD_NO;
    }
  if (state == TICKET_GOES && ticket_ask(t)->stream) return respond_stream(c, in, t);
  if (state == TICKET_GOES) ticket_answer(t, &out), note_texts(in, t);
  ticket_leave(t);
  return state == TICKET_GOES ? respond_json(c, in, 200, "application/json", &out) : respond_refusal(c, in, &why);
}

/* ---- who may ask ------------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *text, size_t n, const char *const *names) {
  for (; *names; names++)
    if (strlen(*names) == n && strncasecmp(text, *names, n) == 0) return true;
  return false;
}

/* Returns whether a header's host is this server. Without this check a web page could reach this server after its owner
 * pointed the name of its own site to this machine (DNS rebinding). */
static bool is_own_host(const server *s, const char *host) {
  const char *const own[] = {"localhost", "127.0.0.1", "[::1]", s->options.host, NULL};
  const char *end = *host == '[' ? strchr(host, ']') : NULL;
  size_t n = end ? (size_t)(end + 1 - host) : strcspn(host, ":/");
  return is_one_of(host, n, own);
}

bool serve_is_local(const char *host) {
  static const char *const local[] = {"localhost", "127.0.0.1", "::1", NULL};
  return is_one_of(host, strlen(host), local);
}

/* Web pages of other sites send their Origin. Without this check any web page could use this server. */
static bool is_foreign(const server *s, struct MHD_Connection *c) {
  const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
  const char *origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
  const char *at = origin ? strstr(origin, "://") : NULL;
  const bool local = serve_is_local(s->options.host);
  if (local && host && !is_own_host(s, host)) return true;
  if (!origin || welcome_origin(s, c)) return false;
  if (!at) return true;
  return !is_own_host(s, at + 3) && !(host && !local && strcmp(at + 3, host) == 0);
}

/* Compares two keys in a time that does not depend on where they differ. */
static bool is_key(const char *key, const char *given) {
  size_t n = strlen(key), m = strlen(given);
  unsigned char differs = n != m;
  for (size_t i = 0; i < n; i++) differs |= (unsigned char)(key[i] ^ given[m ? i % m : 0]);
  return !differs;
}

static bool has_key(const server *s, struct MHD_Connection *c) {
  static const char bearer[] = "Bearer ";
  const char *given = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
  const char *other = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "X-Api-Key");
  if (!s->options.key) return true;
  if (given && strncasecmp(given, bearer, sizeof bearer - 1) == 0)
    return is_key(s->options.key, given + sizeof bearer - 1);
  return other && is_key(s->options.key, other);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* Returns whether a request is refused because of its headers. */
static bool is_refused(const server *s, struct MHD_Connection *c, const route *r, refusal *why) {
  if (is_foreign(s, c))
    *why = refusal_say(403, "invalid_request_error",
                       "the Host or Origin is another site's: this server only answers requests to its own address");
  else if (r && !route_is_public(r) && !has_key(s, c))
    *why = refusal_say(401, "authentication_error",
                       "the key is missing or wrong: send the header Authorization: Bearer KEY");
  else
    return !r; /* route_find has set *why */
  return true;
}

static enum MHD_Result answer(server *s, struct MHD_Connection *c, const char *method, const char *url, incoming *in) {
  refusal why;
  route_answer out = {.status = 200, .type = "application/json", .url = url};
  const route *r = route_find(method, url, &why);
  const page_file *page = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ? page_find(url) : NULL;
  if (page && !is_foreign(s, c)) return respond_page(c, in, page);
  if (strcmp(method, "OPTIONS") == 0 && !is_foreign(s, c)) return respond_options(c, in);
  if (is_refused(s, c, r, &why)) return respond_refusal(c, in, &why);
  if (in->too_long) {
    why = refusal_say(413, INVALID, "the body is longer than 8 MiB");
    return respond_refusal(c, in, &why);
  }
  pthread_rwlock_rdlock(&s->lock);
  bool loads = !s->routes;
  bool fine = !loads && route_run(r, s->routes, in->body ? in->body : "", in->len, &out, &why);
  pthread_rwlock_unlock(&s->lock);
  in->early = loads;
  if (loads) why = refusal_say(503, "unavailable_error", "the model is loading");
  if (!fine) {
    free(json_finish(&out.text));
    return respond_refusal(c, in, &why);
  }
  return out.ticket ? respond_ticket(c, in, out.ticket) : respond_json(c, in, out.status, out.type, &out.text);
}

static bool add_body(incoming *in, const char *bytes, size_t n) {
  if (in->refused) return true;
  if (in->too_long || n > MOST_BODY - in->len) {
    in->too_long = true;
    return true;
  }
  if (in->len + n + 1 > in->room) {
    size_t room = 2 * (in->len + n) + 1;
    char *grown = realloc(in->body, room);
    if (!grown) return false;
    in->body = grown, in->room = room;
  }
  memcpy(in->body + in->len, bytes, n);
  in->len += n;
  in->body[in->len] = 0;
  return true;
}

static enum MHD_Result take(void *user, struct MHD_Connection *c, const char *url, const char *method,
                            const char *version, const char *bytes, size_t *n, void **state) {
  (void)version;
  if (!*state) {
    refusal why;
    incoming *in = *state = calloc(1, sizeof *in);
    if (!in) return MHD_NO;
    in->server = user;
    in->begun = dt_clock_ms();
    snprintf(in->asked, sizeof in->asked, "%.20s %.130s", method, url);
    in->refused = is_refused(user, c, route_find(method, url, &why), &why);
    return MHD_YES;
  }
  if (*n) {
    bool fine = add_body(*state, bytes, *n);
    *n = 0;
    return fine ? MHD_YES : MHD_NO;
  }
  return answer(user, c, method, url, *state);
}

/* Prints a line about a request after its answer was sent: method, path, status, time, and the reason of a refusal or a
 * summary of its texts. */
static void say_line(server *s, const incoming *in) {
  char line[512];
  const bool refused = in->failed || (in->status >= 400 && !in->early); /* clients that wait for the model ask often */
  if (!s->options.say || !(refused || s->options.says_all)) return;
  snprintf(line, sizeof line, "%s %d in %.0f ms%s", in->asked, in->status ? in->status : 499, dt_clock_ms() - in->begun,
           in->status ? in->said : ": the client has left");
  pthread_mutex_lock(&s->says);
  s->options.say(line);
  pthread_mutex_unlock(&s->says);
}

static void forget(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why) {
  incoming *in = *state;
  (void)c, (void)why;
  if (!in) return;
  say_line(user, in);
  free(in->body);
  free(in);
  *state = NULL;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

dt_status serve_open(const serve_options *o, server **out, dt_error *err) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
  char port[16];
  snprintf(port, sizeof port, "%d", o->port);
  int lost = getaddrinfo(o->host, port, &hints, &found);
  if (lost) return dt_fail(err, DT_EINPUT, "--host %.100s: %s", o->host, gai_strerror(lost));
  server *s = calloc(1, sizeof *s);
  if (!s) {
    freeaddrinfo(found);
    return dt_fail_memory(err, "a server", sizeof *s);
  }
  s->options = *o;
  pthread_rwlock_init(&s->lock, NULL);
  pthread_mutex_init(&s->says, NULL);
  unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
  if (found->ai_family == AF_INET6) flags |= MHD_USE_IPv6;
  s->daemon =
      MHD_start_daemon(flags, (uint16_t)o->port, NULL, NULL, take, s, MHD_OPTION_SOCK_ADDR, found->ai_addr,
                       MHD_OPTION_NOTIFY_COMPLETED, forget, s, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS,
                       MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
  int reason = errno;
  freeaddrinfo(found);
  if (!s->daemon) {
    serve_close(s);
    return dt_fail(err, DT_EINPUT, "cannot listen at %.100s, port %d: %s", o->host, o->port, strerror(reason));
  }
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
  s->port = info && info->port ? info->port : o->port;
  *out = s;
  return DT_OK;
}

int serve_port(const server *s) { return s->port; }

static void set_routes(server *s, routes *r) {
  pthread_rwlock_wrlock(&s->lock);
  s->routes = r;
  pthread_rwlock_unlock(&s->lock);
}

static unsigned connections(const server *s) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  return info ? info->num_connections : 0;
}

dt_status serve_run(server *s, const serve_pair *what, const volatile sig_atomic_t *stop, void (*ready)(void *user),
                    void *user, dt_error *err) {
  routes *r;
  dt_status status = routes_open(&s->options, what, &r, err);
  if (status) return status;
  set_routes(s, r);
  ready(user);
  while (!*stop) poll(NULL, 0, 100); /* returns at once after a signal */
  routes_stop(r, GRACE_MS);
  for (double until = dt_clock_ms() + LAST_MS; dt_clock_ms() < until && connections(s);) poll(NULL, 0, 10);
  MHD_stop_daemon(s->daemon); /* waits for all connections, which have their answers by now */
  s->daemon = NULL;
  set_routes(s, NULL);
  routes_close(r);
  return DT_OK;
}

void serve_close(server *s) {
  if (!s) return;
  if (s->daemon) MHD_stop_daemon(s->daemon);
  pthread_rwlock_destroy(&s->lock);
  pthread_mutex_destroy(&s->says);
  free(s);
}
