/* What dtrun needs from the system beyond POSIX.1-2008. linux/ implements it with the calls of Linux; posix/, for
 * builds with DTRUN_POSIX, with POSIX alone. All other code uses POSIX. */
#ifndef DT_OS_H
#define DT_OS_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Sleeps until another thread calls os_wake after it has changed *word, but not if *word is not `value`. It may also
 * return early. */
void os_wait(atomic_int *word, int value);
void os_wake(atomic_int *word); /* wakes all threads that sleep on the word */

void os_set_idle(pthread_t thread, bool idle); /* an idle thread runs only when nothing else does */

/* A set of processors, or of NUMA nodes, by number. */
enum { OS_CPUS = 1024 };
typedef struct {
  uint64_t bits[OS_CPUS / 64];
} os_cpus;

static inline bool os_cpus_have(const os_cpus *set, int cpu) { return set->bits[cpu / 64] >> cpu % 64 & 1; }
static inline void os_cpus_add(os_cpus *set, int cpu) { set->bits[cpu / 64] |= UINT64_C(1) << cpu % 64; }
static inline void os_cpus_drop(os_cpus *set, int cpu) {
  if (cpu < OS_CPUS) set->bits[cpu / 64] &= ~(UINT64_C(1) << cpu % 64);
}
static inline int os_cpus_count(const os_cpus *set) {
  int n = 0;
  for (int i = 0; i < OS_CPUS / 64; i++) n += __builtin_popcountll(set->bits[i]);
  return n;
}

int os_online_cpus(void);             /* how many the machine has */
void os_allowed(os_cpus *set);        /* those that this thread may use; empty: unknown */
bool os_restrict(const os_cpus *set); /* lets this thread use these only; false: nothing has changed */
int os_cpu(void);                     /* the processor that this thread is on; -1: unknown */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Maps n bytes of zeros, which take memory when they are first touched; NULL: not possible. sparse: most of them
 * never are. */
void *os_map(size_t n, bool sparse);
void os_unmap(void *pages, size_t n);      /* all of a mapping, or whole pages of it */
void os_use_huge_pages(void *p, size_t n); /* if it fails, memory is only slower */
/* Distributes the pages over NUMA nodes in turn. They must be untouched. If it fails, memory is only slower. */
void os_interleave(void *p, size_t n, const os_cpus *nodes);
void os_populate(void *p, size_t n); /* touches pages that nothing was written to; a failure is harmless */

size_t os_free_memory(void);     /* bytes that this process may still take; SIZE_MAX: unknown */
size_t os_resident_memory(void); /* bytes of this process that are in memory; 0: unknown */
size_t os_peak_memory(void);     /* their maximum so far; 0: unknown */
void os_return_freed(void);      /* returns freed memory to the system, which free does only at the end of the heap */
void os_keep_heaps_small(void);  /* for a program that starts a thread for each job */

/* ---- the program ------------------------------------------------------------------------------------------------- */

bool os_program(char path[PATH_MAX]); /* the path of the running program */
/* A path that opens this program, on Linux even if its file has been replaced. It may be in `path`. */
const char *os_program_image(char path[PATH_MAX]);
/* The file that contains this code: the program, or the library in another program. */
bool os_own_file(char path[PATH_MAX]);

/* ---- the machine ------------------------------------------------------------------------------------------------- */

void os_processor_name(char *name, size_t size); /* if it is unknown, name stays */
long os_last_cache(void);                        /* bytes of the last cache; 0: unknown */
bool os_boot_id(char text[64]);                  /* changes at every start of the system; false: unknown */
bool os_grants_tiles(void);                      /* x86: allows this process to use the registers of AMX */
bool os_has_dotprod(void);                       /* ARM */
bool os_has_i8mm(void);

double os_stolen_ms(void);          /* time that other virtual machines took from the processors; 0: not counted */
long os_preemptions(bool children); /* of this process, or of the children that it waited for */
double os_coarse_ms(void);          /* the monotonic clock; cheaper and less precise than dt_clock_ms */

/* ---- files and bytes --------------------------------------------------------------------------------------------- */

/* Locks an open file until it is closed. false: another process has it (errno is EWOULDBLOCK; not if `wait`), or it
 * cannot be locked. */
bool os_lock(int fd, bool wait);
bool os_peer_left(int connection);     /* whether the other side has closed it */
bool os_random(void *bytes, size_t n); /* false: no source of random bytes */
/* Finds the first occurrence of the m bytes in the n bytes; NULL: there is none. */
void *os_find(const void *bytes, size_t n, const void *part, size_t m);

#endif
