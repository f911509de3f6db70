/* Joins the ranks. Rank 0 goes on with its program, with a CPU backend that stands for all ranks. The other ranks
 * execute the calls that rank 0 sends. A process joins MPI's world once or never, so this file keeps that state in
 * static variables. */
#include "ranks/join.h"
#include "cpu/cpu.h"
#include "ranks/call.h"
#include "ranks/late.h"
#include "ranks/mpi.h"
#include "system/need.h"
#include "system/os.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static call_site here; /* ranks NULL: this process is not one of several */
static dt_backend_ops everywhere;

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

/* Sends a call to the other ranks, and executes it too. */
static dt_status make(const call *c, void **made, dt_error *err) {
  size_t bytes;
  int number;
  void *message = call_pack(c, &bytes);
  if (!message) return dt_fail_memory(err, "a message to the other ranks", bytes);
  here.ranks->tell(here.ranks, message, bytes);
  free(message);
  dt_status status = call_make(&here, c, &number, err);
  if (!status && made) *made = here.made[number];
  return status;
}

/* Sends a call that needs no memory and therefore cannot fail. */
static void tell_short(const call *c) {
  char message[CALL_SHORT];
  here.ranks->tell(here.ranks, message, call_pack_short(c, message));
}

static dt_status open_all(const dt_backend_options *o, dt_backend **out, dt_error *err) {
  call c = {.kind = CALL_OPEN, .n = o->threads};
  c.version = dt_version(), c.variant = o->variant, c.cache_dtype = o->cache_dtype, c.numa = o->numa;
  return make(&c, (void **)out, err);
}

static dt_status upload(dt_backend *b, const dt_model_desc *d, const dt_holding *how, dt_weights **out, dt_error *err) {
  if (!d->path) return dt_cpu_ops.upload(b, d, how, out, err);
  call c = {.kind = CALL_UPLOAD, .on = call_number(&here, b), .path = d->path, .rope = d->rope, .desc = d};
  if (how) c.how = *how;
  c.signature = call_signature(d);
  return make(&c, (void **)out, err);
}

static dt_status create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  int on = call_number(&here, w);
  if (on < 0) return dt_cpu_ops.create_cache(w, sequences, slots, out, err);
  return make(&(call){.kind = CALL_CREATE_CACHE, .on = on, .n = sequences, .slots = slots}, (void **)out, err);
}

static dt_status forward(dt_weights *w, dt_cache *cache, const dt_rows *rows, const dt_out *out, dt_error *err) {
  int on = call_number(&here, w);
  if (on < 0) return dt_cpu_ops.forward(w, cache, rows, out, err);
  call c = {.kind = CALL_FORWARD, .on = on, .with = call_number(&here, cache), .rows = *rows, .wants = out != NULL};
  if (out) c.out = *out;
  return make(&c, NULL, err);
}

static dt_status move(dt_cache *cache, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  int on = call_number(&here, cache);
  if (on < 0) return dt_cpu_ops.move(cache, sequence, from, to, n, err);
  return make(&(call){.kind = CALL_MOVE, .on = on, .sequence = sequence, .n = n, .from = from, .to = to}, NULL, err);
}

static int keep(dt_cache *cache, int sequence, int rows) {
  int on = call_number(&here, cache);
  if (on >= 0) tell_short(&(call){.kind = CALL_KEEP, .on = on, .sequence = sequence, .n = rows});
  return dt_cpu_ops.keep(cache, sequence, rows);
}

static dt_status snapshot(const dt_cache *cache, int sequence, int n, dt_snapshot **out, dt_error *err) {
  int on = call_number(&here, cache);
  if (on < 0) return dt_cpu_ops.snapshot(cache, sequence, n, out, err);
  return make(&(call){.kind = CALL_SNAPSHOT, .on = on, .sequence = sequence, .n = n}, (void **)out, err);
}

static dt_status restore(dt_cache *cache, int sequence, const dt_snapshot *s, dt_error *err) {
  int on = call_number(&here, cache);
  if (on < 0) return dt_cpu_ops.restore(cache, sequence, s, err);
  return make(&(call){.kind = CALL_RESTORE, .on = on, .with = call_number(&here, s), .sequence = sequence}, NULL, err);
}

/* Frees an object on all ranks; false: only this process has it. */
static bool freed_everywhere(call_kind kind, const void *made) {
  int on = call_number(&here, made);
  if (on < 0) return false;
  const call c = {.kind = kind, .on = on};
  tell_short(&c);
  call_make(&here, &c, NULL, NULL);
  return true;
}

static void close_all(dt_backend *b) { freed_everywhere(CALL_CLOSE, b); }

static void free_weights(dt_weights *w) {
  if (!freed_everywhere(CALL_FREE_WEIGHTS, w)) dt_cpu_ops.free_weights(w);
}

static void free_cache(dt_cache *cache) {
  if (!freed_everywhere(CALL_FREE_CACHE, cache)) dt_cpu_ops.free_cache(cache);
}

static void free_snapshot(dt_snapshot *s) {
  if (!freed_everywhere(CALL_FREE_SNAPSHOT, s)) dt_cpu_ops.free_snapshot(s);
}

const dt_backend_ops *ranks_backend(void) { return here.ranks ? &everywhere : NULL; }

int ranks_info(const dt_backend *b, dt_rank_info *all) {
  call c = {.kind = CALL_INFO, .on = call_number(&here, b)};
  if (c.on < 0) return 0;
  tell_short(&c);
  call_info(&here, &c, all);
  return here.ranks->count;
}

