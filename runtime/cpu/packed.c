/* See packed.h. A file: a header, the checksums of its blocks, and from the next page on the arena. */
#include "packed.h"

#include "system/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, PAGE = 4096, PATH = 4096, WORDS = 8, STALE_S = 7 * 24 * 3600, LEAST = 4 };
#define LIMIT UINT64_C(20000000000) /* bytes of all files; at most a tenth of the disk */
#define MAGIC "dtpack1"

typedef struct {
  char magic[8];
  uint64_t size; /* of the arena */
} header;

/* ---- the name ---------------------------------------------------------------------------------------------------- */

void packed_key_begin(packed_key *key, const dt_backend *b) {
  digest_begin(&key->of, "packed");
  digest_add_text(&key->of, cpu_layout());
  digest_add_text(&key->of, b->kernels->name);
  key->possible = b->packed != NULL;
}

void packed_key_add(packed_key *key, const void *bytes, size_t n) { digest_add(&key->of, bytes, n); }

/* A file is known by what changes when another takes its place, or when it is written to. */
static void add_source(packed_key *key, const dt_source *s) {
  struct stat st;
  if (s->fd < 0 || fstat(s->fd, &st)) {
    key->possible = false;
    return;
  }
  const int64_t what[] = {(int64_t)st.st_dev,         (int64_t)st.st_ino,          (int64_t)st.st_size,
                          (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec, (int64_t)st.st_ctim.tv_sec,
                          (int64_t)st.st_ctim.tv_nsec};
  digest_add(&key->of, what, sizeof what);
}

void packed_key_add_matrix(packed_key *key, const dt_matrix *m) {
  const int64_t what[] = {m->source != NULL, (int64_t)m->offset, m->dtype,  m->rows,   m->cols,
                          m->group,          m->stride,          m->zipped, m->across, (int64_t)m->scales_offset};
  digest_add(&key->of, what, sizeof what);
  digest_add(&key->of, &m->plus, sizeof m->plus);
  if (m->source) add_source(key, m->source);
  if (m->scales) add_source(key, m->scales);
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static size_t blocks_of(const cpu_arena *a) { return (a->size + BLOCK - 1) / BLOCK; }
static size_t block_bytes(const cpu_arena *a, size_t i) {
  const size_t left = a->size - i * BLOCK;
  return left < BLOCK ? left : BLOCK;
}
static off_t arena_at(size_t blocks) {
  return (off_t)((sizeof(header) + blocks * sizeof(uint64_t) + PAGE - 1) / PAGE * PAGE);
}

/* Several sums side by side, since a multiplication takes a few cycles. n: a multiple of 64. */
static uint64_t checksum(const char *bytes, size_t n) {
  uint64_t sum[WORDS] = {0}, all = n;
  for (size_t i = 0; i < n; i += sizeof sum)
    for (int w = 0; w < WORDS; w++) {
      uint64_t word;
      memcpy(&word, bytes + i + (size_t)w * sizeof word, sizeof word);
      sum[w] = (sum[w] ^ word) * UINT64_C(0x9E3779B97F4A7C15);
      sum[w] ^= sum[w] >> 29;
    }
  for (int w = 0; w < WORDS; w++) all = (all ^ sum[w]) * UINT64_C(0xBF58476D1CE4E5B9), all ^= all >> 31;
  return all;
}

static bool read_all(int fd, void *to, size_t n, off_t at) {
  for (size_t done = 0; done < n;) {
    const ssize_t got = pread(fd, (char *)to + done, n - done, at + (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static bool write_all(int fd, const void *from, size_t n, off_t at) {
  for (size_t done = 0; done < n;) {
    const ssize_t put = pwrite(fd, (const char *)from + done, n - done, at + (off_t)done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += (size_t)put;
  }
  return true;
}

typedef struct {
  int fd;
  const cpu_arena *arena;
  const uint64_t *sums;
  atomic_bool wrong;
} reading;

static void read_share(const cpu_member *me, void *context) {
  reading *r = context;
  int first, last;
  const size_t blocks = blocks_of(r->arena);
  cpu_share(me, (int)blocks, &first, &last);
  for (size_t i = (size_t)first; i < (size_t)last && !atomic_load(&r->wrong); i++) {
    char *to = r->arena->base + i * BLOCK;
    const size_t n = block_bytes(r->arena, i);
    if (!read_all(r->fd, to, n, arena_at(blocks) + (off_t)(i * BLOCK)) || checksum(to, n) != r->sums[i])
      atomic_store(&r->wrong, true);
  }
}

static bool path_of(const dt_backend *b, const char *name, const char *end, char path[PATH]) {
  return (size_t)snprintf(path, PATH, "%s/%s%s", b->packed, name, end) < PATH;
}

bool cpu_packed_read(const dt_backend *b, const char name[DIGEST_TEXT], cpu_arena *arena) {
  char path[PATH];
  header h;
  const size_t blocks = blocks_of(arena);
  const int fd = path_of(b, name, "", path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return false;
  uint64_t *sums = malloc(blocks * sizeof *sums);
  bool fine = sums && read_all(fd, &h, sizeof h, 0) && !memcmp(h.magic, MAGIC, sizeof h.magic) &&
              h.size == arena->size && read_all(fd, sums, blocks * sizeof *sums, sizeof h);
  if (fine) {
    reading r = {fd, arena, sums, false};
    cpu_team_run(b->team, read_share, &r);
    fine = !atomic_load(&r.wrong);
    if (!fine) memset(arena->base, 0, arena->size);
  }
  if (fine)
    futimens(fd, (const struct timespec[]){{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}}); /* was used now */
  else
    unlink(path);
  close(fd);
  free(sums);
  return fine;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* Creates the folder and those above it. */
static bool make_folder(const char *path) {
  char part[PATH];
  if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part) return false;
  for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(part, 0777);
    *slash = '/';
  }
  return !mkdir(part, 0777) || errno == EEXIST;
}

typedef struct {
  char name[DIGEST_TEXT + 8];
  uint64_t size;
  time_t used;
} entry;

static int by_use(const void *a, const void *b) {
  const time_t x = ((const entry *)a)->used, y = ((const entry *)b)->used;
  return (x > y) - (x < y);
}

/* Removes what was used least recently, until `more` bytes fit, and parts that nobody has continued for long. own: the
 * file that will have these bytes, which may be there. */
static void make_room(const char *folder, const char *own, uint64_t more) {
  enum { MOST = 4096 };
  struct statvfs disk;
  DIR *d = opendir(folder);
  entry *all = malloc(MOST * sizeof *all);
  size_t n = 0;
  uint64_t sum = more, limit = LIMIT;
  if (!statvfs(folder, &disk) && (uint64_t)disk.f_blocks * disk.f_frsize / 10 < limit)
    limit = (uint64_t)disk.f_blocks * disk.f_frsize / 10;
  for (const struct dirent *e; d && all && (e = readdir(d)) && n < MOST;) {
    struct stat st;
    if (strlen(e->d_name) >= sizeof all->name || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(st.st_mode) || !strcmp(e->d_name, own))
      continue;
    if (strchr(e->d_name, '.') && time(NULL) - st.st_mtime > STALE_S) {
      unlinkat(dirfd(d), e->d_name, 0);
      continue;
    }
    all[n] = (entry){.size = (uint64_t)st.st_size, .used = st.st_mtime};
    strcpy(all[n].name, e->d_name);
    sum += all[n++].size;
  }
  if (n) qsort(all, n, sizeof *all, by_use);
  for (size_t i = 0; i < n && sum > limit; i++)
    if (!unlinkat(dirfd(d), all[i].name, 0)) sum -= all[i].size;
  if (d) closedir(d);
  free(all);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct cpu_packed_writer {
  pthread_t thread;
  atomic_bool stops;
  const cpu_arena *arena;
  const char *folder; /* the backend's */
  char part[PATH], path[PATH];
};

/* Whether the open file is the one at this path, and nobody else writes to it. */
static bool is_mine(int fd, const char *path) {
  struct stat open, named;
  return os_lock(fd, false) && !fstat(fd, &open) && !stat(path, &named) && open.st_ino == named.st_ino;
}

/* Writes the blocks that are not in the file yet, at least a few of them, so that short runs end with a whole file,
 * too. false: not all are in it. */
static bool write_blocks(const cpu_packed_writer *w, int fd) {
  const cpu_arena *a = w->arena;
  const size_t blocks = blocks_of(a);
  struct stat st;
  bool fine = !fstat(fd, &st);
  size_t i = fine && st.st_size > arena_at(blocks) ? (size_t)(st.st_size - arena_at(blocks)) / BLOCK : 0;
  for (const size_t first = i; i < blocks && fine; i++) {
    const char *from = a->base + i * BLOCK;
    const uint64_t sum = checksum(from, block_bytes(a, i));
    fine = (i < first + LEAST || !atomic_load(&w->stops)) &&
           write_all(fd, &sum, sizeof sum, (off_t)(sizeof(header) + i * sizeof sum)) &&
           write_all(fd, from, block_bytes(a, i), arena_at(blocks) + (off_t)(i * BLOCK));
  }
  const header h = {.magic = MAGIC, .size = a->size};
  return fine && write_all(fd, &h, sizeof h, 0);
}

/* The file gets its name when it is whole. A writer that stops before leaves its part to the next one: blocks of two
 * runs fit together, since they differ in addresses at most, which the next start sets again. */
static void *write_file(void *context) {
  const cpu_packed_writer *w = context;
  os_set_idle(pthread_self(), true); /* nobody waits for it */
  if (!make_folder(w->folder)) return NULL;
  make_room(w->folder, strrchr(w->part, '/') + 1, w->arena->size);
  const int fd = open(w->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return NULL;
  if (is_mine(fd, w->part)) {
    const bool whole = write_blocks(w, fd);
    if (whole ? rename(w->part, w->path) != 0 : !atomic_load(&w->stops)) unlink(w->part);
  }
  close(fd);
  return NULL;
}

cpu_packed_writer *cpu_packed_write(const dt_backend *b, const char name[DIGEST_TEXT], const cpu_arena *arena) {
  cpu_packed_writer *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->arena = arena;
  w->folder = b->packed;
  if (path_of(b, name, "", w->path) && path_of(b, name, ".part", w->part) &&
      !pthread_create(&w->thread, NULL, write_file, w))
    return w;
  free(w);
  return NULL;
}

void cpu_packed_stop(cpu_packed_writer *w) {
  if (!w) return;
  atomic_store(&w->stops, true);
  os_set_idle(w->thread, false); /* now somebody does */
  pthread_join(w->thread, NULL);
  free(w);
}
