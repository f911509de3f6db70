/* A conversation: see talk.h. */
#include "cli/talk.h"

#include "cli/complain.h"
#include "cli/dimmed.h"
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

#define TOKENS 512 /* default maximum number of tokens of an answer */

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static void free_turn(const dtl_message *turn) {
  free((char *)turn->text), free((char *)turn->reasoning), free((char *)turn->members);
}

/* Adds a turn, whose malloc'd texts it takes over. */
static bool add_turn(talk *t, const dtl_message *turn) {
  dtl_message *grown = realloc(t->turns, (size_t)(t->n + 1) * sizeof *grown);
  if (grown) t->turns = grown;
  if (!grown || !turn->text) {
    free_turn(turn);
    complain(EXIT_ENGINE, "out of memory: the conversation");
    return false;
  }
  t->turns[t->n++] = *turn;
  return true;
}

static void drop_turns(talk *t, int left) {
  while (t->n > left) free_turn(&t->turns[--t->n]);
}

void talk_forget(talk *t) { drop_turns(t, 0); }

/* Writes the system text and the first n turns as a prompt. */
static dt_status write_turns(const talk *t, const dtl_message *turns, int n, int32_t **ids, int *n_ids,
                             dt_reasoning_state *reasoning, dt_error *err) {
  const char *system = t->options->system;
  dtl_message *all = calloc((size_t)n + 1, sizeof *all);
  int count = 0;
  if (!all) return dt_fail(err, DT_ENOMEM, "out of memory: the conversation");
  if (system) all[count++] = (dtl_message){.role = "system", .text = system, .len = strlen(system)};
  for (int i = 0; i < n; i++) all[count++] = turns[i];
  dt_status status = job_conversation(&t->j, all, count, ids, n_ids, reasoning, err);
  free(all);
  return status;
}

/* ---- the parts of an answer -------------------------------------------------------------------------------------- */

/* An answer's reasoning and the text for the user. */
typedef struct {
  char *text[2]; /* the text, the reasoning */
  size_t n[2];
} answer_parts;

static bool add_part(void *user, bool reasoning, const char *bytes, size_t len) {
  answer_parts *p = user;
  memcpy(p->text[reasoning] + p->n[reasoning], bytes, len);
  p->n[reasoning] += len;
  return true;
}

/* An answer as a turn: templates take its reasoning apart. The texts are malloc'd; NULL: out of memory. */
static dtl_message answer_turn(const talk *t, const dtl_result *r, bool open) {
  answer_parts p = {{malloc(r->text_len + 1), malloc(r->text_len + 1)}, {0}};
  dt_reasoning *parser;
  dt_error err;
  if (p.text[0] && p.text[1] && !dt_reasoning_open(t->j.chat, open, &parser, &err)) {
    dt_reasoning_add(parser, r->text, r->text_len, add_part, &p), dt_reasoning_end(parser, add_part, &p);
    dt_reasoning_close(parser);
    return (dtl_message){"assistant", p.text[0], p.n[0], p.text[1], p.n[1], NULL};
  }
  free(p.text[0]), free(p.text[1]);
  return (dtl_message){.role = "assistant"};
}

/* ---- an answer --------------------------------------------------------------------------------------------------- */

/* The speedup is relative to the learned time of plain decoding. It is not shown if other programs used the processors,
 * since it would look like a slowdown. If the default limit cut the answer, the line says so. */
static void say_speed(const talk *t, const dtl_result *r, const dtl_usage *before) {
  char why[DTL_WHY], line[80], cut[80] = "";
  dtl_usage after = dtl_usage_now(false);
  double plain = dtl_learned_plain(t->j.learned, r->stats.prompt_tokens + r->stats.generated);
  bool disturbed = dtl_disturbed(before, &after, strncmp(r->backend, "cpu", 3) == 0, why, sizeof why);
  report_speedup(r, disturbed ? 0 : plain, line, sizeof line);
  if (!t->options->in.request.seq.max_tokens && strcmp(r->finish_reason, "length") == 0)
    snprintf(cut, sizeof cut, "; cut at %d tokens: /set tokens %d allows more", TOKENS, 4 * TOKENS);
  printf("\033[2m%s%s\033[0m\n", line, cut);
}

static void count(talk *t, const dtl_result *r, const dtl_usage *before) {
  t->answers++;
  t->tokens += r->stats.generated;
  t->iterations += r->stats.iterations;
  t->committed += r->stats.committed;
  t->ms += r->stats.total_ms;
  if (t->stats)
    report_summary(r);
  else if (t->terminal && !t->options->quiet)
    say_speed(t, r, before);
}