static void leave(void) {
  here.ranks->tell(here.ranks, "", 0);
  here.ranks->leave(here.ranks);
}

static void lead(void) {
  everywhere = dt_cpu_ops;
  everywhere.open = open_all, everywhere.close = close_all;
  everywhere.upload = upload, everywhere.free_weights = free_weights;
  everywhere.create_cache = create_cache, everywhere.free_cache = free_cache;
  everywhere.forward = forward, everywhere.move = move, everywhere.keep = keep;
  everywhere.snapshot = snapshot, everywhere.restore = restore, everywhere.free_snapshot = free_snapshot;
  atexit(leave); /* the other ranks wait for rank 0, however its program ends */
}

/* ---- the other ranks --------------------------------------------------------------------------------------------- */

static dt_status serve(dt_error *err) {
  for (;;) {
    size_t bytes;
    int number;
    call c;
    void *message = here.ranks->listen(here.ranks, &bytes);
    if (!message) return dt_fail_memory(err, "a message of rank 0", bytes);
    bool more = call_unpack(message, bytes, &c);
    if (more) call_make(&here, &c, &number, NULL); /* rank 0 reports the outcome */
    free(message);
    if (!more) break;
  }
  here.ranks->leave(here.ranks);
  return DT_OK;
}

/* ---- all ranks --------------------------------------------------------------------------------------------------- */

/* A variable that mpirun sets for the processes that it starts; 0: it is not set. */
static int number_of(const char *name) {
  const char *value = getenv(name);
  return value ? atoi(value) : 0;
}

/* Opens the MPI module, next to the program or where it is installed. */
static void *module(void) {
  static const char *const places[] = {"", "../lib/dtrun/"};
  char path[PATH_MAX + 64];
  void *loaded = NULL;
  if (!os_program(path)) return NULL;
  const size_t n = (size_t)(strrchr(path, '/') + 1 - path);
  for (int i = 0; i < 2 && !loaded; i++) {
    snprintf(path + n, sizeof path - n, "%sdtrun-mpi.so", places[i]);
    loaded = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  }
  return loaded;
}

bool dt_ranks_possible(void) {
  void *loaded = module();
  if (loaded) dlclose(loaded);
  return loaded != NULL;
}

enum { PATIENCE = 20, APART = 5 }; /* seconds */

/* Seconds that ranks may take to arrive. */
static dt_status patience(int *seconds, dt_error *err) {
  const char *value = getenv("DTRUN_JOIN_SECONDS");
  *seconds = PATIENCE;
  if (!value || !*value) return DT_OK;
  size_t digits = strspn(value, "0123456789");
  long said = value[digits] ? 0 : strtol(value, NULL, 10); /* at most the largest long */
  if (said < 1 || said > DT_RANKS_PATIENCE)
    return dt_fail(err, DT_EINPUT, "DTRUN_JOIN_SECONDS: '%.40s', expected a whole number of seconds, 1 to %d", value,
                   DT_RANKS_PATIENCE);
  *seconds = (int)said;
  return DT_OK;
}

/* Begins MPI, with a time limit if necessary. So that only one rank prints a line, each rank waits longer than the rank
 * before it, by more than mpirun needs to end all ranks after one has ended. */
static dt_status begin(dt_mpi_join_fn *join, int rank, int count, dt_ranks_late late, dt_error *err) {
  late_watch watch = {.call = late, .ranks = count};
  dt_status status = patience(&watch.seconds, rank ? NULL : err);
  if (status && !rank) return status;
  watch.wait = watch.seconds + rank * APART;
  if (late && (status = late_begin(&watch, err))) return status;
  here.ranks = join();
  if (late) late_end(&watch);
  return here.ranks ? DT_OK : dt_fail(err, DT_EDEVICE, "mpirun: MPI cannot be initialized");
}

/* Only rank 0 reports failures. */
static dt_status join_all(int rank, int count, dt_ranks_late late, dt_error *err) {
  void *loaded = count <= DT_RANKS ? module() : NULL;
  if (rank && !loaded) return DT_OK;
  if (count > DT_RANKS) return dt_fail(err, DT_EINPUT, "mpirun: %d ranks, at most %d are possible", count, DT_RANKS);
  if (!loaded)
    return dt_fail(err, DT_EINPUT,
                   "mpirun: this dtrun was built without MPI: install Open MPI (libopenmpi-dev) and build it again, or "
                   "run it without mpirun");
  dt_mpi_join_fn *join = NULL;
  *(void **)&join = dlsym(loaded, DT_MPI_JOIN);
  if (!join) return dt_fail(err, DT_EDEVICE, "mpirun: MPI cannot be initialized");
  dt_status status = begin(join, rank, count, late, err);
  if (status) return status;
  unsetenv("OMPI_COMM_WORLD_SIZE"); /* programs that we start are not ranks */
  if (here.ranks->rank) return serve(err);
  lead();
  return DT_OK;
}

dt_status dt_ranks_join(int *rank, int *ranks, dt_ranks_late late, dt_error *err) {
  NEED(rank, "rank");
  NEED(ranks, "ranks");
  int count = number_of("OMPI_COMM_WORLD_SIZE");
  *ranks = count > 1 ? count : 1;
  *rank = number_of("OMPI_COMM_WORLD_RANK");
  return count > 1 ? join_all(*rank, count, late, err) : DT_OK;
}
