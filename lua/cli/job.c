/* Prepares the work that the command line asks for: see job.h. */
#include "cli/job.h"

#include "cli/complain.h"
#include "cli/interrupt.h"
#include "cli/result_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKENS 128

static bool wants_tuned(const cli_options *o) { return o->preset && strcmp(o->preset, DTL_TUNED) == 0; }

dtl_policy_options job_policy(const cli_options *o, const dt_pair *pair) {
  dtl_policy_options how = {.policy = o->policy, .seconds = o->policy_seconds, .interrupt = &interrupted};
  if (wants_tuned(o) && !pair) return how;
  how.preset = o->preset;
  how.pair = pair;
  how.settings = o->settings;
  how.n_settings = o->n_settings;
  return how;
}

static int open_policies(job *j) {
  const cli_options *o = j->options;
  dt_error err;
  dtl_policy_options how = job_policy(o, NULL);
  dtl_policy_options other = {.policy = o->compare, .seconds = how.seconds, .interrupt = &interrupted};
  if (dtl_policy_open(&how, &j->policy, &err)) return complain_of(&err);
  if (o->compare && dtl_policy_open(&other, &j->other, &err)) return complain_of(&err);
  return 0;
}

int job_texts(const job *j) { return j->prompts.n * j->answers; }

static int read_prompts(job *j) {
  const cli_options *o = j->options;
  dt_error err;
  dt_status status = DT_OK;
  for (int i = 0; i < o->n_texts && !status; i++) status = prompts_add_text(&j->prompts, o->texts[i], &err);
  for (int i = 0; i < o->n_files && !status; i++) status = prompts_add_file(&j->prompts, o->files[i], &err);
  if (o->prompts && !status) status = prompts_add_lines(&j->prompts, o->prompts, &err);
  if (status) return complain_of(&err);
  const dtl_request *r = &o->in.request;
  int most = r->slots ? r->slots : SLOTS;
  j->answers = r->answers ? r->answers : 1;
  j->several = o->prompts || job_texts(j) > 1;
  if (j->several) j->slots = job_texts(j) < most ? job_texts(j) : most;
  const char *of_one = o->color ? "--color" : o->explain ? "--explain" : NULL;
  if (j->several && of_one)
    return complain(EXIT_USAGE, "%s shows one text: give one prompt%s", of_one, r->answers ? ", and no --answers" : "");
  return 0;
}

static dtl_need draft_of(const dtl_policy *policy) {
  return policy ? dtl_policy_describe(policy)->draft : DTL_NO_DRAFT;
}

static bool uses_costs(const dtl_policy *policy) { return policy && dtl_policy_describe(policy)->uses_costs; }
static bool uses_corpus(const dtl_policy *policy) { return policy && dtl_policy_describe(policy)->uses_corpus; }

static void warn_of_threads(const cli_options *o) {
  int most = dt_processors(), threads = o->in.load.how.threads;
  if (threads > most && !o->quiet)
    complain(0, "--threads %d, but only %d processor%s may be used: more threads wait for each other", threads, most,
             most == 1 ? "" : "s");
}

/* Reads the file of a grammar or a schema. */
static int read_grammar_file(cli_options *o) {
  const struct {
    const char *form, *what, *file;
  } of[] = {{"grammar", "grammar", o->grammar_file}, {"json_schema", "JSON schema", o->schema_file}};
  for (int i = 0; i < 2; i++) {
    dt_error err;
    char *text = NULL;
    if (!of[i].file) continue;
    if (o->in.grammar)
      return complain(EXIT_USAGE,
                      "--grammar, --grammar-file, --json-schema, --json-schema-file, --regex: give only one of them");
    dt_status status = dtl_read_grammar(of[i].what, of[i].file, &text, &err);
    if (!status) status = request_grammar(&o->in, of[i].form, text, &err);
    free(text);
    if (status) return complain_of(&err);
  }
  if (*o->in.note && !o->quiet) say("%s", o->in.note);
  return 0;
}

/* Opens the pair. A limited draft vocabulary also gets the tokens of the prompts. chats: the target must have a layout
 * of conversations. */
