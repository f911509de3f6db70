/* The program dtrun-serve, into which dtrun serve turns: it makes the models of a command line available over HTTP. */
#include "cli/complain.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/limits.h"
#include "serve/serve.h"
#include "system/os.h"

#include <string.h>

#define HOST "127.0.0.1"
#define PORT 8080
#define QUEUE 64
#define CACHE_MIB 1024

/* Returns the name of an option that belongs into requests or that a server cannot use. */
static const char *misplaced(const cli_options *o) {
  return o->n_files || o->n_texts || o->prompts               ? "--prompt, --text and --prompts"
         : o->compare                                         ? "--compare"
         : o->json                                            ? "--json"
         : o->trace                                           ? "--trace"
         : cli_given(o, "--logprobs")                         ? "--logprobs and --echo"
         : cli_given(o, "--answers")                          ? "--answers"
         : cli_given(o, "--stop")                             ? "--stop"
         : cli_given(o, "--logit-bias")                       ? "--logit-bias"
         : o->in.grammar || o->grammar_file || o->schema_file ? "grammars and schemas"
         : o->system || o->chat                               ? "--chat and --system"
         : cli_given(o, "--window")                           ? "--window"
         : o->in.costs && strcmp(o->in.costs, "table") == 0   ? "--costs table"
                                                              : NULL;
}

/* Returns the model's first name for clients: the given one, or the value of -m, or the last part of its path. */
static const char *name_of(const job *j) {
  if (j->options->n_served) return j->options->served[0];
  const char *path = j->options->in.load.target ? j->options->in.load.target : j->target, *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

typedef struct {
  const job *job;
  const server *server;
  const serve_options *options;
} announcement;

static void announce(void *user) {
  const announcement *a = user;
  const char *host = a->options->host;
  bool v6 = strchr(host, ':');
  if (!a->job->options->quiet)
    say("serving %s under %s at http://%s%s%s:%d (a page for browsers; /v1 for programs), %d texts at once; Ctrl-C "
        "ends",
        name_of(a->job), dtl_policy_describe(a->job->policy)->name, v6 ? "[" : "", host, v6 ? "]" : "",
        serve_port(a->server), a->options->slots);
}

/* Writes the port into a file, for programs that asked for any free port. */
static int write_port(const cli_options *o, const server *s) {
  FILE *file = o->port_file ? fopen(o->port_file, "w") : NULL;
  if (!o->port_file) return 0;
  bool written = file && fprintf(file, "%d\n", serve_port(s)) > 0;
  if (file && fclose(file)) written = false;
  return written ? 0 : complain(EXIT_ENGINE, "--port-file %s cannot be written", o->port_file);
}

static int run(const job *j, server *s, const serve_options *options) {
  const cli_options *o = j->options;
  dt_pair_info info;
  dt_error err;
  const char *name = name_of(j);
  dt_pair_describe(j->pair, &info);
  dtl_request defaults = {.memory = j->memory, .corpus = j->corpus, .begin_line = begin_line};
  defaults.seq = job_request(j).seq;
  defaults.seq.n_stop = 0, defaults.seq.stop = NULL;
  if (!o->in.request.seq.max_tokens) defaults.seq.max_tokens = -1;
  if (!request_limits_reasoning(&o->in)) defaults.seq.adjustments.reasoning.tokens = -1;
  serve_pair what = {.pair = j->pair,
                     .models = o->n_served ? o->served : &name,
                     .n_models = o->n_served ? o->n_served : 1,
                     .chat = o->template,
                     .think = o->think,
                     .variables = o->variables,
                     .template_raw = o->template_raw,
                     .policy = j->policy,
                     .defaults = defaults,
                     .context = o->in.request.context ? o->in.request.context : info.context,
                     .learned = j->learned};
  announcement a = {j, s, options};
  return serve_run(s, &what, &interrupted, announce, &a, &err) ? complain_of(&err) : 0;
}

static void say_line(const char *line) { say("%s", line); }

/* Says who can use the server if that may be more clients than intended. */
static void warn_of_strangers(const cli_options *o, const serve_options *s) {
  bool any = false;
  for (int i = 0; i < o->n_origins; i++) any = any || strcmp(o->origins[i], "*") == 0;
  if (!o->quiet && !s->key && !serve_is_local(s->host))
    complain(0, "--host %s without --api-key: anyone who can reach that address can use this server", s->host);
  if (!o->quiet && any)
    complain(0, "--cors '*': web pages of any site can use this server%s", s->key ? " if they have its key" : "");
}

static int serve(cli_options *o) {
  serve_options options = {.host = o->host ? o->host : HOST,
                           .port = o->port >= 0 ? o->port : PORT,
                           .key = o->key,
                           .slots = o->in.request.slots ? o->in.request.slots : SLOTS,
                           .queue = o->queue ? o->queue : QUEUE,
                           .seconds = o->timeout,
                           .prefix_cache_bytes = (size_t)(o->cache_ram >= 0 ? o->cache_ram : CACHE_MIB) << 20,
                           .origins = o->origins,
                           .n_origins = o->n_origins,
                           .say = o->quiet ? NULL : say_line,
                           .says_all = o->verbose};
  server *s;
  job j;
  dt_error err;
  if (misplaced(o)) return complain(EXIT_USAGE, "serve does not take %s: requests may have them", misplaced(o));
  if (serve_open(&options, &s, &err)) return complain_of(&err);
  warn_of_strangers(o, &options);
  int status = write_port(o, s);
  if (!status) status = job_open_server(o, &j);
  if (!status) status = run(&j, s, &options);
  serve_close(s);
  int closed = job_close(&j);
  return status ? status : closed;
}

int main(int argc, char **argv) {
  cli_options o;
  dt_error err;
  int status = limits_check();
  if (status) return status;
  catch_stop();
  os_keep_heaps_small(); /* each connection has a thread */
  if (cli_parse(argc - 1, argv + 1, &o, &err)) {
    status = complain_of(&err);
  } else if (o.help) {
    print_help();
    status = finish_output(0);
  } else {
    status = serve(&o);
  }
  cli_free(&o);
  return status;
}
