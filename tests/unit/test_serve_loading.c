/* While its models load, a server answers "loading" with status 503, at once. */
#include "unit.h"

#include "serve/serve.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends a request, and reads as much of the answer as fits. */
static void ask(int port, const char *request, char *answer, size_t size) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  size_t n = 0;
  ssize_t got;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(send(fd, request, strlen(request), 0), (ssize_t)strlen(request));
  while (n + 1 < size && (got = recv(fd, answer + n, size - n - 1, 0)) > 0) n += (size_t)got;
  answer[n] = 0;
  close(fd);
}

static void it_answers_503_while_it_loads(void **state) {
  static const char *const requests[] = {
      "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer k\r\n"
      "Content-Length: 2\r\n\r\n{}"};
  char answer[2000];
  server *s;
  (void)state;
  ok(serve_open(&(serve_options){.host = "127.0.0.1", .key = "k"}, &s, &err));
  for (int i = 0; i < 3; i++) {
    ask(serve_port(s), requests[i], answer, sizeof answer);
    assert_non_null(strstr(answer, "HTTP/1.1 503"));
    assert_non_null(strstr(answer, "Retry-After: 1"));
    assert_non_null(strstr(answer, "the model is loading"));
    assert_non_null(strstr(answer, "unavailable_error"));
  }
  ask(serve_port(s),
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", answer,
      sizeof answer);
  assert_non_null(strstr(answer, "HTTP/1.1 401"));
  fails(serve_open(&(serve_options){.host = "127.0.0.1", .port = serve_port(s)}, &(server *){NULL}, &err), DT_EINPUT,
        "Address already in use");
  serve_close(s);
  serve_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(it_answers_503_while_it_loads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