static int open_models(job *j, dtl_need need, bool chats) {
  cli_options *o = j->options;
  dt_error err;
  dt_text *texts = calloc((size_t)j->prompts.n + 1, sizeof *texts);
  for (int i = 0; texts && i < j->prompts.n; i++) texts[i] = (dt_text){j->prompts.list[i].text, j->prompts.list[i].len};
  dtl_load_options load = o->in.load;
  load.need = need;
  load.texts = texts, load.n_texts = texts ? j->prompts.n : 0;
  load.chats = chats, load.layout = o->template;
  load.how.rope.context = o->in.request.context;
  load.shown = !o->quiet;
  dt_status status = dtl_load(&load, &j->pair, &j->found, &err);
  free(texts);
  if (status) request_rename(&o->in, &err);
  if (status) return complain_of(&err);
  dt_pair_info info;
  dt_pair_describe(j->pair, &info);
  j->target = info.target.path, j->draft = info.draft.path;
  warn_of_threads(o);
  return request_biases(&o->in, j->pair, &err) ? complain_of(&err) : 0;
}

/* Opens the policy again, with the preset that was found for the pair, which is open now. */
static int open_tuned(job *j) {
  dt_error err;
  if (!wants_tuned(j->options)) return 0;
  dtl_policy_close(j->policy);
  j->policy = NULL;
  dtl_policy_options how = job_policy(j->options, j->pair);
  return dtl_policy_open(&how, &j->policy, &err) ? complain_of(&err) : 0;
}

/* Opens the memory that lasts beyond a run, and the corpus, if a policy uses them. */
static int open_memory(job *j) {
  const cli_options *o = j->options;
  dt_error err;
  if (!(j->memory = dtl_memory_open())) return complain(EXIT_ENGINE, "out of memory: the memory of policies");
  if (!o->n_corpus) return 0;
  if (o->policy && !uses_corpus(j->policy) && !uses_corpus(j->other)) {
    if (!o->quiet)
      complain(0, "--corpus: the policy %s does not search in files", dtl_policy_describe(j->policy)->name);
    return 0;
  }
  return dtl_corpus_open(j->pair, o->corpus, o->n_corpus, &j->corpus, &err) ? complain_of(&err) : 0;
}

/* Opens the chat template. */
static int open_chat(job *j) {
  dt_error err;
  const char *unused;
  dt_status status = dt_pair_chat(j->pair, j->options->template, &j->chat, &err);
  if (!status) status = dtl_think(j->chat, j->options->think, &unused, &err);
  return status ? complain_of(&err) : 0;
}

dt_status job_conversation(const job *j, const dtl_message *messages, int n, int32_t **ids, int *n_ids,
                           dt_reasoning_state *reasoning, dt_error *err) {
  const cli_options *o = j->options;
  const char *settings[2] = {NULL, o->variables};
  dt_status status = dtl_think(j->chat, o->think, &settings[0], err);
  if (status) return status;
  char *json = dtl_messages_json(messages, n);
  if (!json) return dt_fail(err, DT_ENOMEM, "out of memory: the conversation");
  const bool both = settings[0] && settings[1];
  const dt_conversation conversation = {.messages = json,
                                        .settings = settings[0] ? settings : settings + 1,
                                        .n_settings = both ? 2 : settings[0] || settings[1],
                                        .tools = j->tools,
                                        .raw = o->template_raw};
  status = dtl_encode_chat(j->pair, j->chat, &conversation, ids, n_ids, reasoning, err);
  free(json);
  return status;
}

/* Turns each prompt into a conversation with one question. */
static int wrap_prompts(job *j) {
  dt_error err;
  int status = open_chat(j);
  for (int i = 0; i < j->prompts.n && !status; i++) {
    prompt_text *p = &j->prompts.list[i];
    const char *system = j->options->system;
    const dtl_message messages[] = {{.role = "system", .text = system, .len = system ? strlen(system) : 0},
                                    {.role = "user", .text = p->text, .len = p->len}};
    const int first = system ? 0 : 1;
    if (job_conversation(j, messages + first, 2 - first, &p->ids, &p->n_ids, &j->reasoning, &err))
      return complain_of(&err);
  }
  return status;
}

