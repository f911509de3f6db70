/* Preloaded into dtrun by allocations.sh. At every STEP-th allocation of the main thread the process forks twice: in
 * one child this allocation fails, in the other this one and all that follow. The parent waits for each, checks how it
 * ended, and continues as if nothing had happened, so that one run tries all allocations.
 *
 * FAULTS=STEP,FIRST,LOG: which allocations (FIRST, FIRST + STEP, ..), and the file that receives mistakes and a sum.
 * FAULTS=one,N or FAULTS=all,N: without forks, the N-th allocation of this process fails, or all from there on. This is
 * for examining one case, and for programs whose files two processes cannot both write.
 *
 * A child must end by itself with status 0 or 1. With status 1 it has reported the cause in a line about memory, and
 * has written no line that the parent does not write; with status 0 it has written everything that the parent writes,
 * and any message is about memory. Standard output must be a file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60, FILES = 64, OUTPUT = 1 << 16, MOST_MISTAKES = 20 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

typedef enum { OFF, FORKS, ONE, ALL } fault_mode;

static fault_mode mode;
static long step, at, count; /* count: allocations so far; `at` is the next to fail */
static bool busy;            /* this file's own allocations */
static int log_file, child_out, child_err;
static struct { long tried, survived, mistakes; } sum;

/* What a child wrote that ended with 0 (whole) or 1, after the parent had written `from` bytes. */
typedef struct {
  long at;
  off_t from;
  bool all, whole;
  char *text;
} ending;
static ending *endings;

static void note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vdprintf(log_file, format, args);
  va_end(args);
}

static void mistake(long number, bool all, const char *what, const char *text) {
  if (sum.mistakes++ < MOST_MISTAKES)
    note("allocation %ld%s: %s: %s\n", number, all ? " and all after it" : "", what, text);
}

static void read_all(int fd, char *text) {
  ssize_t n = pread(fd, text, OUTPUT - 1, 0);
  text[n > 0 ? n : 0] = '\0';
}

/* One line, or one for each file that was to be written. */
static bool tells_of_memory(const char *text) {
  const char *line = text;
  for (const char *end; *line; line = end + 1)
    if (!(end = strchr(line, '\n')) || strncmp(line, "dtrun: ", 7) != 0) return false;
  return line > text && strcasestr(text, "memory");
}

static void judge(int status, bool all, off_t written) {
  static char text[OUTPUT];
  read_all(child_err, text);
  if (WIFSIGNALED(status)) {
    mistake(count, all, WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)), text);
  } else if (WEXITSTATUS(status) > 1) {
    mistake(count, all, "a wrong exit status", text);
  } else {
    bool failed = WEXITSTATUS(status) == 1;
    if ((failed || *text) && !tells_of_memory(text)) mistake(count, all, "a wrong message", text);
    sum.survived += !failed;
    read_all(child_out, text);
    endings = __libc_realloc(endings, sizeof *endings * (size_t)(sum.tried + 1));
    endings[sum.tried++] = (ending){count, written, all, !failed, strdup(text)};
  }
}

/* True in the child. */
static bool try_child(bool all) {
  off_t place[FILES], written = lseek(1, 0, SEEK_CUR);
  for (int fd = 0; fd < FILES; fd++) place[fd] = lseek(fd, 0, SEEK_CUR);
  if (ftruncate(child_out, 0) || ftruncate(child_err, 0)) _exit(99);
  pid_t child = fork();
  if (child == 0) {
    dup2(child_out, 1), dup2(child_err, 2);
    lseek(1, 0, SEEK_SET), lseek(2, 0, SEEK_SET);
    alarm(SECONDS);
    mode = all ? ALL : ONE;
    return true;
  }
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  for (int fd = 0; fd < FILES; fd++) /* which the two share */
    if (place[fd] >= 0) lseek(fd, place[fd], SEEK_SET);
  judge(status, all, written);
  return false;
}

/* Whether this allocation fails. */
static bool fails(void) {
  if (mode == OFF || busy || syscall(SYS_gettid) != getpid()) return false;
  if (++count < at) return false;
  if (mode == ALL) return true;
  if (mode == ONE) return count == at;
  at += step;
  busy = true;
  bool child = try_child(false) || try_child(true);
  if (child) at = count;
  busy = false;
  return child;
}

static void *none(void) {
  errno = ENOMEM;
  return NULL;
}

void *malloc(size_t size) { return fails() ? none() : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails() ? none() : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return size && fails() ? none() : __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) { return fails() ? none() : __libc_memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
  void *p = aligned_alloc(alignment, size);
  if (p) *out = p;
  return p ? 0 : ENOMEM;
}
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  if ((flags & MAP_ANONYMOUS) && fails()) return none(), MAP_FAILED;
  return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

__attribute__((constructor)) static void begin(void) {
  const char *faults = getenv("FAULTS");
  if (!faults) return;
  char kind[8], name[256];
  if (sscanf(faults, "%ld,%ld,%255s", &step, &at, name) == 3) {
    log_file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    child_out = memfd_create("stdout", 0), child_err = memfd_create("stderr", 0);
    mode = FORKS;
  } else if (sscanf(faults, "%7[a-z],%ld", kind, &at) == 2) {
    mode = strcmp(kind, "all") ? ONE : ALL;
  }
}

/* Whether each line of `part`, the last one as far as it goes, is in `all`. */
static bool has_lines(const char *all, char *part) {
  char *rest;
  for (char *line = strtok_r(part, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
    if (!strstr(all, line)) return false;
  return true;
}

/* The parent's end: now all that it wrote is known. */
__attribute__((destructor)) static void end(void) {
  static char text[OUTPUT];
  if (mode != FORKS) return;
  fflush(stdout);
  busy = true;
  read_all(open("/proc/self/fd/1", O_RDONLY), text);
  for (long i = 0; i < sum.tried; i++) {
    const ending *e = &endings[i];
    bool same = e->whole ? strcmp(e->text, text + e->from) == 0 : has_lines(text, e->text);
    if (!same) mistake(e->at, e->all, "other output", e->text);
  }
  note("%ld allocations, %ld failures tried, %ld survived, %ld mistakes\n", count, sum.tried, sum.survived,
       sum.mistakes);
}
