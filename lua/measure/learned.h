/* Learns costs pass by pass. Costs begin as an estimate, a table that may be far off. Each measured time becomes a
 * ratio to it, kept in the entry with the nearest number of rows and context. An entry counts the 35th percentile of
 * its last ratios: other programs only add time, so with three in ten times disturbed that is the median of the
 * undisturbed ones. shape.h derives the ratios of other rows and contexts. Of passes that read experts it keeps the
 * mean number by rows (learned_experts.c). Pure: reads no clock.
 *
 * What slow passes taught must not keep a policy from ever trying again (learned_doubt.c):
 * - A pass that is much faster than those before it shows that they were disturbed: their times are dropped.
 * - A time far above what the models' bytes let expect counts in part until passes of this process have confirmed it.
 * - What has not been seen for a while counts less and less compared with what other passes let expect, so that it is
 *   tried again; and where nothing but trees has been verified for a while, learned_wants_plain asks for a plain
 *   iteration. */
#ifndef DTL_LEARNED_H
#define DTL_LEARNED_H

#include "measure/costs.h"

#define LEARNED_KEPT 32 /* times of a place */
#define LEARNED_FEW 16  /* rows that wait for the weights more than for arithmetic */

typedef enum {
  LEARNED_TARGET, /* with one row of each sequence: plain decoding's, without draft passes before it */
  LEARNED_DRAFT,  /* a pass of the first draft after another one of it */
  LEARNED_FIRST,  /* its first pass of an iteration */
  LEARNED_DRAFT2, /* the same of the second */
  LEARNED_FIRST2,
  LEARNED_KINDS
} learned_kind;

/* The kind of a draft's passes. */
static inline learned_kind learned_kind_of(int draft, bool first) {
  return (learned_kind)(LEARNED_DRAFT + 2 * draft + (first ? 1 : 0));
}

static inline int learned_draft_of(learned_kind kind) { return ((int)kind - LEARNED_DRAFT) / 2; }

static inline bool learned_is_first(learned_kind kind) { return kind == LEARNED_FIRST || kind == LEARNED_FIRST2; }

typedef struct {
  float ratio[LEARNED_KEPT]; /* logarithms of time seen over time estimated */
  int n, next;               /* number of ratios; place of the next one */
  int fresh;                 /* how many of them passes of this process gave, LEARNED_KEPT at most */
  long seen_at;              /* l->targets when the last of these came; 0: it is a file's */
  float counts;              /* the percentile, unless new ratios came since */
  bool stale;
} learned_place;

/* Passes whose times hold together: of plain decoding, of the target over several rows, of a draft. */
enum { CLASS_PLAIN, CLASS_ROWS, CLASS_DRAFT, CLASS_DRAFT2, LEARNED_CLASSES };

/* Of passes with about so many rows of a target with experts. */
typedef struct {
  double mean; /* distinct experts */
  int n;       /* passes, LEARNED_KEPT at most: older ones fade */
} learned_count;

typedef struct {
  learned_place cache_miss[DTL_COST_MISSES]; /* of the costs' cache_miss */
  dtl_costs estimated;
  double log_rows[COSTS_ROWS]; /* of estimated.rows */
  dtl_costs shown;             /* the costs to count with, which change only when `revision` does */
  int revision;
  long passes;                   /* learned from, those of a file included */
  int waiting;                   /* passes since the last learned_look */
  int at[LEARNED_KINDS];         /* the context of the last one */
  long targets;                  /* passes of the target in this process, */
  long seen_at[LEARNED_CLASSES]; /* and their number when a class was seen last */
  learned_place place[LEARNED_KINDS][DTL_COST_CONTEXTS][COSTS_ROWS];
  learned_count count[COSTS_ROWS];
  double slower, more; /* see learned_experts.c */
} lessons;

/* The numbers behind the first estimate. */
typedef struct {
  double target_bytes, draft_bytes[DT_DRAFTS]; /* that a pass of the model reads */
  double target_token, draft_token[DT_DRAFTS]; /* bytes of a token's keys and values */
  double speed;                                /* bytes per millisecond */
  double row;                                  /* time of another row / time of a pass over one row, */
  double many;                                 /* and of a row beyond LEARNED_FEW, as of a prompt: arithmetic alone */
  int context, batch;                          /* the longest; sequences in a pass */
  int drafts;
} learned_guess;

void learned_begin(lessons *l, const learned_guess *guess);

/* Learns from one pass with `rows` rows of each of the table's sequences (a fraction if fewer took part) after
 * `context` tokens, that read this number of distinct experts (0: it has none). It ignores a bad time (NaN, 0, or
 * beyond a table's limit) and passes of a draft that the pair lacks. */
void learned_pass(lessons *l, learned_kind kind, double rows, int context, int experts, double ms);

/* Learns from a read of memory that was last read that many target passes ago: 0, 1, or more. */
void learned_cache_miss(lessons *l, int passes, double ms);

/* Learns from a measured table as from passes. `sampled`, `coupled`: adds the time of sampling, of coupled drafting. */
void learned_table(lessons *l, const dtl_costs *table, bool sampled, bool coupled);

/* If costs moved by more than a few percent since the last revision, makes a new one in `shown` and returns true. */
bool learned_look(lessons *l);

/* learned_experts.c: learns from passes with the row count i that read this number, and took exp(slower) times as long
 * as usual; fills `experts` and `expert` of costs whose target's times are learned; and the same as members of a JSON
 * object, which it returns false for if they are none. */
void learned_count_pass(lessons *l, int i, double experts, double slower, int times);
void learned_count_costs(const lessons *l, dtl_costs *out);
void learned_count_json(const lessons *l, struct cJSON *root);
bool learned_count_parse(lessons *l, const struct cJSON *root);

/* learned_place.c: adds a ratio, for which the oldest makes room; the percentile of a place's ratios, n > 0; and the
 * estimate for a pass (a draft's first one may have more rows, of committed tokens). */
void place_add(learned_place *place, double ratio);
double place_counted(learned_place *place);
double learned_estimate(const dtl_costs *c, learned_kind kind, double rows, int context);

/* learned_doubt.c: a pass with the row count i gave `place` this ratio. Drops times that it shows to have been
 * disturbed. */
void learned_doubt(lessons *l, learned_kind kind, int i, learned_place *place, double ratio);

/* The logarithm of the ratio that counts for the context k and the row count i of a kind, of which times are known. */
double learned_counted(lessons *l, learned_kind kind, int k, int i);

/* What the times of a place weigh: their number, or less if they are old. */
double learned_weight(const lessons *l, const learned_place *p);

/* Whether plain decoding's pass has not been seen for so long that an iteration without a tree is due. */
bool learned_wants_plain(const lessons *l);

/* learned_cache_miss.c: fill the cache misses of costs, return whether two of them differ enough to count, and write
 * and read the member of a JSON object. */
void learned_cache_miss_costs(lessons *l, double *cache_miss);
bool learned_cache_miss_moved(const double *a, const double *b);
void learned_cache_miss_json(lessons *l, struct cJSON *root);
bool learned_cache_miss_parse(lessons *l, const struct cJSON *root);

/* As a JSON object of schema dtrun.learned/2 with its key: malloc'd; NULL: out of memory. It keeps each entry's
 * percentile only. */
char *learned_json(lessons *l, const char *key);

/* Adds a JSON text's times to a fresh estimate. Returns NULL, or the mistake (static); then nothing is added. */
const char *learned_parse(lessons *l, const char *json, const char *key);

#endif