/* Says how options were understood if the user may have meant something else. */
static void say_what_it_means(const cli_options *o) {
  const dt_sampling *s = &o->in.request.seq.sampling;
  const char *sampler = s->top_p ? "--top-p" : s->top_k ? "--top-k" : s->min_p ? "--min-p" : NULL;
  if (o->quiet) return;
  if (o->model && access(o->model, F_OK) == 0) say("%s: taken as the model, as after -m", o->model);
  if (sampler && !s->temp) say("%s has no effect at temperature 0: give --temp", sampler);
}

/* Fills in the prompt if the command line gives none: standard input. At a terminal that is an error. */
static int complete_prompts(cli_options *o) {
  if (o->n_files && o->n_texts) return complain(EXIT_USAGE, "two prompts: give --prompt or --text, not both");
  if (o->n_files || o->n_texts || o->prompts) return 0;
  if (isatty(STDIN_FILENO))
    return complain(EXIT_USAGE, "no prompt: give --text TEXT, --prompt FILE or --prompts FILE.jsonl, or pipe a text "
                                "in; 'dtrun chat' starts a conversation; see dtrun --help");
  o->files[o->n_files++] = "-";
  return 0;
}

/* Fills in the policy if the command line names none: rate, which needs no parameters and no draft model. False: a
 * policy was named. */
static bool complete_policy(cli_options *o) {
  if (o->policy) return false;
  o->policy = "rate";
  return true;
}

/* Log-probabilities are written into results only. */
static int check_logprobs(const cli_options *o) {
  if (o->in.request.seq.logprobs.wanted && !o->json)
    return complain(EXIT_USAGE,
                    "--logprobs are written into the result: give --json FILE, or --json - for standard output");
  return 0;
}

/* Refuses options that only a server has. */
static int check_server_options(const cli_options *o) {
  const char *name = o->host             ? "--host"
                     : o->port >= 0      ? "--port"
                     : o->port_file      ? "--port-file"
                     : o->key            ? "--api-key"
                     : o->n_origins      ? "--cors"
                     : o->n_served       ? "--served-model-name"
                     : o->queue          ? "--queue"
                     : o->timeout        ? "--timeout"
                     : o->cache_ram >= 0 ? "--cache-ram"
                                         : NULL;
  return name ? complain(EXIT_USAGE, "%s is an option of dtrun serve", name) : 0;
}

static int refuse_tools(const cli_options *o) {
  const char *name = o->tools ? "--tools" : o->tool_command ? "--tool-command" : NULL;
  return name ? complain(EXIT_USAGE, "%s is an option of dtrun chat; requests to dtrun serve bring their tools", name)
              : 0;
}

/* What a job is for: its texts are typed or sent, or are its prompts. */
typedef enum { PROMPTS, TYPED, SENT } job_kind;

static dtl_need need_of(const job *j, job_kind kind) {
  dtl_need need = draft_of(j->policy), other = draft_of(j->other);
  if (kind == PROMPTS) return need > other ? need : other;
  return need == DTL_NEEDS_DRAFT ? DTL_NEEDS_DRAFT
                                 : DTL_ANY_DRAFT; /* because /policy and requests may name other policies */
}

/* Opens policies, pair, memory and corpus. */
static int open_all(job *j, job_kind kind, bool chats) {
  cli_options *o = j->options;
  int status = kind == SENT ? 0 : read_grammar_file(o);
  bool chosen = complete_policy(o);
  if (!status) status = open_policies(j);
  if (!status && kind == PROMPTS) status = read_prompts(j);
  if (!status) status = open_models(j, need_of(j, kind), chats);
  if (!status && kind == PROMPTS && chosen && !o->quiet)
    say("policy: rate, since none was named; dtrun --list names all");
  if (!status && kind != PROMPTS && j->found && j->draft && !o->quiet)
    say("draft: %s, found (--draft none: no draft)", j->draft);
  if (!status) status = open_tuned(j);
  return status ? status : open_memory(j);
}