/* Runs the policy on the conversation, whose last turn is a question, and shows the answer. */
static void generate_answer(talk *t, const int32_t *ids, int n_ids, bool open, dtl_result *result) {
  dt_error err;
  dimmed out = {0};
  dtl_prompt prompt = {.ids = ids, .n_ids = n_ids};
  dtl_request request = job_request(&t->j);
  request.prompts = &prompt, request.n = 1;
  request.session = t->session;
  request.on_text = dimmed_text, request.user = &out;
  if (t->options->color) request.on_text = shown_text, request.on_origin = shown_origin; /* each token as it comes */
  if (t->terminal && !t->options->color && dt_reasoning_open(t->j.chat, open, &out.parser, &err)) {
    complain_of(&err);
    return;
  }
  if (!t->options->in.request.seq.max_tokens) request.seq.max_tokens = TOKENS;
  bool ok = !dtl_generate(t->j.pair, t->j.policy, &request, result, &err) && !result->failed;
  if (result->failed) err = result->failure;
  if (dimmed_end(&out)) shown_text(&out, "\n", 1);
  if (out.out.out.lost) t->over = true, t->status = EXIT_ENGINE;
  if (!ok && err.status == DT_ECONTEXT)
    complain(0, "%s; /reset starts a new conversation", err.message);
  else if (!ok)
    complain_of(&err);
}

/* Answers the last turn, which is a question. An interrupted answer is kept as far as it came. False: there is no
 * answer. */
static bool answer(talk *t) {
  int32_t *ids;
  int n_ids;
  dt_error err;
  dtl_result result = {0};
  dtl_usage before = dtl_usage_now(false);
  if (write_turns(t, t->turns, t->n, &ids, &n_ids, &t->j.reasoning, &err)) {
    complain_of(&err);
    return false;
  }
  /* A grammar constrains the answer from its first token on. */
  const bool open = t->j.reasoning == DT_REASONING_OPEN && !t->options->in.grammar;
  char *grammar = NULL;
  if (t->tools.list && !t->options->in.grammar &&
      dtl_call_grammar(t->j.pair, t->j.chat, t->tools.format, t->tools.list, false, true, t->j.reasoning, &grammar,
                       &err))
    complain_of(&err);
  t->j.call_grammar = grammar;
  generate_answer(t, ids, n_ids, open, &result);
  t->j.call_grammar = NULL;
  free(grammar);
  free(ids);
  if (result.n_tokens > 0) count(t, &result, &before);
  dtl_message turn = answer_turn(t, &result, open);
  dt_called_free(&t->calls);
  if (t->tools.list && turn.text && chat_tools_take(&t->tools, &turn, &t->calls, &err)) complain_of(&err);
  bool ok = result.n_tokens > 0 && add_turn(t, &turn);
  if (result.n_tokens <= 0) free_turn(&turn);
  dtl_result_free(&result);
  return ok;
}

/* Adds the results of the last answer's calls. False: one is missing. */
static bool add_results(talk *t) {
  for (int i = 0; i < t->calls.n_calls; i++) {
    dtl_message result;
    if (!chat_tools_result(&t->tools, t->lines, &t->calls.calls[i], i, &result) || !add_turn(t, &result)) return false;
  }
  return true;
}

/* Answers the last turn, and goes on while an answer calls tools. */
static bool answer_with_results(talk *t) {
  enum { MOST_ROUNDS = 20 };
  for (int round = 0; round < MOST_ROUNDS; round++) {
    if (!answer(t)) return false;
    if (!t->calls.n_calls) return true;
    if (!add_results(t)) return false;
  }
  complain(0, "the answers called tools %d times: the question is dropped", MOST_ROUNDS);
  return false;
}

void talk_ask(talk *t, const char *question, size_t len) {
  char *copy = malloc(len + 1);
  if (copy) memcpy(copy, question, len), copy[len] = '\0';
  const int before = t->n;
  if (add_turn(t, &(dtl_message){.role = "user", .text = copy, .len = len}) && !answer_with_results(t))
    drop_turns(t, before);
}

void talk_again(talk *t) {
  if (t->n < 2) {
    complain(0, "there is no answer yet");
    return;
  }
  if (t->options->in.request.seq.sampling.temp > 0)
    t->options->in.request.seq.sampling.seed++;
  else
    say("at temperature 0 the answer would be the same; /temp 0.8 samples");
  dtl_message before = t->turns[--t->n];
  if (answer(t))
    free_turn(&before);
  else
    t->turns[t->n++] = before; /* there is room, since this turn was there before */
}

/* ---- the system text --------------------------------------------------------------------------------------------- */

