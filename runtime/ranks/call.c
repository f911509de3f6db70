/* Executes the calls that ranks make together: see call.h. */
#include "ranks/call.h"
#include "cpu/cpu.h"
#include "model/model.h"
#include "ranks/exchange.h"
#include "ranks/same.h"
#include "ranks/witness.h"
#include "system/hash.h"
#include "system/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- agreement --------------------------------------------------------------------------------------------------- */

typedef struct {
  dt_error error;
  char host[64];
} outcome;

/* Exchanges the outcomes of a step, and returns the first failure on any rank. */
static dt_status agree(const call_site *site, const dt_error *here, dt_error *err) {
  const dt_ranks *ranks = site->ranks;
  outcome all[DT_RANKS], *mine = &all[ranks->rank];
  *mine = (outcome){.error = *here};
  gethostname(mine->host, sizeof mine->host - 1);
  ranks_exchange(site->ranks, all, sizeof *all);
  int i = 0;
  while (i < ranks->count && all[i].error.status == DT_OK) i++;
  if (i == ranks->count) return DT_OK;
  all[i].error.message[sizeof all[i].error.message - 1] = '\0', all[i].host[sizeof all[i].host - 1] = '\0';
  if (i == 0) return dt_fail(err, all[i].error.status, "%s", all[i].error.message);
  return dt_fail(err, all[i].error.status, "rank %d on %s: %.400s", i, all[i].host, all[i].error.message);
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

int call_number(const call_site *site, const void *made) {
  int i = 0;
  while (i < site->n && site->made[i] != made) i++;
  return made && i < site->n ? i : -1;
}

static void *at(const call_site *site, int number) {
  return number >= 0 && number < site->n ? site->made[number] : NULL;
}

/* Makes room for one more object. */
static dt_status make_room(call_site *site, dt_error *err) {
  int free_one = 0;
  while (free_one < site->n && site->made[free_one]) free_one++;
  if (free_one < site->n) return DT_OK;
  void **more = realloc(site->made, (size_t)(site->n + 1) * sizeof *more);
  if (!more) return dt_fail_memory(err, "a call", sizeof *more);
  site->made = more;
  more[site->n++] = NULL;
  return DT_OK;
}

static int keep(call_site *site, void *made) {
  int number = 0;
  while (site->made[number]) number++;
  site->made[number] = made;
  return number;
}

static void *take(call_site *site, int number) {
  void *made = at(site, number);
  if (made) site->made[number] = NULL;
  return made;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static dt_status open_backend(call_site *site, const call *c, void **made, dt_error *err) {
  dt_backend_options o = {
      .variant = c->variant, .threads = c->n, .cache_dtype = c->cache_dtype, .numa = c->numa, .ranks = site->ranks};
  if (!c->version || strcmp(c->version, dt_version()))
    return dt_fail(err, DT_EINPUT, "this is dtrun %s, rank 0 is dtrun %s: all ranks need the same version",
                   dt_version(), c->version ? c->version : "?");
  site->threads = c->n;
  return dt_cpu_ops.open(&o, (dt_backend **)made, err);
}

uint64_t call_signature(const dt_model_desc *d) {
  uint64_t hash = HASH_START;
  for (int i = 0; i < witness_matrices(d); i++) {
    const dt_matrix *m = witness_matrix(d, i);
    uint64_t numbers[] = {m->source ? m->source->size : 0, m->offset, (uint64_t)m->dtype, (uint64_t)m->rows,
                          (uint64_t)m->cols};
    hash = hash_bytes(hash, numbers, sizeof numbers);
  }
  return hash;
}

/* The other ranks first open their own copy of the model. */
static dt_status look_up(const call *c, model **m, dt_model_desc *desc, dt_error *err) {
  dt_status status = model_open_turned(c->path, &c->rope, m, err);
  if (status) return status;
  *desc = *model_desc(*m);
  desc->path = c->path;
  if (call_signature(desc) == c->signature) return DT_OK;
  return dt_fail(err, DT_EINPUT, "%s is another model here than on rank 0", c->path);
}

/* Uploads a model. All ranks take each step together, as long as none fails. */
static dt_status upload(const call_site *site, const call *c, void **made, dt_error *err) {
  model *m = NULL;
  same *s = NULL;
  dt_model_desc desc;
  dt_error here = {.status = DT_OK};
  if (c->desc)
    desc = *c->desc;
  else
    here.status = look_up(c, &m, &desc, &here);
  if (!here.status) here.status = same_open(site->ranks, &desc, site->threads, &s, &here);
  dt_status status = agree(site, &here, err);
  if (!status) {
    here.status = same_files(s, &here);
    status = agree(site, &here, err);
  }
  if (!status) {
    here.status = dt_cpu_ops.upload(at(site, c->on), same_desc(s), &c->how, (dt_weights **)made, &here);
    if (!here.status) here.status = same_was_seen(s, &here);
    status = agree(site, &here, err);
  }
  if (!status) {
    here.status = same_weights(s, &here);
    status = agree(site, &here, err);
  }
  same_close(s);
  model_close(m);
  return status;
}

/* Calls that make an object. */
static dt_status make(call_site *site, const call *c, void **made, dt_error *err) {
  switch ((call_kind)c->kind) {
  case CALL_OPEN: return open_backend(site, c, made, err);
  case CALL_CREATE_CACHE: return dt_cpu_ops.create_cache(at(site, c->on), c->n, c->slots, (dt_cache **)made, err);
  default: return dt_cpu_ops.snapshot(at(site, c->on), c->sequence, c->n, (dt_snapshot **)made, err);
  }
}

static void unmake(call_kind kind, void *made) {
  if (!made) return;
  switch (kind) {
  case CALL_OPEN:
  case CALL_CLOSE: dt_cpu_ops.close(made); break;
  case CALL_UPLOAD:
  case CALL_FREE_WEIGHTS: dt_cpu_ops.free_weights(made); break;
  case CALL_CREATE_CACHE:
  case CALL_FREE_CACHE: dt_cpu_ops.free_cache(made); break;
  default: dt_cpu_ops.free_snapshot(made);
  }
}

static dt_status make_everywhere(call_site *site, const call *c, int *number, dt_error *err) {
  void *made = NULL;
  dt_error here = {.status = DT_OK};
  here.status = make_room(site, &here);
  if (!here.status && c->kind != CALL_UPLOAD) here.status = make(site, c, &made, &here);
  dt_status status = agree(site, &here, err);
  if (!status && c->kind == CALL_UPLOAD) status = upload(site, c, &made, err);
  if (status)
    unmake((call_kind)c->kind, made);
  else
    *number = keep(site, made);
  return status;
}

dt_status call_make(call_site *site, const call *c, int *number, dt_error *err) {
  switch ((call_kind)c->kind) {
  case CALL_OPEN:
  case CALL_UPLOAD:
  case CALL_CREATE_CACHE:
  case CALL_SNAPSHOT: return make_everywhere(site, c, number, err);
  /* These fail because of their arguments, on all ranks alike. */
  case CALL_FORWARD:
    return dt_cpu_ops.forward(at(site, c->on), at(site, c->with), &c->rows, c->wants ? &c->out : NULL, err);
  case CALL_MOVE: return dt_cpu_ops.move(at(site, c->on), c->sequence, c->from, c->to, c->n, err);
  case CALL_KEEP: dt_cpu_ops.keep(at(site, c->on), c->sequence, c->n); break;
  case CALL_RESTORE: return dt_cpu_ops.restore(at(site, c->on), c->sequence, at(site, c->with), err);
  case CALL_CLOSE:
  case CALL_FREE_WEIGHTS:
  case CALL_FREE_CACHE:
  case CALL_FREE_SNAPSHOT: unmake((call_kind)c->kind, take(site, c->on)); break;
  case CALL_INFO: call_info(site, c, (dt_rank_info[DT_RANKS]){0}); break;
  }
  return DT_OK;
}

void call_info(call_site *site, const call *c, dt_rank_info *all) {
  dt_memory m = dt_cpu_ops.memory(at(site, c->on));
  dt_rank_info *mine = &all[site->ranks->rank];
  const char *name = dt_cpu_ops.describe(at(site, c->on));
  *mine =
      (dt_rank_info){.weights = m.weights, .caches = m.caches, .scratch = m.scratch, .resident = os_resident_memory()};
  snprintf(mine->kernels, sizeof mine->kernels, "%.*s", (int)strcspn(name, ","), name);
  gethostname(mine->host, sizeof mine->host - 1);
  ranks_exchange(site->ranks, all, sizeof *all);
}