int job_open(cli_options *o, job *j) {
  *j = (job){.options = o};
  dt_error err;
  const bool chats = o->chat || o->template || o->system || o->think || o->variables;
  int status = check_server_options(o);
  if (!status) status = refuse_tools(o);
  if (!status) status = complete_prompts(o);
  if (!status && o->json && json_check_path(o->json, &err)) status = complain_of(&err);
  if (!status) say_what_it_means(o);
  if (!status) status = check_logprobs(o);
  if (!status) status = open_all(j, PROMPTS, chats);
  if (!status && chats) status = wrap_prompts(j);
  if (!status && o->trace && dtl_trace_open(o->trace, &j->trace, &err)) status = complain_of(&err);
  return status;
}

/* Returns the name of an option that a conversation cannot use. */
static const char *misplaced(const cli_options *o) {
  return o->n_files || o->n_texts || o->prompts ? "--prompt, --text and --prompts"
         : o->compare                           ? "--compare"
         : o->json                              ? "--json"
         : cli_given(o, "--logprobs")           ? "--logprobs and --echo"
         : cli_given(o, "--answers")            ? "--answers"
         : o->trace                             ? "--trace"
                                                : NULL;
}

int job_open_chat(cli_options *o, job *j) {
  *j = (job){.options = o};
  if (misplaced(o)) return complain(EXIT_USAGE, "chat does not take %s: questions are typed", misplaced(o));
  if (check_server_options(o)) return EXIT_USAGE;
  say_what_it_means(o);
  int status = open_all(j, TYPED, true);
  return status ? status : open_chat(j);
}

int job_open_server(cli_options *o, job *j) {
  *j = (job){.options = o};
  if (refuse_tools(o)) return EXIT_USAGE;
  say_what_it_means(o);
  int status = open_all(j, SENT, o->template);
  return status ? status : job_costs(j);
}

static bool wants_table(const cli_options *o) { return o->in.costs && strcmp(o->in.costs, "table") == 0; }

static int open_learned(job *j) {
  dtl_learning how = dtl_learning_shown(&interrupted);
  if (!j->learned) j->learned = dtl_learned_open(j->pair, &how);
  return j->learned ? 0 : complain(EXIT_ENGINE, "out of memory: the costs of passes");
}

int job_costs(job *j) {
  if (!wants_table(j->options)) return open_learned(j);
  if (!uses_costs(j->policy) && !uses_costs(j->other)) return 0;
  dtl_cost_measuring how = dtl_cost_measuring_shown(&interrupted);
  how.context = j->options->in.request.context;
  how.batch = j->several ? j->slots : 1;
  if (j->options->quiet) how.progress = NULL;
  dt_error err;
  if (!dtl_measure_costs(j->pair, &how, &j->costs, &err)) return 0;
  return interrupted ? EXIT_INTERRUPTED : complain_of(&err);
}

dtl_request job_request(const job *j) {
  dtl_request r = j->options->in.request;
  r.slots = j->slots, r.answers = j->answers;
  r.costs = j->costs.batch ? &j->costs : NULL; /* 0: no costs have been measured */
  r.learned = j->learned, r.memory = j->memory, r.corpus = j->corpus;
  r.interrupt = &interrupted, r.begin_line = begin_line;
  if (j->call_grammar) r.seq.adjustments.grammar = j->call_grammar;
  const request_input *in = &j->options->in;
  if (j->chat) dtl_chat_options(j->chat, j->reasoning, request_limits_reasoning(in) && !in->grammar, &r);
  if (!r.seq.max_tokens) r.seq.max_tokens = TOKENS;
  return r;
}

int job_close(job *j) {
  dt_error err;
  int status = dtl_trace_close(j->trace, &err) ? complain_of(&err) : 0;
  dt_chat_close(j->chat);
  dtl_corpus_close(j->corpus);
  dtl_memory_close(j->memory);
  dtl_learned_close(j->learned);
  dt_pair_close(j->pair);
  dtl_policy_close(j->policy);
  dtl_policy_close(j->other);
  prompts_free(&j->prompts);
  return status;
}