void talk_system(talk *t, const char *text) {
  const char *before = t->options->system;
  char *copy = strdup(text);
  int32_t *ids;
  int n;
  dt_reasoning_state reasoning;
  dt_error err;
  if (!*text) {
    if (before) puts(before);
    if (!before) say("no system text except the template's own; /system TEXT sets one");
    free(copy);
    return;
  }
  t->options->system = copy;
  if (!copy) {
    complain(EXIT_ENGINE, "out of memory: the system text");
  } else if (!write_turns(t, &(dtl_message){.role = "user", .text = "?", .len = 1}, 1, &ids, &n, &reasoning,
                          &err)) { /* some templates take none */
    free(ids), free(t->system);
    t->system = copy;
    return;
  } else {
    complain_of(&err);
  }
  free(copy);
  t->options->system = before;
}

/* ---- reasoning --------------------------------------------------------------------------------------------------- */

static void set_think(talk *t, const char *value) {
  static const char *const values[] = {"on", "off", "auto"};
  const char *settings;
  dt_error err;
  for (int i = 0; i < 3; i++)
    if (strcmp(values[i], value) == 0) {
      if (dtl_think(t->j.chat, value, &settings, &err))
        complain(0, "/set %s", err.message);
      else
        t->options->think = values[i];
      return;
    }
  complain(0, "/set think %.60s: expected on, off or auto", value);
}

/* ---- the policy -------------------------------------------------------------------------------------------------- */

static void free_settings(dtl_setting *settings, int n) {
  for (int i = 0; i < n; i++) free((char *)settings[i].name), free((char *)settings[i].value);
  free(settings);
}

/* Returns a copy with room for one more setting; NULL: out of memory. */
static dtl_setting *copy_settings(const dtl_setting *from, int n) {
  dtl_setting *copy = calloc((size_t)n + 1, sizeof *copy);
  for (int i = 0; copy && i < n; i++) {
    copy[i] = (dtl_setting){strdup(from[i].name), strdup(from[i].value)};
    if (copy[i].name && copy[i].value) continue;
    free_settings(copy, n);
    copy = NULL;
  }
  return copy;
}

/* Uses the policy that `how` opens for answers, if it opens and suits this pair; otherwise it returns an exit
 * status. */
static int set_policy(talk *t, const dtl_policy_options *how) {
  dtl_policy *opened, *before = t->j.policy;
  dt_error err;
  if (dtl_policy_open(how, &opened, &err)) return complain_of(&err);
  const dtl_policy_info *info = dtl_policy_describe(opened);
  int status = 0;
  if (info->draft == DTL_NEEDS_DRAFT && !t->j.draft)
    status = complain(EXIT_USAGE, "%s needs a draft model: start dtrun chat with --draft MODEL", info->name);
  t->j.policy = opened;
  if (!status) status = job_costs(&t->j);
  if (status) t->j.policy = before;
  dtl_policy_close(status ? opened : before);
  if (!status) t->how = *how;
  return status;
}

