/* Learns costs pass by pass. Costs begin as an estimate, a table that may be far off. Each measured time is stored as
 * its ratio to the estimate, at the place with the nearest row count and context. The value of a place is the 35th
 * percentile of its last ratios: other programs only add time, so if three in ten times are disturbed, that is the
 * median of the undisturbed ones. shape.h derives the ratios of other row counts and contexts. For passes that read
 * experts, the mean number of experts is kept by row count (learned_experts.c). Pure functions, which read no clock.
 *
 * Slow passes must not keep a policy from ever trying again what was slow (learned_doubt.c):
 * - A pass that is much faster than earlier ones shows that those were disturbed, and their times are dropped.
 * - A time far above the estimate counts only in part until passes of this process have confirmed it.
 * - Times that were not seen for a while lose weight against what other passes imply, so that a policy tries again. If
 * only trees have been verified for a while, learned_wants_plain asks for a plain iteration. */
#ifndef DTL_LEARNED_H
#define DTL_LEARNED_H

#include "measure/costs.h"

#define LEARNED_KEPT 32 /* number of times that a place keeps */
#define LEARNED_FEW 16  /* up to this many rows a pass is estimated to be memory-bound, by the reading of weights */

typedef enum {
  LEARNED_TARGET, /* target passes; with one row of each sequence: plain decoding, without draft passes before */
  LEARNED_DRAFT,  /* later passes of the draft in an iteration; all passes of a block head */
  LEARNED_FIRST,  /* the first pass of the draft in an iteration */
  LEARNED_KINDS
} learned_kind;

typedef struct {
  float ratio[LEARNED_KEPT]; /* logarithms of (measured time / estimated time) */
  int n, next;               /* number of ratios; index of the next one */
  int fresh;                 /* how many of them come from passes of this process, LEARNED_KEPT at most */
  long seen_at;              /* l->targets at the last of these; 0: all come from a file */
  float counts;              /* the percentile, unless `stale` */
  bool stale;
} learned_place;

/* Classes of passes whose times vary together: plain decoding, target passes over several rows, passes of the draft. */
enum { CLASS_PLAIN, CLASS_ROWS, CLASS_DRAFT, LEARNED_CLASSES };

/* How many distinct experts the target's passes with about a given row count read. */
typedef struct {
  double mean; /* number of distinct experts */
  int n;       /* number of passes, LEARNED_KEPT at most: older ones fade */
} learned_count;

typedef struct {
  learned_place cache_miss[DTL_COST_MISSES]; /* times of the costs' cache_miss */
  learned_place read;                        /* logarithms of the ms of the costs' read */
  dtl_costs estimated;
  double log_rows[COSTS_ROWS]; /* logarithms of estimated.rows */
  dtl_costs shown;             /* the learned costs, which change only when `revision` does */
  int revision;
  long passes;                   /* number of passes learned from, those of a file included */
  int waiting;                   /* passes since the last learned_look */
  int at[LEARNED_KINDS];         /* index of the context of the last pass of each kind */
  long targets;                  /* number of target passes in this process */
  long seen_at[LEARNED_CLASSES]; /* `targets` when a class was seen last */
  learned_place place[LEARNED_KINDS][DTL_COST_CONTEXTS][COSTS_ROWS];
  learned_count count[COSTS_ROWS];
  double slower, more; /* see learned_experts.c */
} lessons;

/* The numbers that the first estimate is made from. */
typedef struct {
  double target_bytes, draft_bytes; /* bytes that a pass of the model reads */
  double target_token, draft_token; /* bytes of a token's keys and values */
  double speed;                     /* bytes per millisecond */
  double row;                       /* time of another row / time of a pass over one row */
  double many;                      /* the same for rows beyond LEARNED_FEW, which are compute-bound */
  int context, batch;               /* longest context; sequences in a pass */
  bool drafts;                      /* the pair has a draft */
  int block;                        /* as in dtl_costs */
} learned_guess;

/* Begins with an estimate. */
void learned_begin(lessons *l, const learned_guess *guess);

