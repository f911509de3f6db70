/* dtrun-pull CACHE ORG/NAME[:SPEC]: downloads a model from Hugging Face into its cache, over HTTPS. `dtrun pull` runs
 * it. It is a separate program, so that dtrun starts without a network library. It prints the model's path and has
 * dtrun's exit statuses. */
#include "pull/bring.h"
#include "pull/listing.h"
#include "pull/progress_bar.h"
#include "pull/token.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_FAILED = 1, EXIT_WRONG = 2, EXIT_INTERRUPTED = 130 };
enum { PATIENCE = 60, MOST_PATIENCE = 86400, MOST_LISTED = 16 << 20 };

static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
  (void)number;
  interrupted = 1;
}

/* The handler interrupts waiting for a lock too. */
static void catch_signals(void) {
  struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
  sigaction(SIGINT, &stop, NULL);
  sigaction(SIGTERM, &stop, NULL);
  sigaction(SIGPIPE, &ignore, NULL);
  sigaction(SIGXFSZ, &ignore, NULL); /* then writing fails with an error */
}

typedef struct {
  char *id; /* ORG/NAME */
  const char *spec, *cache_root;
  char endpoint[512];
  http *http;
  listing files;
  const char *file;    /* the .gguf file, or NULL */
  wanted_file *wanted; /* [n] */
  int n;
  cache cache;
} pull;

static dt_status read_endpoint(char *out, size_t size, dt_error *err) {
  const char *set = getenv("HF_ENDPOINT");
  int n = snprintf(out, size, "%s", set && *set ? set : "https://huggingface.co");
  bool fits = n < (int)size && (strncmp(out, "https://", 8) == 0 || strncmp(out, "http://", 7) == 0);
  if (!fits) return dt_fail(err, DT_EINPUT, "HF_ENDPOINT '%.100s': expected a URL such as https://huggingface.co", out);
  while (out[n - 1] == '/') out[--n] = '\0';
  return DT_OK;
}

static dt_status read_patience(int *seconds, dt_error *err) {
  const char *set = getenv("DTRUN_PULL_STALL_SECONDS");
  char *end;
  *seconds = PATIENCE;
  if (!set || !*set) return DT_OK;
  long n = strtol(set, &end, 10);
  if (*end || n < 1 || n > MOST_PATIENCE)
    return dt_fail(err, DT_EINPUT, "DTRUN_PULL_STALL_SECONDS '%.40s': expected a whole number from 1 to %d", set,
                   MOST_PATIENCE);
  *seconds = (int)n;
  return DT_OK;
}

static dt_status read_listing(pull *p, dt_error *err) {
  char url[HTTP_URL], path[300], *bytes = NULL;
  size_t len = 0;
  http_head head;
  snprintf(path, sizeof path, "/api/models/%s/revision/main", p->id);
  http_address(url, p->endpoint, path, "");
  dt_status status = http_read(p->http, url, MOST_LISTED, &bytes, &len, &head, err) == HTTP_DONE ? DT_OK : DT_EIO;
  if (!status) status = bring_status(head.status, p->id, err);
  if (!status) status = listing_read(p->id, bytes ? bytes : "", len, &p->files, err);
  if (!status) status = listing_choose(&p->files, p->id, p->spec, &p->file, err);
  free(bytes);
  return status;
}

static dt_status ask_for_facts(pull *p, dt_error *err) {
  char path[400];
  p->wanted = calloc((size_t)p->files.n + 1, sizeof *p->wanted);
  if (!p->wanted) return dt_fail_memory(err, "a list of files", (size_t)p->files.n * sizeof *p->wanted);
  snprintf(path, sizeof path, "/%s/resolve/%s/", p->id, p->files.commit);
  for (int i = 0; i < p->files.n; i++) {
    if (!p->files.wanted[i]) continue;
    wanted_file *f = &p->wanted[p->n++];
    f->name = p->files.names[i];
    if (!http_address(f->url, p->endpoint, path, f->name))
      return dt_fail(err, DT_EIO, "%.100s..: the path is too long", f->name);
    dt_status status = bring_facts(p->http, f, err);
    if (status) return status;
  }
  return DT_OK;
}

/* Sizes come from the server and may be any number, so the sum is bounded. */
static dt_status check_room(const pull *p, dt_error *err) {
  int64_t missing = 0;
  for (int i = 0; i < p->n; i++) {
    int64_t size = p->wanted[i].size - cache_have(&p->cache, p->wanted[i].hash, p->wanted[i].size);
    missing = size > INT64_MAX - missing ? INT64_MAX : missing + size;
  }
  return cache_check_room(&p->cache, missing, err);
}

static dt_status bring_all(pull *p, dt_error *err) {
  dt_status status = read_listing(p, err);
  if (!status) status = ask_for_facts(p, err);
  if (!status) status = cache_open(p->cache_root, p->id, p->files.commit, &p->cache, err);
  if (!status) status = check_room(p, err);
  for (int i = 0; i < p->n && !status; i++) status = bring_file(p->http, &p->cache, &p->wanted[i], err);
  return status ? status : cache_name_commit(&p->cache, err);
}

static void tell(const pull *p) {
  const char *spec = p->spec ? p->spec : p->file ? p->file : "";
  printf("%s/snapshots/%s%s%s\n", p->cache.folder, p->cache.commit, p->file ? "/" : "", p->file ? p->file : "");
  say("run it with -m %s%s%s", p->id, *spec ? ":" : "", spec);
}

static dt_status run(pull *p, dt_error *err) {
  char *token = NULL;
  http_options how = {.endpoint = p->endpoint, .interrupt = &interrupted};
  dt_status status = read_endpoint(p->endpoint, sizeof p->endpoint, err);
  if (!status) status = read_patience(&how.stall_seconds, err);
  if (!status) status = token_read(&token, err);
  how.token = token;
  if (!status) status = http_open(&how, &p->http, err);
  if (!status) status = bring_all(p, err);
  if (!status) tell(p);
  http_close(p->http);
  free(token);
  return status;
}

int main(int argc, char **argv) {
  pull p = {0};
  dt_error err = {0};
  if (argc != 3 || !(p.id = strdup(argv[2]))) return say("usage: dtrun-pull CACHE ORG/NAME[:SPEC]"), EXIT_WRONG;
  char *colon = strchr(p.id, ':');
  if (colon) *colon = '\0';
  p.spec = colon ? colon + 1 : NULL;
  p.cache_root = argv[1];
  catch_signals();
  dt_status status = DT_EINPUT;
  if (!listing_is_id(p.id) || (p.spec && !*p.spec))
    dt_fail(&err, DT_EINPUT, "'%.200s' is not the id of a model, such as OWNER/NAME or OWNER/NAME:Q4_K_M", argv[2]);
  else
    status = run(&p, &err);
  if (status && interrupted)
    say("interrupted: dtrun pull %s continues from there", argv[2]);
  else if (status)
    say("%s", err.message);
  listing_free(&p.files);
  free(p.wanted), free(p.id);
  if (!status) return fflush(stdout) ? EXIT_FAILED : 0;
  return interrupted ? EXIT_INTERRUPTED : status == DT_EINPUT ? EXIT_WRONG : EXIT_FAILED;
}