void talk_policy(talk *t, const char *name) {
  char *copy = strdup(name);
  if (!*name) {
    complain(0, "/policy: the policy is %s; dtrun --list shows all", dtl_policy_describe(t->j.policy)->name);
  } else if (copy && set_policy(t, &(dtl_policy_options){.policy = copy}) == 0) {
    free(t->policy);
    free_settings(t->settings, t->n_settings);
    t->settings = NULL, t->n_settings = 0;
    t->policy = copy;
    return;
  }
  free(copy);
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static bool is_parameter(const dtl_policy_info *info, const char *name) {
  for (int i = 0; i < info->n_params; i++)
    if (strcmp(info->params[i].name, name) == 0) return true;
  return false;
}

/* Adds a setting to the policy and opens it again. */
static void set_parameter(talk *t, const char *name, const char *value) {
  int n = t->how.n_settings, at = 0;
  dtl_setting *settings = copy_settings(t->how.settings, n);
  while (settings && at < n && strcmp(settings[at].name, name) != 0) at++;
  if (settings && at == n) settings[n++].name = strdup(name);
  if (settings) free((char *)settings[at].value), settings[at].value = strdup(value);
  dtl_policy_options how = t->how;
  how.settings = settings, how.n_settings = n;
  if (!settings || !settings[at].name || !settings[at].value) {
    complain(EXIT_ENGINE, "out of memory: the settings");
    free_settings(settings, settings ? n : 0);
  } else if (set_policy(t, &how)) {
    free_settings(settings, n);
  } else {
    free_settings(t->settings, t->n_settings);
    t->settings = settings, t->n_settings = n;
  }
}

/* "none" turns a grammar off. For regex it is a text like any other. */
static dt_status set_field(talk *t, const request_field *f, const char *name, const char *value, dt_error *err) {
  request_input *in = &t->options->in, before = *in;
  if (f->kind == FIELD_GRAMMAR && strcmp(value, "none") == 0 && strcmp(f->name, "regex") != 0) {
    free(in->grammar);
    in->request.seq.adjustments.grammar = in->grammar = NULL;
    return DT_OK;
  }
  if (f->kind == FIELD_GRAMMAR) {
    dt_error inner;
    return request_grammar(in, f->name, value, &inner) ? dt_fail(err, inner.status, "%s: %s", name, inner.message)
                                                       : DT_OK;
  }
  dt_status status = request_text(in, f, name, value, err);
  if (!status) status = request_check(in, err);
  if (status) *in = before;
  return status;
}

static void fail_unknown(const dtl_policy_info *info, const char *name) {
  const char *names[100], *near[1];
  int n = 0;
  for (int i = 0; request_field_at(i); i++)
    if (request_field_at(i)->where & IN_SET) names[n++] = request_field_at(i)->name;
  for (int i = 0; i < info->n_params && n < 100; i++) names[n++] = info->params[i].name;
  if (dtl_near(name, strlen(name), names, n, near, 1))
    complain(0, "/set: no '%.60s': did you mean %s? /set lists all", name, near[0]);
  else
    complain(0, "/set: no '%.60s'; /set lists all", name);
}

void talk_set(talk *t, const char *name, const char *value) {
  const dtl_policy_info *info = dtl_policy_describe(t->j.policy);
  const dt_sampling *s = &t->options->in.request.seq.sampling;
  dt_error err;
  if (!*value)
    complain(0, "/set %.60s: expected a value, as in /set temp 0.8", name);
  else if (strcmp(name, "think") == 0)
    set_think(t, value);
  else if (is_parameter(info, name))
    set_parameter(t, name, value);
  else if (!cli_settable(name))
    fail_unknown(info, name);
  else if (set_field(t, cli_settable(name), name, value, &err))
    complain(0, "/set %s", err.message);
  else if (s->temp == 0 && (s->top_k || s->top_p > 0 || s->min_p > 0))
    say("at temperature 0 nothing is sampled; /temp 0.8 samples");
}

void talk_list_settings(const talk *t) {
  const dt_sampling *s = &t->options->in.request.seq.sampling;
  const dtl_policy_info *info = dtl_policy_describe(t->j.policy);
  printf("temp    %g\n", (double)s->temp);
  printf(s->top_k ? "top_k   %d\n" : "top_k   all\n", s->top_k);
  printf("top_p   %g\n", s->top_p > 0 ? (double)s->top_p : 1);
  printf("min_p   %g\n", (double)s->min_p);
  printf("seed    %llu\n", (unsigned long long)s->seed);
  printf("repeat_penalty    %g\n",
         t->options->in.request.seq.adjustments.repeat > 0 ? (double)t->options->in.request.seq.adjustments.repeat : 1);
  printf("presence_penalty  %g\n", (double)t->options->in.request.seq.adjustments.presence);
  printf("frequency_penalty %g\n", (double)t->options->in.request.seq.adjustments.frequency);
  printf("tokens  %d\n", t->options->in.request.seq.max_tokens ? t->options->in.request.seq.max_tokens : TOKENS);
  printf("think_tokens %d\n",
         request_limits_reasoning(&t->options->in) ? t->options->in.request.seq.adjustments.reasoning.tokens : -1);
  char grammar[72];
  dtl_clean(grammar, sizeof grammar, t->options->in.grammar ? t->options->in.grammar : "none",
            t->options->in.grammar ? strlen(t->options->in.grammar) : 4);
  printf("grammar %s\n", grammar);
  printf("think   %s\n", t->options->think ? t->options->think : "auto");
  if (info->n_params) printf("parameters of the policy %s:\n", info->name);
  for (int i = 0; i < info->n_params; i++) {
    char value[200], doc[200];
    const dtl_param *p = &info->params[i];
    dtl_clean(value, sizeof value, p->value ? p->value : "nil", p->value ? strlen(p->value) : 3);
    dtl_clean(doc, sizeof doc, p->doc, strlen(p->doc));
    printf("%-7s %-8s %s\n", p->name, value, doc);
  }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

void talk_close(talk *t) {
  drop_turns(t, 0);
  free(t->turns), free(t->policy), free(t->system);
  free_settings(t->settings, t->n_settings);
  line_close(t->lines);
  dt_called_free(&t->calls);
  chat_tools_close(&t->tools);
  dt_session_close(t->session);
}