/* Learns from one pass over `rows` rows of each of the table's sequences (a fraction if fewer took part), after
 * `context` tokens, that read `experts` distinct experts (0: the model has none) and took `ms` ms. It ignores invalid
 * times (NaN, 0, or beyond a table's limit) and passes of a draft if the pair has none. */
void learned_pass(lessons *l, learned_kind kind, double rows, int context, int experts, double ms);

/* Learns from a timed read of memory that was last read `passes` target passes ago: 0, 1, or more. */
void learned_cache_miss(lessons *l, int passes, double ms);

/* Learns from the time in which the draft has processed n tokens of a text without guessing. Short texts are ignored.
 */
void learned_read(lessons *l, int n, double ms);

/* Learns from a measured table as from passes. `sampled`, `coupled`: adds the time of sampling and of coupled drafting.
 */
void learned_table(lessons *l, const dtl_costs *table, bool sampled, bool coupled);

/* If costs have changed by more than a few percent since the last revision, updates `shown` and `revision` and returns
 * true. */
bool learned_look(lessons *l);

/* learned_experts.c. learned_count_pass learns from `times` passes with row count index i that read `experts` distinct
 * experts and took exp(slower) times as long as usual. learned_count_costs fills `experts` and `expert` of costs whose
 * target times are learned. The last two write and read these numbers as members of a JSON object; learned_count_parse
 * returns false if they are invalid. */
void learned_count_pass(lessons *l, int i, double experts, double slower, int times);
void learned_count_costs(const lessons *l, dtl_costs *out);
void learned_count_json(const lessons *l, struct cJSON *root);
bool learned_count_parse(lessons *l, const struct cJSON *root);

/* learned_place.c. place_add adds a ratio, which replaces the oldest one. place_counted is the percentile of a place's
 * ratios, n > 0. learned_estimate is the estimated time of a pass in ms; for a draft's first pass `rows` may include
 * committed tokens. */
void place_add(learned_place *place, double ratio);
double place_counted(learned_place *place);
struct cJSON *place_entry(double ms, int times);                          /* [ms, times] */
bool place_entry_read(const struct cJSON *entry, double *ms, int *times); /* false: it is something else */
double learned_estimate(const dtl_costs *c, learned_kind kind, double rows, int context);

/* learned_doubt.c. Drops times that a new pass shows to have been disturbed. The pass had row count index i and added
 * `ratio` to `place`. */
void learned_doubt(lessons *l, learned_kind kind, int i, learned_place *place, double ratio);

/* The logarithm of the ratio that counts for context k and row count i of a kind, for which times are known. */
double learned_counted(lessons *l, learned_kind kind, int k, int i);

/* The weight of a place's times: their number, or less if they are old. */
double learned_weight(const lessons *l, const learned_place *p);

/* Whether a pass of plain decoding has not been seen for so long that an iteration without a tree is due. */
bool learned_wants_plain(const lessons *l);

/* learned_cache_miss.c. The functions fill cache_miss of costs, return whether two of them differ enough to matter, and
 * write and read the member of a JSON object. */
void learned_cache_miss_costs(lessons *l, double *cache_miss);
bool learned_cache_miss_moved(const double *a, const double *b);
void learned_cache_miss_json(lessons *l, struct cJSON *root);
bool learned_cache_miss_parse(lessons *l, const struct cJSON *root);

/* learned_read.c: the same for `read`. */
double learned_read_costs(lessons *l);
bool learned_read_moved(double a, double b);
void learned_read_json(lessons *l, struct cJSON *root);
bool learned_read_parse(lessons *l, const struct cJSON *root);

/* The learned costs as a JSON object of schema dtrun.learned/2 with this key, which has only the percentile of each
 * place. malloc'd; NULL: out of memory. */
char *learned_json(lessons *l, const char *key);

/* Adds the times in a JSON text to a new estimate. Returns NULL, or the mistake (static), after which nothing is added.
 */
const char *learned_parse(lessons *l, const char *json, const char *key);

#endif
